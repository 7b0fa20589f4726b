"""Drivers that appear and disappear in a kubelet's registration directory, and what each side hears."""

import asyncio
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
from prometheus_client import CollectorRegistry

from drachma import errors
from drachma.node import agentmetrics
from drachma.node.drivers import pluginwatcher
from drachma.node.drivers.instances import DriverInstances
from drachma.nodewire.rpc import services
from drachma.testing import manualclock
from tests.conformance import vectors
from tests.conformance.vectors import Line


@vectors.each("node-registration")
async def test_node_registration(case: Line) -> None:
    with tempfile.TemporaryDirectory(prefix="r") as folder:
        stage = _Stage(Path(folder))
        try:
            for number, step in enumerate(case["steps"]):
                events = await stage.do(step)
                if "want" in step:
                    wanted = stage.by_driver(step["want"]["events"])
                    assert stage.by_driver(events) == wanted, f"step {number}"
        finally:
            await stage.close()


class _Stage:
    """An agent's registration, drivers' registration servers, and all that happens between them."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._directory = folder / "registry"
        self._directory.mkdir()
        self._clock = manualclock.ManualClock()
        self._events: list[str] = []
        self._servers: dict[str, tuple[grpc.aio.Server, Line]] = {}
        self._drivers_of: dict[str, str] = {}
        metrics = agentmetrics.AgentMetrics(CollectorRegistry()).node_metrics("worker")
        self._drivers = DriverInstances(metrics=metrics, clock=self._clock, on_gone=_nothing)
        self._registration = pluginwatcher.PluginWatcher(self._directory, self, clock=self._clock)
        self._is_started = False

    async def close(self) -> None:
        await self._drivers.close()
        for server, _ in self._servers.values():
            await server.stop(grace=None)

    # What the registration tells the agent

    def validate(self, driver: str, endpoint: str, advertised: Sequence[str]) -> None:
        self._drivers.validate(driver, endpoint, advertised)

    def register(self, driver: str, endpoint: str, advertised: Sequence[str]) -> None:
        problem = "<nil>"
        try:
            self._drivers.register(driver, endpoint, advertised)
        except errors.NodeError as error:
            problem = str(error)
            raise
        finally:
            self._events.append(f"register {driver} {endpoint} error={problem}")

    async def deregister(self, driver: str, endpoint: str) -> None:
        self._events.append(f"deregister {driver} {endpoint}")
        await self._drivers.deregister(driver, endpoint)

    # Steps

    async def do(self, step: Line) -> list[str]:
        match step["do"]:
            case "start":
                self._is_started = True
            case "listen":
                await self._listen(step)
            case "close":
                await self._close(step["socket"])
            case "mkdir":
                (self._directory / step["socket"]).mkdir()
            case "file":
                (self._directory / step["socket"]).write_text("")
            case "wait":
                await self._wait(step["seconds"])
        events, self._events = self._events, []
        return [event.replace(str(self._folder), "<dir>") for event in events]

    async def _wait(self, seconds: float) -> None:
        """Time passes, and what then begins to happen on real sockets comes to its end."""
        for _ in range(round(seconds)):
            if self._is_started:
                await self._registration.scan()
                await asyncio.gather(*self._registration.attempts)
            await self._clock.advance(1)

    async def _close(self, socket: str) -> None:
        """Ends a server; one whose process is killed leaves its file, which this library would remove."""
        server, told = self._servers.pop(socket)
        path = self._directory / socket
        aside = self._folder / "aside"
        if told.get("keepFile"):
            aside.hardlink_to(path)
        await server.stop(grace=None)
        path.unlink(missing_ok=True)
        if told.get("keepFile"):
            aside.rename(path)

    async def _listen(self, step: Line) -> None:
        socket, failures = step["socket"], step.get("getInfoFails", 0)
        self._drivers_of[socket] = step["name"]
        notifications = step.get("notifyFails", 0)

        async def get_info(_request: Any, context: Any) -> Any:
            nonlocal failures
            if failures:
                failures -= 1
                self._events.append(f"{socket} GetInfo -> error")
                await context.abort(grpc.StatusCode.INTERNAL, "not yet")
            self._events.append(f"{socket} GetInfo")
            return services.REGISTRATION.method("GetInfo").response(
                type=step["type"],
                name=step["name"],
                endpoint=str(self._folder / step["endpoint"]) if step.get("endpoint") else "",
                supported_versions=step["services"],
            )

        async def notify(request: Any, context: Any) -> Any:
            nonlocal notifications
            told = f'registered={str(request.plugin_registered).lower()} error="{_escaped(request.error)}"'
            self._events.append(f"{socket} NotifyRegistrationStatus {told}")
            if notifications:
                notifications -= 1
                await context.abort(grpc.StatusCode.INTERNAL, "not yet")
            return services.REGISTRATION.method("NotifyRegistrationStatus").response()

        server = grpc.aio.server()
        services.serve(server, services.REGISTRATION, {"GetInfo": get_info, "NotifyRegistrationStatus": notify})
        server.add_insecure_port(f"unix:{self._directory / socket}")
        await server.start()
        self._servers[socket] = (server, step)

    def by_driver(self, events: list[str]) -> dict[str, list[str]]:
        """Events of different drivers have no order, and how often something fails before time is up is chance."""
        grouped: dict[str, list[str]] = {}
        for event in events:
            first, second, *_ = event.split(" ")
            grouped.setdefault(second if first in ("register", "deregister") else self._drivers_of[first], []).append(
                event
            )
        return {driver: _once(each) for driver, each in grouped.items()}


def _once(events: list[str]) -> list[str]:
    """Without repetitions of what came just before, of one event or of two."""
    kept: list[str] = []
    for event in events:
        if kept[-1:] == [event]:
            continue
        kept.append(event)
        if len(kept) >= 4 and kept[-2:] == kept[-4:-2]:
            del kept[-2:]
    return kept


def _escaped(text: str) -> str:
    return text.replace('"', '\\"')


async def _nothing(_driver: str) -> None:
    pass
