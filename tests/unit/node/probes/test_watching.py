"""Probes and hooks: their handlers, and the thresholds that count results."""

import asyncio
import pathlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest

from drachma.api import pod
from drachma.node.podview.containers import LifecycleHandler, Probe
from drachma.node.probes import handlers, watching
from drachma.node.probes.watching import Probes, Stage, Watch
from drachma.node.runtimes import protocol
from drachma.runtime import clock
from tests import ports
from tests.unit.node.runtimes import test_process as processes

NO_ONE: Any = None


def _probe(**fields: Any) -> Probe:
    return msgspec.convert({"periodSeconds": 5, "timeoutSeconds": 60, **fields}, Probe)


@asynccontextmanager
async def _http(status: str) -> AsyncIterator[int]:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(f"HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode())
        writer.close()

    listener = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with listener:
        yield listener.sockets[0].getsockname()[1]


@pytest.mark.parametrize(
    ("status", "want"),
    [
        pytest.param("200 OK", None, id="good"),
        pytest.param("302 Found", None, id="elsewhere"),
        pytest.param("503 No", "HTTP probe failed with statuscode: 503", id="bad"),
    ],
)
async def test_requests(status: str, want: str | None) -> None:
    async with _http(status) as port:
        declared = (pod.ContainerPort(name="web", container_port=port),)
        for port_name in (port, "web"):
            probe = _probe(httpGet={"port": port_name, "path": "/healthz"})
            assert await handlers.run_probe(probe, NO_ONE, declared) == want


async def test_nobody_listens() -> None:
    async with _http("200 OK") as port:
        assert await handlers.run_probe(_probe(tcpSocket={"port": port}), NO_ONE, ()) is None
    with ports.reserved() as port:
        problem = f"dial tcp 127.0.0.1:{port}: connect: connection refused"
        assert await handlers.run_probe(_probe(tcpSocket={"port": port}), NO_ONE, ()) == problem
        url = f"http://127.0.0.1:{port}/"
        assert await handlers.run_probe(_probe(httpGet={"port": port}), NO_ONE, ()) == f'Get "{url}": {problem}'
    assert await handlers.run_probe(_probe(httpGet={"port": "web"}), NO_ONE, ()) == "couldn't find port: web"


async def test_commands(tmp_path: pathlib.Path) -> None:
    container = await processes._runtime(tmp_path).start(processes._work("sleep", "300"))
    assert await handlers.run_probe(_probe(exec={"command": ["true"]}), container, ()) is None
    assert await handlers.run_probe(_probe(exec={"command": ["sh", "-c", "echo no; exit 1"]}), container, ()) == "no\n"
    slow = _probe(exec={"command": ["sleep", "9"]}, timeoutSeconds=1)
    assert await handlers.run_probe(slow, container, ()) == "command timed out: no answer after 1s"
    await container.stop(1)


class Script:
    """Answers in order, on a clock that only counts; the last one stays."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, **answers: str) -> None:
        self._answers = answers
        self.seconds = 0.0
        self.stages: list[Stage] = []
        self.failures: list[str] = []
        monkeypatch.setattr(handlers, "run_probe", self._ask)

    async def _ask(self, probe: Probe, container: protocol.Container, ports: object) -> str | None:
        assert probe.exec is not None
        (kind,) = probe.exec.command
        answers = self._answers[kind]
        self._answers[kind] = answers[1:] or answers
        return None if answers[0] == "y" else "bad"

    async def sleep(self, seconds: float) -> None:
        self.seconds += seconds
        await asyncio.sleep(0)

    def monotonic(self) -> float:
        return self.seconds

    utc: Callable[..., Any] = NotImplemented

    def watch(self, **thresholds: int) -> Watch:
        probes = {
            kind: _probe(exec={"command": [kind]}, failureThreshold=thresholds.get(kind, 3)) for kind in self._answers
        }
        return Watch(
            Probes(
                startup=probes.get("startup"),
                readiness=probes.get("readiness"),
                liveness=probes.get("liveness"),
            ),
            NO_ONE,
            clock=self,
            age=0.0,
            on_stage=self.stages.append,
            on_failure=lambda kind, _: self.failures.append(kind),
        )


async def test_a_container_that_does_not_begin_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    script = Script(monkeypatch, startup="n", liveness="n")
    assert await script.watch().run() == watching.STARTUP
    assert script.failures == ["startup"] * 3
    assert script.stages == []


async def test_a_container_that_dies_is_ended_after_enough_failures_in_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    script = Script(monkeypatch, startup="ny", liveness="ynnynnn")
    assert await script.watch().run() == watching.LIVENESS
    assert script.failures == ["startup", *["liveness"] * 5]
    assert script.stages == [Stage.READY]


async def test_a_container_is_ready_and_not_as_it_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    script = Script(monkeypatch, readiness="nynnnyyy")
    watch = asyncio.create_task(script.watch().run())
    for _ in range(200):
        await asyncio.sleep(0)
    watch.cancel()
    assert script.stages == [Stage.READY, Stage.STARTED, Stage.READY]


async def test_what_is_done_before_a_container_is_stopped(tmp_path: pathlib.Path) -> None:
    container = await processes._runtime(tmp_path).start(processes._work("sleep", "300"))

    async def told(*, seconds: int = 1, **hook: Any) -> str | None:
        handler = msgspec.convert(hook, LifecycleHandler)
        return await handlers.run_hook(handler, container, ports=(), seconds=seconds, clock=clock.SystemClock())

    assert await told(exec={"command": ["touch", f"{tmp_path}/told"]}, seconds=60) is None
    assert (tmp_path / "told").exists()
    assert await told(exec={"command": ["sleep", "9"]}) == "command timed out: no answer after 1s"
    assert await told(sleep={"seconds": 9}) is None
    await container.stop(1)
    assert await told(sleep={"seconds": 9}) is None


async def test_a_delay_is_counted_from_when_the_container_began(monkeypatch: pytest.MonkeyPatch) -> None:
    script = Script(monkeypatch, liveness="n")
    probe = _probe(exec={"command": ["liveness"]}, initialDelaySeconds=30, failureThreshold=1)
    watch = Watch(
        Probes(liveness=probe),
        NO_ONE,
        clock=script,
        age=20.0,
        on_stage=script.stages.append,
        on_failure=lambda kind, _: script.failures.append(kind),
    )
    assert await watch.run() == watching.LIVENESS
    assert script.seconds == 10.0


def test_a_probe_may_have_a_grace_period_of_its_own() -> None:
    probes = Probes(startup=_probe(), liveness=_probe(terminationGracePeriodSeconds=3))
    assert probes.grace_seconds(watching.LIVENESS) == 3
    assert probes.grace_seconds(watching.STARTUP) is None
