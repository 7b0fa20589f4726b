"""The schema of a custom resource: an OpenAPI v3 schema with Kubernetes' extensions, parsed from its document.

The same class serves for the structure of objects and for the conditions below ``allOf``, ``anyOf``, ``oneOf`` and
``not``; which of its fields may be used where is for ``structure`` to say. Schemas are never changed once they are
parsed.
"""

import functools
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, TypeVar

import msgspec

from drachma import errors
from drachma.cel.runtime import regex
from drachma.validation.path import Path

MAX_DEPTH: Final = 64
"""Limit of the depth of a schema, which no API reaches; functions here recurse along schemas."""

_T = TypeVar("_T")


class Rule(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A CEL rule of ``x-kubernetes-validations``."""

    rule: str = ""
    message: str = ""
    message_expression: str = ""
    reason: str | None = None
    field_path: str = ""
    optional_old_self: bool | None = None


_NAMES: Final = {
    "all_of": "allOf",
    "any_of": "anyOf",
    "one_of": "oneOf",
    "negation": "not",
    "additional_properties": "additionalProperties",
    "exclusive_maximum": "exclusiveMaximum",
    "exclusive_minimum": "exclusiveMinimum",
    "max_length": "maxLength",
    "min_length": "minLength",
    "max_items": "maxItems",
    "min_items": "minItems",
    "unique_items": "uniqueItems",
    "multiple_of": "multipleOf",
    "max_properties": "maxProperties",
    "min_properties": "minProperties",
    "preserves_unknown_fields": "x-kubernetes-preserve-unknown-fields",
    "is_embedded_resource": "x-kubernetes-embedded-resource",
    "is_int_or_string": "x-kubernetes-int-or-string",
    "list_type": "x-kubernetes-list-type",
    "list_map_keys": "x-kubernetes-list-map-keys",
    "map_type": "x-kubernetes-map-type",
    "rules": "x-kubernetes-validations",
    "ref": "$ref",
    "meta_schema": "$schema",
    "additional_items": "additionalItems",
    "pattern_properties": "patternProperties",
    "external_docs": "externalDocs",
}


class Schema(msgspec.Struct, frozen=True, kw_only=True, eq=False, dict=True, rename=_NAMES):
    """One schema, with the names of upstream's Go fields in snake case where its JSON names cannot be used.

    ``default`` is UNSET where there is none, since null is a default too. Several schemas for ``items`` are kept as
    they are written; they are not supported, nor are the last fields, which are only there to be refused.
    """

    type: str = ""
    format: str = ""
    title: str = ""
    description: str = ""
    nullable: bool = False
    default: Any = msgspec.UNSET
    example: Any = msgspec.UNSET
    external_docs: Any = None
    maximum: int | float | None = None
    exclusive_maximum: bool = False
    minimum: int | float | None = None
    exclusive_minimum: bool = False
    max_length: int | None = None
    min_length: int | None = None
    pattern: str = ""
    max_items: int | None = None
    min_items: int | None = None
    unique_items: bool = False
    multiple_of: int | float | None = None
    max_properties: int | None = None
    min_properties: int | None = None
    required: tuple[str, ...] = ()
    enum: tuple[Any, ...] = ()
    items: "Schema | list[Any] | None" = None
    properties: dict[str, "Schema"] = {}
    additional_properties: "Schema | bool | None" = None
    all_of: tuple["Schema", ...] = ()
    any_of: tuple["Schema", ...] = ()
    one_of: tuple["Schema", ...] = ()
    negation: "Schema | None" = None
    preserves_unknown_fields: bool | None = None
    is_embedded_resource: bool = False
    is_int_or_string: bool = False
    list_type: str | None = None
    list_map_keys: tuple[str, ...] = ()
    map_type: str | None = None
    rules: tuple[Rule, ...] = ()
    id: str = ""
    ref: str | None = None
    meta_schema: str = ""
    additional_items: Any = None
    pattern_properties: Mapping[str, Any] = {}
    definitions: Mapping[str, Any] = {}
    dependencies: Mapping[str, Any] = {}

    @property
    def has_default(self) -> bool:
        """Return True if there is a default; upstream takes a default of null for none."""
        return self.default is not msgspec.UNSET and self.default is not None

    @functools.cached_property
    def item(self) -> "Schema | None":
        """Return the schema of items."""
        return self.items if isinstance(self.items, Schema) else None

    @functools.cached_property
    def value(self) -> "Schema | None":
        """Return the schema of the values of a map."""
        return self.additional_properties if isinstance(self.additional_properties, Schema) else None

    @functools.cached_property
    def allows_any_name(self) -> bool:
        """Return True if fields of any name are kept."""
        return self.additional_properties is not None

    @functools.cached_property
    def matches(self) -> Callable[[str], bool]:
        """Search the pattern in a text. Raises ``regex.PatternError`` with Go's message for a malformed pattern."""
        return regex.matcher(self.pattern)

    def derive(self, make: Callable[["Schema"], _T]) -> _T:
        """Return what a function computes of the schema; it is called once."""
        derived = self._derived
        results = derived.get(make)
        if results is None:
            results = derived[make] = make(self)
        result: _T = results
        return result

    @functools.cached_property
    def _derived(self) -> dict[Any, Any]:
        return {}

    def field(self, name: str) -> "Schema | None":
        """Return the schema of a named field or of a value of a map."""
        return self.properties.get(name) or self.value

    def parts(self, value: Any, at: Path) -> Iterator[tuple[Any, "Schema", Path]]:
        """Yield the objects and lists in a value that the structure describes, with their schemas and paths."""
        if isinstance(value, dict):
            for name, each in value.items():
                if each.__class__ not in (dict, list):
                    continue
                part = self.properties.get(name)
                if part is not None:
                    yield each, part, at.child(name)
                elif self.value is not None:
                    yield each, self.value, at.key(name)
        elif isinstance(value, list) and self.item is not None:
            for index, each in enumerate(value):
                if each.__class__ in (dict, list):
                    yield each, self.item, at.item(index)

    def changed(self, **fields: Any) -> "Schema":
        """Return the schema with some fields replaced."""
        return msgspec.structs.replace(self, **fields)

    @functools.cached_property
    def resource_schema(self) -> "Schema":
        """Return the schema of a whole object, without apiVersion, kind and metadata, which have rules of their own."""
        return self if self.is_embedded_resource else self.changed(is_embedded_resource=True)

    def below(self) -> Iterator["Schema"]:
        """Return all schemas directly below this one, structural or not."""
        if isinstance(self.items, Schema):
            yield self.items
        yield from self.all_of
        yield from self.any_of
        yield from self.one_of
        if self.negation is not None:
            yield self.negation
        yield from self.properties.values()
        if isinstance(self.additional_properties, Schema):
            yield self.additional_properties

    def everywhere(self) -> Iterator["Schema"]:
        """Yield this schema and all schemas below it."""
        yield self
        for each in self.below():
            yield from each.everywhere()

    @functools.cached_property
    def structure(self) -> tuple["Schema", ...]:
        """Return the structural schemas directly below this one."""
        parts = (self.item, self.value, *self.properties.values())
        return tuple(part for part in parts if part is not None)

    @functools.cached_property
    def has_rules(self) -> bool:
        """Return True if there are CEL rules here or further down."""
        return bool(self.rules) or any(part.has_rules for part in self.structure)

    @functools.cached_property
    def has_defaults(self) -> bool:
        """Return True if there are defaults here or further down."""
        return self.has_default or any(part.has_defaults for part in self.structure)

    @functools.cached_property
    def has_embedded_resources(self) -> bool:
        """Return True if there are embedded resources here or further down."""
        return self.is_embedded_resource or any(part.has_embedded_resources for part in self.structure)

    @functools.cached_property
    def has_identities(self) -> bool:
        """Return True if there are lists without repetitions here or further down."""
        return self.list_type in ("set", "map") or any(part.has_identities for part in self.structure)


def parse(document: Mapping[str, Any]) -> Schema:
    """Return the schema in a document, whose values have the types of JSONSchemaProps.

    Raises:
        errors.InvalidValueError: schemas are nested too deep, or something is no schema.
    """
    _measure(document, depth=1)
    try:
        return msgspec.convert(document, Schema)
    except msgspec.ValidationError as error:
        raise errors.InvalidValueError(str(error)) from None


_ONE: Final = ("not", "items", "additionalProperties")
_SEVERAL: Final = ("allOf", "anyOf", "oneOf")


def _measure(document: Any, *, depth: int) -> None:
    if depth > MAX_DEPTH:
        raise errors.InvalidValueError(f"schemas may not be nested more than {MAX_DEPTH} levels deep")
    if not isinstance(document, Mapping):
        return
    properties = document.get("properties")
    below = list(properties.values()) if isinstance(properties, Mapping) else []
    below += [document[name] for name in _ONE if name in document]
    for name in _SEVERAL:
        if isinstance(document.get(name), list):
            below += document[name]
    for each in below:
        _measure(each, depth=depth + 1)
