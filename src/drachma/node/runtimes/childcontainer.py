"""A container that is a process of this machine: its streams, its log and its end.

How it is stopped, how a command gets into it, and what is cleared away in the end is its runtime's business.
"""

from __future__ import annotations

import asyncio
from typing import Final, Protocol

from drachma.node.logs import filelog
from drachma.node.logs.log import Log
from drachma.node.runtimes import hostnetwork
from drachma.node.runtimes.child import Child
from drachma.node.runtimes.output import Output
from drachma.node.runtimes.protocol import Command, Connection, Exit, StreamError, Usage
from drachma.node.runtimes.sessions import AttachedSession, CommandSession


class Handle(Protocol):
    """What a runtime does with a container that it started."""

    async def stop(self, grace_seconds: float) -> None:
        """Asks it to end, and ends it after so many seconds."""

    def execute(self, command: Command) -> Child:
        """Starts a command in it; OSError where there is none such."""

    async def ended(self) -> None:
        """It has ended: what it left is cleared away."""

    def usage(self) -> Usage:
        """What it uses now."""


class ChildContainer:
    """A container; ``child`` is the process whose streams and end are its own."""

    def __init__(self, name: str, child: Child, log: filelog.FileLog, *, output: Output, handle: Handle) -> None:
        self.id: Final = name
        self.log: Final[Log] = log
        self._child = child
        self._output = output
        self._handle = handle
        self._life = asyncio.create_task(self._live(), name=name)

    async def _live(self) -> Exit:
        async for stream, data in self._child.output():
            self._output.feed(stream, data)
        ended = await self._child.wait()
        self._output.end()
        await self._handle.ended()
        return ended

    async def wait(self) -> Exit:
        return await asyncio.shield(self._life)

    async def stop(self, grace_seconds: float) -> None:
        if not self._life.done():
            await self._handle.stop(grace_seconds)
        await self.wait()

    async def execute(self, command: Command) -> CommandSession:
        try:
            return CommandSession(self._handle.execute(command))
        except OSError as error:
            raise StreamError(f"cannot run {command.words[0]!r}: {error.strerror}") from error

    async def attach(self) -> AttachedSession:
        return AttachedSession(self, self._child, self._output.listen)

    async def connect(self, port: int) -> Connection:
        return await hostnetwork.connect(port)

    def usage(self) -> Usage:
        return self._handle.usage()
