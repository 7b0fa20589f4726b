"""Rules that upstream declares on its API types, and how they are applied to structs.

Upstream generates a second validation from markers on its types. Clients see three differences to its hand-written
rules: declared rules check the version that the client wrote, leave alone what an update did not change, and have
messages of their own. :data:`RULES` has them by kind in the notation of :mod:`drachma.validation.rulenotation`, with
these constraints for structs:

============================  ======================================================================================
``[T key name limit 8]``      a list: at most 8 items, no two with the same key (``itself``: the item), each one a T.
                              With a key, items that an update left alone are passed over. ``-`` has no rules for
                              items; ``last`` reports repetitions after the items.
``{T}``                       a map of values of a type, in the order of keys
``const:T``, ``once:T``       a value that updates leave as it is, or may only set and clear
============================  ======================================================================================
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, Final

import msgspec

from drachma.api import gates as feature
from drachma.api import resourceclaim, resourceslice, v1alpha3, v1beta1
from drachma.validation import (
    collection,
    constraints,
    fielderror,
    formats,
    limits,
    rendering,
    rulecompiler,
    rulenotation,
    typerules,
)
from drachma.validation.fielderror import Errors, FieldError, Found
from drachma.validation.path import ROOT, Path
from drachma.values import names


class Version(msgspec.Struct, frozen=True):
    """Facts about a write: whether the client wrote v1, and the feature gates."""

    is_v1: bool = True
    gates: feature.Gates = feature.ALL


class Walk(rulecompiler.Walk):
    """A rule that looks below its value, and passes over what an update did not change."""

    __slots__ = ()

    def change(self, value: Any, old: Any, at: Path, facts: Any) -> list[FieldError]:
        """Return the errors of a value that replaces an old one; without an old one, those of the value."""
        return self(value, at, facts) if old is None else self.compare(value, old, at, facts)

    @abc.abstractmethod
    def compare(self, value: Any, old: Any, at: Path, facts: Any) -> list[FieldError]:
        """Return the errors of a value that differs from the old one."""


class DeclaredType(typerules.StructType, Walk):
    """The rules that upstream declares on a type."""

    __slots__ = ("_compare",)

    def __init__(self, steps: Sequence[rulecompiler.AnyStep] = ()) -> None:
        super().__init__(steps)
        self._compare: Any = None

    def compare(self, value: Any, old: Any, at: Path, facts: Any) -> list[FieldError]:
        if self._compare is None:
            self._compare = rulecompiler.compile_steps(self.steps, self.read_field, compares=True)
        errors: list[FieldError] = self._compare(value, at, facts, old)
        return errors


class _Collection(Walk):
    """A list or map, of which parts are checked unless the old one has them; there may be no old one."""

    def __call__(self, value: Any, at: Path, facts: Any = None) -> list[FieldError]:
        return self.compare(value, {} if isinstance(value, Mapping) else (), at, facts)


class _List(_Collection):
    """A list of values."""

    def __init__(self, rule: Any, *, key: Sequence[str], limit: int | None, checks_repetitions_last: bool) -> None:
        self._rule = rule
        self._keys = tuple(key)
        self._limit = limit
        self._checks_repetitions_last = checks_repetitions_last

    def compare(self, value: Sequence[Any], old: Sequence[Any], at: Path, facts: Any) -> list[FieldError]:
        if self._limit is not None and len(value) > self._limit:
            return [fielderror.too_many(at, len(value), self._limit, origin="maxItems")]
        repeated = self._repetitions(value, at) if self._keys and len(value) > 1 else []
        errors = [] if self._rule is None else self._check_items(value, old, at, facts)
        return errors + repeated if self._checks_repetitions_last else repeated + errors

    def _key(self, item: Any) -> Hashable:
        return item if self._keys == ("itself",) else tuple(getattr(item, name) for name in self._keys)

    def _repetitions(self, value: Sequence[Any], at: Path) -> list[FieldError]:
        positions = collection.repetitions([self._key(item) for item in value])
        items = [(position, value[position]) for position, _ in positions]
        return [
            fielderror.duplicate(at.item(position), item if isinstance(item, str) else rendering.wire(item))
            for position, item in items
        ]

    def _check_items(self, value: Sequence[Any], old: Sequence[Any], at: Path, facts: Any) -> list[FieldError]:
        errors: list[FieldError] = []
        # The first of several old items with one key counts.
        before = {self._key(item): item for item in reversed(old)} if self._keys else {}
        is_walk = isinstance(self._rule, Walk)
        for position, item in enumerate(value):
            old_item = before.get(self._key(item)) if before else None
            if old_item is not None and item == old_item:
                continue
            place = Path(position, at, is_inside=True)
            errors += self._rule.change(item, old_item, place, facts) if is_walk else self._rule(item, place)
        return errors


class _Values(_Collection):
    """A map of values of a type, in the order of keys."""

    def __init__(self, rule: Walk) -> None:
        self._rule = rule

    def compare(self, value: Mapping[str, Any], old: Mapping[str, Any], at: Path, facts: Any) -> list[FieldError]:
        errors: list[FieldError] = []
        for key in sorted(value):
            if key not in old or value[key] != old[key]:
                errors += self._rule.change(value[key], old.get(key), at.key(key), facts)
        return errors


class _Names(_Collection):
    """A map whose keys have a form; keys that were there before are passed over. Errors are reported at the map."""

    def __init__(self, rule: constraints.Constraint) -> None:
        self._rule = rule

    def compare(self, value: Mapping[str, Any], old: Mapping[str, Any], at: Path, facts: Any) -> list[FieldError]:
        return [error for key in sorted(value) if key not in old for error in self._rule(key, at)]


class _Constant(Walk):
    """A value that updates leave as it is, or may only set and clear."""

    def __init__(self, rule: Walk, *, can_be_set: bool) -> None:
        self._rule = rule
        self._detail, self._origin = IMMUTABLE_ONCE_SET if can_be_set else IMMUTABLE

    def __call__(self, value: Any, at: Path, facts: Any = None) -> list[FieldError]:
        return self._rule(value, at, facts)

    def compare(self, value: Any, old: Any, at: Path, facts: Any) -> list[FieldError]:
        return [fielderror.invalid(at, None, self._detail, origin=self._origin)]


IMMUTABLE: Final = (typerules.IMMUTABLE, "immutable")
IMMUTABLE_ONCE_SET: Final = ("field cannot be modified once set", "update")


class _Union(Walk):
    """Exactly one of several fields, by their attributes and wire names; an update may keep a bad choice."""

    def __init__(self, **members: str) -> None:
        self._members = members
        self._choice = ", ".join(f"`{name}`" for name in members.values())

    def _set_members(self, value: Any) -> list[str]:
        values = ((name, getattr(value, attribute)) for attribute, name in self._members.items())
        return [name for name, item in values if item is not None and (bool(item) or not isinstance(item, tuple))]

    def __call__(self, value: Any, at: Path, facts: Any = None) -> list[FieldError]:
        members = self._set_members(value)
        if len(members) == 1:
            return []
        if not members:
            return [fielderror.invalid(at, "", f"must specify one of: {self._choice}", origin="union")]
        display = "{" + ", ".join(members) + "}"
        return [fielderror.invalid(at, display, f"must specify exactly one of: {self._choice}", origin="union")]

    def compare(self, value: Any, old: Any, at: Path, facts: Any) -> list[FieldError]:
        return [] if self._set_members(value) == self._set_members(old) else self(value, at, facts)


def read_constraint(token: str, find: Callable[[str], Any]) -> Any:
    """Return the constraint of a token that only types of structs have, or None."""
    if token.startswith("["):
        item, *options = token[1:-1].split()
        is_last = "last" in options
        pairs = [option for option in options if option != "last"]
        named_options = dict(zip(pairs[::2], pairs[1::2], strict=True))
        return _List(
            None if item == "-" else find(item),
            key=named_options["key"].split(",") if "key" in named_options else (),
            limit=int(named_options["limit"]) if "limit" in named_options else None,
            checks_repetitions_last=is_last,
        )
    if token.startswith("{"):
        return _Values(find(token[1:-1]))
    if token.startswith(("const:", "once:")):
        act, _, name = token.partition(":")
        return _Constant(find(name), can_be_set=act == "once")
    return None


# Forms of texts, with the origins by which errors of hand-written rules are told to be the same


def _long_name_problems(text: str) -> Sequence[str]:
    return names.dns1123_subdomain(text, unit="bytes")


_short_name: Final = formats.text(lambda text: names.dns1123_label(text, unit="bytes"), origin="format=k8s-short-name")
_long_name: Final = formats.text(_long_name_problems, origin="format=k8s-long-name")
_caseless_name: Final = formats.text(names.dns1123_subdomain_caseless, origin="format=k8s-long-name-caseless")
_label_key: Final = formats.text(names.label_key, origin="format=k8s-label-key")
_uuid: Final = formats.text(names.uuid, origin="format=k8s-uuid")
_extended_resource: Final = formats.text(names.extended_resource_name, origin="format=k8s-extended-resource-name")
_node_operation: Final = constraints.one_of("*", "NodePrepareResources", "NodeUnprepareResources")
_counter_names: Final = _Names(_short_name)
_one_attribute_value: Final = _Union(
    int_value="int",
    bool_value="bool",
    string_value="string",
    version_value="version",
    int_values="ints",
    bool_values="bools",
    string_values="strings",
    version_values="versions",
)
_one_mapping: Final = _Union(capacity_key="capacityKey", device_multiplier="deviceMultiplier")


def _driver_length(name: str, at: Path) -> Found:
    if len(name) <= limits.DRIVER_NAME:
        return ()
    return [fielderror.too_long(at, limits.DRIVER_NAME, unit="character", origin="maxLength")]


def _opaque_driver(name: str, at: Path, version: Version) -> list[FieldError]:
    """Check the driver of a configuration; the order of its errors differs between versions."""
    form, length = _caseless_name(name, at), _driver_length(name, at)
    return [*form, *length] if version.is_v1 else [*length, *form]


def _pool_name(name: str, at: Path) -> Found:
    """Check DNS subdomains with slashes between them."""
    origin = "format=k8s-resource-pool-name"
    errors: list[FieldError] = []
    if names.is_longer(name, limits.POOL_NAME):
        errors.append(fielderror.too_long(at, limits.POOL_NAME, origin=origin))
    for position, segment in enumerate(name.split("/")):
        display, problems = (segment, _long_name_problems(segment)) if segment else (name, ("must not be empty",))
        if problems:
            details = [f"segment {position}: {problem}" for problem in problems]
            errors += fielderror.problems(at, display, details, origin=origin)
    return errors


def _fully_qualified_name(text: str, at: Path) -> Found:
    """Check ``domain/identifier``; more than one slash passes unchecked, as upstream lets it."""
    origin = "format=k8s-resource-fully-qualified-name"
    errors: list[FieldError] = []
    match text.split("/"):
        case [identifier]:
            errors += _identifier(identifier, at, origin=origin)
        case [domain, identifier]:
            if not domain:
                errors.append(fielderror.invalid(at, "", "prefix must not be empty", origin=origin))
            elif names.is_longer(domain, limits.ATTRIBUTE_DOMAIN):
                errors.append(fielderror.too_long(at, limits.ATTRIBUTE_DOMAIN, origin=origin))
            details = [f"prefix: {problem}" for problem in (_long_name_problems(domain) if domain else ())]
            errors += fielderror.problems(at, domain, details, origin=origin)
            if identifier:
                errors += _identifier(identifier, at, origin=origin)
            else:
                errors.append(fielderror.invalid(at, "", "name must not be empty", origin=origin))
    if "/" not in text:
        detail = "a fully qualified name must be a domain and a name separated by a slash"
        errors.append(fielderror.invalid(at, text, detail, origin=origin))
    return errors


def _identifier(text: str, at: Path, *, origin: str) -> Errors:
    if names.is_longer(text, limits.ATTRIBUTE_ID):
        yield fielderror.too_long(at, limits.ATTRIBUTE_ID, origin=origin)
    for problem in names.c_identifier(text):
        yield fielderror.invalid(at, text, problem, origin=origin)


def _partition_type(name: str, at: Path, version: Version) -> Found:
    if not version.gates.on(feature.Gate.PARTITIONABLE_DEVICES_TYPE):
        return [fielderror.forbidden(at, "")]
    return _fully_qualified_name(name, at)


# Types whose shape differs between versions


class _ByShape(Walk):
    """The rules of a type by the struct that a version has for it."""

    def __init__(self, **types: tuple[type[msgspec.Struct], ...]) -> None:
        self._names = {shape: name for name, shapes in types.items() for shape in shapes}

    def __call__(self, value: Any, at: Path, facts: Any = None) -> list[FieldError]:
        return RULES[self._names[type(value)]](value, at, facts)

    def compare(self, value: Any, old: Any, at: Path, facts: Any) -> list[FieldError]:
        return RULES[self._names[type(value)]].compare(value, old, at, facts)


_check_request: Final = _ByShape(NestedRequest=(resourceclaim.DeviceRequest,), FlatRequest=(v1beta1.DeviceRequest,))
_check_device: Final = _ByShape(Device=(resourceslice.Device,), BasicDevice=(v1beta1.Device, v1alpha3.Device))
RULES: Final[Mapping[str, DeclaredType]] = rulenotation.read_as(
    DeclaredType, rulenotation.load_text("declared"), globals(), read_constraint
)


def check(kind: str, value: Any, old: Any, version: Version) -> list[FieldError]:
    """Return the errors of an object, or of an update of one, by the rules on the types of its kind."""
    rules = RULES.get(kind)
    return [] if rules is None else rules.change(value, old, ROOT, version)
