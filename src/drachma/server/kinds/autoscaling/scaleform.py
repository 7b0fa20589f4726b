"""Scales as documents: made from a workload, and written back into it. Nothing of them is stored.

The pipeline serves them; admission shows them to policies and webhooks in place of the workload.
"""

import copy
from collections.abc import Mapping, Sequence
from typing import Any, Final

from drachma.server.surface import resources, selectable
from drachma.values import labels

KIND: Final = "Scale"
API_VERSION: Final = "autoscaling/v1"
SUBRESOURCE: Final = "scale"

WORKLOAD: Final = resources.ScalePaths(replicas=("spec", "replicas"), status_replicas=("status", "replicas"))
"""Where kinds that say nothing about it have their scale; their selectors are structured."""

_CARRIED: Final = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")


def paths(resource: resources.Resource, version: str) -> resources.ScalePaths:
    """Where objects of a resource have their scale, in a version."""
    return resource.scales.get(version, WORKLOAD)


def places(resource: resources.Resource) -> dict[str, tuple[str, ...] | None]:
    """Where each version of a resource has its number of replicas, by apiVersion; None for one without a scale."""
    if not resource.scales:
        return dict.fromkeys(resource.api_versions, WORKLOAD.replicas)
    found = {version: resource.scales.get(version) for version in resource.versions}
    return {resource.api_version(version): at.replicas if at else None for version, at in found.items()}


def made(workload: Mapping[str, Any], resource: resources.Resource, *, version: str) -> dict[str, Any]:
    """The scale of a workload, which is in that version."""
    places = paths(resource, version)
    own, replicas = workload["metadata"], selectable.dig(workload, places.replicas)
    is_plain = places is WORKLOAD
    selector: Any = _selector(workload, resource) if is_plain else None
    if places.selector:
        selector = selectable.dig(workload, places.selector)
    current: dict[str, Any] = {"replicas": selectable.dig(workload, places.status_replicas) or 0}
    if selector or is_plain:
        current["selector"] = selector
    return {
        "kind": KIND,
        "apiVersion": API_VERSION,
        "metadata": {field: own[field] for field in _CARRIED if field in own},
        "spec": {"replicas": replicas} if replicas else {},
        "status": current,
    }


def resized(content: Any, path: Sequence[str], replicas: int) -> Any:
    """Content of a workload with another number of replicas; its own type stays."""
    changed = copy.copy(content)
    inner = changed
    for name in path[:-1]:
        inner[name] = dict(inner.get(name) or {})
        inner = inner[name]
    inner[path[-1]] = replicas
    return changed


def _selector(workload: Mapping[str, Any], resource: resources.Resource) -> str:
    chosen = (workload.get("spec") or {}).get("selector") or {}
    if not resource.group:
        # Replication controllers are the only ones of the core group; theirs are plain labels.
        return str(labels.Selector.from_parts(chosen, []))
    expressions = [
        (each.get("key", ""), each.get("operator", ""), each.get("values") or [])
        for each in chosen.get("matchExpressions") or ()
    ]
    return str(labels.Selector.from_parts(chosen.get("matchLabels") or {}, expressions))
