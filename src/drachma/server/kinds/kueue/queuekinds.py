"""Kinds of ``kueue.x-k8s.io``, and ProvisioningRequests, from the custom resource definitions in ``definitions/``.

An application that is told to serves them like other custom resources: objects are pruned, defaulted, validated,
presented and patched by the schemas of the definitions. The definitions themselves are not stored. If a user installs
Kueue's own definitions, those are stored and the kinds here stay as they are.

Limits, rules and their messages in the definitions are Kueue's; the texts of fields are ours. A schema with the member
``x-drachma-type`` stands for a type of :mod:`drachma.api.types`, for instance a pod template.
"""

import functools
import pkgutil
from typing import Any, Final, TypeAlias

import msgspec

from drachma.api import types
from drachma.api.types import model
from drachma.server.kinds.apiextensions import customresource
from drachma.server.kinds.apiextensions.definition import Definition
from drachma.server.kinds.kueue import versionforms, workloadfastpath
from drachma.server.surface import resources
from drachma.server.surface.apisurface import Kind
from drachma.server.surface.strategy import Environment

GROUP: Final = "kueue.x-k8s.io"
_PLURALS: Final = (
    "admissionchecks",
    "clusterqueues",
    "cohorts",
    "localqueues",
    "multikueueclusters",
    "multikueueconfigs",
    "provisioningrequestconfigs",
    "provisioningrequests",
    "resourceflavors",
    "topologies",
    "workloads",
    "workloadpriorityclasses",
)

Schema: TypeAlias = dict[str, Any]


class QueueStrategy(customresource.CustomStrategy):
    """Strategy of a kind whose definition is not stored."""

    def __init__(self, resource: resources.Resource, environment: Environment, *, definition: Definition) -> None:
        super().__init__(
            resource, environment, definition=definition, conversions=versionforms.VersionForms(resource.kind)
        )

    def is_terminating(self) -> bool:
        return False


def kinds() -> tuple[Kind, ...]:
    """Return all kinds of the group."""
    return tuple(_kind(plural) for plural in _PLURALS)


def _kind(plural: str) -> Kind:
    content = pkgutil.get_data(__name__, f"definitions/{plural}.json")
    definition = Definition(_expand(msgspec.json.decode(content or b"")), revision=0)
    kind = customresource.kind(definition)
    return msgspec.structs.replace(
        kind,
        strategy=functools.partial(QueueStrategy, definition=definition),
        fast_path=workloadfastpath.WorkloadFastPath if plural == "workloads" else kind.fast_path,
    )


# Schemas of Kubernetes' own types


def _expand(part: Any) -> Any:
    """Return a part of a definition with the schemas of the types that it names."""
    match part:
        case {"x-drachma-type": reference, **rest}:
            return {**rest, **_type_schema(types.get(reference))}
        case dict():
            return {key: _expand(value) for key, value in part.items()}
        case list():
            return [_expand(item) for item in part]
    return part


_NUMBER: Final = r"(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))"
_SCALARS: Final[dict[str, Schema]] = {
    "Quantity": {
        "anyOf": [{"type": "integer"}, {"type": "string"}],
        "pattern": rf"^(\+|-)?{_NUMBER}(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?{_NUMBER}))?$",
        "x-kubernetes-int-or-string": True,
    },
    "IntOrString": {"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": True},
    "Time": {"type": "string", "format": "date-time"},
    "MicroTime": {"type": "string", "format": "date-time"},
}
_TEXTS: Final = {"type": "object", "additionalProperties": {"type": "string"}}
_TEMPLATE_METADATA: Final[Schema] = {
    "type": "object",
    "properties": {
        "annotations": _TEXTS,
        "finalizers": {"type": "array", "items": {"type": "string"}},
        "labels": _TEXTS,
        "name": {"type": "string"},
        "namespace": {"type": "string"},
    },
}
"""Schema of the metadata of templates, which has only some fields in definitions of custom resources."""


def _type_schema(kind: model.Type) -> Schema:
    """Return the schema that a definition of a custom resource has for a type, without names and texts."""
    match kind:
        case model.Object(name="ObjectMeta"):
            return _TEMPLATE_METADATA
        case model.Object():
            return _object_schema(kind)
        case model.ListOf(keys=keys):
            schema: Schema = {"type": "array", "items": _type_schema(kind.element)}
            if keys:
                return {**schema, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": list(keys)}
            return {**schema, "x-kubernetes-list-type": "atomic" if keys is None else "set"}
        case model.MapOf():
            schema = {"type": "object", "additionalProperties": _type_schema(kind.element)}
            return {**schema, "x-kubernetes-map-type": "atomic"} if kind.atomic else schema
        case model.Free():
            return {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        case model.Scalar(name=name) if name in _SCALARS:
            return dict(_SCALARS[name])
        case model.Scalar():
            return {"type": kind.json, **({"format": kind.format} if kind.format else {})}


def _object_schema(kind: model.Object) -> Schema:
    fields = {}
    for name, field in kind.fields.items():
        fields[name] = _type_schema(field.type)
        if field.default is not None and not field.required:
            fields[name]["default"] = field.default
    schema: Schema = {"type": "object", "properties": fields}
    if required := sorted(name for name, field in kind.fields.items() if field.required):
        schema["required"] = required
    if kind.atomic:
        schema["x-kubernetes-map-type"] = "atomic"
    return schema
