"""Components of a control plane in processes of their own, next to the API server's process.

The process of the API server starts the others, each with one end of a socket pair (:mod:`drachma.process.door`). A
process that ends is started again and takes up from what the store has, after a pause that grows while it fails.
When the API server's process ends, in whatever way, the others lose their connection and end too.
"""

from __future__ import annotations

import asyncio
import logging as logs
import os
import pickle
import socket
import subprocess
import sys
from collections.abc import Iterable
from typing import Final

from prometheus_client import core

from drachma import errors
from drachma.client import messages
from drachma.listening import limits as ports
from drachma.process import components, embedded, hosting, worker
from drachma.process.door import Backends, Door
from drachma.runtime import Surroundings
from drachma.server.wire import nodeconnections

_log = logs.getLogger(__name__)

AUTO: Final = "auto"
_MOST_PROCESSES: Final = 4
_FIRST_PAUSE: Final = 0.5
_LONGEST_PAUSE: Final = 30.0
_STABLE_SECONDS: Final = 60.0
"""Time after which a process that ends is started again at once."""
_END_SECONDS: Final = 10.0
"""Time that a process has to end after SIGTERM."""


_DEFAULT_LIMITS: Final = ports.Limits()
_DEFAULT_LOGGING: Final = worker.Logging()


def parse_count(text: str) -> int:
    """Return the number of processes that an option asks for.

    Raises:
        errors.InvalidValueError: it is neither ``auto`` nor a positive number.
    """
    if text == AUTO:
        return min(len(os.sched_getaffinity(0)), _MOST_PROCESSES)
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise errors.InvalidValueError(f"--processes {text!r}: expected {AUTO} or a number of at least 1")
    return int(text)


def roles(processes: int, *, has_nodes: bool) -> tuple[worker.Role, ...]:
    """Return the processes next to the one of the API server."""
    if processes <= 1:
        return ()
    if processes == 2:
        return (worker.Role("components", has_controllers=True, has_scheduler=True, has_nodes=has_nodes),)
    scheduler = worker.Role("scheduler", has_scheduler=True)
    if processes == 3 or not has_nodes:
        return (scheduler, worker.Role("controllers", has_controllers=True, has_nodes=has_nodes))
    return (
        scheduler,
        worker.Role("controllers", has_controllers=True),
        worker.Role("nodes", has_nodes=True),
    )


async def beside(
    host: hosting.Host,
    *,
    plane: embedded.ControlPlane,
    more: tuple[components.Component, ...] = (),
    processes: int = 1,
    limits: ports.Limits = _DEFAULT_LIMITS,
    logging: worker.Logging = _DEFAULT_LOGGING,
) -> None:
    """Run controllers, scheduler and simulated nodes in so many processes, for :func:`hosting.run`.

    ``more`` are components that share memory with the API server, and run in its process. One process runs everything.
    """
    chosen_roles = roles(processes, has_nodes=plane.has_nodes)
    if not chosen_roles:
        await embedded.beside(host, plane, more=more)
        return
    secrets = worker.Secrets(
        signing=host.signing, account_key=host.application.dispatcher.services.issuer.signer.encoded_key()
    )
    server = embedded.ServerFacts.of(host)
    workers = [
        Supervised(
            worker.Plan(
                role=role,
                plane=plane,
                server=server,
                secrets=secrets if role.has_controllers else None,
                limits=limits,
                logging=logging,
            ),
            embedded.backends_of(host),
            endpoints=host.local_endpoints,
        )
        for role in chosen_roles
    ]
    async with embedded.surroundings_in(host, gates=plane.gates) as surroundings, asyncio.TaskGroup() as tasks:
        for each in workers:
            tasks.create_task(each.run(), name=each.name)
        synced = asyncio.Event()
        parts = (*more, _idle)
        tasks.create_task(embedded.run(surroundings, parts=parts, ready=synced.set, other_metrics=workers))
        await synced.wait()
        for each in workers:
            await each.wait_ready()
        host.ready()


def _idle(_: Surroundings) -> components.Run:
    """Return a component that does nothing, so that metrics are served even without any other."""

    async def run() -> None:
        await asyncio.Event().wait()

    return run


class _WorkerEndpoints:
    """Addresses of the nodes that a process serves; see ``nodeconnections.Endpoint``."""

    def __init__(self) -> None:
        self._addresses: Final[dict[str, tuple[str, int]]] = {}

    def set(self, address: messages.EndpointAddress) -> None:
        """Add the address of a node, or withdraw it."""
        if address.host:
            self._addresses[address.node] = address.host, address.port
        else:
            self._addresses.pop(address.node, None)

    def serves(self, node: str, host: str, port: int) -> bool:
        return self._addresses.get(node) == (host, port)


