"""Watches over a connection: framed events, bookmarks, and the end of the stream.

Events of the stored version are the stored bytes in a small frame, which is shared by all watches. An error after the
start of a stream is its last event.
"""

import asyncio
import contextlib
import functools
import random
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from typing import Any, Final, Protocol

from drachma.api.types import model
from drachma.server import status
from drachma.server.calls import options
from drachma.server.presentation import encoding
from drachma.server.reads import listing, watching
from drachma.server.surface.consultation import PendingError
from drachma.server.wire.frames import Frames
from drachma.store import record

BOOKMARK_SECONDS: Final = 60.0
"""Interval of bookmarks for watches that ask for them."""

LAST_BOOKMARK_SECONDS: Final = 2.0
"""Time before its end at which a watch gets a last bookmark to resume from."""

SHORTEST_SECONDS: Final = 1800.0
"""Shortest lifetime of a watch without a timeout.

It lasts up to twice this time, so that clients spread over servers.
"""

SPACING_SECONDS: Final = 0.001
LONGEST_SPACING_SECONDS: Final = 0.1
"""How long a watch waits after it has sent something, so that busy watches send many events at once: the first for
each watch that sends, the second at most. Sending costs as much as dozens of events, so this bounds what all watches
together take from the one thread that also writes to about a tenth. What comes after a quiet time is sent at once."""

_CHUNK_BYTES: Final = 256 * 1024
"""Bytes of initial objects that are written at once."""

_END_OF_INITIAL_EVENTS: Final = {"k8s.io/initial-events-end": "true"}


class Framer(Protocol):
    """Form in which events are sent."""

    def event(self, kind: str, event_object: record.Record) -> bytes: ...

    def batch(self, events: Sequence[record.Event]) -> bytes: ...

    def bookmark(self, document: Mapping[str, Any]) -> bytes: ...


class PlainFramer:
    """Whole objects as JSON, as informers ask for them."""

    def __init__(self, encoder: encoding.Encoder, version: str, *, frames: Frames) -> None:
        self._encoder = encoder
        self._version = version
        self._frames = frames

    def event(self, kind: str, event_object: record.Record) -> bytes:
        return b'{"type":"%b","object":%b}\n' % (kind.encode(), self._encoder.object(event_object, self._version))

    def batch(self, events: Sequence[record.Event]) -> bytes:
        """Return many events; the bytes are shared by all watches with the same events.

        The first event, the last event and their number identify a batch: a watch of one namespace sees some of the
        events of a watch of all namespaces, and all of them if it sees as many.
        """
        key = (self._encoder, self._version, events[0].record.revision, events[-1].record.revision, len(events))
        data = self._frames.get(key)
        if data is None:
            data = b"".join([self.event(event.change.value, event.record) for event in events])
            self._frames.put(key, data)
        return data

    def bookmark(self, document: Mapping[str, Any]) -> bytes:
        return frame("BOOKMARK", document)


class DocumentFramer:
    """Objects in any other form, such as rows of a table.

    ``form`` names a form that is the same for all watches, which then share the frames of events.
    """

    def __init__(
        self,
        encoder: encoding.Encoder,
        version: str,
        *,
        convert: Callable[[Mapping[str, Any]], Any],
        frames: Frames,
        form: str | None,
    ) -> None:
        self._encoder = encoder
        self._version = version
        self._convert = convert
        self._frames = frames
        self._form = form

    def event(self, kind: str, event_object: record.Record) -> bytes:
        if self._form is None:
            return self._frame(kind, event_object)
        key = (self._encoder, self._version, self._form, kind, event_object.revision)
        data = self._frames.get(key)
        if data is None:
            data = self._frame(kind, event_object)
            self._frames.put(key, data)
        return data

    def _frame(self, kind: str, event_object: record.Record) -> bytes:
        return frame(kind, self._convert(self._encoder.document(event_object, self._version)))

    def batch(self, events: Sequence[record.Event]) -> bytes:
        return b"".join([self.event(event.change.value, event.record) for event in events])

    def bookmark(self, document: Mapping[str, Any]) -> bytes:
        return frame("BOOKMARK", self._convert(document))


def frame(kind: str, document: Any) -> bytes:
    """Return one event of a stream."""
    return b'{"type":"%b","object":%b}\n' % (kind.encode(), encoding.encode(document))


def _cut(records: Sequence[record.Record]) -> Iterator[Sequence[record.Record]]:
    """Yield records in parts of about the size that is written at once, at least one record each."""
    begin = size = 0
    for end, item in enumerate(records):
        size += len(item.data)
        if size > _CHUNK_BYTES and end > begin:
            yield records[begin:end]
            begin, size = end, len(item.data)
    if begin < len(records):
        yield records[begin:]


