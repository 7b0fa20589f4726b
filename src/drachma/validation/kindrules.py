"""The rules of a kind, by the write that they apply to: a record that hangs on the kind.

:class:`KindRules` is for kinds that are kept as documents. :class:`ObjectRules` is for kinds that are kept as structs.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import msgspec

from drachma.validation.context import Context
from drachma.validation.fielderror import Errors, FieldError
from drachma.validation.typerules import Type

Check = Callable[[Any, Context], Iterable[FieldError]]
CheckUpdate = Callable[[Any, Any, Context], Iterable[FieldError]]


def allow(value: object, context: Context) -> Errors:
    """Yield no errors of an object."""
    return iter(())


def allow_update(value: object, old: object, context: Context) -> Errors:
    """Yield no errors of an update."""
    return iter(())


class ObjectRules(msgspec.Struct, frozen=True, kw_only=True):
    """Rules by write; those of ``access`` are about permissions of the writer of a new object."""

    access: Check = allow
    create: Check
    update: CheckUpdate
    status: CheckUpdate = allow_update


_EMPTY: Final = Type()


class KindRules(msgspec.Struct, frozen=True):
    """Rules by write: ``always`` for new and updated objects, and more for each sort of write.

    They check the content of an object, which is all but its metadata. The facts of ``always`` and ``create`` are the
    metadata; those of ``update`` and ``status`` are the old content, with the metadata as a field.
    """

    always: Type = _EMPTY
    create: Type = _EMPTY
    update: Type = _EMPTY
    status: Type = _EMPTY


NO_RULES: Final = KindRules()


def read(types: Mapping[str, Type]) -> Mapping[str, KindRules]:
    """Return the rules of kinds by name: those of ``Kind``, ``Kind.create``, ``Kind.update`` and ``Kind.status``."""
    writes = ("", ".create", ".update", ".status")
    kinds = dict.fromkeys(name.partition(".")[0] for name in types)
    return {kind: KindRules(*(types.get(f"{kind}{write}", _EMPTY) for write in writes)) for kind in kinds}
