"""Published slices: those of the informer's cache, and own writes that it has not received yet.

Without them, a pool that is reconciled twice in a row would get slices twice. A created slice that another client
removes before the informer sees it would stay here for ever, so an own write counts for a while only.
"""

from typing import Final

from drachma.api import resourceslice
from drachma.runtime import Informer, clock, resourceversion

_INDEX: Final = "driver: pool"

REMEMBERED_SECONDS: Final = 60.0


class SliceView:
    """All slices of a publisher, by pool."""

    def __init__(self, informer: Informer[resourceslice.ResourceSlice], time: clock.Clock) -> None:
        self._informer: Final = informer
        self._clock: Final = time
        self._written: Final[dict[str, tuple[resourceslice.ResourceSlice, float]]] = {}
        self._removed: Final[dict[str, float]] = {}
        """Uids of slices that are gone already, though the informer still has them."""
        informer.cache.add_index(_INDEX, lambda each: (each.spec.pool.name,))

    def of(self, pool: str) -> list[resourceslice.ResourceSlice]:
        """Return the slices of a pool, in no order."""
        self._forget()
        slices = {each.metadata.name: each for each in self._informer.cache.by(_INDEX, pool)}
        for name, (each, _) in self._written.items():
            if each.spec.pool.name == pool and _is_newer(each, slices.get(name)):
                slices[name] = each
        return [each for each in slices.values() if each.metadata.uid not in self._removed]

    def pools(self) -> set[str]:
        """Return the pools that have slices."""
        return set(self._informer.cache.values(_INDEX)) | {each.spec.pool.name for each, _ in self._written.values()}

    def seen(self, pool: str) -> list[resourceslice.ResourceSlice]:
        """Return the slices of a pool as other clients can see them."""
        return list(self._informer.cache.by(_INDEX, pool))

    def wrote(self, stored_slice: resourceslice.ResourceSlice) -> None:
        """Record that a slice was created or updated by the driver."""
        self._written[stored_slice.metadata.name] = (stored_slice, self._clock.monotonic() + REMEMBERED_SECONDS)

    def removed(self, deleted_slice: resourceslice.ResourceSlice) -> None:
        """Record that a slice was deleted by the driver."""
        self._written.pop(deleted_slice.metadata.name, None)
        self._removed[deleted_slice.metadata.uid] = self._clock.monotonic() + REMEMBERED_SECONDS

    # What the informer tells: whether it is news

    def heard(self, new: resourceslice.ResourceSlice) -> bool:
        """Record an added or changed slice. Return True if another client changed it."""
        own_write = self._written.get(new.metadata.name)
        if own_write is None:
            return new.metadata.uid not in self._removed
        if not _is_newer(own_write[0], new):
            del self._written[new.metadata.name]
        return own_write[0].metadata.resource_version != new.metadata.resource_version and not _is_newer(
            own_write[0], new
        )

    def heard_of_removal(self, deleted_slice: resourceslice.ResourceSlice) -> bool:
        """Record a deleted slice. Return True if another client deleted it."""
        own_write = self._written.get(deleted_slice.metadata.name)
        if own_write is not None and own_write[0].metadata.uid == deleted_slice.metadata.uid:
            del self._written[deleted_slice.metadata.name]
        return self._removed.pop(deleted_slice.metadata.uid, None) is None

    def _forget(self) -> None:
        now = self._clock.monotonic()
        for name, (_, deadline) in tuple(self._written.items()):
            if deadline <= now:
                del self._written[name]
        for uid, deadline in tuple(self._removed.items()):
            if deadline <= now:
                del self._removed[uid]


def _is_newer(candidate: resourceslice.ResourceSlice, reference: resourceslice.ResourceSlice | None) -> bool:
    return reference is None or resourceversion.number(candidate.metadata.resource_version) > resourceversion.number(
        reference.metadata.resource_version
    )
