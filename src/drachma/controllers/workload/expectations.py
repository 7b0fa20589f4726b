"""What a controller expects its informers to have seen before it decides anything: all that it wrote itself.

A controller decides on caches. One that has not seen a pod which was just made would make it again; one that takes a
pod for alive which it has just deleted would delete one more.
"""

from __future__ import annotations

from typing import Any, Final

from drachma.api import meta
from drachma.runtime import Informer, cache, resourceversion


class Expectations:
    """The newest versions that were written for each workload, by its uid, of the kind that an informer follows."""

    def __init__(self, informer: Informer[Any]) -> None:
        self._informer: Final = informer
        self._versions: Final[dict[str, int]] = {}
        self._deletions: Final[dict[str, dict[str, cache.Key]]] = {}

    def note(self, owner: str, resource_version: str) -> None:
        """Something was written for a workload."""
        number = resourceversion.number(resource_version)
        self._versions[owner] = max(self._versions.get(owner, 0), number)

    def note_deletion(self, owner: str, deleted: meta.Object) -> None:
        """Something of a workload is about to go."""
        self._deletions.setdefault(owner, {})[deleted.metadata.uid] = cache.key_of(deleted)

    def are_met(self, owner: str) -> bool:
        """Whether the cache has seen all that was written for a workload."""
        deletions = self._deletions.get(owner, {})
        unseen = {uid: key for uid, key in deletions.items() if self._is_alive(uid, key)}
        if unseen:
            self._deletions[owner] = unseen
        else:
            self._deletions.pop(owner, None)
        has_seen = self._versions.get(owner, 0) <= resourceversion.number(self._informer.resource_version)
        return has_seen and not unseen

    def forget(self, owner: str) -> None:
        """Nothing more is asked about a workload."""
        self._versions.pop(owner, None)
        self._deletions.pop(owner, None)

    def _is_alive(self, uid: str, key: cache.Key) -> bool:
        known = self._informer.cache.get(key.name, namespace=key.namespace)
        return known is not None and known.metadata.uid == uid and known.metadata.deletion_timestamp is None
