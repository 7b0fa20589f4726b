"""Memory: caches that share one limit in bytes.

A cache says with every entry how many bytes the entry holds. All caches of a :class:`Memory` together stay below its
limit; the least recently used entries of the largest cache go first. ``PROCESS`` is the memory of this process, which
``--cache-bytes`` sets and the metric ``drachma_cache_bytes`` shows.

Functions of short texts that are called very often use :func:`remember` instead. It keeps a fixed number of entries and
none for long texts, so its size has a bound that does not depend on clients.
"""

from __future__ import annotations

import functools
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from typing import Any, Final, Generic, TypeVar

from drachma import errors

DEFAULT_LIMIT: Final = 256 * 2**20
"""Bytes that all caches of a process may hold together."""

LEAST_LIMIT: Final = 2**20

ENTRY_OVERHEAD: Final = 256
"""Bytes that an entry takes in addition to its content: the dictionary's slot, the key and small objects."""

_LARGEST_SHARE: Final = 8
"""An entry may hold at most one part in so many of the limit; larger ones are not kept."""

_KeyT = TypeVar("_KeyT", bound=Hashable)
_ValueT = TypeVar("_ValueT")


class Memory:
    """Limit in bytes that several caches share. Safe to use from several threads."""

    def __init__(self, limit: int = DEFAULT_LIMIT) -> None:
        self._lock: Final = threading.RLock()
        self._caches: Final[weakref.WeakSet[Cache[Any, Any]]] = weakref.WeakSet()
        self._limit = limit
        self._size = 0
        """Bytes that all caches hold now."""

    @property
    def limit(self) -> int:
        """Bytes that the caches may hold together."""
        return self._limit

    @limit.setter
    def limit(self, limit: int) -> None:
        if limit < LEAST_LIMIT:
            raise errors.InvalidValueError(f"cache limit {limit}: must be at least {LEAST_LIMIT} bytes")
        with self._lock:
            self._limit = limit
            self._shrink()

    def sizes(self) -> Mapping[str, int]:
        """Return the bytes that are held now, by the name of the cache."""
        with self._lock:
            sizes: dict[str, int] = {}
            for cache in self._caches:
                sizes[cache.name] = sizes.get(cache.name, 0) + cache.size
            return sizes

    def _shrink(self) -> None:
        if self._size > self._limit:
            caches = list(self._caches)
            while self._size > self._limit:
                max(caches, key=lambda cache: cache.size).drop_oldest()


class Cache(Generic[_KeyT, _ValueT]):
    """Values by key, within the limit of a memory."""

    def __init__(self, name: str, memory: Memory | None = None) -> None:
        """``name`` is the cache's name in the metric; caches of one name are counted together."""
        self.name: Final = name
        self.size = 0
        """Bytes held now."""
        self._memory: Final = memory or PROCESS
        self._lock: Final = self._memory._lock
        self._entries: Final[OrderedDict[_KeyT, tuple[_ValueT, int]]] = OrderedDict()
        with self._lock:
            self._memory._caches.add(self)

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: _KeyT) -> _ValueT | None:
        """Return the value of a key, which counts as used now; None if there is none."""
        with self._lock:
            entry = self._entries.get(key)
            if entry is None:
                return None
            self._entries.move_to_end(key)
            return entry[0]

    def put(self, key: _KeyT, value: _ValueT, *, size: int) -> None:
        """Keep a value that holds ``size`` bytes together with its key, if it is small enough to be kept."""
        size += ENTRY_OVERHEAD
        with self._lock:
            self.remove(key)
            if size > self._memory.limit // _LARGEST_SHARE:
                return
            self._entries[key] = (value, size)
            self._resize(size)
            self._memory._shrink()

    def remove(self, key: _KeyT) -> None:
        """Drop the value of a key, if there is one."""
        with self._lock:
            entry = self._entries.pop(key, None)
            if entry is not None:
                self._resize(-entry[1])

    def clear(self) -> None:
        """Drop everything."""
        with self._lock:
            self._entries.clear()
            self._resize(-self.size)

    def drop_oldest(self) -> int:
        """Drop the entry that was used least recently, and return its bytes."""
        with self._lock:
            _, (_, size) = self._entries.popitem(last=False)
            self._resize(-size)
            return size

    def __del__(self) -> None:
        self.clear()

    def _resize(self, change: int) -> None:
        self.size += change
        self._memory._size += change


PROCESS: Final = Memory()
"""Memory that the caches of this process share."""


def remember(*, entries: int, longest: int) -> Callable[[Callable[[str], _ValueT]], Callable[[str], _ValueT]]:
    """Keep the results of a function of one text, for texts of at most ``longest`` characters.

    ``entries`` times the size of a result for such a text is the most that it holds.
    """

    def decorate(function: Callable[[str], _ValueT]) -> Callable[[str], _ValueT]:
        cached = functools.lru_cache(maxsize=entries)(function)

        @functools.wraps(function)
        def call(text: str) -> _ValueT:
            return cached(text) if len(text) <= longest else function(text)

        return call

    return decorate
