"""The slices that are there: what the informer knows, and writes of one's own that it has not seen yet.

Without them, a pool that is looked at twice in a row would get slices twice. A created slice that somebody else removes
before the informer ever sees it would stay here for ever; so what was written counts for a while only.
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
        """The slices of a pool, in no order."""
        self._forget()
        slices = {each.metadata.name: each for each in self._informer.cache.by(_INDEX, pool)}
        for name, (each, _) in self._written.items():
            if each.spec.pool.name == pool and _is_newer(each, slices.get(name)):
                slices[name] = each
        return [each for each in slices.values() if each.metadata.uid not in self._removed]

    def pools(self) -> set[str]:
        """The pools that have slices."""
        return set(self._informer.cache.values(_INDEX)) | {each.spec.pool.name for each, _ in self._written.values()}

    def seen(self, pool: str) -> list[resourceslice.ResourceSlice]:
        """The slices of a pool as other clients can see them."""
        return list(self._informer.cache.by(_INDEX, pool))

    def wrote(self, stored: resourceslice.ResourceSlice) -> None:
        """A slice was created or updated."""
        self._written[stored.metadata.name] = (stored, self._clock.monotonic() + REMEMBERED_SECONDS)

    def removed(self, gone: resourceslice.ResourceSlice) -> None:
        """A slice was deleted."""
        self._written.pop(gone.metadata.name, None)
        self._removed[gone.metadata.uid] = self._clock.monotonic() + REMEMBERED_SECONDS

    # What the informer tells: whether it is news

    def heard(self, new: resourceslice.ResourceSlice) -> bool:
        """A slice was added or changed; whether that was somebody else."""
        written = self._written.get(new.metadata.name)
        if written is None:
            return new.metadata.uid not in self._removed
        if not _is_newer(written[0], new):
            del self._written[new.metadata.name]
        return written[0].metadata.resource_version != new.metadata.resource_version and not _is_newer(written[0], new)

    def heard_of_removal(self, gone: resourceslice.ResourceSlice) -> bool:
        """A slice is gone; whether that was somebody else."""
        written = self._written.get(gone.metadata.name)
        if written is not None and written[0].metadata.uid == gone.metadata.uid:
            del self._written[gone.metadata.name]
        return self._removed.pop(gone.metadata.uid, None) is None

    def _forget(self) -> None:
        now = self._clock.monotonic()
        for name, (_, deadline) in tuple(self._written.items()):
            if deadline <= now:
                del self._written[name]
        for uid, deadline in tuple(self._removed.items()):
            if deadline <= now:
                del self._removed[uid]


def _is_newer(one: resourceslice.ResourceSlice, other: resourceslice.ResourceSlice | None) -> bool:
    return other is None or resourceversion.number(one.metadata.resource_version) > resourceversion.number(
        other.metadata.resource_version
    )
