"""Watches: a stream of events, with what exists first where asked for, bookmarks, and an end.

A watch reads the store's shared log, so a client that is slow costs the others nothing; one that falls behind the log
is told so with a 410 and has to list again. Events of the stored version are the stored bytes in a small frame.
"""

import asyncio
import contextlib
import random
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, Protocol

import msgspec

from drachma import errors
from drachma.server import deadlines, schema, status
from drachma.server.calls import options
from drachma.server.presentation import encoding
from drachma.server.reads import listing
from drachma.server.surface import fieldselector, resources
from drachma.store import protocol, record
from drachma.validation import fielderror
from drachma.validation.path import Path

BOOKMARK_SECONDS: Final = 60.0
"""How often a watch that asked for bookmarks is told how far it has seen."""

LAST_BOOKMARK_SECONDS: Final = 2.0
"""How long before its end a watch gets a last bookmark, to resume from."""

SHORTEST_SECONDS: Final = 1800.0
"""A watch without a timeout of its own ends after once to twice this time, so that clients spread over servers."""

SEND_SECONDS: Final = 60.0
"""How long a client may leave a part of a stream unread before it is given up."""

SPACING_SECONDS: Final = 0.001
LONGEST_SPACING_SECONDS: Final = 0.1
"""How long a watch waits after it has sent something, so that busy watches send many events at once: the first for
each watch that sends, the second at most. Sending costs as much as dozens of events, so this bounds what all watches
together take from the one thread that also writes to about a tenth. What comes after a quiet time is sent at once."""

_SHARED: Final = 64
"""How many batches of events of a resource are kept to be sent to other watches."""

_CHUNK: Final = 500
"""Initial events sent at once; a large collection must neither block the others nor pile up in a buffer."""

_END_OF_INITIAL_EVENTS: Final = {"k8s.io/initial-events-end": "true"}


class Framer(Protocol):
    """The form in which events are sent."""

    def event(self, kind: str, stored: record.Record) -> bytes: ...

    def batch(self, events: Sequence[record.Event]) -> bytes: ...

    def bookmark(self, document: Mapping[str, Any]) -> bytes: ...


class PlainFramer:
    """Whole objects as JSON: what all informers ask for."""

    def __init__(self, encoder: encoding.Encoder, version: str) -> None:
        self._encoder = encoder
        self._version = version

    def event(self, kind: str, stored: record.Record) -> bytes:
        return b'{"type":"%b","object":%b}\n' % (kind.encode(), self._encoder.object(stored, self._version))

    def batch(self, events: Sequence[record.Event]) -> bytes:
        """Many events; made once for all watches that are sent the same ones.

        Which ones they are is told by the first, the last and their number: a watch of one namespace sees some of
        the events of a watch of all, and the same if it sees as many.
        """
        likeness = (self._version, events[0].record.revision, events[-1].record.revision, len(events))
        shared = self._encoder.shared
        made = shared.get(likeness)
        if made is None:
            made = b"".join([self.event(event.change.value, event.record) for event in events])
            if len(shared) >= _SHARED:
                shared.clear()
            shared[likeness] = made
        return made

    def bookmark(self, document: Mapping[str, Any]) -> bytes:
        return frame("BOOKMARK", document)


class DocumentFramer:
    """Objects in any other form, such as rows of a table."""

    def __init__(self, encoder: encoding.Encoder, version: str, *, convert: Callable[[Mapping[str, Any]], Any]) -> None:
        self._encoder = encoder
        self._version = version
        self._convert = convert

    def event(self, kind: str, stored: record.Record) -> bytes:
        return frame(kind, self._convert(self._encoder.document(stored, self._version)))

    def batch(self, events: Sequence[record.Event]) -> bytes:
        return b"".join([self.event(event.change.value, event.record) for event in events])

    def bookmark(self, document: Mapping[str, Any]) -> bytes:
        return frame("BOOKMARK", self._convert(document))


