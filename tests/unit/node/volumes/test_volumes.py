"""Volumes: what is in them, that it changes all at once, and what is refused."""

import datetime as dt
import pathlib
from typing import Any

import msgspec
import pytest

from drachma import errors
from drachma.api import hooks, meta
from drachma.node.runningpod import RunningPod
from drachma.node.runtimes.protocol import Mount
from drachma.node.volumes import atomicwriter
from drachma.node.volumes.payload import File
from drachma.node.volumes.podvolumes import PodVolumes
from tests.unit.node.test_environment import Objects

NOW = dt.datetime(2026, 1, 2, 3, 4, 5, tzinfo=dt.UTC)


class Clock:
    """A clock that is moved by hand."""

    def __init__(self) -> None:
        self.now = NOW

    def utc(self) -> dt.datetime:
        return self.now

    def monotonic(self) -> float:
        return self.now.timestamp()

    async def sleep(self, seconds: float) -> None:
        raise AssertionError("nobody waits here")


class Sources(Objects):
    """Objects, and tokens that are numbered and good for an hour."""

    def __init__(self, objects: dict[str, dict[str, str]], clock: Clock) -> None:
        super().__init__(objects)
        self._clock = clock
        self.tokens = 0

    async def token(self, account: str, *, audience: str, seconds: int, pod: meta.ObjectMeta) -> tuple[str, str]:
        self.tokens += 1
        until = self._clock.now + dt.timedelta(seconds=seconds)
        return f"{account}-{self.tokens}", until.isoformat()


def _pod(*volumes: dict[str, Any], mounts: tuple[dict[str, Any], ...] = ()) -> RunningPod:
    document = {
        "metadata": {"name": "p", "namespace": "default", "uid": "u1", "labels": {"app": "web"}},
        "spec": {"volumes": list(volumes), "containers": [{"name": "c", "volumeMounts": list(mounts)}]},
    }
    return msgspec.convert(document, RunningPod, dec_hook=hooks.decode)


def _files(folder: pathlib.Path) -> dict[str, str]:
    """What a container sees."""
    seen = {}
    for path in folder.rglob("*"):
        name = path.relative_to(folder).as_posix()
        if path.is_file() and not name.startswith(".."):
            seen[name] = path.read_text()
    for link in folder.iterdir():
        if link.is_dir() and not link.name.startswith(".."):
            seen |= {f"{link.name}/{file.relative_to(link)}": file.read_text() for file in link.rglob("*")}
    return seen


def test_files_change_all_at_once(tmp_path: pathlib.Path) -> None:
    first = {"a": File(b"1", 0o644), "sub/b": File(b"2", 0o400)}
    assert atomicwriter.write(tmp_path, first, now=NOW)
    assert not atomicwriter.write(tmp_path, first, now=NOW)
    assert _files(tmp_path) == {"a": "1", "sub/b": "2"}
    assert (tmp_path / "sub" / "b").stat().st_mode & 0o777 == 0o400
    behind = (tmp_path / "..data").resolve()
    assert atomicwriter.write(tmp_path, {"a": File(b"3", 0o644), "c": File(b"4", 0o644)}, now=NOW)
    assert _files(tmp_path) == {"a": "3", "c": "4"}
    assert not behind.exists()


@pytest.mark.parametrize("path", ["/etc/passwd", "../x", "a/../../x", ""])
def test_files_stay_in_their_volume(tmp_path: pathlib.Path, path: str) -> None:
    with pytest.raises(ValueError, match="leads out of the volume"):
        atomicwriter.write(tmp_path / "v", {path: File(b"", 0o644)}, now=NOW)


