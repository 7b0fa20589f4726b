"""Expectations: writes of a controller that its informers must have seen before it decides again.

A controller decides on caches. If the cache lacks a pod that was just created, the controller would create it again. If
it shows a pod that was just deleted, the controller would delete another one.
"""

from __future__ import annotations

from typing import Any, Final

from drachma.api import meta
from drachma.runtime import Informer, cache, resourceversion


class Expectations:
    """Newest versions written for each workload, by its uid, of the kind that an informer follows."""

    def __init__(self, informer: Informer[Any]) -> None:
        self._informer: Final = informer
        self._versions: Final[dict[str, int]] = {}
        self._deletions: Final[dict[str, dict[str, cache.Key]]] = {}

    def note(self, owner: str, resource_version: str) -> None:
        """Note a write for a workload."""
        number = resourceversion.number(resource_version)
        self._versions[owner] = max(self._versions.get(owner, 0), number)

    def note_deletion(self, owner: str, deleted: meta.Object) -> None:
        """Note a deletion for a workload."""
        self._deletions.setdefault(owner, {})[deleted.metadata.uid] = cache.key_of(deleted)

    def are_met(self, owner: str) -> bool:
        """Return True if the cache has seen all writes for a workload."""
        deletions = self._deletions.get(owner, {})
        unseen = {uid: key for uid, key in deletions.items() if self._is_alive(uid, key)}
        if unseen:
            self._deletions[owner] = unseen
        else:
            self._deletions.pop(owner, None)
        has_seen = self._versions.get(owner, 0) <= resourceversion.number(self._informer.resource_version)
        return has_seen and not unseen

    def forget(self, owner: str) -> None:
        """Forget a workload."""
        self._versions.pop(owner, None)
        self._deletions.pop(owner, None)

    def _is_alive(self, uid: str, key: cache.Key) -> bool:
        cached = self._informer.cache.get(key.name, namespace=key.namespace)
        return cached is not None and cached.metadata.uid == uid and cached.metadata.deletion_timestamp is None