def lifetime(list_options: options.ListOptions, rng: random.Random) -> float:
    """Return the seconds that a watch lasts."""
    if list_options.timeout_seconds:
        return float(max(list_options.timeout_seconds, 0))
    return SHORTEST_SECONDS * (1.0 + rng.random())


class Pace:
    """Rate at which streams send."""

    def __init__(self) -> None:
        self._senders = 0

    @contextlib.contextmanager
    def sender(self) -> Iterator[None]:
        """Count a sending stream for the duration of the block."""
        self._senders += 1
        try:
            yield
        finally:
            self._senders -= 1

    @property
    def spacing(self) -> float:
        """Return the seconds that a stream leaves between two sends."""
        return min(SPACING_SECONDS * self._senders, LONGEST_SPACING_SECONDS)


class Stream:
    """One watch as bytes. ``close`` ends it early, when its client has disconnected.

    ``consult`` answers the questions of conversions to another version. ``started`` is called after the first events
    are written, or at once if there are none.
    """

    def __init__(
        self,
        watch: watching.Watch,
        version: str,
        *,
        framer: Framer,
        pace: Pace,
        seconds: float,
        consult: Callable[[PendingError], Awaitable[None]],
        started: Callable[[], None],
    ) -> None:
        self._watch = watch
        self._version = version
        self._framer = framer
        self._pace = pace
        self._seconds = seconds
        self._consult = consult
        self._started = started
        self._is_closed = False

    def close(self) -> None:
        self._is_closed = True
        self._watch.close()

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        """Yield the bytes of the stream, several events at once if several are ready."""
        try:
            existing = await self._watch.open()
        except status.StatusError as error:
            yield frame("ERROR", error.document)
            return
        with contextlib.closing(self._watch), self._pace.sender():
            try:
                if existing is not None:
                    async for chunk in self._initial(existing):
                        self._started()
                        yield chunk
                self._started()
                if self._is_closed:
                    return
                async for chunk in self._follow():
                    yield chunk
            except status.StatusError as error:
                yield frame("ERROR", error.document)

    async def _initial(self, page: listing.Listed) -> AsyncIterator[bytes]:
        for part in _cut(page.records):
            yield await self._frame_with_answers(functools.partial(self._frame_added, part))
        if self._watch.options.allows_bookmarks:
            yield self._framer.bookmark(self._bookmark(page.revision, annotations=_END_OF_INITIAL_EVENTS))

    async def _follow(self) -> AsyncIterator[bytes]:
        watch = self._watch
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._seconds
        allows_bookmarks = watch.options.allows_bookmarks
        last_bookmark = deadline - LAST_BOOKMARK_SECONDS
        bookmark = min(loop.time() + BOOKMARK_SECONDS, last_bookmark) if allows_bookmarks else deadline
        while (now := loop.time()) < deadline:
            if allows_bookmarks and now >= bookmark:
                yield self._framer.bookmark(self._bookmark(watch.revision))
                is_last = now >= last_bookmark
                bookmark = deadline if is_last else min(now + BOOKMARK_SECONDS, last_bookmark)
                continue
            events = watch.ready()
            if not events:
                try:
                    async with asyncio.timeout_at(min(bookmark, deadline)):
                        events = await watch.batch()
                except TimeoutError:
                    continue
                if not events:
                    return
            try:
                chunk = self._frames(events)
            except PendingError:
                chunk = await self._frame_with_answers(functools.partial(self._frames, events))
            if chunk:
                yield chunk
                await asyncio.sleep(self._pace.spacing)

    async def _frame_with_answers(self, make: Callable[[], bytes]) -> bytes:
        """Return bytes that may depend on answers from outside."""
        while True:
            try:
                return make()
            except PendingError as pending:
                await self._consult(pending)

    def _frame_added(self, records: Sequence[record.Record]) -> bytes:
        return b"".join([self._framer.event("ADDED", item) for item in records])

    def _frames(self, events: Sequence[record.Event]) -> bytes:
        if not self._watch.is_selective:
            return self._framer.batch(events)
        return b"".join(
            [self._framer.event(change.value, event_object) for change, event_object in self._watch.changes(events)]
        )

    def _bookmark(self, revision: int, *, annotations: Mapping[str, str] | None = None) -> dict[str, Any]:
        """Return an empty object of the kind with only a resourceVersion."""
        resource = self._watch.scope.resource
        api_version = resource.api_version(self._version)
        metadata: dict[str, Any] = {"resourceVersion": str(revision)}
        if annotations:
            metadata["annotations"] = dict(annotations)
        empty = model.empty(resource.schema(self._version))
        return {"kind": resource.kind, "apiVersion": api_version, **empty, "metadata": metadata}
