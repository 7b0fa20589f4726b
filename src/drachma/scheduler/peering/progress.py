"""How far an informer has come: waits until it shows something that was written.

Whoever sees its own write come back has seen every earlier one to objects of the same kind.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, Generic, TypeVar

from drachma.api import meta
from drachma.runtime import cache, informer, resourceversion

ObjectT = TypeVar("ObjectT", bound=meta.Object)


class Progress(Generic[ObjectT]):
    """The progress of one informer; a handler tells it of every object that changed or is gone."""

    def __init__(self, source: informer.Informer[ObjectT]) -> None:
        self._source: Final = source
        self._waiters: Final[dict[cache.Key, list[Callable[[], None]]]] = {}

    def heard(self, changed: ObjectT) -> None:
        """An object changed, or is gone."""
        for waiter in tuple(self._waiters.get(cache.key_of(changed), ())):
            waiter()

    async def until_seen(self, written: ObjectT) -> None:
        """Returns once the informer has come as far as a write."""
        await self.until(cache.key_of(written), resourceversion.number(written.metadata.resource_version))

    async def until(self, key: cache.Key, version: int) -> None:
        """Returns once the informer has come as far as a version of an object."""
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
