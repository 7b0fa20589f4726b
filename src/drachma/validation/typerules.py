"""Types with rules, lists of their values, and rules that several types have.

:mod:`drachma.validation.rulenotation` reads types from files, and :mod:`drachma.validation.rulecompiler` compiles them.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, Final

from drachma.validation import collection, fielderror, rendering, rulecompiler
from drachma.validation.fielderror import FieldError
from drachma.validation.path import ROOT, Document, Path
from drachma.validation.rulecompiler import AnyStep, Rule, Walk, takes_facts

IMMUTABLE: Final = "field is immutable"

Show = Callable[[Any, Any], Any]
Key = str | Callable[[Any], Hashable]
"""Name of the field that identifies items, or a function that returns their identity."""


def show_key(item: Any, key: Any) -> Any:
    """Return the key of a repeated item."""
    return key


def show_enum(item: Any, key: Any) -> rendering.Rendered:
    """Return the key of a repeated item, which is of an enumeration."""
    return rendering.named(key)


def show_item(item: Any, key: Any) -> rendering.Rendered:
    """Return a repeated item."""
    return rendering.wire(item)


class Type(Walk):
    """The rules of a type whose values are documents.

    They are compiled to a Python function when the first value is checked: writes of objects without errors are what
    the server does most.
    """

    __slots__ = ("_check", "steps")

    read_field: Callable[[str, str], str] = staticmethod(rulecompiler.read_document)
    """Returns the expression that reads a field of a value."""

    def __init__(self, steps: Sequence[AnyStep] = ()) -> None:
        self.steps = tuple(steps)
        self._check: Any = None

    def complete(self, steps: Sequence[AnyStep]) -> None:
        """Set the rules of a type that others referred to before it was read."""
        self.steps = tuple(steps)

    def __call__(self, value: Any, at: Path = ROOT, facts: Any = None) -> list[FieldError]:
        if self._check is None:
            self._check = rulecompiler.compile_steps(self.steps, self.read_field)
        errors: list[FieldError] = self._check(value, at, facts)
        return errors


class StructType(Type):
    """The rules of a type whose values are structs."""

    __slots__ = ()

    read_field = staticmethod(rulecompiler.read_attribute)


class Each(Walk):
    """A constraint on each item of a list.

    A list with more than ``limit`` items has only that error. ``unique`` names a field in which no two items agree; the
    second one is reported there, after its other errors, or at the item if there is a dot in front of the name.
    ``itself`` compares the items. ``is_repetition_first`` reports it before the other errors. ``is_at_list`` reports
    the errors of items at the list. ``key`` is like ``unique``, but reports the items, after the errors of all of them.
    ``show`` makes the form of the repeated value in messages, of the item and its key. ``covered`` marks the errors of
    the list as those that upstream's declared rules repeat.
    """

    __slots__ = (
        "_covered", "_is_at_list", "_is_repetition_first", "_key", "_limit", "_rule", "_show", "_takes_facts",
        "_unique",
    )  # fmt: skip

    def __init__(
        self,
        rule: Rule,
        *,
        limit: int | None = None,
        unique: str = "",
        key: Key = "",
        covered: bool = False,
        show: Show = show_key,
        is_repetition_first: bool = False,
        is_at_list: bool = False,
    ) -> None:
        self._is_repetition_first = is_repetition_first
        self._is_at_list = is_at_list
        self._key = key
        self._covered = covered
        self._show = show
        self._rule = rule
        self._takes_facts = takes_facts(rule)
        self._limit = limit
        self._unique = unique

    def __call__(self, value: Sequence[Any], at: Path, facts: Any = None) -> list[FieldError]:
        if self._limit is not None and len(value) > self._limit:
            return self._mark([fielderror.too_many(at, len(value), self._limit, origin="maxItems")])
        errors: list[FieldError] = []
        previous: set[Hashable] = set()
        for position, item in enumerate(value):
            place = at if self._is_at_list else Path(position, at, is_inside=True)
            if self._unique and self._is_repetition_first:
                errors += self._repetition(item, place, previous)
            errors += self._rule(item, place, facts) if self._takes_facts else self._rule(item, place)
            if self._unique and not self._is_repetition_first:
                errors += self._repetition(item, place, previous)
        if self._key and len(value) > 1:
            repeated = self._repetitions(value, at)
            return [*repeated, *errors] if self._is_repetition_first else [*errors, *repeated]
        return errors

    def _repetitions(self, value: Sequence[Any], at: Path) -> list[FieldError]:
        keys = collection.repetitions([_read_key(item, self._key) for item in value])
        return self._mark(
            [fielderror.duplicate(at.item(position), self._show(value[position], key)) for position, key in keys]
        )

    def _mark(self, errors: list[FieldError]) -> list[FieldError]:
        return list(fielderror.covered(errors)) if self._covered else errors

    def _repetition(self, item: Any, at: Path, previous: set[Hashable]) -> list[FieldError]:
        name = self._unique.removeprefix(".")
        key = _read_key(item, name)
        if key in previous:
            is_at_item = name == "itself" or name != self._unique
            return [fielderror.duplicate(at if is_at_item else Path(name, at), self._show(item, key))]
        previous.add(key)
        return []


def _read_key(item: Any, name: Key) -> Any:
    if callable(name):
        return name(item)
    if name == "itself":
        return item
    return item.get(name, "") if isinstance(item, Mapping) else getattr(item, rulecompiler.snake_case(name))


# Rules between fields that several types have


def one_member(*names: str) -> Rule:
    """Return the rule of a union: exactly one of these fields is present."""
    choice = ", ".join(f"`{name}`" for name in names)

    def rule(value: Document, at: Path) -> list[FieldError]:
        members = [name for name in names if value.get(name) is not None]
        if len(members) == 1:
            return []
        if not members:
            return [fielderror.invalid(at, "", f"must specify one of: {choice}")]
        return [fielderror.invalid(at, f"{{{', '.join(members)}}}", f"must specify exactly one of: {choice}")]

    return rule
