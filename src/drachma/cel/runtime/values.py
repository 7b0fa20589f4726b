"""The Python forms of CEL values that Python has no type for, and the rules of map keys.

=========  ==========================================================================================
int        ``int``; uint ``ast.UInt``; bool ``bool``; double ``float``; null ``None``
string     ``str``; bytes ``bytes``
list       ``list`` or ``tuple``; :class:`Concat` and :class:`Growing` behave a little differently
map        ``dict`` with keys made by :func:`encode_key`; :class:`DefaultMap`, :class:`NativeMap`, ...
others     :class:`Duration`, :class:`Timestamp`, :class:`Optional`, :class:`TypeValue`, and the Kubernetes types
=========  ==========================================================================================

Called by every other module of the runtime. Values are never changed after they are made, except by the fold that
makes a :class:`Growing` or a :class:`GrowingMap`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from drachma.cel import ast
from drachma.cel.runtime import faults
from drachma.values import semver

UInt = ast.UInt

MAX_TEXT: Final = 1 << 24
MAX_ELEMENTS: Final = 1 << 22
"""The longest text and list that evaluation makes; upstream has no such limits, only those of its memory."""

INT_MIN: Final = -(2**63)
INT_MAX: Final = 2**63 - 1
UINT_MAX: Final = 2**64 - 1

Value = Any
"""A CEL value; see the table above."""


class Duration:
    """A span of time in whole nanoseconds, within 64 bits."""

    __slots__ = ("nanos",)

    def __init__(self, nanos: int) -> None:
        self.nanos = nanos

    def __eq__(self, other: object) -> bool:
        return self.nanos == other.nanos if isinstance(other, Duration) else NotImplemented

    def __hash__(self) -> int:
        return hash(("duration", self.nanos))

    def __repr__(self) -> str:
        return f"Duration({self.nanos})"


class Timestamp:
    """A point in time: nanoseconds since 1970 in UTC, and the offset (in seconds) it is written with."""

    __slots__ = ("nanos", "offset")

    def __init__(self, nanos: int, offset: int = 0) -> None:
        self.nanos = nanos
        self.offset = offset

    def __eq__(self, other: object) -> bool:
        return self.nanos == other.nanos if isinstance(other, Timestamp) else NotImplemented

    def __hash__(self) -> int:
        return hash(("timestamp", self.nanos))

    def __repr__(self) -> str:
        return f"Timestamp({self.nanos}, offset={self.offset})"


class Optional:
    """``optional.of(value)``; the one without a value is ``NONE``."""

    __slots__ = ("value",)

    def __init__(self, value: Value) -> None:
        self.value = value

    def __repr__(self) -> str:
        return "NONE" if self is NONE else f"Optional({self.value!r})"


NONE: Final = Optional(None)


class TypeValue:
    """A type as a value, such as ``type(1)`` or ``int``; compared by name."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __eq__(self, other: object) -> bool:
        return self.name == other.name if isinstance(other, TypeValue) else NotImplemented

    def __hash__(self) -> int:
        return hash(("type", self.name))

    def __repr__(self) -> str:
        return f"TypeValue({self.name!r})"


class Concat:
    """The sum of two lists, which it keeps rather than copies: an expression may add a list to itself many times.

    Unlike other lists it reports errors that comparing its elements gives.
    """

    __slots__ = ("_length", "left", "right")

    def __init__(self, left: Any, right: Any) -> None:
        self.left = left
        self.right = right
        self._length = len(left) + len(right)
        if self._length > INT_MAX:
            raise faults.internal("interface conversion: ref.Val is *types.Err, not types.Int")

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[Any]:
        todo: list[Any] = [self]
        while todo:
            part = todo.pop()
            if part.__class__ is Concat:
                todo += (part.right, part.left)
            else:
                yield from part

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[position] for position in range(*index.indices(self._length))]
        if not -self._length <= index < self._length:
            raise IndexError(index)
        part: Any = self
        position = index % self._length
        while part.__class__ is Concat:
            first = len(part.left)
            if position < first:
                part = part.left
            else:
                position -= first
                part = part.right
        return part[position]

    def __repr__(self) -> str:
        return f"Concat({self.left!r}, {self.right!r})"


class Growing(list[Any]):
    """The accumulator of a fold that started with an empty list: adding to it changes it."""

    __slots__ = ()


class SetList(list[Any]):
    """A list whose order does not matter and in which no element is there twice; it came with the input."""

    __slots__ = ()

    def identities(self) -> set[Any]:
        """Return the hashable keys of its elements."""
        return {identity(element) for element in self}


class KeyedList(list[Any]):
    """A list of maps whose order does not matter, told apart by some of their fields; it came with the input."""

    __slots__ = ("keys",)

    def __init__(self, elements: Iterable[Any], keys: tuple[str, ...]) -> None:
        super().__init__(elements)
        self.keys = keys

    def identity(self, element: Any) -> Any:
        """Return a hashable key that is equal exactly for equal values of a document."""
        if not isinstance(element, dict):
            return None
        return tuple([encode_key(element.get(key)) for key in self.keys])


class NativeMap(dict[Any, Any]):
    """A map that came with the input: all keys are strings, and looking for another is no error."""

    __slots__ = ()


class GrowingMap(dict[Any, Any]):
    """The accumulator of a fold that started with an empty map: inserting changes it."""

    __slots__ = ()


