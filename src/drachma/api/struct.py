"""The base of every API struct, and the values that stand for "not written".

Kubernetes reads an absent field as the zero value of its type. So do we: readers see ``""``, ``0``, ``()`` or
``{}`` and never test for None. But what came in must go out in the same form, and an explicit ``[]`` or ``""`` is
not the same text as an absent field. The absent values below are equal to the zero values and a type of their
own: msgspec leaves a field out only when it holds the very default object, so absence survives a round trip.
Fields whose absence means something else than zero are ``| None``.

Upstream leaves most fields out when they are zero; a few it always writes. Those have a ``ZERO`` value as default:
absent here too, but written out in the canonical form (:func:`drachma.api.defaults.canonical`). Lists of that sort
(``ZERO_TUPLE``) upstream writes as null, which only the server's documents show.
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
    """Whether a field's value stands for "not written"; an explicit empty value is not absent."""
    return value is None or id(value) in _ABSENT


def canonical_zero(default: object) -> object:
    """What upstream writes for a field whose value is zero: nothing (the default itself), or the zero."""
    return _ALWAYS_WRITTEN.get(id(default), default)


class Struct(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True, gc=False):
    """An immutable part of an API object: snake_case here, camelCase on the wire.

    Frozen trees of JSON values cannot form cycles, so the garbage collector need not walk them.
    """
