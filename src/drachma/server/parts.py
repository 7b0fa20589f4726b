"""Parts: pieces of objects, known by what is written in them, and what follows from each of them alone.

Most objects are like others but for their names: pods of one template, claims of one class. What is worked out about a
piece of one (its defaults, its typed form, that no rule objects to it) holds for every piece that is written alike, so
such pieces are one :class:`Part`, and the part remembers it. Whoever uses a part says what is to be worked out and
never whether it was before: ``spec.derive(check)`` is ``check(spec.document)``.

An application has one :class:`Interner`, which finds the part for a document and is the only thing that keeps parts
alive. It forgets those that nobody asked for lately; then the same is worked out again.
"""

from collections.abc import Callable, Hashable
from typing import Any, Final, TypeVar

import msgspec

MOST: Final = 4096
"""How many parts are kept at least, and twice as many at most."""

MOST_BYTES: Final = 16 * 1024 * 1024
"""How much may be written in the parts that are kept, or twice as much."""

LARGEST: Final = 64 * 1024
"""Bytes of a part that may be like others; larger ones are worked out anew each time."""

_T = TypeVar("_T")

_UNKNOWN: Final = object()
_CHANGED: Final = "changed"

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode


class Part:
    """A piece of an object. Its document is shared, so nobody changes it; parts are equal if they are written alike."""

    __slots__ = ("_derived", "_document", "_interner", "text")

    def __init__(self, interner: "Interner", text: bytes, document: Any = _UNKNOWN) -> None:
        self.text: Final = text
        self._interner = interner
        self._document = document
        self._derived: dict[Hashable, Any] = {}

    @property
    def document(self) -> Any:
        if self._document is _UNKNOWN:
            self._document = _decode(self.text)
        return self._document

    def derive(self, function: Callable[..., _T], *arguments: Hashable) -> _T:
        """``function(document, *arguments)``, which depends on nothing else and whose result nobody changes.

        What the function raises is raised, and not remembered.
        """
        key = (function, *arguments)
        result = self._derived.get(key, _UNKNOWN)
        if result is _UNKNOWN:
            result = self._derived[key] = function(self.document, *arguments)
        return result  # type: ignore[no-any-return]

    def changed(self, function: Callable[..., Any], *arguments: Hashable) -> "Part":
        """The part for ``function(document, *arguments)``, which is another document or the same."""
        key = (_CHANGED, function, *arguments)
        result = self._derived.get(key)
        if result is None:
            result = self._derived[key] = self._interner.part(function(self.document, *arguments))
        return result

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Part) and self.text == other.text)

    def __hash__(self) -> int:
        return hash(self.text)

    def __repr__(self) -> str:
        return f"Part({self.text!r})"


class Interner:
    """Finds the part for a document. Keeps those that were asked for lately, within its limits.

    Parts are kept in two generations. New ones, and old ones that are asked for, are in the younger; once that is full,
    the older is forgotten and the younger takes its place. So what is used all the time is never worked out twice,
    however many others come once and never again.
    """

    def __init__(self, *, most: int = MOST, most_bytes: int = MOST_BYTES, largest: int = LARGEST) -> None:
        self._most = most
        self._most_bytes = most_bytes
        self._largest = largest
        self._young: dict[bytes, Part] = {}
        self._old: dict[bytes, Part] = {}
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._young) + len(self._old)

    def part(self, document: Any) -> Part:
        """The part for a document, which nobody changes from now on."""
        return self._find(_encode(document), document)

    def read(self, text: bytes) -> Part:
        """The part that is written so, in the form that JSON documents are encoded in here."""
        return self._find(text, _UNKNOWN)

    def _find(self, text: bytes, document: Any) -> Part:
        part = self._young.get(text)
        if part is not None:
            return part
        part = self._old.pop(text, None) or Part(self, text, document)
        if len(text) <= self._largest:
            if len(self._young) >= self._most or self._bytes + len(text) > self._most_bytes:
                self._old, self._young, self._bytes = self._young, {}, 0
            self._young[text] = part
            self._bytes += len(text)
        return part


def forgetful() -> Interner:
    """An interner that keeps nothing: everything is worked out whenever it is asked for."""
    return Interner(most=0, most_bytes=0, largest=-1)
