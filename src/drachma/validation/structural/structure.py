"""Rules of structural schemas: conditions only refer to fields that are described outside of them.

Conditions are what stands below ``allOf``, ``anyOf``, ``oneOf`` and ``not``. The invariants are upstream's, with its
messages, which come sorted.
"""

import enum
from typing import Final

import msgspec

from drachma.cel.runtime import regex
from drachma.validation import fielderror, rulenotation
from drachma.validation.fielderror import Errors, FieldError
from drachma.validation.path import Path
from drachma.validation.structural.schema import Schema

_NAMES: Final = ({"name"}, {"generateName"}, {"name", "generateName"})


class _Level(enum.Enum):
    ROOT = "at the root"
    ITEM = "for specified array items"
    FIELD = "for specified object fields"


def check(schema: Schema, at: Path) -> list[FieldError]:
    """Return the errors that keep a schema from being structural."""
    errors = [*_structure(schema, at, level=_Level.ROOT), *_completeness(schema, schema, at, at)]
    return sorted(errors, key=str)


def _structure(schema: Schema, at: Path, *, level: _Level) -> Errors:
    yield from _TYPES["Schema"](schema, at, level)
    if schema.item is not None:
        yield from _structure(schema.item, at.child("items"), level=_Level.ITEM)
    for name, part in schema.properties.items():
        yield from _structure(part, at.child("properties").key(name), level=_Level.FIELD)
    if schema.value is not None:
        yield from _structure(schema.value, at.child("additionalProperties"), level=_Level.FIELD)
    yield from _conditions(
        schema,
        at,
        skips_any_of=_is_int_or_string(schema.any_of),
        skips_first_all_of=bool(schema.all_of) and _is_int_or_string(schema.all_of[0].any_of),
    )
    yield from _metadata(schema, at, level=level)


def _report_missing_type(schema: Schema, at: Path, level: _Level) -> Errors:
    yield fielderror.required(at.child("type"), f"must not be empty {level.value}")


def _metadata(schema: Schema, at: Path, *, level: _Level) -> Errors:
    """Check what a schema says of apiVersion, kind and metadata, which Kubernetes defines."""
    is_resource = level is _Level.ROOT or schema.is_embedded_resource
    for name in ("kind", "apiVersion"):
        part = schema.properties.get(name)
        if part is not None and is_resource and part.type != "string":
            yield fielderror.invalid(at.child("properties").key(name).child("type"), part.type, "must be string")
    metadata = schema.properties.get("metadata")
    if metadata is None:
        return
    here = at.child("properties").key("metadata")
    if is_resource and metadata.type != "object":
        yield fielderror.invalid(here.child("type"), metadata.type, "must be object")
    if level is _Level.ROOT and not _is_plain_metadata(metadata):
        detail = "must not specify anything other than name and generateName, but metadata is implicitly specified"
        yield fielderror.forbidden(here, detail)


def _is_plain_metadata(metadata: Schema) -> bool:
    if metadata.properties and set(metadata.properties) not in _NAMES:
        return False
    return _is_empty(metadata.changed(type="", properties={}, default=msgspec.UNSET))


def _is_empty(schema: Schema) -> bool:
    return all(getattr(schema, name) == getattr(_EMPTY, name) for name in Schema.__struct_fields__)


_EMPTY: Final = Schema()


def _is_int_or_string(alternatives: tuple[Schema, ...]) -> bool:
    """Return True for the one pair of alternatives that may have types: an integer or a string."""
    if [each.type for each in alternatives] != ["integer", "string"]:
        return False
    return all(_is_empty(each.changed(type="")) for each in alternatives)


# Conditions


def _conditions(schema: Schema, at: Path, *, skips_any_of: bool = False, skips_first_all_of: bool = False) -> Errors:
    """Check a schema below allOf, anyOf, oneOf and not."""
    if not skips_any_of:
        for index, each in enumerate(schema.any_of):
            yield from _condition(each, at.child("anyOf").item(index))
    for index, each in enumerate(schema.all_of):
        here = at.child("allOf").item(index)
        yield from _condition(each, here, skips_any_of=skips_first_all_of and index == 0)
    for index, each in enumerate(schema.one_of):
        yield from _condition(each, at.child("oneOf").item(index))
    if schema.negation is not None:
        yield from _condition(schema.negation, at.child("not"))
    if schema.pattern:
        try:
            schema.matches("")
        except regex.PatternError as error:
            detail = f"must be a valid regular expression, but isn't: {error}"
            yield fielderror.invalid(at.child("pattern"), schema.pattern, detail)


def _condition(schema: Schema, at: Path, *, skips_any_of: bool = False) -> Errors:
    yield from _conditions(schema, at, skips_any_of=skips_any_of)
    if schema.item is not None:
        yield from _condition(schema.item, at.child("items"))
    for name, part in schema.properties.items():
        yield from _condition(part, at.child("properties").key(name))
    yield from _TYPES["Condition"](schema, at)
    if "metadata" in schema.properties:
        here = at.child("properties").key("metadata")
        yield fielderror.forbidden(here, "must not be specified in a nested context")


# Completeness


def _completeness(condition: Schema, schema: Schema, here: Path, there: Path) -> Errors:
    """Check that a condition at ``there`` only refers to fields of the structure."""
    if condition.negation is not None:
        yield from _described(condition.negation, schema, here, there.child("not"))
    for title, several in (("allOf", condition.all_of), ("anyOf", condition.any_of), ("oneOf", condition.one_of)):
        for index, each in enumerate(several):
            yield from _described(each, schema, here, there.child(title).item(index))


def _described(condition: Schema, schema: Schema | None, here: Path, there: Path) -> Errors:
    if schema is None:
        yield fielderror.required(here, f"because it is defined in {there}")
        return
    yield from _completeness(condition, schema, here, there)
    if condition.item is not None:
        yield from _described(condition.item, schema.item, here.child("items"), there.child("items"))
    for name, part in condition.properties.items():
        field, below = here.child("properties").key(name), there.child("properties").key(name)
        yield from _described(part, schema.properties.get(name), field, below)


_TYPES: Final = rulenotation.load_structs("structural/structure", globals())
