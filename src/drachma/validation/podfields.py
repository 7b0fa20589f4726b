"""What the server does to the DRA fields of a pod before it looks at it.

Pods are stored as the documents that clients sent, so this works on documents; the rules work on the partial view.
"""

from typing import Any

from drachma.api.gates import Gate, Gates

Document = dict[str, Any]

LISTS = ("resourceClaimStatuses", "nodeAllocatableResourceClaimStatuses")
"""Lists in a status that an empty one clears, while none at all leaves them as they were."""

_STATUS_FIELDS = ("resourceClaimStatuses", "extendedResourceClaimStatus", "nodeAllocatableResourceClaimStatuses")


def is_complete(gates: Gates) -> bool:
    """Whether all features are on whose fields could be dropped."""
    return gates.on(Gate.CORE) and gates.on(Gate.EXTENDED_RESOURCE) and gates.on(Gate.NODE_ALLOCATABLE_RESOURCES)


def drop_disabled(given: Document, *, old: Document | None, gates: Gates) -> Document:
    """A pod without the fields of features that are off, unless the stored pod uses them."""
    spec, before = given.get("spec") or {}, (old or {}).get("spec") or {}
    status, status_before = given.get("status") or {}, (old or {}).get("status") or {}
    dropped = set()
    if not gates.on(Gate.CORE) and not before.get("resourceClaims"):
        spec = {name: value for name, value in spec.items() if name != "resourceClaims"}
        for field in ("containers", "initContainers", "ephemeralContainers"):
            if spec.get(field):
                spec[field] = [_without_claims(container) for container in spec[field]]
        dropped.add("resourceClaimStatuses")
    if not gates.on(Gate.EXTENDED_RESOURCE) and status_before.get("extendedResourceClaimStatus") is None:
        dropped.add("extendedResourceClaimStatus")
    if not gates.on(Gate.NODE_ALLOCATABLE_RESOURCES) and not status_before.get("nodeAllocatableResourceClaimStatuses"):
        dropped.add("nodeAllocatableResourceClaimStatuses")
    status = {name: value for name, value in status.items() if name not in dropped}
    return {**given, **({"spec": spec} if "spec" in given else {}), **({"status": status} if "status" in given else {})}


def keep_status(given: Document, old: Document) -> Document:
    """A pod whose status an old client wrote: DRA fields that it does not know stay as they were.

    An explicit empty list still clears one.
    """
    status, before = given.get("status") or {}, old.get("status") or {}
    kept = {name: before[name] for name in _STATUS_FIELDS if status.get(name) is None and before.get(name) is not None}
    return {**given, "status": {**status, **kept}} if kept else given


def _without_claims(container: Document) -> Document:
    resources = container.get("resources")
    if not isinstance(resources, dict) or "claims" not in resources:
        return container
    return {**container, "resources": {name: value for name, value in resources.items() if name != "claims"}}
