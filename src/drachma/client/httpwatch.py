"""A watch over HTTP: lines of JSON as they come in, handed out in batches."""

from collections.abc import Sequence
from typing import Final, Generic, TypeVar

import aiohttp

from drachma import errors
from drachma.api import meta
from drachma.client import protocol, wire

ObjectT = TypeVar("ObjectT", bound=meta.Object)


class HttpWatch(Generic[ObjectT]):
    """The events in the body of one answer; see ``protocol.Watch`` for what it promises."""

    def __init__(self, body: aiohttp.StreamReader, reader: wire.Reader[ObjectT], *, address: str) -> None:
        self._body: Final = body
        self._reader: Final = reader
        self._address: Final = address
        self._begun: list[bytes] = []
        self._failure: errors.DrachmaError | None = None

    async def batch(self) -> Sequence[protocol.Event[ObjectT]]:
        while True:
            if self._failure is not None:
                raise self._failure
            try:
                data = await self._body.readany()
            except (aiohttp.ClientError, TimeoutError, OSError) as failure:
                problem = str(failure) or type(failure).__name__
                raise errors.UnreachableError(f"{self._address}: the watch broke off: {problem}") from failure
            if not data:
                return ()
            events = self._events(self._lines(data))
            if events:
                return events

    def _lines(self, data: bytes) -> list[bytes]:
        """The lines that are complete now; the beginning of the next is kept. Large lines come in many parts."""
        *complete, rest = data.split(b"\n")
        if complete and self._begun:
            complete[0] = b"".join((*self._begun, complete[0]))
            self._begun.clear()
        if rest:
            self._begun.append(rest)
        return complete

    def _events(self, lines: list[bytes]) -> list[protocol.Event[ObjectT]]:
        """The events of some lines up to the first that is an error, which the next call raises."""
        events: list[protocol.Event[ObjectT]] = []
        try:
            for line in lines:
                if line.strip():
                    events.append(self._reader.event(line))  # noqa: PERF401 (what came before an error counts)
        except (errors.RefusedError, errors.DecodeError) as failure:
            self._failure = failure
        return events