class Request(NamedTuple):
    """What to watch, and how it is sent."""

    scope: listing.Scope
    version: str
    wanted: options.ListOptions
    framer: Framer


def frame(kind: str, document: Any) -> bytes:
    """One event of a stream."""
    return b'{"type":"%b","object":%b}\n' % (kind.encode(), encoding.encode(document))


def check(wanted: options.ListOptions, resource: resources.Resource) -> None:
    """Refuses a watch from a version that is none, before the stream begins."""
    _parse(wanted.resource_version, resource)


def of_object(wanted: options.ListOptions, name: str) -> options.ListOptions:
    """The watch of one object, which is that of a collection of one."""
    selected = wanted.fields.required("metadata.name")
    if wanted.fields and selected != name:
        raise status.bad_request("fieldSelector metadata.name doesn't match requested name")
    term = fieldselector.Term("metadata.name", name)
    return msgspec.structs.replace(wanted, fields=fieldselector.FieldSelector((term,)))


def lifetime(wanted: options.ListOptions, chance: random.Random) -> float:
    """How many seconds a watch lasts."""
    if wanted.timeout_seconds:
        return float(max(wanted.timeout_seconds, 0))
    return SHORTEST_SECONDS * (1.0 + chance.random())


class Streams:
    """The watches that are open, so that a server that shuts down can end them."""

    def __init__(self) -> None:
        self.sending: Final = deadlines.Deadlines(SEND_SECONDS)
        self._senders = 0
        self._open: dict[protocol.Watch, None] = {}
        self._is_closed = False

    def __len__(self) -> int:
        return len(self._open)

    def add(self, watch: protocol.Watch) -> None:
        self._open[watch] = None
        if self._is_closed:
            watch.close()

    def discard(self, watch: protocol.Watch) -> None:
        self._open.pop(watch, None)

    @contextlib.contextmanager
    def sent(self, watch: protocol.Watch) -> Iterator[None]:
        """A watch whose events go over a connection, as long as the block lasts."""
        self.add(watch)
        self._senders += 1
        try:
            yield
        finally:
            self._senders -= 1
            self.discard(watch)

    @property
    def spacing(self) -> float:
        """How many seconds a watch leaves between two times that it sends."""
        return min(SPACING_SECONDS * self._senders, LONGEST_SPACING_SECONDS)

    def close(self) -> None:
        """Ends all watches, and those that come later at once."""
        self._is_closed = True
        for watch in list(self._open):
            watch.close()


