"""Simulated containers: they run, end, fail and stop as annotations of their pod say.

===================================  ==========================  ===========================================
annotation                           meaning                     default
===================================  ==========================  ===========================================
simulation.drachma.dev/run-seconds   duration of a run           endless if the pod always restarts it, or 1
simulation.drachma.dev/exit-code     exit code                   0
simulation.drachma.dev/stop-seconds  time to stop when asked to  0
simulation.drachma.dev/cpu           CPU usage                   its request
simulation.drachma.dev/memory        memory usage                its request
===================================  ==========================  ===========================================

An annotation with the suffix ``.NAME`` applies to the container of that name. The log of a simulated container shows
its devices and its exit code.
"""

from __future__ import annotations

import asyncio
import datetime as dt
import math
from collections.abc import Sequence, Set
from typing import Final

from drachma import errors
from drachma.api import node
from drachma.node.logs.log import STDOUT, Entry, MemoryLog
from drachma.node.runtimes.protocol import Command, Connection, Exit, Session, StartError, StreamError, Usage, Work
from drachma.node.runtimes.security import Security
from drachma.node.simulation import directives
from drachma.runtime.clock import Clock
from drachma.values import quantity

_SHORT_SECONDS: Final = 1.0
_TERMINATED: Final = 143
_KILLED: Final = 137
_NOTHING: Final = quantity.Quantity.from_int(0)


class SimulatedRuntime:
    """Simulates containers on a clock."""

    name: Final = f"{node.SIMULATED_RUNTIME}1"
    has_files: Final = False

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def unenforced(self, security: Security) -> Sequence[str]:
        """Return no field: a simulated container runs nothing that would have to be confined."""
        return ()

    async def start(self, work: Work) -> Container:
        """Start a container. Fails only if an annotation is invalid."""
        name = f"{node.SIMULATED_RUNTIME}{work.pod.metadata.uid}/{work.container.name}/{work.attempt}"
        return self._container(work, name, greeting=_greeting(work))

    async def update(self, work: Work) -> None:
        """Do nothing: nothing bounds a simulated container."""

    async def recall(self, work: Work, name: str, *, since: dt.datetime) -> Container:
        """Continue a container as if the agent had run all the time. Its log starts empty."""
        metadata = work.pod.metadata
        greeting = f"container {work.container.name} of pod {metadata.namespace}/{metadata.name} goes on"
        age = (self._clock.utc() - since).total_seconds()
        return self._container(work, name, greeting=[greeting], age=max(age, 0.0))

    async def retain(self, uids: Set[str]) -> None:
        """Do nothing: simulated containers end with their agent."""

    def log(self, work: Work) -> None:
        """Return no log: logs are in memory and end with their agent."""

    def _container(self, work: Work, name: str, *, greeting: Sequence[str], age: float = 0.0) -> Container:
        endless = math.inf if work.pod.spec.restart_policy in ("", "Always") else _SHORT_SECONDS
        seconds = _number(work, "run-seconds", endless)
        code = int(_number(work, "exit-code", 0))
        return Container(
            name,
            seconds=max(seconds - age, 0.0),
            code=code,
            stop_seconds=_number(work, "stop-seconds", 0),
            clock=self._clock,
            greeting=greeting,
            usage=_usage(work),
        )

    def forget(self, uid: str) -> None:
        """Do nothing: a simulated pod leaves nothing behind."""

    async def close(self) -> None:
        """Do nothing: simulated containers end with their agent."""


class Container:
    """A simulated container."""

    def __init__(
        self,
        name: str,
        *,
        seconds: float,
        code: int,
        stop_seconds: float,
        clock: Clock,
        greeting: Sequence[str],
        usage: Usage,
    ) -> None:
        """``usage`` is the CPU usage per second, and the constant memory usage."""
        self.id: Final = name
        self.log: Final = MemoryLog()
        self._ended: Final[asyncio.Future[Exit]] = asyncio.get_running_loop().create_future()
        self._stop_seconds = stop_seconds
        self._clock = clock
        self._usage = usage
        self._since = clock.monotonic()
        for line in greeting:
            self._log_line(line)
        self._life = None if math.isinf(seconds) else asyncio.create_task(self._live(seconds, code), name=name)

    async def wait(self) -> Exit:
        return await asyncio.shield(self._ended)

    async def stop(self, grace_seconds: float) -> None:
        if self._ended.done():
            return
        if self._stop_seconds:
            await self._clock.sleep(min(self._stop_seconds, grace_seconds))
        if self._life is not None:
            self._life.cancel()
        if not self._ended.done():
            is_killed = self._stop_seconds > grace_seconds
            self._end(_KILLED if is_killed else _TERMINATED)

    async def execute(self, command: Command) -> Session:
        raise StreamError("the container is only simulated: no command can be run in it")

    async def attach(self) -> Session:
        raise StreamError("the container is only simulated: nobody can be attached to it")

    async def connect(self, port: int) -> Connection:
        raise StreamError(f"the container is only simulated: nobody listens on port {port}")

    def usage(self) -> Usage:
        """Return the CPU time since the start, and the memory usage."""
        return Usage(self._usage.cpu_seconds * (self._clock.monotonic() - self._since), self._usage.memory_bytes)

    async def _live(self, seconds: float, code: int) -> None:
        await self._clock.sleep(seconds)
        if not self._ended.done():
            self._end(code)

    def _end(self, code: int) -> None:
        self._log_line(f"ends with exit code {code}")
        self.log.end()
        self._ended.set_result(Exit(code))

    def _log_line(self, line: str) -> None:
        self.log.add(Entry(self._clock.utc(), STDOUT, line.encode()))


def _greeting(work: Work) -> list[str]:
    metadata, name = work.pod.metadata, work.container.name
    words = " ".join((*work.setup.command, *work.setup.args))
    begins = f"container {name} of pod {metadata.namespace}/{metadata.name} begins on {work.pod.spec.node_name}"
    return [f"{begins}: {words}" if words else begins, *(f"has device {each}" for each in work.devices)]


def _usage(work: Work) -> Usage:
    return Usage(_amount(work, "cpu").as_approximate_float(), _amount(work, "memory").as_int64())


def _amount(work: Work, resource: str) -> quantity.Quantity:
    text = directives.text(work.annotations, resource, part=work.container.name)
    if text is None:
        return work.container.resources.requests.get(resource) or _NOTHING
    try:
        return quantity.Quantity.parse(text)
    except errors.InvalidValueError as error:
        name = directives.name(resource)
        raise StartError("CreateContainerConfigError", f"annotation {name}: {error}") from error


def _number(work: Work, directive: str, default: float) -> float:
    try:
        number = directives.number(work.annotations, directive, part=work.container.name)
    except errors.InvalidValueError as error:
        raise StartError("CreateContainerConfigError", str(error)) from error
    return default if number is None else number
