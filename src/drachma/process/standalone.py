"""A component of a control plane as a process of its own, on any Kubernetes API server: client, lease, metrics.

``drachma controllers``, ``drachma scheduler``, ``drachma node`` and others use it.
"""

import asyncio
import contextlib
import signal
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Final

import msgspec
import prometheus_client

from drachma import errors
from drachma.api import gates as features
from drachma.client import access, http
from drachma.listening import addresses
from drachma.process import components, eventloop, nodeidentity, statusendpoint
from drachma.runtime import Credentials, Surroundings, clientmetrics, clock, defects, lease

_TIMING: Final = lease.Timing()


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """Options of a process; ``manager`` is the field manager of its writes."""

    access: access.Access
    manager: str
    credentials: Credentials = Credentials()
    gates: features.Gates = features.ALL
    lease_name: lease.LeaseName | None = None
    """Lease that the process must hold to work; without one it always works."""
    timing: lease.Timing = _TIMING
    """Times of that lease."""
    renewal: nodeidentity.Renewal | None = None
    """Renewal of the client's certificate, if this process has one."""
    metrics_port: int = 0
    """Port of the loopback address that serves the status page; 0 serves none."""
    secure_address: addresses.Address | None = None
    """Address that serves the status page over HTTPS, if any."""


Built = Callable[[Surroundings], components.Run | components.Replica]
"""Builds a component, or a replica of one that also serves without the lease."""


def run(component: Built, options: Options) -> None:
    """Run a component until a signal; with a lease, only while this process holds it, apart from what it serves.

    Raises:
        errors.UnreachableError: the lease was lost. As upstream, the process ends and must be restarted.
    """
    with eventloop.runner() as runner:
        runner.run(_run(component, options))


async def _run(component: Built, options: Options) -> None:
    task = asyncio.current_task()
    assert task is not None, "runs as a task"
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, task.cancel)
    registry = prometheus_client.CollectorRegistry()
    prometheus_client.ProcessCollector(registry=registry)
    registry.register(defects.PROCESS)
    requests = clientmetrics.ClientMetrics(options.access.server, registry=registry)
    try:
        async with http.HttpClient(
            options.access, clock=clock.SystemClock(), manager=options.manager, observe=requests.observe
        ) as client:
            surroundings = Surroundings(client, registry=registry, gates=options.gates, credentials=options.credentials)

            def problems() -> Sequence[str]:
                return surroundings.informers.problems()

            async with (
                statusendpoint.serve_locally(
                    options.metrics_port, problems, registry, notes=surroundings.informers.absences
                ),
                statusendpoint.serve_securely(options.secure_address, problems, surroundings),
                surroundings.informers,
                _renewing(options.renewal, client),
            ):
                await work(component, surroundings, options.lease_name, options.timing)
    except asyncio.CancelledError:
        # A signal has stopped the process, which is no failure.
        pass


@contextlib.asynccontextmanager
async def _renewing(renewal: nodeidentity.Renewal | None, client: http.HttpClient) -> AsyncIterator[None]:
    """Renew the client's certificate while the block lasts."""
    if renewal is None:
        yield
        return
    task = asyncio.create_task(renewal.run(client, client), name="renewal of the certificate")
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def work(
    component: Built, surroundings: Surroundings, lease_name: lease.LeaseName | None, timing: lease.Timing = _TIMING
) -> None:
    """Run a component on informers that run already, until cancelled or until a part of it fails."""
    built = component(surroundings)
    if not isinstance(built, components.Replica):
        await _lead(built, surroundings, lease_name, timing=timing)
        return
    parts = {
        asyncio.create_task(_lead(built.lead, surroundings, lease_name, timing=timing), name="leader"),
        asyncio.create_task(built.serve(), name="replica"),
    }
    try:
        done, _ = await asyncio.wait(parts, return_when=asyncio.FIRST_COMPLETED)
        for part in done:
            part.result()
    finally:
        for part in parts:
            part.cancel()
        await asyncio.gather(*parts, return_exceptions=True)


async def _lead(
    work: components.Run, surroundings: Surroundings, name: lease.LeaseName | None, *, timing: lease.Timing
) -> None:
    if name is None:
        await work()
        return
    identity = lease.new_identity()
    leadership = lease.Leadership(surroundings.client, name, identity=identity, clock=surroundings.clock, timing=timing)
    try:
        await leadership.lead(work)
    except lease.LeadershipLostError as lost:
        raise errors.UnreachableError(str(lost)) from lost
