"""Containers that are only imagined: they run, end, fail and take their time to stop as annotations of the pod say.

===================================  ========================================  =====================================
annotation                           meaning                                   without it
===================================  ========================================  =====================================
simulation.drachma.dev/run-seconds   how long a container runs before it ends  ever, if the pod always restarts it, or 1
simulation.drachma.dev/exit-code     with which code                           0
simulation.drachma.dev/stop-seconds  how long it takes to stop when asked to   0
simulation.drachma.dev/cpu           how much of the processor it uses         what it requests
simulation.drachma.dev/memory        how much memory it uses                   what it requests
===================================  ========================================  =====================================

With ``.NAME`` behind it an annotation is about the container of that name. What such a container writes to its log is
which devices it was given, and how it ended.
"""

from __future__ import annotations

import asyncio
import datetime as dt
import math
from collections.abc import Sequence, Set
from typing import Final

from drachma import errors
from drachma.api import node
from drachma.node import simulationannotations
from drachma.node.logs.entry import STDOUT, Entry
from drachma.node.logs.log import MemoryLog
from drachma.node.runtimes.protocol import Command, Connection, Exit, Session, StartError, StreamError, Usage, Work
from drachma.node.runtimes.security import Security
from drachma.runtime import clock
from drachma.values import quantity

_SHORT_SECONDS: Final = 1.0
_TERMINATED: Final = 143
_KILLED: Final = 137
_NOTHING: Final = quantity.Quantity.from_int(0)


class SimulatedRuntime:
    """Imagines containers on a clock."""

    name: Final = f"{node.SIMULATED_RUNTIME}1"
    has_files: Final = False

    def __init__(self, time: clock.Clock) -> None:
        self._clock = time

    def unenforced(self, security: Security) -> Sequence[str]:
        """Return no field: nothing runs, so there is nothing to keep from anything."""
        return ()

    async def start(self, work: Work) -> Container:
        """Never fails but for annotations that cannot be read."""
        name = f"{node.SIMULATED_RUNTIME}{work.pod.metadata.uid}/{work.container.name}/{work.attempt}"
        return self._container(work, name, greeting=_greeting(work))

    async def recall(self, work: Work, name: str, *, since: dt.datetime) -> Container:
        """Goes on with it as if nobody had been away; its log begins anew."""
        of = work.pod.metadata
        greeting = f"container {work.container.name} of pod {of.namespace}/{of.name} goes on"
        age = (self._clock.utc() - since).total_seconds()
        return self._container(work, name, greeting=[greeting], age=max(age, 0.0))

    async def retain(self, uids: Set[str]) -> None:
        """Nothing runs outside the agent."""

    def log(self, work: Work) -> None:
        """Logs are in memory."""

    def _container(self, work: Work, name: str, *, greeting: Sequence[str], age: float = 0.0) -> Container:
        endless = math.inf if work.pod.spec.restart_policy in ("", "Always") else _SHORT_SECONDS
        seconds = _number(work, "run-seconds", endless)
        code = int(_number(work, "exit-code", 0))
        return Container(
            name,
            seconds=max(seconds - age, 0.0),
            code=code,
            stop_seconds=_number(work, "stop-seconds", 0),
            time=self._clock,
            greeting=greeting,
            usage=_usage(work),
        )

    def forget(self, uid: str) -> None:
        """Nothing is kept of what is only imagined."""

    async def close(self) -> None:
        """Nothing runs outside the agent."""


class Container:
    """A container that is only imagined."""

    def __init__(
        self,
        name: str,
        *,
        seconds: float,
        code: int,
        stop_seconds: float,
        time: clock.Clock,
        greeting: Sequence[str],
        usage: Usage,
    ) -> None:
        """``usage`` is what it uses of the processor in a second, and of memory all the time."""
        self.id: Final = name
        self.log: Final = MemoryLog()
        self._ended: Final[asyncio.Future[Exit]] = asyncio.get_running_loop().create_future()
        self._stop_seconds = stop_seconds
        self._clock = time
        self._usage = usage
        self._since = time.monotonic()
        for line in greeting:
            self._say(line)
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
        """As much of the processor as it asks for, ever since it began."""
        return Usage(self._usage.cpu_seconds * (self._clock.monotonic() - self._since), self._usage.memory_bytes)

    async def _live(self, seconds: float, code: int) -> None:
        await self._clock.sleep(seconds)
        if not self._ended.done():
            self._end(code)

    def _end(self, code: int) -> None:
        self._say(f"ends with exit code {code}")
        self.log.end()
        self._ended.set_result(Exit(code))

    def _say(self, line: str) -> None:
        self.log.add(Entry(self._clock.utc(), STDOUT, line.encode()))


def _greeting(work: Work) -> list[str]:
    of, name = work.pod.metadata, work.container.name
    words = " ".join((*work.setup.command, *work.setup.args))
    begins = f"container {name} of pod {of.namespace}/{of.name} begins on {work.pod.spec.node_name}"
    return [f"{begins}: {words}" if words else begins, *(f"has device {each}" for each in work.devices)]


def _usage(work: Work) -> Usage:
    return Usage(_amount(work, "cpu").as_approximate_float(), _amount(work, "memory").as_int64())


def _amount(work: Work, resource: str) -> quantity.Quantity:
    text = simulationannotations.text(work.annotations, resource, part=work.container.name)
    if text is None:
        return work.container.resources.requests.get(resource) or _NOTHING
    try:
        return quantity.Quantity.parse(text)
    except errors.InvalidValueError as error:
        name = simulationannotations.name(resource)
        raise StartError("CreateContainerConfigError", f"annotation {name}: {error}") from error


def _number(work: Work, what: str, default: float) -> float:
    try:
        number = simulationannotations.number(work.annotations, what, part=work.container.name)
    except errors.InvalidValueError as error:
        raise StartError("CreateContainerConfigError", str(error)) from error
    return default if number is None else number
