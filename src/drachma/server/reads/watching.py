"""Watches: what exists first, where the call asks for that, then every change that concerns it.

A watch reads the store's shared log, so a client that is slow costs the others nothing; one that falls behind the log
is told so with a 410 and has to list again. The doors bring the events to their clients:
:mod:`drachma.server.wire.streaming` over a connection, :mod:`drachma.server.inprocess` as they are.
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
    """The watches that are open, so that a server that shuts down can end them."""

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
        """Ends the watches of a resource that is not served any more, or not as it was."""
        for watch in [each for each in self._open if each.scope.resource is resource]:
            watch.close()

    def close(self) -> None:
        """Ends all watches, and those that come later at once."""
        self._is_closed = True
        for watch in list(self._open):
            watch.close()


class Watch:
    """One watch, from the call that asks for it on. It begins with ``open``; whoever opens it closes it.

    Raises a Status for a version that is none before it is opened, and for one that is no longer kept by ``open``.
    """

    def __init__(self, store: Reader, scope: listing.Scope, wanted: options.ListOptions, *, watches: Watches) -> None:
        self.scope = scope
        self.options = wanted
        self._store = store
        self._watches = watches
        self._start = _parse(wanted.resource_version)
        self._matches = selection.matcher(wanted)
        self._subscription: protocol.Watch | None = None
        self._at_end: list[Callable[[], None]] = []

    def at_end(self, act: Callable[[], None]) -> None:
        """Has something done once, when it is closed."""
        self._at_end.append(act)

    async def open(self) -> listing.Listed | None:
        """Subscribes; returns what exists, where that is what the client wants to hear first."""
        if not self.options.sends_initial_events:
            self._subscribe(self._start or self._store.revision)
            return None
        await listing.wait_for(self._store, self._start)
        selected = options.ListOptions(labels=self.options.labels, fields=self.options.fields)
        page = await listing.read(self._store, self.scope, selected)
        # Nothing happens between the list and this, so no event is lost or told twice.
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
        """Every event up to this revision has been handed out."""
        return self._opened.revision

    @property
    def is_selective(self) -> bool:
        """Whether some events may not concern it."""
        return self._matches is not None

    def ready(self) -> Sequence[record.Event]:
        """The next events where some are there already."""
        return self._opened.ready()

    async def batch(self) -> Sequence[record.Event]:
        """The next events, at least one; empty at the end. A 410 if the history it needs is no longer kept."""
        try:
            return await self._opened.batch()
        except errors.GoneError as error:
            raise status.expired(f"too old resource version: {error}") from None

    def changes(self, events: Sequence[record.Event]) -> Sequence[tuple[record.Change, record.Record]]:
        """What events mean to this watch; maybe nothing."""
        if self._matches is None:
            return [(event.change, event.record) for event in events]
        return list(selection.changes(events, self._matches))

    def close(self) -> None:
        """Ends it, if it has begun."""
        while self._at_end:
            self._at_end.pop()()
        if self._subscription is not None:
            self._watches.discard(self)
            self._subscription.close()

    @property
    def _opened(self) -> protocol.Watch:
        assert self._subscription is not None, "a watch is opened before it is read"
        return self._subscription


def of_object(wanted: options.ListOptions, name: str) -> options.ListOptions:
    """The watch of one object, which is that of a collection of one."""
    selected = wanted.fields.required("metadata.name")
    if wanted.fields and selected != name:
        raise status.bad_request("fieldSelector metadata.name doesn't match requested name")
    term = fieldselector.Term("metadata.name", name)
    return msgspec.structs.replace(wanted, fields=fieldselector.FieldSelector((term,)))


def _parse(text: str) -> int:
    try:
        return listing.parse_revision(text)
    except errors.InvalidValueError as error:
        raise status.unclassified(str(fielderror.invalid(Path("resourceVersion"), text, str(error)))) from None