class Supervised:
    """One process of components, which is kept running. It is a source of their metrics."""

    def __init__(
        self, plan: worker.Plan, backends: Backends, *, endpoints: nodeconnections.LocalEndpoints | None = None
    ) -> None:
        """``endpoints`` gets the node endpoints of the process; without it, the API server cannot dial them."""
        self._plan: Final = plan
        self._backends: Final = backends
        self._endpoints: Final = endpoints
        self._own_endpoints = _WorkerEndpoints()
        self._families: tuple[messages.Family, ...] = ()
        self._ready: Final = asyncio.Event()
        self._failure = ""
        self.process_id = 0
        """ID of the current process; 0 if there is none."""

    @property
    def name(self) -> str:
        return f"process of {self._plan.role.name}"

    async def wait_ready(self) -> None:
        """Return when the components were ready for the first time."""
        await self._ready.wait()

    def collect(self) -> Iterable[core.Metric]:
        """Return the metrics that the process has reported last."""
        for family in self._families:
            metric = core.Metric(family.name, family.documentation, family.type, family.unit)
            for name, labels, value in family.samples:
                metric.add_sample(name, labels, value)
            yield metric

    async def run(self) -> None:
        """Keep the process running until cancelled.

        Raises:
            errors.InvalidValueError: the components cannot start, for a reason that the user has to remove.
            errors.UnreachableError: the process has ended by itself before its components were ever ready.
        """
        loop = asyncio.get_running_loop()
        pause = _FIRST_PAUSE
        while True:
            began = loop.time()
            code = await self._run_once()
            if self._failure and not self._ready.is_set():
                raise errors.InvalidValueError(self._failure)
            if code > 0 and not self._ready.is_set():
                raise errors.UnreachableError(f"{self.name}: ended with code {code} before it was ready")
            if loop.time() - began > _STABLE_SECONDS:
                pause = _FIRST_PAUSE
            _log.error(
                "%s: ended %s%s; starting it again in %g s",
                self.name,
                f"by signal {-code}" if code < 0 else f"with code {code}",
                f": {self._failure}" if self._failure else "",
                pause,
            )
            await asyncio.sleep(pause)
            pause = min(pause * 2, _LONGEST_PAUSE)

    async def _run_once(self) -> int:
        """Run the process to its end and return its code."""
        self._failure = ""
        own_end, child_end = socket.socketpair()
        door = Door(self._backends, report=self._handle)
        with child_end:
            # It closes all other descriptors in the child, so the connection ends when this process does.
            process = subprocess.Popen(
                (sys.executable, "-P", "-m", worker.__name__, self._plan.role.name, str(child_end.fileno())),
                stdin=subprocess.DEVNULL,
                pass_fds=(child_end.fileno(),),
            )
        self.process_id = process.pid
        try:
            await door.attach(own_end)
            door.send_plan(pickle.dumps(self._plan))
            return await _wait(process)
        finally:
            await _end(process)
            await door.close()
            self.process_id = 0
            self._families = ()
            if self._endpoints is not None:
                self._endpoints.remove(self._own_endpoints)
            self._own_endpoints = _WorkerEndpoints()

    def _handle(self, report: messages.Report) -> None:
        match report:
            case messages.Ready():
                _log.info("%s: ready", self.name)
                self._ready.set()
            case messages.Failed(text):
                self._failure = text
            case messages.Measures(families):
                self._families = families
            case messages.EndpointCertificate(certificate):
                if self._endpoints is not None:
                    self._endpoints.add(self._own_endpoints, certificate=certificate)
            case messages.EndpointAddress():
                self._own_endpoints.set(report)


async def _wait(process: subprocess.Popen[bytes]) -> int:
    """Return the code of a process when it has ended: negative for a signal."""
    ended = asyncio.Event()
    handle = os.pidfd_open(process.pid)
    loop = asyncio.get_running_loop()
    try:
        loop.add_reader(handle, ended.set)
        await ended.wait()
        return process.wait()
    finally:
        loop.remove_reader(handle)
        os.close(handle)


async def _end(process: subprocess.Popen[bytes]) -> None:
    """End a process and wait for it: by SIGTERM, and by SIGKILL if that takes too long."""
    if process.poll() is not None:
        return
    process.terminate()
    try:
        await asyncio.wait_for(_wait(process), _END_SECONDS)
    except TimeoutError:
        process.kill()
        process.wait()
