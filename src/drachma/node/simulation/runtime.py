"""Simulated containers: they run, end, fail and stop as their commands and the annotations of their pod say.

===================================  ==========================  ====================================
annotation                           meaning                     default
===================================  ==========================  ====================================
simulation.drachma.dev/run-seconds   duration of a run           that of its command, or see below
simulation.drachma.dev/exit-code     exit code                   that of its command, or see below
simulation.drachma.dev/stop-seconds  time to stop when asked to  0
simulation.drachma.dev/cpu           CPU usage                   its request
simulation.drachma.dev/memory        memory usage                its request
===================================  ==========================  ====================================

An annotation with the suffix ``.NAME`` applies to the container of that name. Commands such as ``sleep 5`` and
``sh -c 'exit 3'`` take the time and end with the code that they say (:mod:`.commands`). Other init containers end at
once. Other containers run for ever in pods that always restart them, and as :class:`Defaults` says in other pods. The
log of a simulated container shows its devices and its exit code.
"""

from __future__ import annotations

import asyncio
import datetime as dt
import math
from collections.abc import Sequence, Set
from typing import Final, NamedTuple

from drachma import errors
from drachma.accounting import aggregate
from drachma.api import node
from drachma.node.logs.log import STDOUT, Entry, MemoryLog
from drachma.node.runtimes.protocol import Command, Connection, Exit, Session, StartError, StreamError, Usage, Work
from drachma.node.simulation import commands, directives
from drachma.runtime.clock import Clock
from drachma.values import quantity

_SHORT_SECONDS: Final = 1.0
_TERMINATED: Final = 143
_KILLED: Final = 137
_NOTHING: Final = quantity.Quantity.from_int(0)


class Defaults(NamedTuple):
    """Run of containers that are not restarted, if neither their command nor an annotation says it."""

    seconds: float = _SHORT_SECONDS
    code: int = 0


class SimulatedRuntime:
    """Simulates containers on a clock."""

    name: Final = f"{node.SIMULATED_RUNTIME}1"
    has_files: Final = False

    def __init__(self, clock: Clock, defaults: Defaults | None = None) -> None:
        self._clock = clock
        self._defaults = defaults or Defaults()

    def unenforced(self, work: Work) -> Sequence[str]:
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
        seconds, code = self.planned_run(work)
        run = commands.read([*work.setup.command, *work.setup.args])
        return Container(
            name,
            seconds=max(seconds - age, 0.0),
            code=code,
            output=run.output if run is not None else (),
            stop_seconds=_number(work, "stop-seconds", 0),
            clock=self._clock,
            greeting=greeting,
            usage=_usage(work),
        )

    def planned_run(self, work: Work) -> tuple[float, int]:
        """Return the duration and the exit code of a run. Raises StartError if an annotation is invalid."""
        run = commands.read([*work.setup.command, *work.setup.args]) or self._default_run(work)
        return _number(work, "run-seconds", run.seconds), int(_number(work, "exit-code", run.code))

    def _default_run(self, work: Work) -> commands.Run:
        if any(each.name == work.container.name for each in work.pod.spec.init_containers):
            return commands.Run(math.inf if aggregate.is_sidecar(work.container) else 0.0)
        if work.pod.spec.restart_policy in ("", "Always"):
            return commands.Run(math.inf)
        return commands.Run(self._defaults.seconds, self._defaults.code)

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
        output: Sequence[str] = (),
    ) -> None:
        """``usage`` is the CPU usage per second, and the constant memory usage. ``output`` follows the greeting."""
        self.id: Final = name
        self.log: Final = MemoryLog()
        self._ended: Final[asyncio.Future[Exit]] = asyncio.get_running_loop().create_future()
        self._stop_seconds = stop_seconds
        self._clock = clock
        self._usage = usage
        self._since = clock.monotonic()
        for line in (*greeting, *output):
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
        raise StreamError("the container is only simulated: it has no streams to attach to")

    async def connect(self, port: int) -> Connection:
        raise StreamError(f"the container is only simulated: it listens on no port, also not on {port}")

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
