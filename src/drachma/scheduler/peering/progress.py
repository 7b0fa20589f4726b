"""Progress of an informer: waits until it shows a write.

A component that reads its own write back has seen every earlier write to objects of the same kind.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, Generic, TypeVar

from drachma.api import meta
from drachma.runtime import cache, informer, resourceversion

ObjectT = TypeVar("ObjectT", bound=meta.Object)


class Progress(Generic[ObjectT]):
    """Progress of one informer. A handler reports every object that changed or is gone."""

    def __init__(self, source: informer.Informer[ObjectT]) -> None:
        self._source: Final = source
        self._waiters: Final[dict[cache.Key, list[Callable[[], None]]]] = {}

    def heard(self, changed: ObjectT) -> None:
        """Note that an object changed or is gone."""
        for waiter in tuple(self._waiters.get(cache.key_of(changed), ())):
            waiter()

    async def wait_for(self, written_object: ObjectT) -> None:
        """Return once the informer has shown a write."""
        await self.wait_for_version(
            cache.key_of(written_object), resourceversion.number(written_object.metadata.resource_version)
        )

    async def wait_for_version(self, key: cache.Key, version: int) -> None:
        """Return once the informer has shown a version of an object."""
        heard = asyncio.Event()
        waiters = self._waiters.setdefault(key, [])
        waiters.append(heard.set)
        try:
            while not self._is_at(key, version):
                heard.clear()
                await heard.wait()
        finally:
            waiters.remove(heard.set)
            if not waiters and self._waiters.get(key) is waiters:
                del self._waiters[key]

    def _is_at(self, key: cache.Key, version: int) -> bool:
        if resourceversion.number(self._source.resource_version) >= version:
            return True
        newest = self._source.cache.get(key.name, namespace=key.namespace)
        return newest is not None and resourceversion.number(newest.metadata.resource_version) >= version
