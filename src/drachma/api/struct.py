"""Base of API structs, and the values of absent fields.

As in Kubernetes, an absent field has the zero value of its type: readers see ``""``, ``0``, ``()`` or ``{}`` and never
test for None. But a round trip must keep the difference between an absent field and an explicit ``[]`` or ``""``. The
absent values below are equal to zero values and have types of their own. msgspec omits a field only if it holds the
default object itself, so absence survives a round trip. Fields whose absence differs from zero are ``| None``.

Upstream omits most zero fields and always writes a few. Those have a ``ZERO`` value as their default: absent here too,
but written in the canonical form (:func:`drachma.api.defaults.canonical`). Upstream writes such lists (``ZERO_TUPLE``)
as null, which only the server's documents show.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Final, NoReturn

import msgspec


class _AbsentText(str):
    __slots__ = ()


class _AbsentInt(int):
    __slots__ = ()


class _AbsentTuple(tuple[Any, ...]):
    __slots__ = ()


class _AbsentMap(dict[str, Any]):
    __slots__ = ()

    def _refuse(self, *_args: object, **_kwargs: object) -> NoReturn:
        raise TypeError("an absent map is shared by all objects and cannot be changed")

    __setitem__ = __delitem__ = update = setdefault = pop = popitem = clear = _refuse


ABSENT_TEXT: Final[str] = _AbsentText()
ABSENT_INT: Final[int] = _AbsentInt()
ABSENT_TUPLE: Final[tuple[Any, ...]] = _AbsentTuple()
ABSENT_MAP: Final[Mapping[str, Any]] = _AbsentMap()

ZERO_TEXT: Final[str] = _AbsentText()
ZERO_INT: Final[int] = _AbsentInt()
ZERO_TUPLE: Final[tuple[Any, ...]] = _AbsentTuple()

_ALWAYS_WRITTEN: Final[dict[int, str | int]] = {id(ZERO_TEXT): "", id(ZERO_INT): 0}
_ABSENT = frozenset(map(id, (ABSENT_TEXT, ABSENT_INT, ABSENT_TUPLE, ABSENT_MAP, ZERO_TUPLE))) | _ALWAYS_WRITTEN.keys()

Int64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
Int32 = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]


def is_absent(value: object) -> bool:
    """Return True if a value means absent; an explicit empty value is not absent."""
    return value is None or id(value) in _ABSENT


def canonical_zero(default: object) -> object:
    """Return the canonical value of a zero field: the default itself if upstream omits it, or the zero."""
    return _ALWAYS_WRITTEN.get(id(default), default)


class Struct(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True, gc=False):
    """An immutable part of an API object: snake_case here, camelCase on the wire.

    Frozen trees of JSON values cannot form cycles, so the garbage collector need not walk them.
    """