class Stream:
    """One watch. ``close`` ends it early, when its client has gone."""

    def __init__(self, store: protocol.Store, request: Request, *, streams: Streams, seconds: float) -> None:
        self._store = store
        self._request = request
        self._streams = streams
        self._seconds = seconds
        self._watch: protocol.Watch | None = None
        self._is_closed = False

    def close(self) -> None:
        self._is_closed = True
        if self._watch is not None:
            self._watch.close()

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        """The bytes of the stream, several events at once where several are ready."""
        try:
            opened = await self._open()
        except status.StatusError as error:
            yield frame("ERROR", error.document)
            return
        watch, initial = opened
        self._watch = watch
        with watch, self._streams.sent(watch):
            for chunk in initial:
                yield chunk
            if self._is_closed:
                return
            async for chunk in self._follow(watch):
                yield chunk

    async def _open(self) -> tuple[protocol.Watch, Iterator[bytes]]:
        """Subscribes, and says what comes first."""
        scope, wanted = self._request.scope, self._request.wanted
        revision = _parse(wanted.resource_version, scope.resource)
        if wanted.sends_initial_events:
            await listing.wait_for(self._store, revision)
            page = await listing.read(self._store, scope, _plain_list(wanted))
            # Nothing happens between the list and this, so no event is lost or told twice.
            return self._subscribe(page.revision), self._initial(page)
        start = revision or self._store.revision
        return self._subscribe(start), iter(())

    def _subscribe(self, after: int) -> protocol.Watch:
        scope = self._request.scope
        try:
            return self._store.watch(scope.resource.key, scope.namespace, after=after)
        except errors.GoneError:
            oldest = self._store.compacted
            raise status.expired(f"too old resource version: {after} ({oldest})") from None
        except errors.StoreClosedError:
            raise status.unavailable("the server is shutting down") from None

    def _initial(self, page: listing.Listed) -> Iterator[bytes]:
        framer = self._request.framer
        for start in range(0, len(page.records), _CHUNK):
            part = page.records[start : start + _CHUNK]
            yield b"".join(framer.event("ADDED", stored) for stored in part)
        if self._request.wanted.allows_bookmarks:
            yield framer.bookmark(self._bookmark(page.revision, annotations=_END_OF_INITIAL_EVENTS))

    async def _follow(self, watch: protocol.Watch) -> AsyncIterator[bytes]:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._seconds
        allows_bookmarks = self._request.wanted.allows_bookmarks
        last_bookmark = deadline - LAST_BOOKMARK_SECONDS
        bookmark = min(loop.time() + BOOKMARK_SECONDS, last_bookmark) if allows_bookmarks else deadline
        translate = _Translation(self._request)
        while (now := loop.time()) < deadline:
            if allows_bookmarks and now >= bookmark:
                yield self._request.framer.bookmark(self._bookmark(watch.revision))
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
                except errors.GoneError as error:
                    yield frame("ERROR", status.expired(f"too old resource version: {error}").document)
                    return
                if not events:
                    return
            chunk = translate.frames(events)
            if chunk:
                yield chunk
                await asyncio.sleep(self._streams.spacing)

    def _bookmark(self, revision: int, *, annotations: Mapping[str, str] | None = None) -> dict[str, Any]:
        """An empty object of the kind whose only news is its resourceVersion."""
        resource, version = self._request.scope.resource, self._request.version
        api_version = resource.api_version(version)
        metadata: dict[str, Any] = {"resourceVersion": str(revision)}
        if annotations:
            metadata["annotations"] = dict(annotations)
        empty = schema.empty(schema.of(api_version, resource.kind))
        return {"kind": resource.kind, "apiVersion": api_version, **empty, "metadata": metadata}


class _Translation:
    """What events mean to a watcher that selects: an object that begins to match is new to it."""

    def __init__(self, request: Request) -> None:
        self._framer = request.framer
        self._matches = listing.matcher(request.wanted)

    def frames(self, events: Sequence[record.Event]) -> bytes:
        if self._matches is None:
            return self._framer.batch(events)
        return b"".join(self._selected(events))

    def _selected(self, events: Sequence[record.Event]) -> Iterator[bytes]:
        matches = self._matches
        assert matches is not None, "asked only where something is selected"
        for event in events:
            before = event.previous is not None and matches(event.previous)
            after = event.change is not record.Change.DELETED and matches(event.record)
            if after:
                yield self._framer.event("MODIFIED" if before else "ADDED", event.record)
            elif before:
                assert event.previous is not None, "something matched before"
                yield self._framer.event("DELETED", _last_seen(event.previous, event.revision))


def _last_seen(previous: record.Record, revision: int) -> record.Record:
    """The object as the watcher knows it, at the revision at which it stopped matching."""
    body = record.stamped_deletion(previous, revision)
    return record.Record(previous.key, previous.uid, previous.create_revision, revision, body.data, body.value)


def _plain_list(wanted: options.ListOptions) -> options.ListOptions:
    """The list that a watch begins with: everything selected, as of now."""
    return options.ListOptions(labels=wanted.labels, fields=wanted.fields)


def _parse(text: str, resource: resources.Resource) -> int:
    try:
        return listing.parse_revision(text)
    except errors.InvalidValueError as error:
        causes = [fielderror.invalid(Path("resourceVersion"), text, str(error))]
        raise status.invalid(resource.plural, "", group=resource.group, causes=causes) from None
