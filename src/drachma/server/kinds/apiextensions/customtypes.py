"""Types of custom resources, for field ownership, patches and OpenAPI documents."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from drachma.api import types
from drachma.api.types import model
from drachma.server.kinds.apiextensions.definition import Definition, Version
from drachma.server.surface.openapi import schemas
from drachma.validation.structural import pruning
from drachma.validation.structural.schema import Schema

_OBJECT_META: Final = types.get("meta/v1.ObjectMeta")
_ENVELOPE: Final = {
    "apiVersion": model.Field(name="apiVersion", type=model.STRING),
    "kind": model.Field(name="kind", type=model.STRING),
    "metadata": model.Field(name="metadata", type=_OBJECT_META),
}
_SCALARS: Final[Mapping[str, model.Type]] = {
    "string": model.STRING,
    "boolean": model.BOOLEAN,
    "integer": model.INT64,
    "number": model.FLOAT64,
}


def kind(definition: Definition, version: Version) -> model.Object:
    """Return the type of objects of a version."""
    schema = version.structure.schema
    fields = {**_fields(schema), **_ENVELOPE}
    package = ".".join([*reversed(definition.group.split(".")), version.name])
    return model.Object(
        package,
        definition.names["kind"],
        fields,
        description=schema.description,
        is_open=bool(schema.preserves_unknown_fields),
        written=_shown(version),
        find_unknown=_unknown(schema),
    )


def _shown(version: Version) -> Mapping[str, Any]:
    """Return the schema that OpenAPI documents show."""
    selectable = [{"fieldPath": path} for path in version.selectable_fields]
    return {**version.written, schemas.SELECTABLE_FIELDS: selectable} if selectable else version.written


def _unknown(schema: Schema) -> model.FindUnknown:
    def find(document: Mapping[str, Any]) -> Sequence[str]:
        _, dropped = pruning.prune(document, schema, is_resource=True)
        metadata = document.get("metadata")
        if isinstance(metadata, dict):
            names = [name for name in metadata if name not in _OBJECT_META.fields]
            dropped = sorted([*dropped, *(f"metadata.{name}" for name in names)])
        return dropped

    return find


def _fields(schema: Schema) -> dict[str, model.Field]:
    return {
        name: model.Field(
            name=name,
            type=_type(part),
            default=part.default if part.has_default else None,
            description=part.description,
        )
        for name, part in schema.properties.items()
    }


def _type(schema: Schema) -> model.Type:
    if schema.is_int_or_string:
        return model.INT_OR_STRING
    match schema.type:
        case "object":
            return _object(schema)
        case "array":
            element = _type(schema.item) if schema.item is not None else model.ANY
            keys = {"set": (), "map": schema.list_map_keys}.get(schema.list_type or "")
            return model.ListOf(element, keys)
    return _SCALARS.get(schema.type, model.ANY)


def _object(schema: Schema) -> model.Type:
    is_atomic = schema.map_type == "atomic"
    if schema.value is not None:
        return model.MapOf(_type(schema.value), atomic=is_atomic)
    fields = _fields(schema)
    if schema.is_embedded_resource:
        fields |= _ENVELOPE
    is_open = bool(schema.preserves_unknown_fields) or schema.additional_properties is True
    if is_open and not fields:
        return model.Free(atomic=is_atomic)
    return model.Object("", "", fields, atomic=is_atomic, is_open=is_open)
