"""Watches: existing objects first, if requested, then every matching change.

A watch reads the store's shared log, so a slow client costs the others nothing. A watch that falls behind the log gets
a 410 and has to list again. :mod:`drachma.server.wire.streaming` sends events over a connection, and
:mod:`drachma.server.inprocess` passes them on as they are.
"""

from collections.abc import Callable, Sequence

import msgspec

from drachma import errors
from drachma.server import status
from drachma.server.calls import options
from drachma.server.reads import listing, selection
from drachma.server.reads.reader import Reader
from drachma.server.surface import fieldselector, resources
from drachma.store import protocol, record
from drachma.validation import fielderror
from drachma.validation.path import Path


class Watches:
    """All open watches, which a server ends when it shuts down."""

    def __init__(self) -> None:
        self._open: dict[Watch, None] = {}
        self._is_closed = False

    def __len__(self) -> int:
        return len(self._open)

    def add(self, watch: "Watch") -> None:
        self._open[watch] = None
        if self._is_closed:
            watch.close()

    def discard(self, watch: "Watch") -> None:
        self._open.pop(watch, None)

    def end(self, resource: resources.Resource) -> None:
        """End the watches of a resource that is no longer served, or has changed."""
        for watch in [each for each in self._open if each.scope.resource is resource]:
            watch.close()

    def close(self) -> None:
        """End all watches, and later ones at once."""
        self._is_closed = True
        for watch in list(self._open):
            watch.close()


class Watch:
    """One watch. It starts with ``open``, and the caller closes it.

    The constructor raises a Status for a malformed version, and ``open`` for one that is no longer kept.
    """

    def __init__(
        self, store: Reader, scope: listing.Scope, list_options: options.ListOptions, *, watches: Watches
    ) -> None:
        self.scope = scope
        self.options = list_options
        self._store = store
        self._watches = watches
        self._start = _parse(list_options.resource_version)
        self._matches = selection.matcher(list_options)
        self._subscription: protocol.Watch | None = None
        self._at_end: list[Callable[[], None]] = []

    def call_at_end(self, act: Callable[[], None]) -> None:
        """Register a function that is called once, when the watch is closed."""
        self._at_end.append(act)

    async def open(self) -> listing.Listed | None:
        """Subscribe; return the existing objects if the client asked for them."""
        if not self.options.sends_initial_events:
            self._subscribe(self._start or self._store.revision)
            return None
        await listing.wait_for(self._store, self._start)
        selected = options.ListOptions(labels=self.options.labels, fields=self.options.fields)
        page = await listing.read(self._store, self.scope, selected)
        # Nothing runs between the list and this, so no event is lost or repeated.
        self._subscribe(page.revision)
        return page

    def _subscribe(self, after: int) -> None:
        try:
            self._subscription = self._store.watch(self.scope.resource.key, self.scope.namespace, after=after)
        except errors.GoneError:
            raise status.expired(f"too old resource version: {after} ({self._store.compacted})") from None
        except errors.StoreClosedError:
            raise status.unavailable("the server is shutting down") from None
        self._watches.add(self)

    @property
    def revision(self) -> int:
        """Revision up to which all events have been returned."""
        return self._opened.revision

    @property
    def is_selective(self) -> bool:
        """True if some events may not match."""
        return self._matches is not None

    def ready(self) -> Sequence[record.Event]:
        """Return the next events that are available already."""
        return self._opened.ready()

    async def batch(self) -> Sequence[record.Event]:
        """Return the next events, at least one; empty at the end. A 410 if the log no longer has them."""
        try:
            return await self._opened.batch()
        except errors.GoneError as error:
            raise status.expired(f"too old resource version: {error}") from None

    def changes(self, events: Sequence[record.Event]) -> Sequence[tuple[record.Change, record.Record]]:
        """Return the matching changes of events; possibly none."""
        if self._matches is None:
            return [(event.change, event.record) for event in events]
        return list(selection.changes(events, self._matches))

    def close(self) -> None:
        """End the watch, if it has started."""
        while self._at_end:
            self._at_end.pop()()
        if self._subscription is not None:
            self._watches.discard(self)
            self._subscription.close()

    @property
    def _opened(self) -> protocol.Watch:
        assert self._subscription is not None, "a watch is opened before it is read"
        return self._subscription


def select_object(list_options: options.ListOptions, name: str) -> options.ListOptions:
    """Return the options to watch one object, as a collection of one."""
    selected = list_options.fields.required("metadata.name")
    if list_options.fields and selected != name:
        raise status.bad_request("fieldSelector metadata.name doesn't match requested name")
    term = fieldselector.Term("metadata.name", name)
    return msgspec.structs.replace(list_options, fields=fieldselector.FieldSelector((term,)))


def _parse(text: str) -> int:
    try:
        return listing.parse_revision(text)
    except errors.InvalidValueError as error:
        raise status.unclassified(str(fielderror.invalid(Path("resourceVersion"), text, str(error)))) from None
