"""Schemas of Kubernetes' own types, as definitions of custom resources write them where they have such a type inside.

Objects lose their names and texts there, and a few things are said otherwise than in Kubernetes' own documents: key
fields of lists have their defaults, quantities are texts of a form, and metadata of a template has only some fields.
"""

from typing import Any, Final

from drachma.server.kinds.core import podtypes
from drachma.server.kinds.kueue import schemanotation
from drachma.server.schema import metatypes, model

_TEXTS: Final = {"type": "object", "additionalProperties": {"type": "string"}}
_TEMPLATE_METADATA: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "annotations": _TEXTS,
        "finalizers": {"type": "array", "items": {"type": "string"}},
        "labels": _TEXTS,
        "name": {"type": "string"},
        "namespace": {"type": "string"},
    },
}


def pod_template() -> schemanotation.Schema:
    """The schema of templates of pods."""
    return _type(podtypes.PODS.object("PodTemplateSpec"))


def label_selector() -> schemanotation.Schema:
    """The schema of selectors of labels."""
    return _type(metatypes.META.object("LabelSelector"))


def _type(described: model.Type) -> schemanotation.Schema:
    match described:
        case model.Object(name="ObjectMeta"):
            return _TEMPLATE_METADATA
        case model.Object():
            return _object(described)
        case model.ListOf():
            schema: schemanotation.Schema = {"type": "array", "items": _type(described.element)}
            if described.keys is None:
                schema["x-kubernetes-list-type"] = "atomic"
            elif described.keys:
                schema |= {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": list(described.keys)}
            else:
                schema["x-kubernetes-list-type"] = "set"
            return schema
        case model.MapOf():
            schema = {"type": "object", "additionalProperties": _type(described.element)}
            return {**schema, "x-kubernetes-map-type": "atomic"} if described.atomic else schema
        case model.Free():
            return {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        case model.Scalar():
            return _scalar(described)


def _scalar(described: model.Scalar) -> schemanotation.Schema:
    match described.name:
        case "Quantity":
            return dict(schemanotation.QUANTITY)
        case "IntOrString":
            return {"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": True}
        case "Time" | "MicroTime":
            return {"type": "string", "format": described.format}
    schema = {"type": described.json}
    return {**schema, "format": described.format} if described.format else schema


def _object(described: model.Object) -> schemanotation.Schema:
    fields = {}
    for name, field in described.fields.items():
        fields[name] = _type(field.type)
        if field.default is not None and not field.required:
            fields[name]["default"] = field.default
    schema: schemanotation.Schema = {"type": "object", "properties": fields}
    if required := sorted(name for name, field in described.fields.items() if field.required):
        schema["required"] = required
    if described.atomic:
        schema["x-kubernetes-map-type"] = "atomic"
    return schema
