"""Containers as processes: streams, signals, devices, mounts and refusals."""

import asyncio
import json
import os
import pathlib
import signal

import msgspec
import pytest

from drachma import errors
from drachma.api import meta, pod
from drachma.node.logs import selection
from drachma.node.runtimes import cgrouptree, process, protocol
from drachma.node.runtimes.protocol import Cgroup
from drachma.node.runtimes.security import Security
from drachma.runtime import clock

POD = pod.Pod(metadata=meta.ObjectMeta(name="p", namespace="default", uid="u1"))
CONTAINER = pod.Container(name="c", image="whatever")


def _work(*command: str, attempt: int = 0, devices: tuple[str, ...] = (), **setup: object) -> protocol.Work:
    return protocol.Work(
        pod=POD,
        container=CONTAINER,
        attempt=attempt,
        devices=devices,
        setup=protocol.Setup(command=command, **setup),  # type: ignore[arg-type]
    )


def _runtime(folder: pathlib.Path, *, mounts: bool | None = None) -> process.ProcessRuntime:
    return process.ProcessRuntime(folder, clock=clock.SystemClock(), cdi=(folder / "cdi",), mounts=mounts)


def _makes_cgroups() -> bool:
    try:
        cgrouptree.CgroupTree().remove_all()
    except errors.NodeError:
        return False
    return True


async def _written(container: protocol.Container) -> bytes:
    return b"".join([piece async for piece in selection.output(container.log, selection.Selection())])


async def test_what_it_writes_and_how_it_ends(tmp_path: pathlib.Path) -> None:
    script = "echo $GREETING; echo oops >&2; pwd; exit 7"
    container = await _runtime(tmp_path).start(_work("sh", "-c", script, environment={"GREETING": "hello"}))
    assert await container.wait() == protocol.Exit(7)
    assert set((await _written(container)).decode().split()) == {
        "hello",
        "oops",
        str(tmp_path / "pods" / "u1" / "containers" / "c"),
    }


