"""The process of one or more components, which :mod:`drachma.process.supervisor` starts next to an API server.

``python -m drachma.process.worker NAME FD`` gets its connection to the API server as an open file descriptor, and its
:class:`Plan` as the first frame on it. The name is for people who list processes. The process runs until SIGTERM, or
until the connection is lost because the server's process has ended. A plan comes only from the process that started
this one, so it is pickled.
"""

from __future__ import annotations

import asyncio
import contextlib
import pickle
import signal
import socket
import sys
from collections.abc import Iterable
from typing import Final

import msgspec
import prometheus_client
from prometheus_client import core

from drachma import errors
from drachma.api import gates as features
from drachma.client import Client, frames, local, messages, remote
from drachma.listening import budget
from drachma.listening import limits as ports
from drachma.node.registration import addresses
from drachma.process import accountcredentials, components, embedded, eventloop, logs
from drachma.runtime import Credentials, KeyPair, Surroundings
from drachma.server.access import signingkeys

_REPORT_SECONDS: Final = 2.0
"""Time between two reports of metrics."""


class Role(msgspec.Struct, frozen=True):
    """Components of one process; ``name`` is for people."""

    name: str
    has_controllers: bool = False
    has_scheduler: bool = False
    has_nodes: bool = False


class Secrets(msgspec.Struct, frozen=True, kw_only=True):
    """Keys with which controllers issue credentials."""

    signing: KeyPair
    account_key: bytes
    """Key that signs tokens of service accounts, as PEM."""

    def __repr__(self) -> str:
        return "Secrets(...)"


class Logging(msgspec.Struct, frozen=True, kw_only=True):
    """Form of the log, which all processes of a program share."""

    verbose: bool = False
    is_json: bool = False


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that a process needs to know before it talks to the API server."""

    role: Role
    plane: embedded.ControlPlane
    server: embedded.ServerFacts
    secrets: Secrets | None = None
    """Set if the process has controllers."""
    limits: ports.Limits = ports.Limits()
    """Limits on connections to the ports of the process."""
    logging: Logging = Logging()

    @property
    def gates(self) -> features.Gates:
        return self.plane.gates

    def parts(self, endpoints: ReportedEndpoints) -> tuple[components.Component, ...]:
        """Return the components of the process."""
        parts: list[components.Component] = []
        if self.role.has_controllers:
            parts.append(components.controllers)
        if self.role.has_scheduler:
            parts.append(self.plane.scheduler())
        if self.role.has_nodes:
            parts.append(self.plane.nodes(self.server, endpoints))
        return tuple(parts)

    def credentials(self) -> Credentials:
        """Return the credentials that the components of the process can issue."""
        if self.secrets is None:
            return Credentials()
        signer = accountcredentials.make_signer(signingkeys.decode_private(self.secrets.account_key))
        return Credentials(self.server.authority.decode(), accountcredentials.mint(signer), self.secrets.signing)


class ReportedEndpoints:
    """Registry of node endpoints in this process that reports them to the API server's process."""

    def __init__(self, link: remote.Link) -> None:
        self._link: Final = link

    def add(self, endpoint: addresses.Addresses, *, certificate: bytes) -> None:
        self._link.send(messages.EndpointCertificate(certificate))
        endpoint.follow(self._report)

    def _report(self, node: str, address: addresses.NodeAddress | None) -> None:
        host, port = (address.host, address.port) if address is not None else ("", 0)
        self._link.send(messages.EndpointAddress(node, host, port))


async def run(plan: Plan, connection: socket.socket) -> None:
    """Run components until cancelled, or until the connection is lost."""
    link = remote.Link()
    await link.attach(connection)
    registry = prometheus_client.CollectorRegistry()

    def client_of(user: str) -> Client:
        return local.LocalClient(remote.RemoteBackend(link, user=user))

    surroundings = Surroundings(
        client_of(components.MANAGER),
        gates=plan.gates,
        registry=registry,
        credentials=plan.credentials(),
        clients=client_of,
    )
    parts = plan.parts(ReportedEndpoints(link))
    work = asyncio.create_task(
        embedded.run(surroundings, parts=parts, ready=lambda: link.send(messages.Ready())), name="components"
    )
    tasks = [
        work,
        asyncio.create_task(link.wait_lost(), name="connection"),
        asyncio.create_task(_report_metrics(link, registry), name="metrics"),
    ]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        if work.done():
            await work
    except* errors.DrachmaError as group:
        for error in _leaves(group):
            link.send(messages.Failed(str(error)))
        raise
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        link.close()


def _leaves(group: BaseExceptionGroup[BaseException]) -> Iterable[BaseException]:
    for each in group.exceptions:
        yield from _leaves(each) if isinstance(each, BaseExceptionGroup) else (each,)


async def _report_metrics(link: remote.Link, registry: prometheus_client.CollectorRegistry) -> None:
    while True:
        link.send(messages.Measures(tuple(_family(each) for each in registry.collect())))
        await asyncio.sleep(_REPORT_SECONDS)


def _family(metric: core.Metric) -> messages.Family:
    samples = tuple((each.name, dict(each.labels), float(each.value)) for each in metric.samples)
    return messages.Family(metric.name, metric.documentation, metric.type, metric.unit, samples)


async def _run_until_signal(plan: Plan, connection: socket.socket) -> None:
    task = asyncio.current_task()
    assert task is not None, "runs as a task"
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    with contextlib.suppress(asyncio.CancelledError):
        await run(plan, connection)


def main() -> None:
    """Run the components of a plan in this process."""
    # Ctrl-C reaches all processes of a terminal; the API server's process ends the others in order.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    connection = socket.socket(fileno=int(sys.argv[2]))
    # Containers and drivers that this process starts must not have the connection.
    connection.set_inheritable(False)
    try:
        plan: Plan = pickle.loads(frames.receive_data(connection))
    except (errors.UnreachableError, OSError):
        # The API server's process has ended meanwhile.
        sys.exit(0)
    logs.to_stderr(verbose=plan.logging.verbose, is_json=plan.logging.is_json)
    ports.raise_descriptor_limit(plan.limits)
    budget.PROCESS.limit(plan.limits)
    with eventloop.runner() as runner:
        try:
            runner.run(_run_until_signal(plan, connection))
        except* errors.DrachmaError:
            # The API server's process has the message and prints it.
            sys.exit(1)


if __name__ == "__main__":
    # Pickled plans name their types by the imported module.
    from drachma.process import worker

    worker.main()
