"""Scale: the subresource of workloads, and its form in objects of each kind."""

import copy
from collections.abc import Mapping, Sequence
from typing import Any, Final

from drachma.api import types
from drachma.server.surface import resources, selectable, verbs
from drachma.values import labels

NAME: Final = "scale"
KIND: Final = "Scale"
API_VERSION: Final = "autoscaling/v1"
SUBRESOURCE: Final = resources.Subresource(
    name=NAME, verbs=verbs.STATUS, kind=KIND, api_version=API_VERSION, schema=types.get("autoscaling/v1.Scale")
)

WORKLOAD: Final = resources.ScalePaths(replicas=("spec", "replicas"), status_replicas=("status", "replicas"))
"""Paths in kinds that do not declare any; their selectors are label selectors."""

_METADATA: Final = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")


def paths(resource: resources.Resource, version: str) -> resources.ScalePaths:
    """Return the paths of the scale in objects of a version."""
    return resource.scales.get(version, WORKLOAD)


def replica_paths(resource: resources.Resource) -> dict[str, tuple[str, ...] | None]:
    """Return the path of the number of replicas by apiVersion; None for a version without a scale."""
    if not resource.scales:
        return dict.fromkeys(resource.api_versions, WORKLOAD.replicas)
    scales = {resource.api_version(version): resource.scales.get(version) for version in resource.versions}
    return {api_version: own.replicas if own else None for api_version, own in scales.items()}


def from_workload(workload: Mapping[str, Any], resource: resources.Resource, *, version: str) -> dict[str, Any]:
    """Return the scale of a workload, which is a document of that version."""
    own_paths = paths(resource, version)
    metadata, replicas = workload["metadata"], selectable.dig(workload, own_paths.replicas)
    is_plain = own_paths is WORKLOAD
    selector: Any = _selector(workload, resource) if is_plain else None
    if own_paths.selector:
        selector = selectable.dig(workload, own_paths.selector)
    current: dict[str, Any] = {"replicas": selectable.dig(workload, own_paths.status_replicas) or 0}
    if selector or is_plain:
        current["selector"] = selector
    return {
        "kind": KIND,
        "apiVersion": API_VERSION,
        "metadata": {field: metadata[field] for field in _METADATA if field in metadata},
        "spec": {"replicas": replicas} if replicas else {},
        "status": current,
    }


def with_replicas(content: Any, path: Sequence[str], replicas: int) -> Any:
    """Return a copy of a workload's content, of the same class, with another number of replicas."""
    changed = copy.copy(content)
    inner = changed
    for name in path[:-1]:
        inner[name] = dict(inner.get(name) or {})
        inner = inner[name]
    inner[path[-1]] = replicas
    return changed


def _selector(workload: Mapping[str, Any], resource: resources.Resource) -> str:
    selector = (workload.get("spec") or {}).get("selector") or {}
    if not resource.group:
        # Replication controllers are the only scalable kind of the core group; their selectors are plain labels.
        return str(labels.Selector.from_parts(selector, []))
    expressions = [
        (each.get("key", ""), each.get("operator", ""), each.get("values") or [])
        for each in selector.get("matchExpressions") or ()
    ]
    return str(labels.Selector.from_parts(selector.get("matchLabels") or {}, expressions))
