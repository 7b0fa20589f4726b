"""Custom resource definitions."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, Final

import msgspec

from drachma.api import types
from drachma.claims import conditions
from drachma.server import objectmeta
from drachma.server.kinds.document import Document, DocumentStrategy, check_types
from drachma.server.schema import normalform
from drachma.server.surface import cells, layout, resources
from drachma.server.surface.apisurface import Kind
from drachma.server.surface.strategy import Subject, Write
from drachma.validation import customresourcedefinition as rules
from drachma.validation.fielderror import Errors
from drachma.validation.structural import formats
from drachma.validation.structural import schema as schemas
from drachma.values import quotation

FINALIZER: Final = "customresourcecleanup.apiextensions.k8s.io"
"""Finalizer that holds a deleted definition until its objects are gone."""

_PORT: Final = 443


class DefinitionStrategy(DocumentStrategy):
    counts_generations = True
    qualifies_finalizers = False

    def updates_unconditionally(self, write: Write) -> bool:
        return False

    def normalize(self, fields: Document, write: Write) -> Document:
        content = super().normalize(fields, write)
        for version in (content.get("spec") or {}).get("versions") or ():
            validation = version.get("schema")
            if validation and validation.get("openAPIV3Schema") is not None:
                validation["openAPIV3Schema"] = _normal_schema(validation["openAPIV3Schema"], _PATH)
        return content

    def default(self, content: Document, metadata: objectmeta.Metadata) -> None:
        spec = content["spec"] = dict(content.get("spec") or {})
        names = spec["names"] = dict(spec.get("names") or {})
        kind = names.get("kind", "")
        if not names.get("singular") and kind:
            names["singular"] = kind.lower()
        if not names.get("listKind") and kind:
            names["listKind"] = f"{kind}List"
        conversion = spec["conversion"] = dict(spec.get("conversion") or {"strategy": "None"})
        service = ((conversion.get("webhook") or {}).get("clientConfig") or {}).get("service")
        if service is not None and "port" not in service:
            client = {**conversion["webhook"]["clientConfig"], "service": {**service, "port": _PORT}}
            conversion["webhook"] = {**conversion["webhook"], "clientConfig": client}
        status = content.get("status") or {}
        if not status.get("storedVersions"):
            storage_version = _storage_version(spec)
            if storage_version is not None:
                content["status"] = {**status, "storedVersions": [storage_version]}

    def prepare_create(self, content: Document, metadata: objectmeta.Metadata, write: Write) -> None:
        storage_version = _storage_version(content["spec"])
        content["status"] = {"storedVersions": [storage_version]} if storage_version is not None else {}

    def prepare_update(self, content: Document, old: Mapping[str, Any], write: Write) -> None:
        status = content["status"] = dict(old.get("status") or {})
        storage_version = _storage_version(content["spec"])
        versions = status.get("storedVersions") or []
        if storage_version is not None and storage_version not in versions:
            status["storedVersions"] = [*versions, storage_version]

    def update(self, subject: Subject, old: Subject, write: Write) -> None:
        super().update(subject, old, write)
        before = set(_warnings(old.content["spec"]))
        write.warnings.extend(each for each in _warnings(subject.content["spec"]) if each not in before)

    def check_new(self, content: Document, subject: Subject) -> Errors:
        yield from rules.check_name(subject.metadata.get("name", ""), content["spec"])
        yield from rules.check({**content, "metadata": subject.metadata})

    def check_update(self, content: Document, old: Mapping[str, Any], subject: Subject) -> Errors:
        yield from rules.check_update({**content, "metadata": subject.metadata}, old)

    def check_status(self, content: Document, old: Mapping[str, Any], subject: Subject) -> Errors:
        yield from rules.check_status(content)

    def warnings(self, content: Document, subject: Subject) -> Iterable[str]:
        return _warnings(content["spec"])


_SCHEMA: Final = types.get("apiextensions.k8s.io/v1.JSONSchemaProps")
_PATH: Final = "spec.versions.schema.openAPIV3Schema"
_SELF_DECODING: Final = ("items", "additionalProperties", "additionalItems")
"""Members that may hold a schema or something else. Go's types decode those themselves, so the type is unknown until
the schema is parsed."""


def _normal_schema(document: Any, path: str) -> Any:
    """Return a schema in normal form, including the members that decode themselves; other values stay as they are.

    Raises:
        errors.DecodeError: a value below such a member has the wrong type; ``path`` is that of the schema.
    """
    if not isinstance(document, dict):
        return document
    result = normalform.normalize(document, _SCHEMA)
    for name in result:
        value = result[name]
        below = f"{path}.{name}"
        if name in _SELF_DECODING:
            if isinstance(value, dict):
                check_types(value, _SCHEMA, path=below)
            result[name] = _normal_schema(value, below)
        elif name in ("allOf", "anyOf", "oneOf"):
            result[name] = [_normal_schema(each, below) for each in value]
        elif name in ("properties", "patternProperties", "definitions"):
            result[name] = {key: _normal_schema(each, below) for key, each in value.items()}
        elif name == "not":
            result[name] = _normal_schema(value, below)
    return result


def _storage_version(spec: Mapping[str, Any]) -> str | None:
    return next((each.get("name", "") for each in spec.get("versions") or () if each.get("storage")), None)


def _warnings(spec: Mapping[str, Any]) -> Iterator[str]:
    """Yield warnings about schemas: unknown formats, and sets whose items are not scalars."""
    documents = [(version.get("schema") or {}).get("openAPIV3Schema") for version in spec.get("versions") or ()]
    distinct = {msgspec.json.encode(each): each for each in documents if each is not None}
    parsed = [part for each in distinct.values() for part in schemas.parse(each).everywhere()]
    for schema in parsed:
        if schema.format and not formats.supported(schema):
            yield f"unrecognized format {quotation.quote(schema.format)}"
    kinds = {schema.item.type for schema in parsed if schema.list_type == "set" and schema.item is not None}
    for kind in sorted(kinds & {"object", "array"}):
        yield (
            f'x-kubernetes-list-type: set for items of type "{kind}" is not supported by server-side apply or CEL '
            "validation rules"
        )


def is_established(definition: Mapping[str, Any]) -> bool:
    """Return True if the kind is served."""
    existing = (definition.get("status") or {}).get("conditions") or ()
    return conditions.has_true_document(existing, "Established")


def _cells(definition: Document, _now: datetime) -> layout.Cells:
    spec = cells.part(definition, "spec")
    names = cells.part(spec, "names")
    versions = [
        f"{each['name']}(storage)" if each.get("storage") else each["name"]
        for each in spec.get("versions") or ()
        if each.get("served")
    ]
    created = cells.part(definition, "metadata").get("creationTimestamp")
    values = [spec.get("scope", ""), ",".join(sorted(versions)), created, spec.get("group", ""), names.get("kind", "")]
    return [cells.name(definition), *values, ",".join(names.get("shortNames") or ()), is_established(definition)]


KIND: Final = Kind(
    group="apiextensions.k8s.io",
    versions=("v1",),
    plural="customresourcedefinitions",
    kind="CustomResourceDefinition",
    namespaced=False,
    short_names=("crd", "crds"),
    categories=("api-extensions",),
    subresources=(resources.status(),),
    traits=resources.Traits(finalizer=FINALIZER),
    layout=layout.Layout(
        (
            layout.NAME,
            layout.text("Scope", "Cluster or Namespaced."),
            layout.text("Versions", "The versions that are served, and which is stored."),
            layout.Column("Created At", "date", description="The time of creation."),
            layout.wide("Group", "The group that the kind is served in."),
            layout.wide("Kind", "The kind of its objects."),
            layout.wide("ShortNames", "Abbreviations for people."),
            layout.Column("Established", "boolean", description="True if the kind is served.", priority=1),
        ),
        _cells,
    ),
    strategy=DefinitionStrategy,
)
