"""An instance of a driver in a process of its own: client, event loop, signals, what it tells over HTTP."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import pathlib
import signal
import socket
from collections.abc import Callable
from typing import Protocol, TypeAlias

import msgspec
import uvloop

from drachma import errors
from drachma.client import http
from drachma.driver import jsonlog, statuspage
from drachma.driver.driver import Driver
from drachma.driver.instance import ControllerInstance, NodeInstance, Place
from drachma.runtime import Surroundings, clock, lease

_log = logging.getLogger(__name__)


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """What can be chosen; without ``http_port`` nothing is served."""

    kubeconfig: pathlib.Path | None = None
    http_port: int | None = None
    log_level: str = "info"
    logs_json: bool = False


class _Instance(Protocol):
    @property
    def is_ready(self) -> bool: ...

    async def run(self) -> None: ...


_Make: TypeAlias = Callable[[Surroundings], _Instance]


def run_on_node(driver: type[Driver], place: Place, options: Options) -> None:
    """Serves a node until SIGTERM."""
    _run(driver, lambda around: NodeInstance(driver(), around, place=place), options, election=None)


def run_controller(driver: type[Driver], options: Options, *, election: lease.LeaseName) -> None:
    """Publishes what belongs to no node until SIGTERM, as long as this process holds the lease."""
    _run(driver, lambda around: ControllerInstance(driver(), around), options, election=election)


def _run(driver: type[Driver], make: _Make, options: Options, *, election: lease.LeaseName | None) -> None:
    jsonlog.set_up(level=options.log_level, is_json=options.logs_json)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve(driver, make, options, election=election))


async def _serve(driver: type[Driver], make: _Make, options: Options, *, election: lease.LeaseName | None) -> None:
    task = asyncio.current_task()
    assert task is not None, "runs as a task"
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, task.cancel)
    reached = http.find_access(options.kubeconfig)
    # Asked to stop: that is no failure.
    with contextlib.suppress(asyncio.CancelledError):
        async with contextlib.AsyncExitStack() as stack:
            client = await stack.enter_async_context(
                http.HttpClient(reached, time=clock.SystemClock(), manager=driver.name)
            )
            around = Surroundings(client)
            instance = make(around)
            if options.http_port is not None:
                port = await stack.enter_async_context(
                    statuspage.serving(options.http_port, is_ready=lambda: instance.is_ready, registry=around.registry)
                )
                _log.info("driver %s: serves /readyz and /metrics on port %d", driver.name, port)
            await stack.enter_async_context(around.informers)
            _log.info("driver %s: starts, on %s", driver.name, reached.server)
            await _lead(instance, around, election)


async def _lead(instance: _Instance, around: Surroundings, election: lease.LeaseName | None) -> None:
    if election is None:
        await instance.run()
        return
    identity = f"{socket.gethostname()}_{os.getpid()}"
    leadership = lease.Leadership(around.client, election, identity=identity, time=around.clock)
    try:
        await leadership.lead(instance.run)
    except lease.LeadershipLostError as lost:
        raise errors.DriverError(str(lost)) from lost
