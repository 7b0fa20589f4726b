"""Types as OpenAPI schemas, in the dialects of version 3 and version 2.

Names, extensions and the wrapping of references are upstream's, because kubectl relies on them; texts are ours, but for
those of custom resources. Version 3 shows schemas of custom resources unchanged. Version 2 shows less of them.

Public: ``Definitions(dialect)``, which collects types and the types that they refer to.
"""

import pkgutil
from collections.abc import Mapping
from typing import Any, Final, TypeAlias

import msgspec

from drachma.api import types
from drachma.api.types import model

Document: TypeAlias = dict[str, Any]

_META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1"
_NAMED: Final[Mapping[str, str]] = {
    "Time": f"{_META}.Time",
    "MicroTime": f"{_META}.MicroTime",
    "Quantity": "io.k8s.apimachinery.pkg.api.resource.Quantity",
    "IntOrString": "io.k8s.apimachinery.pkg.util.intstr.IntOrString",
}
"""Definitions of scalars that have one."""

_SCALARS: Final[Mapping[str, Document]] = {
    "Time": {"description": "A point in time, in RFC 3339.", "type": "string", "format": "date-time"},
    "MicroTime": {"description": "A point in time with microseconds.", "type": "string", "format": "date-time"},
    "Quantity": {
        "description": "An amount, such as 2, 500m or 16Gi.",
        "oneOf": [{"type": "string"}, {"type": "number"}],
    },
    "IntOrString": {
        "description": "A number, or a text such as a percentage or the name of a port.",
        "format": "int-or-string",
        "oneOf": [{"type": "integer"}, {"type": "string"}],
    },
}
_FREE: Final = {True: "io.k8s.apimachinery.pkg.runtime.RawExtension", False: f"{_META}.FieldsV1"}

_LIST_TYPE: Final = "x-kubernetes-list-type"


class Dialect(msgspec.Struct, frozen=True):
    """Dialect of a version of OpenAPI; version 2 has no ``oneOf`` and does not wrap references."""

    prefix: str
    is_v3: bool


V3: Final = Dialect("#/components/schemas/", is_v3=True)
V2: Final = Dialect("#/definitions/", is_v3=False)


