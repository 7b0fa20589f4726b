"""Volumes: their content, atomic updates and refusals."""

import datetime as dt
import os
import pathlib
import stat
from typing import Any

import msgspec
import pytest

from drachma import errors
from drachma.api import hooks, meta
from drachma.node.podview.pod import PodView
from drachma.node.podview.security import PodSecurityContext
from drachma.node.podview.volumes import HostPathVolume
from drachma.node.runtimes.protocol import Mount
from drachma.node.setup.volumes import atomicwriter, podvolumes, subpathmounts
from drachma.node.setup.volumes.payload import File
from drachma.node.setup.volumes.podvolumes import PodVolumes
from tests.unit.node.setup.test_environment import Objects
from tests.unit.node.setup.volumes import races
from tests.unit.node.setup.volumes.rights import needs_mounts

PROBLEM = 'failed to prepare subPath for volumeMount "v" of container "c"'
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


def _pod(*volumes: dict[str, Any], mounts: tuple[dict[str, Any], ...] = ()) -> PodView:
    document = {
        "metadata": {"name": "p", "namespace": "default", "uid": "u1", "labels": {"app": "web"}},
        "spec": {"volumes": list(volumes), "containers": [{"name": "c", "volumeMounts": list(mounts)}]},
    }
    return msgspec.convert(document, PodView, dec_hook=hooks.decode)


