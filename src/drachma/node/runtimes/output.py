"""What a container writes: line by line into its log, and as it comes to those who are attached."""

from __future__ import annotations

import asyncio
import datetime as dt
from collections.abc import AsyncIterator, Callable
from typing import Final, Protocol

from drachma.node.logs.entry import Entry
from drachma.node.logs.filelog import LINE_BYTES

_BACKLOG: Final = 256
"""Chunks that somebody who is attached may be behind; who is slower misses some."""


class Sink(Protocol):
    """A log that entries are added to."""

    def add(self, entry: Entry) -> None:
        """Adds one."""

    def end(self) -> None:
        """Nothing is added any more."""


class Output:
    """The output of one run of a container."""

    def __init__(self, sink: Sink, utc: Callable[[], dt.datetime]) -> None:
        self._sink = sink
        self._utc = utc
        self._rest: dict[str, bytes] = {}
        self._listeners: set[asyncio.Queue[tuple[str, bytes] | None]] = set()
        self._has_ended = False

    def feed(self, stream: str, data: bytes) -> None:
        """The container wrote something."""
        for listener in self._listeners:
            if not listener.full():
                listener.put_nowait((stream, data))
        *lines, rest = (self._rest.get(stream, b"") + data).split(b"\n")
        for line in lines:
            *parts, last = _parts(line)
            for part in parts:
                self._sink.add(Entry(self._utc(), stream, part, is_partial=True))
            self._sink.add(Entry(self._utc(), stream, last))
        while len(rest) > LINE_BYTES:
            self._sink.add(Entry(self._utc(), stream, rest[:LINE_BYTES], is_partial=True))
            rest = rest[LINE_BYTES:]
        self._rest[stream] = rest

    def end(self) -> None:
        """The container writes nothing any more."""
        for stream, rest in self._rest.items():
            if rest:
                self._sink.add(Entry(self._utc(), stream, rest, is_partial=True))
        self._sink.end()
        self._has_ended = True
        for listener in self._listeners:
            if listener.full():
                listener.get_nowait()
            listener.put_nowait(None)

    async def listen(self) -> AsyncIterator[tuple[str, bytes]]:
        """What the container writes from now on."""
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