class Definitions:
    """Definitions by name, each added with the first reference to it."""

    def __init__(self, dialect: Dialect) -> None:
        self.dialect = dialect
        self.made: dict[str, Document] = {}
        self._types: dict[str, model.Object] = {}

    def add_kind(self, schema: model.Object, *, group: str, version: str, kind: str) -> None:
        """Add the definition of a kind, marked with its group, version and kind."""
        self._object(schema)
        self._mark(schema.definition, group=group, version=version, kind=kind)

    def add_list(self, schema: model.Object, *, group: str, version: str, kind: str, plural: str) -> str:
        """Add the definition of a kind's list, and return its name."""
        if schema.written is not None:
            return self._add_custom_list(schema, group=group, version=version, kind=kind, plural=plural)
        fields = (
            model.Field(name="apiVersion", type=model.STRING),
            model.Field(name="items", type=model.ListOf(schema), required=True),
            model.Field(name="kind", type=model.STRING),
            model.Field(name="metadata", type=types.get("meta/v1.ListMeta"), filled=True),
        )
        listing = model.Object(schema.package, kind, {field.name: field for field in fields})
        self._object(listing)
        definition = self.made[listing.definition]
        definition["description"] = f"A list of objects of kind {schema.name}."
        del definition["properties"]["items"][_LIST_TYPE]
        self._mark(listing.definition, group=group, version=version, kind=kind)
        return listing.definition

    def _add_custom_list(self, schema: model.Object, *, group: str, version: str, kind: str, plural: str) -> str:
        assert schema.written is not None, "the resource is a custom one"
        metadata = self._wrapped(self.reference(types.get("meta/v1.ListMeta")))
        name = f"{schema.package}.{kind}"
        definition: Document = {
            "description": f"{kind} is a list of {schema.name}",
            "type": "object",
            "required": ["items"],
            "properties": {
                "apiVersion": _API_VERSION,
                "items": {
                    "description": f"List of {plural}. More info: {_CONVENTIONS}",
                    "type": "array",
                    "items": self.reference(schema),
                },
                "kind": _KIND,
                "metadata": {"description": _LIST_METADATA, **metadata},
            },
        }
        if SELECTABLE_FIELDS in schema.written:
            definition[SELECTABLE_FIELDS] = schema.written[SELECTABLE_FIELDS]
        self.made[name] = definition
        self._mark(name, group=group, version=version, kind=kind)
        return name

    def reference(self, schema: model.Object) -> Document:
        """Add the definition of a type, and return a reference to it."""
        self._object(schema)
        return self.reference_by_name(schema.definition)

    def reference_by_name(self, name: str) -> Document:
        return {"$ref": f"{self.dialect.prefix}{name}"}

    def add_plain(self, name: str, definition: Document) -> None:
        """Add a definition that is no type."""
        self.made.setdefault(name, definition)

    def _mark(self, name: str, **kind: str) -> None:
        marks = self.made[name].setdefault("x-kubernetes-group-version-kind", [])
        if kind not in marks:
            marks.append(kind)

    def _object(self, schema: model.Object) -> None:
        defined = self._types.setdefault(schema.definition, schema)
        if schema.definition in self.made:
            if defined is not schema:
                raise ValueError(f"{schema.definition}: two types of one name")
            return
        definition: Document = {"description": schema.description, "type": "object"}
        self.made[schema.definition] = definition
        if schema.written is not None:
            reference = self._wrapped(self.reference(types.get("meta/v1.ObjectMeta")))
            metadata = {"description": _METADATA, **reference}
            self.made[schema.definition] = _custom_schema(schema.written, metadata=metadata, is_v3=self.dialect.is_v3)
            return
        required = sorted(field.name for field in schema.fields.values() if field.required)
        properties = {name: self._field(field) for name, field in sorted(schema.fields.items())}
        if required:
            definition["required"] = required
        if properties:
            definition["properties"] = properties
        if schema.atomic:
            definition["x-kubernetes-map-type"] = "atomic"
        if not definition["description"]:
            del definition["description"]

    def _field(self, field: model.Field) -> Document:
        described = {"description": _description(field)}
        entry = {key: value for key, value in described.items() if value} | self._type(field.type)
        if field.filled and isinstance(field.type, model.Object):
            entry = self._add_default(entry)
        marks = (("merge", field.merges), ("replace", field.replaces), ("retainKeys", field.retains_keys))
        strategies = [name for name, is_set in marks if is_set]
        if field.merge_key:
            entry["x-kubernetes-patch-merge-key"] = field.merge_key
        if strategies:
            entry["x-kubernetes-patch-strategy"] = ",".join(strategies)
        return entry

    def _type(self, kind: model.Type) -> Document:
        match kind:
            case model.Object():
                return self._wrapped(self.reference(kind))
            case model.MapOf():
                # As upstream, lists inside maps have no list type.
                element = {key: part for key, part in self._type(kind.element).items() if key != _LIST_TYPE}
                entry: Document = {"type": "object", "additionalProperties": element}
                return {**entry, "x-kubernetes-map-type": "atomic"} if kind.atomic else entry
            case model.ListOf():
                return {"type": "array", "items": self._type(kind.element), **_list_type(kind)}
            case model.Free():
                self.add_plain(_FREE[kind.atomic], {"type": "object"})
                return self._wrapped(self.reference_by_name(_FREE[kind.atomic]))
            case model.Scalar():
                return self._scalar(kind)

    def _scalar(self, kind: model.Scalar) -> Document:
        if kind.name not in _NAMED:
            return {"type": kind.json, "format": kind.format} if kind.format else {"type": kind.json}
        definition = dict(_SCALARS[kind.name])
        if not self.dialect.is_v3 and definition.pop("oneOf", None):
            definition["type"] = "string"
        self.add_plain(_NAMED[kind.name], definition)
        return self._wrapped(self.reference_by_name(_NAMED[kind.name]))

    def _wrapped(self, reference: Document) -> Document:
        """Return a reference that may have siblings; version 3 needs ``allOf`` for that."""
        return {"allOf": [reference]} if self.dialect.is_v3 else reference

    def _add_default(self, entry: Document) -> Document:
        return {**entry, "default": {}} if self.dialect.is_v3 else entry


def _list_type(kind: model.ListOf) -> Document:
    if kind.keys is None:
        return {_LIST_TYPE: "atomic"}
    if not kind.keys:
        return {_LIST_TYPE: "set"}
    return {_LIST_TYPE: "map", "x-kubernetes-list-map-keys": list(kind.keys)}


