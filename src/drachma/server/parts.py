"""Parts: pieces of objects, identified by their content, with cached results that depend on them alone.

Most objects differ from others only in their names: pods of one template, claims of one class. Results about a piece
(its defaults, its typed form, its validation errors) hold for every equal piece, so equal pieces share one
:class:`Part`, which caches them. Callers only name the function: ``parts.part(spec).derive(check)`` is ``check(spec)``.

An application has one :class:`Interner`, which finds the part of a piece and alone keeps parts alive. It drops parts
that were not used lately; their results are then computed again.
"""

from collections.abc import Callable, Hashable
from typing import Any, Final, TypeVar

import msgspec

from drachma.api import hooks

MOST: Final = 1024
"""Number of parts that are kept at least; at most twice as many."""

MOST_BYTES: Final = 1024 * 1024
"""Encoded bytes of the parts that are kept, at most twice as many; in memory they take many times that."""

LARGEST: Final = 16 * 1024
"""Bytes of a part that is kept; results about larger ones are computed each time."""

_T = TypeVar("_T")

_UNKNOWN: Final = object()
_CHANGED: Final = "changed"

_encode = msgspec.json.Encoder(enc_hook=hooks.encode).encode
_decode = msgspec.json.Decoder().decode


class Part:
    """A piece of an object: a document or a struct, shared by all equal pieces, which must not be changed."""

    __slots__ = ("_derived", "_interner", "value")

    def __init__(self, interner: "Interner", value: Any) -> None:
        self.value: Final = value
        self._interner: Final = interner
        self._derived: Final[dict[Hashable, Any]] = {}

    def derive(self, function: Callable[..., _T], *facts: Hashable) -> _T:
        """Return ``function(value, *facts)``. It depends on nothing else, and its result must not be changed.

        An exception of the function is raised and not cached.
        """
        key, derived = (function, *facts), self._derived
        if key not in derived:
            derived[key] = function(self.value, *facts)
        return derived[key]  # type: ignore[no-any-return]

    def changed(self, function: Callable[..., Any], *facts: Hashable) -> "Part":
        """Return the part of ``function(value, *facts)``, which may be the same part."""
        key, derived = (_CHANGED, function, *facts), self._derived
        if key not in derived:
            derived[key] = self._interner.part(function(self.value, *facts))
        return derived[key]  # type: ignore[no-any-return]

    def __repr__(self) -> str:
        return f"Part({self.value!r})"


class Interner:
    """Finds the part of a piece, and keeps the parts that were used lately, within its limits.

    Parts are kept in two generations. New ones, and old ones that are used, are in the younger. When it is full, the
    older is dropped and the younger takes its place. So results about frequently used parts are computed only once,
    however many others come only once.

    A write uses the same few values repeatedly. A value that is the very object of a young part need not be encoded to
    find it; the part keeps the object, so no other object can have its id.

    Several threads may use it: at worst, two of them have a part each for equal pieces.
    """

    __slots__ = ("_by_id", "_bytes", "_largest", "_most", "_most_bytes", "_old", "_young")

    def __init__(self, *, most: int = MOST, most_bytes: int = MOST_BYTES, largest: int = LARGEST) -> None:
        self._most: Final = most
        self._most_bytes: Final = most_bytes
        self._largest: Final = largest
        self._young: dict[Hashable, Part] = {}
        self._old: dict[Hashable, Part] = {}
        self._by_id: Final[dict[int, Part]] = {}
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._young) + len(self._old)

    def part(self, value: Any) -> Part:
        """Return the part of a document or a struct, which must not be changed from now on."""
        part = self._by_id.get(id(value))
        if part is not None:
            return part
        text = _encode(value)
        # Structs of two types may be encoded alike.
        key = text if value.__class__ is dict else (value.__class__, text)
        return self._young.get(key) or self._enter(key, text, value)

    def read(self, text: bytes) -> Part:
        """Return the part of an encoded document, in the encoding of this module."""
        return self._young.get(text) or self._enter(text, text, _UNKNOWN)

    def _enter(self, key: Hashable, text: bytes, value: Any) -> Part:
        part = self._old.pop(key, None) or Part(self, _decode(text) if value is _UNKNOWN else value)
        if len(text) <= self._largest:
            if len(self._young) >= self._most or self._bytes + len(text) > self._most_bytes:
                self._old, self._young, self._bytes = self._young, {}, 0
                self._by_id.clear()
            self._young[key] = self._by_id[id(part.value)] = part
            self._bytes += len(text)
        return part


def forgetful() -> Interner:
    """Return an interner that keeps nothing: every result is computed each time."""
    return Interner(most=0, most_bytes=0, largest=-1)