async def test_nothing_of_the_agents_environment_is_there(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGENT_SECRET", "x")
    container = await _runtime(tmp_path).start(_work("env"))
    await container.wait()
    assert b"AGENT_SECRET" not in await _written(container)


async def test_it_is_asked_to_end_before_it_is_ended(tmp_path: pathlib.Path) -> None:
    script = "trap 'echo bye; exit 3' TERM; echo ready; while :; do sleep 0.05; done"
    container = await _runtime(tmp_path).start(_work("sh", "-c", script))
    await _until(container, b"ready")
    await container.stop(30)
    assert await container.wait() == protocol.Exit(3)
    assert (await _written(container)).endswith(b"bye\n")


async def test_who_does_not_listen_is_killed_with_its_children(tmp_path: pathlib.Path) -> None:
    script = "trap '' TERM; sleep 300 & echo $!; echo ready; while :; do sleep 0.05; done"
    container = await _runtime(tmp_path).start(_work("sh", "-c", script))
    await _until(container, b"ready")
    await container.stop(0.1)
    assert await container.wait() == protocol.Exit(128 + signal.SIGKILL)
    child = int((await _written(container)).split()[0])
    async with asyncio.timeout(60):
        while _lives(child):
            await asyncio.sleep(0.01)


async def test_what_an_agent_left_is_ended_by_the_next(tmp_path: pathlib.Path) -> None:
    container = await _runtime(tmp_path).start(_work("sleep", "300"))
    _runtime(tmp_path)
    assert await container.wait() == protocol.Exit(128 + signal.SIGKILL)


async def test_a_command_in_it(tmp_path: pathlib.Path) -> None:
    container = await _runtime(tmp_path).start(_work("sleep", "300", environment={"NAME": "x"}))
    command = protocol.Command(words=("sh", "-c", "cat; echo $NAME; exit 4"), has_input=True)
    session = await container.execute(command)
    await session.feed(b"in\n")
    await session.end_input()
    assert b"".join([data async for _, data in session.output()]) == b"in\nx\n"
    assert await session.wait() == protocol.Exit(4)
    await session.close()
    with pytest.raises(protocol.StreamError, match="cannot run 'no-such-command': No such file or directory"):
        await container.execute(protocol.Command(words=("no-such-command",)))
    await container.stop(1)


async def test_a_command_on_a_terminal(tmp_path: pathlib.Path) -> None:
    container = await _runtime(tmp_path).start(_work("sleep", "300"))
    session = await container.execute(
        protocol.Command(words=("sh", "-c", "read line; stty size"), has_terminal=True, has_input=True)
    )
    session.resize(132, 43)
    await session.feed(b"\n")
    assert b"43 132" in b"".join([data async for _, data in session.output()])
    assert await session.wait() == protocol.Exit(0)
    await container.stop(1)


async def test_who_is_attached_hears_and_speaks(tmp_path: pathlib.Path) -> None:
    container = await _runtime(tmp_path).start(_work("sh", "-c", "read line; echo got $line; exit 3", has_input=True))
    session = await container.attach()
    output = session.output()
    await session.feed(b"word\n")
    assert await anext(output) == ("stdout", b"got word\n")
    assert await session.wait() == protocol.Exit(0)
    assert await container.wait() == protocol.Exit(3)


async def test_the_environment_of_devices(tmp_path: pathlib.Path) -> None:
    _cdi(tmp_path, {"env": ["GPU=7"], "deviceNodes": [{"path": "/dev/null"}]})
    container = await _runtime(tmp_path).start(_work("sh", "-c", "echo $GPU", devices=("vendor.com/gpu=one",)))
    await container.wait()
    assert await _written(container) == b"7\n"


@pytest.mark.parametrize(
    ("edits", "want"),
    [
        pytest.param({"mounts": [{"hostPath": "/tmp", "containerPath": "/x"}]}, "need mount /x", id="mount"),
        pytest.param(
            {"deviceNodes": [{"path": "/dev/other", "hostPath": "/dev/null"}]}, "need device /dev/other", id="device"
        ),
        pytest.param({"hooks": [{"hookName": "createRuntime", "path": "/bin/true"}]}, "need hooks", id="hooks"),
    ],
)
async def test_devices_that_take_a_container(tmp_path: pathlib.Path, edits: dict[str, object], want: str) -> None:
    _cdi(tmp_path, edits)
    with pytest.raises(protocol.StartError, match=f"{want}, which a process without a container cannot be given"):
        await _runtime(tmp_path).start(_work("true", devices=("vendor.com/gpu=one",)))


@pytest.mark.parametrize(
    ("command", "want"),
    [
        pytest.param((), "container c: no command", id="no-command"),
        pytest.param(("no-such-command",), "container c: No such file or directory: no-such-command", id="no-such"),
    ],
)
async def test_what_cannot_be_started(tmp_path: pathlib.Path, command: tuple[str, ...], want: str) -> None:
    with pytest.raises(protocol.StartError, match=want):
        await _runtime(tmp_path).start(_work(*command))


async def test_mounts_are_refused_where_they_cannot_be_made(tmp_path: pathlib.Path) -> None:
    mount = protocol.Mount(str(tmp_path), "/data")
    with pytest.raises(protocol.StartError, match="mount at /data: the process runtime mounts volumes only as root"):
        await _runtime(tmp_path, mounts=False).start(_work("true", mounts=(mount,)))


@pytest.mark.skipif(not process.can_mount(), reason="this user cannot mount")
async def test_mounts_are_there_for_the_container_alone(tmp_path: pathlib.Path) -> None:
    (tmp_path / "volume").mkdir()
    (tmp_path / "volume" / "file").write_text("content")
    target = tmp_path / "point"
    mount = protocol.Mount(str(tmp_path / "volume"), str(target), is_read_only=True)
    script = f"cat {target}/file; touch {target}/new || exit 5"
    container = await _runtime(tmp_path).start(_work("sh", "-c", script, mounts=(mount,)))
    assert await container.wait() == protocol.Exit(5)
    assert b"content" in await _written(container)
    assert not list(target.iterdir())


@pytest.mark.skipif(not process.can_mount(), reason="this user cannot mount")
async def test_a_started_container_needs_the_sources_of_its_mounts_no_more(tmp_path: pathlib.Path) -> None:
    runtime, place = _runtime(tmp_path / "data"), tmp_path / "place"

    async def start(number: int) -> protocol.Exit:
        source = tmp_path / f"source-{number}"
        source.mkdir()
        mount = protocol.Mount(str(source), str(place))
        container = await runtime.start(_work("true", attempt=number, mounts=[mount]))
        source.rmdir()
        return await container.wait()

    assert await asyncio.gather(*map(start, range(60))) == [protocol.Exit(0)] * 60


async def test_only_the_log_of_the_run_before_is_kept(tmp_path: pathlib.Path) -> None:
    for attempt in range(4):
        await (await _runtime(tmp_path).start(_work("true", attempt=attempt))).wait()
    assert sorted(each.name for each in (tmp_path / "logs" / "u1" / "c").iterdir()) == ["2.log", "3.log"]


async def test_what_it_uses(tmp_path: pathlib.Path) -> None:
    container = await _runtime(tmp_path).start(_work("sh", "-c", "echo ready; while :; do sleep 0.1; done"))
    await _until(container, b"ready")
    assert container.usage().memory_bytes > 0
    await container.stop(1)
    assert container.usage() == protocol.Usage(0.0, 0)


async def _until(container: protocol.Container, text: bytes) -> None:
    received = b""
    async for piece in selection.output(container.log, selection.Selection(follow=True)):
        received += piece
        if text in received:
            return


def _cdi(folder: pathlib.Path, edits: dict[str, object]) -> None:
    (folder / "cdi").mkdir()
    spec = {"cdiVersion": "0.6.0", "kind": "vendor.com/gpu", "devices": [{"name": "one", "containerEdits": edits}]}
    (folder / "cdi" / "vendor.json").write_text(json.dumps(spec))


def _lives(pid: int) -> bool:
    try:
        text = pathlib.Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return text.rpartition(")")[2].split()[0] not in ("Z", "X")


async def test_containers_end_with_their_agent(tmp_path: pathlib.Path) -> None:
    runtime = _runtime(tmp_path)
    container = await runtime.start(_work("sleep", "600"))
    await runtime.close()
    assert await container.wait() == protocol.Exit(128 + signal.SIGKILL)


@pytest.mark.skipif(not _makes_cgroups(), reason="this user cannot create cgroups on this machine")
async def test_what_it_may_use_is_bounded_by_cgroups(tmp_path: pathlib.Path) -> None:
    bounds = protocol.Bounds(
        quality="Burstable",
        pod=Cgroup(cpu_shares=2048),
        container=Cgroup(cpu_shares=1024, cpu_quota=50_000, cpu_period=100_000, memory=2**28),
        oom_score=500,
    )
    runtime = _runtime(tmp_path)
    script = "cat /proc/self/cgroup /proc/self/oom_score_adj; read line"
    started = await runtime.start(msgspec.structs.replace(_work("sh", "-c", script, has_input=True), bounds=bounds))
    await _until(started, b"500")
    place = "/drachma/burstable/podu1/c"
    assert place.encode() in await _written(started)
    session = await started.execute(protocol.Command(words=["cat", "/proc/self/cgroup"]))
    assert place.encode() in b"".join([data async for _, data in session.output()])
    own = pathlib.Path(place[1:])
    files = (cgrouptree.ROOT / own / "memory.max", cgrouptree.ROOT / "memory" / own / "memory.limit_in_bytes")
    limits = [int(file.read_text()) for file in files if file.exists()]
    assert limits == [2**28]
    await started.stop(0)
    async with asyncio.timeout(60):
        while any(file.exists() for file in files):
            # The kernel may take a moment until nobody is in them.
            runtime.forget("u1")
            await asyncio.sleep(0.01)
    await runtime.close()


async def _ends(
    tmp_path: pathlib.Path, security: Security, script: str, *, mounts: tuple[protocol.Mount, ...] = ()
) -> list[str]:
    container = await _runtime(tmp_path).start(_work("sh", "-c", script, security=security, mounts=mounts))
    assert (await container.wait()).code == 0, await _written(container)
    return (await _written(container)).decode().split("\n")[:-1]


needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root gives processes another user")
SELF = "id -u; id -g; id -G; grep -E '^(CapBnd|NoNewPrivs)' /proc/self/status; pwd; echo x > file; echo $HOME"


@needs_root
async def test_it_has_the_user_and_the_capabilities_of_its_security_context(tmp_path: pathlib.Path) -> None:
    tmp_path.chmod(0o750)
    security = Security(user=123456, group=7, groups=(5, 6), drop=("ALL",), forbids_escalation=True, is_non_root=True)
    home = tmp_path / "pods" / "u1" / "containers" / "c"
    want = ["123456", "7", "7 5 6", "CapBnd:\t0000000000000000", "NoNewPrivs:\t1", str(home), "/"]
    assert await _ends(tmp_path, security, SELF) == want
    assert ((home / "file").stat().st_uid, (home / "file").stat().st_gid) == (123456, 7)


@needs_root
async def test_so_have_commands_in_it(tmp_path: pathlib.Path) -> None:
    container = await _runtime(tmp_path).start(_work("sleep", "300", security=Security(user=123456, group=7)))
    session = await container.execute(protocol.Command(words=("id", "-u")))
    assert b"".join([data async for _, data in session.output()]) == b"123456\n"
    assert (await session.wait()).code == 0
    with pytest.raises(protocol.StreamError, match="cannot run 'no-such-command': No such file or directory"):
        await container.execute(protocol.Command(words=("no-such-command",)))
    await container.stop(0)


@pytest.mark.skipif(not process.can_mount(), reason="this user cannot mount")
async def test_it_loses_its_privileges_after_its_volumes_are_mounted(tmp_path: pathlib.Path) -> None:
    (tmp_path / "volume").mkdir(mode=0o777)
    target = tmp_path / "point"
    mount = protocol.Mount(str(tmp_path / "volume"), str(target), options=("noexec", "nosuid"))
    script = f"id -u; grep -c '{target} [^ ]* rw,nosuid,noexec' /proc/mounts"
    assert await _ends(tmp_path, Security(user=123456), script, mounts=(mount,)) == ["123456", "1"]


async def test_it_is_not_root_where_it_may_not_be(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runtime = _runtime(tmp_path)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    with pytest.raises(protocol.StartError) as error:
        await runtime.start(_work("true", security=Security(is_non_root=True)))
    assert error.value.reason == "CreateContainerConfigError"
    assert str(error.value).startswith("container has runAsNonRoot and image will run as root (pod: ")


@pytest.mark.parametrize(
    "work",
    [
        pytest.param(_work("echo", "a\0b"), id="word"),
        pytest.param(_work("true", environment={"A": "a\0b"}), id="variable"),
        pytest.param(_work("true", environment={"A": "\ud800"}), id="no-text"),
    ],
)
async def test_what_no_process_can_be_told(tmp_path: pathlib.Path, work: protocol.Work) -> None:
    with pytest.raises(protocol.StartError, match="has a null character or is no text"):
        await _runtime(tmp_path).start(work)
