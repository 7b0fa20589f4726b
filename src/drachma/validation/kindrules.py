"""The rules of a kind, by the write that they apply to: a record that hangs on the kind.

:class:`KindRules` is for kinds that are kept as documents. Its rules take the content of an object, which is all but
its metadata, and the metadata as facts. :class:`ObjectRules` is for kinds that are kept as structs.
"""

from collections.abc import Callable, Iterable
from typing import Any, Final

import msgspec

from drachma.validation.context import Context
from drachma.validation.fielderror import Errors, FieldError
from drachma.validation.path import ROOT, Document, Path
from drachma.validation.rulecompiler import Walk
from drachma.validation.typerules import ChangeRule, Type

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


class Change:
    """Rules for an update: what it may change, and what the new value must be by itself."""

    __slots__ = ("_parts",)

    def __init__(self, *parts: ChangeRule | Walk) -> None:
        self._parts = tuple((part, isinstance(part, Walk)) for part in parts)

    def __call__(self, value: Document, old: Document, at: Path = ROOT, facts: Any = None) -> list[FieldError]:
        errors: list[FieldError] = []
        part: Any
        for part, is_walk in self._parts:
            errors += part(value, at, facts) if is_walk else part(value, old, at)
        return errors


def below(name: str, *parts: ChangeRule | Walk) -> ChangeRule:
    """Return the rules for a field of what is updated; absent documents count as empty."""
    change = Change(*parts)

    def rule(value: Document, old: Document, at: Path) -> list[FieldError]:
        return change(value.get(name) or {}, old.get(name) or {}, Path(name, at))

    return rule


class KindRules(msgspec.Struct, frozen=True, kw_only=True):
    """Rules by write: ``always`` for new and updated objects, and more for each sort of write."""

    always: Type = _EMPTY
    create: Type = _EMPTY
    update: Change = Change()
    status: Change = Change()


NO_RULES: Final = KindRules()