async def test_what_is_in_volumes(tmp_path: pathlib.Path) -> None:
    clock = Clock()
    volumes = PodVolumes(tmp_path, allocatable={}, time=clock)
    sources = Sources({"m": {"k": "v", "l": "w"}, "ca": {"ca.crt": "cert"}}, clock)
    of = _pod(
        {"name": "all", "configMap": {"name": "m"}},
        {"name": "one", "secret": {"secretName": "m", "items": [{"key": "k", "path": "deep/file", "mode": 0o400}]}},
        {"name": "absent", "configMap": {"name": "x", "optional": True}},
        {"name": "self", "downwardAPI": {"items": [{"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}}]}},
        {"name": "scratch", "emptyDir": {}},
        {
            "name": "token",
            "projected": {
                "sources": [
                    {"serviceAccountToken": {"path": "token", "expirationSeconds": 3600}},
                    {"configMap": {"name": "ca", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
                    {
                        "downwardAPI": {
                            "items": [{"path": "namespace", "fieldRef": {"fieldPath": "metadata.namespace"}}]
                        }
                    },
                ]
            },
        },
    )
    await volumes.make(of, sources)  # type: ignore[arg-type]
    assert _files(tmp_path / "all") == {"k": "v", "l": "w"}
    assert _files(tmp_path / "one") == {"deep/file": "v"}
    assert _files(tmp_path / "absent") == {}
    assert _files(tmp_path / "self") == {"labels": 'app="web"'}
    assert (tmp_path / "scratch").is_dir()
    token = {"token": "default-1", "ca.crt": "cert", "namespace": "default"}
    assert _files(tmp_path / "token") == token
    clock.now += dt.timedelta(minutes=40)
    await volumes.make(of, sources)  # type: ignore[arg-type]
    assert _files(tmp_path / "token") == token
    clock.now += dt.timedelta(minutes=10)
    await volumes.make(of, sources)  # type: ignore[arg-type]
    assert _files(tmp_path / "token") == {**token, "token": "default-2"}


@pytest.mark.parametrize(
    ("volume", "want"),
    [
        pytest.param({"configMap": {"name": "x"}}, 'configmap "x" not found', id="no-object"),
        pytest.param(
            {"secret": {"secretName": "m", "items": [{"key": "x", "path": "x"}]}},
            "references non-existent secret key: x",
            id="no-key",
        ),
        pytest.param(
            {"hostPath": {"path": "/dev/null", "type": "Directory"}},
            "hostPath type check failed: /dev/null is not a directory",
            id="host-path",
        ),
        pytest.param({"nfs": {"server": "x"}}, "volumes of this kind are not served by this agent", id="other"),
    ],
)
async def test_volumes_that_cannot_be_made(tmp_path: pathlib.Path, volume: dict[str, Any], want: str) -> None:
    clock = Clock()
    volumes = PodVolumes(tmp_path, allocatable={}, time=clock)
    with pytest.raises(errors.NodeError) as refused:
        await volumes.make(_pod({"name": "v", **volume}), Sources({"m": {"k": "v"}}, clock))  # type: ignore[arg-type]
    assert str(refused.value) == f'MountVolume.SetUp failed for volume "v" : {want}'


def test_where_containers_see_them(tmp_path: pathlib.Path) -> None:
    of = _pod(
        {"name": "data", "emptyDir": {}},
        {"name": "settings", "configMap": {"name": "m"}},
        {"name": "host", "hostPath": {"path": "/srv"}},
        mounts=(
            {"name": "data", "mountPath": "/data", "subPathExpr": "$(NAME)"},
            {"name": "settings", "mountPath": "/etc/settings"},
            {"name": "host", "mountPath": "/srv", "readOnly": True},
        ),
    )
    volumes = PodVolumes(tmp_path, allocatable={}, time=Clock())
    assert volumes.mounts(of, of.container("c"), {"NAME": "mine"}) == [
        Mount(str(tmp_path / "data" / "mine"), "/data"),
        Mount(str(tmp_path / "settings"), "/etc/settings", is_read_only=True),
        Mount("/srv", "/srv", is_read_only=True),
    ]
    with pytest.raises(errors.NodeError, match="leads out of the volume"):
        volumes.mounts(of, of.container("c"), {"NAME": ".."})
