"""Deliveries: calls of the handlers of an informer, which may fail for one object without ending the informer.

A handler that raises has a defect. It is reported, and the handler is called again later, and with the next change of
the object. It is always told of a transition that begins where its last successful call ended, so that it neither
misses an object nor sees one twice.

An informer of pods has twenty handlers. While none of them is behind, its changes are delivered in one loop over the
functions that exist for a change of that kind.
"""

from collections.abc import Callable, Iterable
from typing import Final, Generic, Self, TypeVar

import msgspec

from drachma.api import meta
from drachma.runtime import cache, defects

ObjectT = TypeVar("ObjectT", bound=meta.Object)


def _nothing(*_: object) -> None:
    return None


class Handler(msgspec.Struct, Generic[ObjectT], frozen=True, kw_only=True):
    """Functions to call for each change; ``deleted`` gets the last known state."""

    added: Callable[[ObjectT], None] = _nothing
    updated: Callable[[ObjectT, ObjectT], None] = _nothing
    deleted: Callable[[ObjectT], None] = _nothing

    @classmethod
    def on_change(cls, function: Callable[[ObjectT], None]) -> Self:
        """Return a handler that calls one function with each object that is added, updated or deleted."""
        return cls.on_write(function, deleted=function)

    @classmethod
    def on_write(cls, function: Callable[[ObjectT], None], *, deleted: Callable[[ObjectT], None] = _nothing) -> Self:
        """Return a handler that calls one function with the new state of each object that is added or updated."""
        return cls(added=function, updated=lambda _, new: function(new), deleted=deleted)


class Handlers(Generic[ObjectT]):
    """All handlers of an informer of a ``kind``, called in the order in which they were added."""

    def __init__(self, kind: str) -> None:
        self._kind: Final = kind
        self._all: Final[list[_Deliveries[ObjectT]]] = []
        self._added: Final[list[tuple[Callable[[ObjectT], None], _Deliveries[ObjectT]]]] = []
        self._updated: Final[list[tuple[Callable[[ObjectT, ObjectT], None], _Deliveries[ObjectT]]]] = []
        self._deleted: Final[list[tuple[Callable[[ObjectT], None], _Deliveries[ObjectT]]]] = []
        self._is_behind = False

    @property
    def is_behind(self) -> bool:
        """True if a handler has failed, and has not been called again since."""
        return self._is_behind

    def add(self, handler: Handler[ObjectT], objects: Iterable[ObjectT]) -> None:
        """Add a handler, and call it for the objects that exist already."""
        new = _Deliveries(handler, self._kind)
        self._all.append(new)
        if handler.added is not _nothing:
            self._added.append((handler.added, new))
        if handler.updated is not _nothing:
            self._updated.append((handler.updated, new))
        if handler.deleted is not _nothing:
            self._deleted.append((handler.deleted, new))
        for each in objects:
            if not new.deliver(None, each):
                self._is_behind = True

    def deliver(self, old: ObjectT | None, new: ObjectT | None) -> None:
        """Call all handlers for the change of an object from one version to another."""
        if self._is_behind:
            for each in self._all:
                each.deliver(old, new)
        elif old is None:
            assert new is not None, "a change is about an object"
            for add, each in self._added:
                try:
                    add(new)
                except Exception:
                    self._fail(each, old, new)
        elif new is None:
            for delete, each in self._deleted:
                try:
                    delete(old)
                except Exception:
                    self._fail(each, old, new)
        else:
            for update, each in self._updated:
                try:
                    update(old, new)
                except Exception:
                    self._fail(each, old, new)

    def retry(self, current: Callable[[cache.Key], ObjectT | None]) -> None:
        """Call handlers again that are behind; ``current`` returns the cached state by key."""
        for each in self._all:
            each.retry(current)
        self._is_behind = any(each.is_behind for each in self._all)

    def _fail(self, failed: "_Deliveries[ObjectT]", old: ObjectT | None, new: ObjectT | None) -> None:
        failed.fall_behind(old, new)
        self._is_behind = True


class _Deliveries(Generic[ObjectT]):
    """Functions of one handler, and the objects that it is behind with."""

    def __init__(self, handler: Handler[ObjectT], kind: str) -> None:
        self._handler: Final = handler
        self._kind: Final = kind
        self._behind: Final[dict[cache.Key, ObjectT | None]] = {}
        """States of objects that the handler has seen last, by key; None for objects that it has not seen."""

    @property
    def is_behind(self) -> bool:
        return bool(self._behind)

    def deliver(self, old: ObjectT | None, new: ObjectT | None) -> bool:
        """Call the handler for the change of an object; return False if the handler failed."""
        if self._behind:
            key = cache.key_of(_either(old, new))
            if key in self._behind:
                old = self._behind.pop(key)
        try:
            self._call(old, new)
        except Exception:
            self.fall_behind(old, new)
            return False
        return True

    def fall_behind(self, old: ObjectT | None, new: ObjectT | None) -> None:
        """Report the exception that the handler has just raised; remember the state that it has seen last."""
        key = cache.key_of(_either(old, new))
        defects.PROCESS.report(f"informer of {self._kind}", key)
        self._behind[key] = old

    def retry(self, current: Callable[[cache.Key], ObjectT | None]) -> None:
        """Call the handler again for objects that it is behind with; ``current`` returns the cached state by key."""
        for key, old in tuple(self._behind.items()):
            new = current(key)
            if old is None and new is None:
                del self._behind[key]
            else:
                self.deliver(old, new)

    def _call(self, old: ObjectT | None, new: ObjectT | None) -> None:
        if old is None:
            if new is not None:
                self._handler.added(new)
        elif new is None:
            self._handler.deleted(old)
        elif old.metadata.uid != new.metadata.uid:
            # Deleted and created again: a handler must not take two objects for one.
            self._handler.deleted(old)
            self._handler.added(new)
        elif old.metadata.resource_version != new.metadata.resource_version:
            self._handler.updated(old, new)


def _either(old: ObjectT | None, new: ObjectT | None) -> ObjectT:
    present = new if new is not None else old
    assert present is not None, "a change is about an object"
    return present
