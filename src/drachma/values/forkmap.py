"""Fork maps: mappings that can be forked in about a microsecond, however much is in them.

They hold the state of a cluster for what-if questions: :meth:`ForkMap.fork` returns a second map with the same content,
and later changes of one are not visible in the other. A fork holds only what
differs from the map that it was forked from: what was written to it, and what was there before the other was written
to. A map that is not a fork, and has none at the moment, is as quick as a dictionary.

Values that are changed in place need a ``copy``: :meth:`ForkMap.mutable` sees to it that no fork notices. The order of
entries is that of insertion only in maps that are not forks.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Hashable, Iterator
from typing import Any, Final, TypeVar

KeyT = TypeVar("KeyT", bound=Hashable)
ValueT = TypeVar("ValueT")

_ABSENT: Final[Any] = object()
_MANY: Final = 16


class ForkMap(dict[KeyT, ValueT]):
    """A mapping that can be forked."""

    __slots__ = ("__weakref__", "_copy", "_forks")

    def __init__(self, *, copy: Callable[[ValueT], ValueT] | None = None) -> None:
        """``copy`` makes a value of its own out of one that is shared."""
        self._copy = copy
        self._forks: list[weakref.ref[_Fork[KeyT, ValueT]]] = []

    def fork(self) -> ForkMap[KeyT, ValueT]:
        """A map with the same content, to be changed apart."""
        if len(self._forks) > _MANY:
            self._forks = [reference for reference in self._forks if reference() is not None]
        child_map = _Fork(self)
        self._forks.append(weakref.ref(child_map))
        if type(self) is ForkMap:
            self.__class__ = _Forked
        return child_map

    def mutable(self, key: KeyT) -> ValueT:
        """The value of a key, to be changed in place; KeyError if there is none."""
        value = self[key]
        if self._copy is None:
            raise TypeError("values of this map cannot be changed in place: it has no way to copy them")
        if self._forks and self._preserve(key):
            value = self._copy(value)
            dict.__setitem__(self, key, value)
        return value

    def _preserve(self, key: KeyT) -> bool:
        """Give the value of a key to the forks that look for it here, before it changes; whether there are any."""
        self._forks = [reference for reference in self._forks if reference() is not None]
        forks = [reference() for reference in self._forks]
        looking = [fork for fork in forks if fork is not None and not dict.__contains__(fork, key)]
        if looking:
            value = self._lasting(key)
            for fork in looking:
                dict.__setitem__(fork, key, value)
        return bool(looking)

    def _lasting(self, key: KeyT) -> Any:
        """The value of a key as a fork can keep it."""
        return dict.get(self, key, _ABSENT)

    def _unsupported(self, *_: object, **__: object) -> Any:
        raise TypeError("a map that can be forked is changed entry by entry")

    clear = copy = popitem = setdefault = update = __ior__ = _unsupported


class _Forked(ForkMap[KeyT, ValueT]):
    """A map while it has forks: they are told what was there before it changes."""

    __slots__ = ()

    def __setitem__(self, key: KeyT, value: ValueT) -> None:
        self._preserve(key)
        dict.__setitem__(self, key, value)

    def __delitem__(self, key: KeyT) -> None:
        self._preserve(key)
        dict.__delitem__(self, key)

    def pop(self, key: KeyT, default: Any) -> Any:  # type: ignore[override]
        """Take an entry out. The value may be one that a fork still has."""
        self._preserve(key)
        return dict.pop(self, key, default)

    def _preserve(self, key: KeyT) -> bool:
        is_seen = super()._preserve(key)
        if not self._forks:
            self.__class__ = ForkMap  # type: ignore[assignment]
        return is_seen


class _Fork(ForkMap[KeyT, ValueT]):
    """A map that holds what differs from another one; what it holds as absent is not there."""

    __slots__ = ("_own", "_parent")

    def __init__(self, parent: ForkMap[KeyT, ValueT]) -> None:
        self._copy = parent._copy
        self._forks = []
        self._parent = parent
        # The keys of values that this map alone has.
        self._own: set[KeyT] = set()

    def __contains__(self, key: Any) -> bool:
        value: Any = dict[Any, Any].get(self, key, self)
        return key in self._parent if value is self else value is not _ABSENT

    def __getitem__(self, key: KeyT) -> ValueT:
        value: Any = dict.get(self, key, self)
        if value is _ABSENT:
            raise KeyError(key)
        own: ValueT = self._parent[key] if value is self else value
        return own

    def get(self, key: KeyT, default: Any = None) -> Any:
        """The value of a key, or the default."""
        value: Any = dict.get(self, key, self)
        if value is self:
            return self._parent.get(key, default)
        return default if value is _ABSENT else value

    def mutable(self, key: KeyT) -> ValueT:
        """The value of a key, to be changed in place; KeyError if there is none."""
        if key in self._own or self._copy is None:
            return super().mutable(key)
        value = self._copy(self[key])
        self[key] = value
        return value

    def _lasting(self, key: KeyT) -> Any:
        own_value = dict.get(self, key, self)
        if own_value is not self:
            return own_value
        # The parent has it, and may change it in place without knowing of forks of this map.
        value = self._parent.get(key, _ABSENT)
        return value if value is _ABSENT or self._copy is None else self._copy(value)

    def __setitem__(self, key: KeyT, value: ValueT) -> None:
        if self._forks:
            self._preserve(key)
        dict.__setitem__(self, key, value)
        self._own.add(key)

    def __delitem__(self, key: KeyT) -> None:
        if key not in self:
            raise KeyError(key)
        self[key] = _ABSENT

    def pop(self, key: KeyT, default: Any) -> Any:  # type: ignore[override]
        """Take an entry out. The value may be one that another map still has."""
        value = self.get(key, _ABSENT)
        if value is _ABSENT:
            return default
        self[key] = _ABSENT
        return value

    def __iter__(self) -> Iterator[KeyT]:
        for key in self._parent:
            if dict.get(self, key) is not _ABSENT:
                yield key
        for key, value in dict.items(self):
            if value is not _ABSENT and key not in self._parent:
                yield key

    def keys(self) -> Any:
        """All keys."""
        return list(iter(self))

    def values(self) -> Any:
        """All values."""
        return [self[key] for key in iter(self)]

    def items(self) -> Any:
        """All entries."""
        return [(key, self[key]) for key in iter(self)]

    def __len__(self) -> int:
        return sum(1 for _ in iter(self))

    def __bool__(self) -> bool:
        return next(iter(self), _ABSENT) is not _ABSENT