class DefaultMap(dict[Any, Any]):
    """A map whose lookups find an empty map under every key it does not have; membership and size do not change."""

    __slots__ = ()

    def __missing__(self, key: object) -> dict[Any, Any]:
        return EMPTY_MAP


class LazyMap(dict[Any, Any]):
    """A map of which each value is computed when it is first selected; one that failed fails again."""

    __slots__ = ("_computations",)

    def __init__(self, computations: Mapping[str, Callable[[], Any]]) -> None:
        super().__init__()
        self._computations: Final = computations

    def select(self, key: str) -> Any:
        """Return the value under a key, or ``MISSING``. Raises Fault where computing it failed."""
        value = self.get(key, MISSING)
        if value is MISSING:
            compute = self._computations.get(key)
            if compute is None:
                return MISSING
            try:
                value = compute()
            except faults.Fault as fault:
                value = fault
            self[key] = value
        if value.__class__ is faults.Fault:
            raise value
        return value


EMPTY_MAP: Final[dict[Any, Any]] = {}
_NATIVE: Final = frozenset((NativeMap, DefaultMap))
MISSING: Final = object()


class Key:
    """A map key whose Python value would be mistaken for another key: uint, double, bool and the exotic ones."""

    __slots__ = ("identity", "value")

    def __init__(self, value: Value, identity: object) -> None:
        self.value = value
        self.identity = identity

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Key) and self.identity == other.identity

    def __hash__(self) -> int:
        return hash(self.identity)

    def __repr__(self) -> str:
        return f"Key({self.value!r})"


_TRUE_KEY: Final = Key(value=True, identity=(bool, True))
_FALSE_KEY: Final = Key(value=False, identity=(bool, False))


def check_size(size: int, limit: int) -> None:
    """Ends an evaluation that is about to make something enormous, as if it had become too expensive."""
    if size > limit:
        raise faults.cost_limit()


def encode_key(value: Value) -> Any:
    """Return the dict key that stands for a CEL value; 1, 1u, 1.0 and true are four keys."""
    kind = value.__class__
    if kind is str or kind is int:
        return value
    if kind is bool:
        return _TRUE_KEY if value else _FALSE_KEY
    if kind is UInt or kind is float or kind is Duration or kind is Timestamp or value is None:
        return Key(value, (kind, value))
    if kind is TypeValue:
        return Key(value, (kind, value.name))
    if kind is bytes or kind is semver.SemVer:
        unhashable = "types.Bytes" if kind is bytes else "cel.Semver"
        raise faults.internal(f"runtime error: hash of unhashable type {unhashable}")
    # Upstream compares the others by address.
    return Key(value, (kind, id(value)))


def decode_key(key: Any) -> Value:
    """Return the CEL value that a dict key stands for."""
    return key.value if key.__class__ is Key else key


def identity(value: Value) -> Any:
    """Return the hashable key of an element. Elements of another kind have none."""
    if isinstance(value, dict):
        return frozenset([(key, identity(each)) for key, each in value.items()])
    if isinstance(value, list):
        return tuple([identity(each) for each in value])
    return value if value.__class__ is bytes else encode_key(value)


def find(mapping: dict[Any, Any], key: Value) -> Value:
    """Return the entry under ``key``, or ``MISSING``; whole numbers are found whatever their type."""
    kind = key.__class__
    if mapping.__class__ is LazyMap:
        return mapping.select(key) if kind is str else MISSING
    if kind is str:
        value = mapping.get(key, MISSING)
    elif not mapping or mapping.__class__ in _NATIVE:
        value = MISSING
    else:
        value = mapping.get(encode_key(key), MISSING)
        if value is MISSING and (kind is int or kind is UInt or kind is float):
            value = _find_number(mapping, key)
    if value is MISSING and mapping.__class__ is DefaultMap:
        return EMPTY_MAP
    return value


def contains(mapping: dict[Any, Any], key: Value) -> bool:
    """Return True if ``key in mapping`` as CEL sees it; defaults do not count."""
    if key.__class__ is str:
        return key in mapping
    if not mapping or mapping.__class__ in _NATIVE:
        return False
    encoded = encode_key(key)
    if encoded in mapping:
        return True
    return key.__class__ in (int, UInt, float) and _find_number(mapping, key) is not MISSING


def _find_number(mapping: dict[Any, Any], key: Any) -> Value:
    kind = key.__class__
    if kind is float:
        if INT_MIN < key < 2**63 and int(key) == key:
            value = mapping.get(int(key), MISSING)
            if value is not MISSING:
                return value
        if 0 <= key < 2**64 and int(key) == key:
            return mapping.get(encode_key(UInt(int(key))), MISSING)
        return MISSING
    if kind is int:
        return mapping.get(encode_key(UInt(key)), MISSING) if key >= 0 else MISSING
    return mapping.get(int(key), MISSING) if key <= INT_MAX else MISSING


def keys(mapping: dict[Any, Any]) -> list[Value]:
    """Return the keys as CEL values, in the order of insertion."""
    return [key.value if key.__class__ is Key else key for key in mapping]


def make_map(pairs: list[tuple[Value, Value]]) -> dict[Any, Any]:
    """Return the map with these entries; a later entry replaces an earlier one with the same key."""
    return {encode_key(key): value for key, value in pairs}
