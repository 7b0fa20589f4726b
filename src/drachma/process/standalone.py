"""A component of a control plane in a process of its own, on any Kubernetes API server: client, lease, metrics.

``drachma controllers`` and ``drachma scheduler`` are made of it.
"""

import asyncio
import contextlib
import os
import signal
import socket
from collections.abc import AsyncIterator

import msgspec
import prometheus_client

from drachma import errors
from drachma.api import gates as features
from drachma.client import access, http
from drachma.process import components, eventloop, metricsport, nodeidentity
from drachma.runtime import Credentials, Surroundings, clock, lease


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """What can be chosen; ``manager`` owns the fields that the component writes."""

    access: access.Access
    manager: str
    credentials: Credentials = Credentials()
    gates: features.Gates = features.ALL
    lease_name: lease.LeaseName | None = None
    """The lease that says whether this process works or another one; without one it always does."""
    renewal: nodeidentity.Renewal | None = None
    """What keeps the client's certificate fresh, where that is this process's own business."""
    metrics_port: int = 0
    """The port of the loopback address on which metrics are served; none if 0."""


def run(component: components.Component, options: Options) -> None:
    """Runs a component until a signal; with a lease, only while this process holds it.

    Raises:
        errors.UnreachableError: the lease was lost. As upstream: whoever runs it starts it again, and it stands for
            election anew.
    """
    with eventloop.runner() as runner:
        runner.run(_run(component, options))


async def _run(component: components.Component, options: Options) -> None:
    task = asyncio.current_task()
    assert task is not None, "runs as a task"
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, task.cancel)
    registry = prometheus_client.CollectorRegistry()
    try:
        async with (
            metricsport.serving(options.metrics_port, registry),
            http.HttpClient(options.access, time=clock.SystemClock(), manager=options.manager) as client,
        ):
            surroundings = Surroundings(client, registry=registry, gates=options.gates, credentials=options.credentials)
            async with surroundings.informers, _renewing(options.renewal, client):
                await _lead(component(surroundings), surroundings, options.lease_name)
    except asyncio.CancelledError:
        # Asked to stop: that is no failure.
        pass


@contextlib.asynccontextmanager
async def _renewing(renewal: nodeidentity.Renewal | None, client: http.HttpClient) -> AsyncIterator[None]:
    """Keeps the client's certificate fresh meanwhile, if anything does."""
    if renewal is None:
        yield
        return
    task = asyncio.create_task(renewal.run(client, client), name="renewal of the certificate")
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def _lead(work: components.Run, surroundings: Surroundings, name: lease.LeaseName | None) -> None:
    if name is None:
        await work()
        return
    identity = f"{socket.gethostname()}_{os.getpid()}"
    leadership = lease.Leadership(surroundings.client, name, identity=identity, time=surroundings.clock)
    try:
        await leadership.lead(work)
    except lease.LeadershipLostError as lost:
        raise errors.UnreachableError(str(lost)) from lost
