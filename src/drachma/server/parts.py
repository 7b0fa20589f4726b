"""Parts: pieces of objects, known by what is written in them, and what follows from each of them alone.

Most objects are like others but for their names: pods of one template, claims of one class. What is worked out about a
piece of one (its defaults, its typed form, what rules find in it) holds for every piece that is written alike, so such
pieces are one :class:`Part`, and the part remembers it. Whoever uses a part says what is to be worked out and never
whether it was before: ``parts.part(spec).derive(check)`` is ``check(spec)``.

An application has one :class:`Interner`, which finds the part for a piece and is the only thing that keeps parts
alive. It forgets those that nobody asked for lately; then the same is worked out again.
"""

from collections.abc import Callable, Hashable
from typing import Any, Final, TypeVar

import msgspec

from drachma.api import hooks

MOST: Final = 2048
"""How many parts are kept at least, and twice as many at most."""

MOST_BYTES: Final = 4 * 1024 * 1024
"""How much may be written in the parts that are kept, or twice as much; in memory it is many times that."""

LARGEST: Final = 16 * 1024
"""Bytes of a part that may be like others; larger ones are worked out anew each time."""

_T = TypeVar("_T")

_UNKNOWN: Final = object()
_CHANGED: Final = "changed"

_encode = msgspec.json.Encoder(enc_hook=hooks.encode).encode
_decode = msgspec.json.Decoder().decode


class Part:
    """A piece of an object: a document or a struct, which all that are written alike share, so nobody changes it."""

    __slots__ = ("_derived", "_interner", "value")

    def __init__(self, interner: "Interner", value: Any) -> None:
        self.value: Final = value
        self._interner: Final = interner
        self._derived: Final[dict[Hashable, Any]] = {}

    def derive(self, function: Callable[..., _T], *facts: Hashable) -> _T:
        """``function(value, *facts)``, which depends on nothing else, and whose result nobody changes.

        What the function raises is raised, and not remembered.
        """
        key, derived = (function, *facts), self._derived
        if key not in derived:
            derived[key] = function(self.value, *facts)
        return derived[key]  # type: ignore[no-any-return]

    def changed(self, function: Callable[..., Any], *facts: Hashable) -> "Part":
        """The part for ``function(value, *facts)``, which is something else or the same."""
        key, derived = (_CHANGED, function, *facts), self._derived
        if key not in derived:
            derived[key] = self._interner.part(function(self.value, *facts))
        return derived[key]  # type: ignore[no-any-return]

    def __repr__(self) -> str:
        return f"Part({self.value!r})"


class Interner:
    """Finds the part for a piece. Keeps those that were asked for lately, within its limits.

    Parts are kept in two generations. New ones, and old ones that are asked for, are in the younger; once that is full,
    the older is forgotten and the younger takes its place. So what is used all the time is never worked out twice,
    however many others come once and never again.

    A write asks about the same few values again and again. One that is the very value of a young part need not be
    written down to find that out; the part keeps it, so nothing else can have its id.

    It may be used by several threads: at worst, two of them have a part each for what is written alike.
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
        """The part for a document or a struct, which nobody changes from now on."""
        part = self._by_id.get(id(value))
        if part is not None:
            return part
        text = _encode(value)
        # Structs of two types may be written alike.
        key = text if value.__class__ is dict else (value.__class__, text)
        return self._young.get(key) or self._enter(key, text, value)

    def read(self, text: bytes) -> Part:
        """The part for the document that is written so, in the form that documents are encoded in here."""
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
    """An interner that keeps nothing: everything is worked out whenever it is asked for."""
    return Interner(most=0, most_bytes=0, largest=-1)
