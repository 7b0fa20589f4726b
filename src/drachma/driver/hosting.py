"""An instance of a driver in a process of its own: client, event loop, signals, what it tells over HTTP."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import pathlib
import signal
import socket
from collections.abc import Awaitable, Callable
from typing import Final, Protocol, TypeAlias

import msgspec
import uvloop

from drachma import errors
from drachma.client import Client, http
from drachma.driver.driver import Driver
from drachma.driver.instance import ControllerInstance, NodeInstance, Place
from drachma.listening import statuspage, webserver
from drachma.runtime import Surroundings, clock, jsonlog, lease

_log = logging.getLogger(__name__)

_NOT_READY: Final = "slices are not visible yet, or no node agent has taken the driver"


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """Options of a driver's process. Without ``http_port`` no status page is served."""

    kubeconfig: pathlib.Path | None = None
    http_port: int | None = None
    log_level: str = "info"
    logs_json: bool = False


class _Instance(Protocol):
    @property
    def is_ready(self) -> bool: ...

    async def run(self) -> None: ...


_Serve: TypeAlias = Callable[[Client], Awaitable[None]]


def run_on_node(driver: type[Driver], place: Place, options: Options) -> None:
    """Serves a node until SIGTERM."""
    _run(driver, options, lambda client: serve_node(driver, client, options, place=place))


def run_controller(driver: type[Driver], options: Options, *, election: lease.LeaseName) -> None:
    """Publishes what belongs to no node until SIGTERM, while this process holds the lease."""
    _run(driver, options, lambda client: serve_controller(driver, client, options, election=election))


async def serve_node(driver: type[Driver], client: Client, options: Options, *, place: Place) -> None:
    """Like run_node(), with the caller's client, until cancelled.

    Raises:
        errors.DriverError: a socket, a directory or the port is not available.
    """
    around = Surroundings(client)
    await _serve(NodeInstance(driver(), around, place=place), around, options)


async def serve_controller(
    driver: type[Driver], client: Client, options: Options, *, election: lease.LeaseName
) -> None:
    """Like run_controller(), with the caller's client, until cancelled.

    Raises:
        errors.DriverError: the lease was lost, or the port is not available.
    """
    around = Surroundings(client)
    await _serve(_Candidate(ControllerInstance(driver(), around), around, election), around, options)


class _Candidate:
    """Process among several equal ones. It works while it holds the lease.

    Who waits for its turn is ready. Otherwise an update would never end, which stops the old process when a new one is
    ready, which it would be once the old one has stopped.
    """

    def __init__(self, instance: _Instance, around: Surroundings, election: lease.LeaseName) -> None:
        self._instance: Final = instance
        identity = lease.new_identity()
        self._leadership: Final = lease.Leadership(around.client, election, identity=identity, clock=around.clock)

    @property
    def is_ready(self) -> bool:
        return not self._leadership.is_leader or self._instance.is_ready

    async def run(self) -> None:
        try:
            await self._leadership.lead(self._instance.run)
        except lease.LeadershipLostError as lost:
            raise errors.DriverError(str(lost)) from lost


async def _serve(instance: _Instance, around: Surroundings, options: Options) -> None:
    async with contextlib.AsyncExitStack() as stack:
        if options.http_port is not None:
            opened = _listen(options.http_port)
            page = statuspage.application(lambda: () if instance.is_ready else (_NOT_READY,), around.registry)
            _log.info("serves /healthz, /readyz and /metrics on port %d", opened.getsockname()[1])
            await stack.enter_async_context(webserver.serving(page, opened))
        await stack.enter_async_context(around.informers)
        await instance.run()


def _listen(port: int) -> socket.socket:
    try:
        return statuspage.listen_everywhere(port)
    except errors.InvalidValueError as error:
        raise errors.DriverError(str(error)) from error


def _run(driver: type[Driver], options: Options, serve: _Serve) -> None:
    jsonlog.set_up(level=options.log_level, is_json=options.logs_json)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_run_until_stopped(driver, options, serve))


async def _run_until_stopped(driver: type[Driver], options: Options, serve: _Serve) -> None:
    task = asyncio.current_task()
    assert task is not None, "runs as a task"
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, task.cancel)
    reached = http.find_access(options.kubeconfig)
    # Asked to stop: that is no failure.
    with contextlib.suppress(asyncio.CancelledError):
        async with http.HttpClient(reached, clock=clock.SystemClock(), manager=driver.name) as client:
            _log.info("driver %s: starts, on %s", driver.name, reached.server)
            await serve(client)