# Texts

_COMMON_TEXTS: Final[Mapping[str, str]] = msgspec.json.decode(
    pkgutil.get_data(__name__, "commontexts.json") or b"{}", type=dict[str, str]
)
"""Texts of fields by name, for types that have no text of their own."""


def _description(field: model.Field) -> str:
    """Return the text of a field: its own, that of all fields of the name, or that of its type."""
    own = field.description or _COMMON_TEXTS.get(field.name)
    if own:
        return own
    inner: model.Type = field.type
    while isinstance(inner, model.ListOf | model.MapOf):
        inner = inner.element
    return inner.description if isinstance(inner, model.Object) else ""


# Schemas of custom resources

_CONVENTIONS: Final = "https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md"
_API_VERSION: Final = {
    "description": (
        "APIVersion defines the versioned schema of this representation of an object. Servers should convert "
        "recognized schemas to the latest internal value, and may reject unrecognized values. More info: "
        f"{_CONVENTIONS}#resources"
    ),
    "type": "string",
}
_KIND: Final = {
    "description": (
        "Kind is a string value representing the REST resource this object represents. Servers may infer this from "
        "the endpoint the client submits requests to. Cannot be updated. In CamelCase. More info: "
        f"{_CONVENTIONS}#types-kinds"
    ),
    "type": "string",
}
_METADATA: Final = f"Standard object's metadata. More info: {_CONVENTIONS}#metadata"
_LIST_METADATA: Final = f"Standard list metadata. More info: {_CONVENTIONS}#types-kinds"
_EMBEDDED_API_VERSION: Final = {
    "description": (
        "apiVersion defines the versioned schema of this representation of an object. More info: "
        f"{_CONVENTIONS}#resources"
    ),
    "type": "string",
}
_EMBEDDED_KIND: Final = {
    "description": (
        "kind is a string value representing the type of this object. In CamelCase. More info: "
        f"{_CONVENTIONS}#types-kinds"
    ),
    "type": "string",
}
"""The texts of the envelope of custom resources are upstream's, as clients show them next to the author's own."""

SELECTABLE_FIELDS: Final = "x-kubernetes-selectable-fields"
"""Extension that lists the field selectors of a custom resource."""

_V3_ONLY: Final = ("oneOf", "anyOf", "allOf", "not", "nullable")
"""Members that version 2 does not have; schemas are less strict there."""

_NESTED_SCHEMAS: Final = ("items", "additionalProperties")


def _custom_schema(
    schema: Mapping[str, Any], *, metadata: Mapping[str, Any], is_v3: bool, is_resource: bool = True
) -> Any:
    """Return the definition of a custom resource; ``metadata`` is the reference to the type of metadata."""
    result = dict(schema)
    if not is_v3:
        result = {name: value for name, value in result.items() if name not in _V3_ONLY}
        if schema.get("x-kubernetes-preserve-unknown-fields"):
            for name in ("properties", *_NESTED_SCHEMAS):
                result.pop(name, None)
        if schema.get("nullable"):
            result.pop("type", None)
    properties = result.get("properties")
    if isinstance(properties, Mapping):
        result["properties"] = {
            name: _custom_schema(each, metadata=metadata, is_v3=is_v3, is_resource=False)
            for name, each in properties.items()
        }
    for name in _NESTED_SCHEMAS:
        if isinstance(result.get(name), Mapping):
            result[name] = _custom_schema(result[name], metadata=metadata, is_v3=is_v3, is_resource=False)
    if not is_v3 and schema.get("x-kubernetes-preserve-unknown-fields"):
        # Clients of version 2 would refuse all fields that are not listed.
        return {"type": "object"} if is_resource else result
    if is_resource:
        envelope = {"apiVersion": _API_VERSION, "kind": _KIND, "metadata": metadata}
        result["properties"] = {**(result.get("properties") or {}), **envelope}
    if schema.get("x-kubernetes-embedded-resource"):
        envelope = {"apiVersion": _EMBEDDED_API_VERSION, "kind": _EMBEDDED_KIND, "metadata": metadata}
        result["properties"] = {**(result.get("properties") or {}), **envelope}
        required = result.get("required") or []
        result["required"] = [*required, *(name for name in ("kind", "apiVersion") if name not in required)]
    return result
