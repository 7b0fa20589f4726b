"""A component in a process of its own, on any Kubernetes API server: its client, its lease, its metrics, its end.

``drachma controllers`` and ``drachma scheduler`` are made of it.
"""

import asyncio
import logging
import os
import signal
import socket
from collections.abc import Awaitable, Callable

import msgspec
import prometheus_client

from drachma import errors
from drachma.client import Client, access, http
from drachma.process import eventloop
from drachma.runtime import Informers, clock, lease


class Lead(msgspec.Struct, frozen=True, kw_only=True):
    """The lease that says whether this process works or another one."""

    namespace: str
    name: str


Make = Callable[[Client, Informers], Callable[[], Awaitable[None]]]
"""Makes the component on a client and on informers; what it returns runs until it is cancelled."""


def log_to_stderr(package: str, *, verbose: bool) -> None:
    """Sets up logging; of the component's own package more is said on demand."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    logging.getLogger(package).setLevel(logging.DEBUG if verbose else logging.INFO)


def metrics(port: int) -> prometheus_client.CollectorRegistry:
    """Where the component counts; served on a port of the loopback address unless that is 0."""
    registry = prometheus_client.CollectorRegistry()
    if port:
        prometheus_client.start_http_server(port, "127.0.0.1", registry=registry)
    return registry


def run(make: Make, reached: access.Access, *, manager: str, lead: Lead | None) -> None:
    """Runs a component until a signal; with ``lead``, only while this process holds the lease.

    Raises:
        errors.UnreachableError: the lease was lost. As upstream: whoever runs it starts it again, and it stands for
            election anew.
    """
    with eventloop.runner() as runner:
        runner.run(_run(make, reached, manager=manager, lead=lead))


async def _run(make: Make, reached: access.Access, *, manager: str, lead: Lead | None) -> None:
    task = asyncio.current_task()
    assert task is not None, "runs as a task"
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, task.cancel)
    try:
        async with (
            http.HttpClient(reached, time=clock.SystemClock(), manager=manager) as client,
            Informers(client) as informers,
        ):
            work = make(client, informers)
            if lead is None:
                await work()
                return
            identity = f"{socket.gethostname()}_{os.getpid()}"
            leadership = lease.Leadership(client, name=lead.name, namespace=lead.namespace, identity=identity)
            try:
                await leadership.lead(work)
            except lease.LeadershipLostError as lost:
                raise errors.UnreachableError(str(lost)) from lost
    except asyncio.CancelledError:
        # Asked to stop: that is no failure.
        pass
