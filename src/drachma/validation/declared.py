"""Rules declared on types: a small language for them, and how they are applied to an object.

Upstream generates a second validation from markers on its API types. It differs from hand-written rules in three ways
that clients can see: it checks the version that the client wrote, it leaves alone what an update did not change, and
it words its messages differently. Here such rules are data: a :class:`TypeRules` has the fields of a struct, and each
:class:`Field` has *stops* (if one objects, or finds nothing to check, the field is done) and *rules*. The shapes of
the API kinds are in :mod:`drachma.validation.declaredrules`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, Final

import msgspec

from drachma.validation import collection, fielderror, rendering
from drachma.validation.fielderror import FieldError, Found
from drachma.validation.path import Path
from drachma.values import names


class Values(msgspec.Struct, frozen=True):
    """A value, what it was before, and whether this is an update; without an old value there is ``None``."""

    new: Any
    old: Any = None
    is_update: bool = False

    @property
    def is_unchanged(self) -> bool:
        """Whether an update left the value alone."""
        return self.is_update and self.old is not None and bool(self.new == self.old)


Rule = Callable[[Values, Path], Found]
Stop = Callable[[Values, Path], "list[FieldError] | None"]
"""None to go on, or the errors (perhaps none) to end with."""


class Field:
    """A field by its Python name and its name on the wire; an embedded struct has no name of its own.

    Most fields are optional and not written. The rules of a type pass over those, before anything is made for them.
    """

    __slots__ = ("_rules", "_stops", "_stops_if_written", "attribute", "passes_empty", "passes_none", "wire_name")

    def __init__(
        self, attribute: str, wire_name: str, stops: tuple[Stop, ...] = (), rules: tuple[Rule, ...] = ()
    ) -> None:
        self.attribute: Final = attribute
        self.wire_name: Final = wire_name
        self.passes_empty: Final = optional in stops
        self.passes_none: Final = optional_pointer in stops
        self._stops = tuple(stop for stop in stops if stop not in (optional, optional_pointer))
        self._stops_if_written = tuple(stop for stop in self._stops if stop is not required)
        self._rules = rules

    def check(self, values: Values, at: Path) -> Found:
        """What stops or rules object to in a field that is written, or must be."""
        found: list[FieldError] = []
        is_done = False
        for stop in self._stops_if_written if values.new else self._stops:
            answer = stop(values, at)
            if answer is not None:
                found += answer
                is_done = True
        if not is_done:
            for rule in self._rules:
                found += rule(values, at)
        return found


class TypeRules:
    """The rules of a struct: those of the whole, then those of its fields."""

    __slots__ = ("_fields", "_nothing", "_rules", "_values_of")

    def __init__(self, fields: tuple[Field, ...] = (), rules: tuple[Rule, ...] = ()) -> None:
        self._fields = fields
        self._rules = rules
        self._values_of = _values_of([field.attribute for field in fields])
        self._nothing = (None,) * len(fields)

    def __call__(self, values: Values, at: Path) -> Found:
        found: list[FieldError] = []
        for rule in self._rules:
            found += rule(values, at)
        before, is_update = values.old, values.is_update
        new_values = self._values_of(values.new)
        old_values = self._values_of(before) if before is not None else self._nothing
        for field, new, old in zip(self._fields, new_values, old_values, strict=True):
            if not new and (field.passes_empty or (field.passes_none and new is None)):
                continue
            if not (is_update and before is not None and new == old):
                found += field.check(Values(new, old, is_update), Path(field.wire_name, at))
        return found


def _values_of(attributes: Sequence[str]) -> Callable[[Any], tuple[Any, ...]]:
    """What takes all these values from a struct at once, which costs less than one after the other."""
    if len(attributes) > 1:
        return operator.attrgetter(*attributes)
    return lambda owner: tuple(getattr(owner, attribute) for attribute in attributes)


def optional(values: Values, _at: Path) -> list[FieldError] | None:
    """Nothing to check where nothing is written."""
    return None if values.new else []


def optional_pointer(values: Values, _at: Path) -> list[FieldError] | None:
    """The same where an empty text is something written."""
    return [] if values.new is None else None


def required(values: Values, at: Path) -> list[FieldError] | None:
    """Something must be written."""
    return None if values.new else [fielderror.required(at)]


def immutable(values: Values, at: Path) -> list[FieldError] | None:
    """No update may change it."""
    return [fielderror.invalid(at, None, "field is immutable", origin="immutable")] if values.is_update else None


def no_modify(values: Values, at: Path) -> list[FieldError] | None:
    """It may be set and cleared, and not changed in between."""
    if not values.is_update or values.old is None or values.new is None:
        return None
    return [fielderror.invalid(at, None, "field cannot be modified once set", origin="update")]


def max_items(limit: int) -> Stop:
    """No more items than that."""

    def stop(values: Values, at: Path) -> list[FieldError] | None:
        count = len(values.new)
        return [fielderror.too_many(at, count, limit, origin="maxItems")] if count > limit else None

    return stop


def max_length(limit: int, *, unit: str, origin: str) -> Rule:
    """A text no longer than that, counted in ``character`` or ``byte``."""

    def rule(values: Values, at: Path) -> Found:
        length = len(values.new) if unit == "character" else names.byte_length(values.new)
        return [fielderror.too_long(at, limit, unit=unit, origin=origin)] if length > limit else ()

    return rule


def text_format(problems: Callable[[str], Sequence[str]], *, origin: str) -> Rule:
    """A text of some form."""
    full_origin = f"format={origin}"

    def rule(values: Values, at: Path) -> Found:
        details = problems(values.new)
        return fielderror.problems(at, values.new, details, origin=full_origin) if details else ()

    return rule


def one_of(*supported: str) -> Rule:
    """A value of an enumeration."""
    in_order = sorted(supported)

    def rule(values: Values, at: Path) -> Found:
        if values.new in in_order:
            return ()
        return [fielderror.not_supported(at, rendering.named(values.new), in_order)]

    return rule


def key_of(*attributes: str) -> Callable[[Any], Hashable]:
    """What makes two items of a list the same one."""
    return lambda item: tuple(getattr(item, attribute) for attribute in attributes)


def itself(item: Hashable) -> Hashable:
    """The key of an item that is its own key."""
    return item


def unique(key: Callable[[Any], Hashable]) -> Rule:
    """No two items with the same key; the repeated item is shown whole."""

    def rule(values: Values, at: Path) -> Found:
        if len(values.new) < 2:
            return ()
        found = []
        for position, _ in collection.repetitions([key(item) for item in values.new]):
            item = values.new[position]
            shown = item if isinstance(item, str) else rendering.wire(item)
            found.append(fielderror.duplicate(at.item(position), shown))
        return found

    return rule


def each(rule: Rule, *, key: Callable[[Any], Hashable] | None = None) -> Rule:
    """A rule for each item of a list; with a key, items that an update left alone are passed over."""

    def rule_for_all(values: Values, at: Path) -> Found:
        found: list[FieldError] = []
        is_update = values.is_update
        # Of several old items with one key, the first counts.
        before = {key(item): item for item in reversed(values.old or ())} if key is not None else {}
        for position, item in enumerate(values.new):
            old = before.get(key(item)) if key is not None and before else None
            if not (is_update and old is not None and item == old):
                found += rule(Values(item, old, is_update), Path(position, at, is_inside=True))
        return found

    return rule_for_all


def each_value(rule: Rule) -> Rule:
    """A rule for each value of a map, in the order of keys."""

    def rule_for_all(values: Values, at: Path) -> Found:
        found: list[FieldError] = []
        before = values.old or {}
        for key in sorted(values.new):
            below = Values(values.new[key], before.get(key), values.is_update)
            if not below.is_unchanged:
                found += rule(below, at.key(key))
        return found

    return rule_for_all


def each_key(rule: Rule) -> Rule:
    """A rule for each key of a map that an update adds; reported at the map."""

    def rule_for_all(values: Values, at: Path) -> Found:
        found: list[FieldError] = []
        before = values.old or {}
        for key in sorted(values.new):
            if not values.is_update or key not in before:
                found += rule(Values(key), at)
        return found

    return rule_for_all


def union(members: Iterable[tuple[str, str]]) -> Rule:
    """Exactly one of several fields, given as (Python name, wire name); unchanged choices stay as they are."""
    fields: Final = tuple(members)
    everything = ", ".join(f"`{wire_name}`" for _, wire_name in fields)

    def is_set(owner: Any, attribute: str) -> bool:
        value = getattr(owner, attribute)
        return value is not None and (bool(value) or not isinstance(value, tuple))

    def rule(values: Values, at: Path) -> Found:
        chosen = [wire_name for attribute, wire_name in fields if is_set(values.new, attribute)]
        if len(chosen) == 1:
            return ()
        if values.is_update and values.old is not None:
            before = [wire_name for attribute, wire_name in fields if is_set(values.old, attribute)]
            if chosen == before:
                return ()
        if not chosen:
            return [fielderror.invalid(at, "", f"must specify one of: {everything}", origin="union")]
        shown = "{" + ", ".join(chosen) + "}"
        return [fielderror.invalid(at, shown, f"must specify exactly one of: {everything}", origin="union")]

    return rule
