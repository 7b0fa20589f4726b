"""Containers that are processes of this machine: streams, log and exit.

The runtime stops them, runs commands in them and cleans up after them, through a handle.
"""

from __future__ import annotations

import asyncio
import datetime as dt
from collections.abc import AsyncIterator, Callable
from typing import Final, Protocol

from drachma.node.logs import filelog
from drachma.node.logs.filelog import LINE_BYTES
from drachma.node.logs.log import Entry, Log
from drachma.node.runtimes import sessions
from drachma.node.runtimes.child import Child
from drachma.node.runtimes.protocol import Command, Connection, Exit, StreamError, Usage
from drachma.node.runtimes.sessions import AttachedSession, CommandSession

_BACKLOG: Final = 256
"""Chunks that an attached client may be behind; a slower client misses some."""


class Handle(Protocol):
    """Actions of the runtime on a container that it started."""

    async def stop(self, grace_seconds: float) -> None:
        """Ask the container to end, and kill it after the grace period."""

    def execute(self, command: Command) -> Child:
        """Start a command in the container. Raises OSError if the command does not exist."""

    async def clean_up(self) -> None:
        """Clean up after the container, which has ended."""

    def usage(self) -> Usage:
        """Return the current usage."""


class ChildContainer:
    """A container; its streams and its exit are those of the child."""

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
        exit_ = await self._child.wait()
        self._output.end()
        await self._handle.clean_up()
        return exit_

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
        return await sessions.connect_to_host(port)

    def usage(self) -> Usage:
        return self._handle.usage()


class Sink(Protocol):
    """A log to write entries to."""

    def add(self, entry: Entry) -> None:
        """Add an entry."""

    def end(self) -> None:
        """Close the log."""


class Output:
    """Output of a run: line by line into its log, and as it comes to attached clients."""

    def __init__(self, sink: Sink, utc: Callable[[], dt.datetime]) -> None:
        self._sink = sink
        self._utc = utc
        self._tails: dict[str, bytes] = {}
        self._listeners: set[asyncio.Queue[tuple[str, bytes] | None]] = set()
        self._has_ended = False

    def feed(self, stream: str, data: bytes) -> None:
        """Take in output of the container."""
        for listener in self._listeners:
            if not listener.full():
                listener.put_nowait((stream, data))
        *lines, tail = (self._tails.get(stream, b"") + data).split(b"\n")
        for line in lines:
            *parts, last = _parts(line)
            for part in parts:
                self._sink.add(Entry(self._utc(), stream, part, is_partial=True))
            self._sink.add(Entry(self._utc(), stream, last))
        while len(tail) > LINE_BYTES:
            self._sink.add(Entry(self._utc(), stream, tail[:LINE_BYTES], is_partial=True))
            tail = tail[LINE_BYTES:]
        self._tails[stream] = tail

    def end(self) -> None:
        """End the output."""
        for stream, tail in self._tails.items():
            if tail:
                self._sink.add(Entry(self._utc(), stream, tail, is_partial=True))
        self._sink.end()
        self._has_ended = True
        for listener in self._listeners:
            if listener.full():
                listener.get_nowait()
            listener.put_nowait(None)

    async def listen(self) -> AsyncIterator[tuple[str, bytes]]:
        """Yield the output from now on."""
        if self._has_ended:
            return
        queue: asyncio.Queue[tuple[str, bytes] | None] = asyncio.Queue(maxsize=_BACKLOG)
        self._listeners.add(queue)
        try:
            while (chunk := await queue.get()) is not None:
                yield chunk
        finally:
            self._listeners.discard(queue)


def _parts(line: bytes) -> list[bytes]:
    return [line[begin : begin + LINE_BYTES] for begin in range(0, len(line), LINE_BYTES)] or [b""]