def _files(folder: pathlib.Path) -> dict[str, str]:
    """Return the files that a container sees, by path."""
    contents = {}
    for path in folder.rglob("*"):
        name = path.relative_to(folder).as_posix()
        if path.is_file() and not name.startswith(".."):
            contents[name] = path.read_text()
    for link in folder.iterdir():
        if link.is_dir() and not link.name.startswith(".."):
            contents |= {f"{link.name}/{file.relative_to(link)}": file.read_text() for file in link.rglob("*")}
    return contents


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
    volumes = PodVolumes(tmp_path, allocatable={}, clock=clock)
    sources = Sources({"m": {"k": "v", "l": "w"}, "ca": {"ca.crt": "cert"}}, clock)
    view = _pod(
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
    await volumes.make(view, sources)  # type: ignore[arg-type]
    assert _files(tmp_path / "volumes" / "all") == {"k": "v", "l": "w"}
    assert _files(tmp_path / "volumes" / "one") == {"deep/file": "v"}
    assert _files(tmp_path / "volumes" / "absent") == {}
    assert _files(tmp_path / "volumes" / "self") == {"labels": 'app="web"'}
    assert (tmp_path / "volumes" / "scratch").is_dir()
    token = {"token": "default-1", "ca.crt": "cert", "namespace": "default"}
    assert _files(tmp_path / "volumes" / "token") == token
    clock.now += dt.timedelta(minutes=40)
    await volumes.make(view, sources)  # type: ignore[arg-type]
    assert _files(tmp_path / "volumes" / "token") == token
    clock.now += dt.timedelta(minutes=10)
    await volumes.make(view, sources)  # type: ignore[arg-type]
    assert _files(tmp_path / "volumes" / "token") == {**token, "token": "default-2"}


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
    volumes = PodVolumes(tmp_path, allocatable={}, clock=clock)
    with pytest.raises(errors.NodeError) as error:
        await volumes.make(_pod({"name": "v", **volume}), Sources({"m": {"k": "v"}}, clock))  # type: ignore[arg-type]
    assert str(error.value) == f'MountVolume.SetUp failed for volume "v" : {want}'


async def test_where_containers_see_them(tmp_path: pathlib.Path) -> None:
    view = _pod(
        {"name": "data", "emptyDir": {}},
        {"name": "settings", "configMap": {"name": "m"}},
        {"name": "host", "hostPath": {"path": "/srv"}},
        mounts=(
            {"name": "data", "mountPath": "data", "bindMountOptions": ["nosuid"]},
            {"name": "settings", "mountPath": "/etc/settings"},
            {"name": "host", "mountPath": "/srv", "readOnly": True},
        ),
    )
    volumes = await _make_volumes(view, tmp_path)
    assert volumes.mounts(view, view.container("c"), {}) == [
        Mount(str(tmp_path / "volumes" / "data"), "/data", options=("nosuid",)),
        Mount(str(tmp_path / "volumes" / "settings"), "/etc/settings", is_read_only=True),
        Mount("/srv", "/srv", is_read_only=True),
    ]


async def _make_volumes(view: PodView, folder: pathlib.Path) -> PodVolumes:
    clock = Clock()
    volumes = PodVolumes(folder, allocatable={}, clock=clock)
    await volumes.make(view, Sources({"m": {"k": "v"}}, clock))  # type: ignore[arg-type]
    return volumes


def _sub_path_view(path: str, volume: dict[str, Any] | None = None) -> PodView:
    mount = {"name": "v", "mountPath": "/v", "subPathExpr": path}
    return _pod({"name": "v", **(volume or {"emptyDir": {}})}, mounts=(mount,))


@needs_mounts
async def test_a_sub_path_is_what_it_led_to_when_it_was_mounted(tmp_path: pathlib.Path) -> None:
    view = _sub_path_view("$(NAME)/deep")
    volumes = await _make_volumes(view, tmp_path / "u1")
    volume = tmp_path / "u1" / "volumes" / "v"
    for _ in range(2):
        (mount,) = volumes.mounts(view, view.container("c"), {"NAME": "mine"})
    inside = volume / "mine" / "deep"
    assert stat.S_IMODE(inside.stat().st_mode) == 0o777
    assert mount == Mount(str(tmp_path / "u1" / "volume-subpaths" / "c" / "v" / "0"), "/v")
    inside.rename(volume / "moved")
    inside.symlink_to(tmp_path)
    (volume / "moved" / "file").write_text("x")
    assert [each.name for each in pathlib.Path(mount.source).iterdir()] == ["file"]
    volumes.release("c")
    assert not pathlib.Path(mount.source).exists()
    volumes.mounts(view, view.container("c"), {"NAME": "yours"})
    (tmp_path / "precious").write_text("x")
    podvolumes.remove(tmp_path / "u1")
    assert [each.name for each in tmp_path.iterdir()] == ["precious"]


@needs_mounts
async def test_no_race_leads_a_mount_out_of_its_volume(tmp_path: pathlib.Path) -> None:
    view = _sub_path_view("door/in")
    volumes = await _make_volumes(view, tmp_path / "u1")
    volume, outside = tmp_path / "u1" / "volumes" / "v", tmp_path / "outside"
    (volume / "door" / "in").mkdir(parents=True)
    (volume / "door" / "in" / "inside").touch()
    (outside / "in").mkdir(parents=True)
    (volume / "decoy").symlink_to(outside)
    counts = {"mounted": 0, "refused": 0}
    with races.exchanging(volume, "door", "decoy"):
        for _ in range(300):
            try:
                (mount,) = volumes.mounts(view, view.container("c"), {})
            except errors.NodeError:
                counts["refused"] += 1
            else:
                counts["mounted"] += 1
                assert (pathlib.Path(mount.source) / "inside").exists()
    assert all(counts.values())
    podvolumes.remove(tmp_path / "u1")
    assert not (tmp_path / "u1").exists()


@needs_mounts
async def test_a_sub_path_may_be_a_key_of_a_config_map(tmp_path: pathlib.Path) -> None:
    view = _sub_path_view("k", {"configMap": {"name": "m"}})
    volumes = await _make_volumes(view, tmp_path / "u1")
    (mount,) = volumes.mounts(view, view.container("c"), {})
    assert pathlib.Path(mount.source).read_text() == "v"
    podvolumes.remove(tmp_path / "u1")
    assert not (tmp_path / "u1").exists()


@pytest.mark.parametrize(
    ("link", "path", "want"),
    [
        pytest.param("/etc", "link", PROBLEM, id="absolute"),
        pytest.param("../../..", "link/etc", PROBLEM, id="upwards"),
        pytest.param("/etc", "link/made-by-a-container", PROBLEM, id="nothing-is-made-outside"),
        pytest.param("missing", "link", PROBLEM, id="leads-nowhere"),
        pytest.param("loop", "loop", PROBLEM, id="loop"),
        pytest.param("/etc", "..", "unable to provision SubPath `..`: must not contain '..'", id="dots"),
        pytest.param("/etc", "/etc", "error SubPath `/etc` must not be an absolute path", id="path"),
        pytest.param("/etc", "a\0b", PROBLEM, id="null"),
    ],
)
async def test_a_sub_path_that_leads_out_is_refused(tmp_path: pathlib.Path, link: str, path: str, want: str) -> None:
    view = _sub_path_view("$(P)")
    volumes = await _make_volumes(view, tmp_path)
    for name in ("link", "loop"):
        (tmp_path / "volumes" / "v" / name).symlink_to(link)
    with pytest.raises(errors.NodeError) as error:
        volumes.mounts(view, view.container("c"), {"P": path})
    assert str(error.value) == want
    assert not pathlib.Path("/etc/made-by-a-container").exists()


async def test_without_the_right_to_mount(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> pathlib.Path:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(subpathmounts.SubPathMounts, "bind", refuse)
    view = _sub_path_view("sub")
    volumes = await _make_volumes(view, tmp_path / "changed-by-containers")
    with pytest.raises(errors.NodeError, match="only an agent that may mount can do so safely"):
        volumes.mounts(view, view.container("c"), {})
    view = _sub_path_view("k", {"configMap": {"name": "m"}})
    volumes = await _make_volumes(view, tmp_path / "changed-by-the-agent")
    (mount,) = volumes.mounts(view, view.container("c"), {})
    assert pathlib.Path(mount.source).read_text() == "v"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files to groups")
async def test_volumes_belong_to_the_group_of_the_pod(tmp_path: pathlib.Path) -> None:
    view = _pod({"name": "scratch", "emptyDir": {}}, {"name": "settings", "configMap": {"name": "m"}})
    spec = msgspec.structs.replace(view.spec, security_context=PodSecurityContext(fs_group=4321))
    await _make_volumes(msgspec.structs.replace(view, spec=spec), tmp_path)
    contents = {}
    for name in ("scratch", "settings", "settings/k"):
        status = (tmp_path / "volumes" / name).stat()
        contents[name] = (status.st_gid, stat.S_IMODE(status.st_mode))
    assert contents == {"scratch": (4321, 0o2777), "settings": (4321, 0o2755), "settings/k": (4321, 0o644)}


def test_no_link_is_followed_when_files_are_written(tmp_path: pathlib.Path) -> None:
    volume, outside = tmp_path / "volume", tmp_path / "outside"
    outside.mkdir()
    (outside / "a").write_text("precious")
    files = {"a": File(b"1", 0o644), "sub/b": File(b"2", 0o644)}
    for name in ("..data", "..data_tmp", "a", "sub", "old"):
        volume.mkdir(exist_ok=True)
        (volume / name).symlink_to(outside)
    assert atomicwriter.write(volume, files, now=NOW)
    (volume / "tree" / "deep").mkdir(parents=True)
    (volume / "tree" / "deep" / "link").symlink_to(outside)
    files["a"] = File(b"3", 0o644)
    assert atomicwriter.write(volume, files, now=NOW)
    assert _files(volume) == {"a": "3", "sub/b": "2"}
    assert {each.name: each.read_text() for each in outside.iterdir()} == {"a": "precious"}


def test_a_link_that_leads_nowhere_makes_no_file_of_the_host(tmp_path: pathlib.Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "made")
    with pytest.raises(errors.NodeError, match="is not a file"):
        podvolumes.check_host_path(HostPathVolume(path=str(tmp_path / "link"), type="FileOrCreate"))
    assert not (tmp_path / "made").exists()
