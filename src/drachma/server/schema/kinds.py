"""The type of every served kind by apiVersion and kind, and the empty document of each.

Complete kinds are read off their structs, the others come from the tables. A KeyError means that the kind is not
served, which callers have found out before.
"""

import functools
from collections.abc import Mapping
from typing import Any, Final

from drachma.api import scheme
from drachma.server.schema import model, notation, structs
from drachma.server.schema.tables import core, metadata, pods, volumes, workloads

TABLE: Final = notation.Table(metadata.TYPES, pods.TYPES, volumes.TYPES, core.TYPES, workloads.TYPES)

_IN_TABLES: Final[Mapping[str, str]] = {
    "v1": "Pod Node Namespace ResourceQuota Event ConfigMap Secret ServiceAccount Binding",
    "apps/v1": "Deployment ReplicaSet",
    "autoscaling/v1": "Scale",
    "batch/v1": "Job",
    "coordination.k8s.io/v1": "Lease",
    "policy/v1": "Eviction",
    "scheduling.k8s.io/v1": "PriorityClass",
}


@functools.cache
def of(api_version: str, kind: str) -> model.Object:
    """The type of a served kind, or of the body of a subresource; KeyError where there is none."""
    if kind in _IN_TABLES.get(api_version, "").split():
        return TABLE.object(kind)
    for known in scheme.KINDS:
        if known.complete and (api_version, kind) in _names(known):
            return _reader(api_version).kind(known.shape(api_version))
    raise KeyError((api_version, kind))


@functools.cache
def empty(schema: model.Object) -> dict[str, Any]:
    """What upstream writes for a new object of the type: parts that are always written, required fields as zero.

    The document is shared; whoever changes it copies it first.
    """
    written: dict[str, Any] = {}
    for name, field in schema.fields.items():
        if field.filled and isinstance(field.type, model.Object):
            written[name] = empty(field.type)
        elif field.nulled:
            written[name] = None
        elif field.required:
            written[name] = field.default
        elif field.filled and isinstance(field.type, model.Scalar):
            written[name] = model.ZEROS[field.type.name]
    return written


def _names(kind: scheme.Kind) -> set[tuple[str, str]]:
    return {(api_version, kind.name) for api_version in kind.api_versions}


@functools.cache
def _reader(api_version: str) -> structs.Reader:
    """``resource.k8s.io/v1beta1`` is ``io.k8s.api.resource.v1beta1`` in OpenAPI; so for all groups of Kubernetes."""
    group, _, version = api_version.rpartition("/")
    return structs.Reader(f"io.k8s.api.{group.partition('.')[0]}.{version}", known=TABLE)
