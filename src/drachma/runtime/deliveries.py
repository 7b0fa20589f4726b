"""Deliveries: calls of one handler of an informer, which may fail for one object without ending the informer.

A handler that raises has a defect. It is reported, and the handler is called again later, and with the next change of
the object. It is always told of a transition that begins where its last successful call ended, so that it neither
misses an object nor sees one twice.
"""

from collections.abc import Callable
from typing import Final, Generic, TypeVar

from drachma.api import meta
from drachma.runtime import cache, defects

ObjectT = TypeVar("ObjectT", bound=meta.Object)


class Deliveries(Generic[ObjectT]):
    """Functions of one handler, and the objects that it is behind with."""

    def __init__(
        self,
        *,
        added: Callable[[ObjectT], None],
        updated: Callable[[ObjectT, ObjectT], None],
        deleted: Callable[[ObjectT], None],
        kind: str,
    ) -> None:
        self._added: Final = added
        self._updated: Final = updated
        self._deleted: Final = deleted
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
            key = cache.key_of(_either(old, new))
            defects.PROCESS.report(f"informer of {self._kind}", key)
            self._behind[key] = old
            return False
        return True

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
                self._added(new)
        elif new is None:
            self._deleted(old)
        elif old.metadata.uid != new.metadata.uid:
            # Deleted and created again: a handler must not take two objects for one.
            self._deleted(old)
            self._added(new)
        elif old.metadata.resource_version != new.metadata.resource_version:
            self._updated(old, new)


def _either(old: ObjectT | None, new: ObjectT | None) -> ObjectT:
    present = new if new is not None else old
    assert present is not None, "a change is about an object"
    return present
