"""Preparation of the DRA fields of a pod before it is checked.

Pods are stored as the documents that clients sent, so this works on documents; the rules work on the partial view.
"""

from typing import Any

from drachma.api.gates import Gate, Gates

Document = dict[str, Any]

LISTS = ("resourceClaimStatuses", "nodeAllocatableResourceClaimStatuses")
"""Lists in a status that an empty list clears; an absent list leaves them as they are."""

_STATUS_FIELDS = ("resourceClaimStatuses", "extendedResourceClaimStatus", "nodeAllocatableResourceClaimStatuses")


def is_complete(gates: Gates) -> bool:
    """Return True if all features are enabled whose fields could be dropped."""
    return gates.on(Gate.CORE) and gates.on(Gate.EXTENDED_RESOURCE) and gates.on(Gate.NODE_ALLOCATABLE_RESOURCES)


def drop_disabled(document: Document, *, old: Document | None, gates: Gates) -> Document:
    """Return a pod without the fields of disabled features, unless the stored pod uses them."""
    spec, before = document.get("spec") or {}, (old or {}).get("spec") or {}
    status, status_before = document.get("status") or {}, (old or {}).get("status") or {}
    dropped = set()
    if not gates.on(Gate.CORE) and not before.get("resourceClaims"):
        spec = {name: value for name, value in spec.items() if name != "resourceClaims"}
        for field in ("containers", "initContainers", "ephemeralContainers"):
            if spec.get(field):
                spec[field] = [_drop_claims(container) for container in spec[field]]
        dropped.add("resourceClaimStatuses")
    if not gates.on(Gate.EXTENDED_RESOURCE) and status_before.get("extendedResourceClaimStatus") is None:
        dropped.add("extendedResourceClaimStatus")
    if not gates.on(Gate.NODE_ALLOCATABLE_RESOURCES) and not status_before.get("nodeAllocatableResourceClaimStatuses"):
        dropped.add("nodeAllocatableResourceClaimStatuses")
    status = {name: value for name, value in status.items() if name not in dropped}
    return {
        **document,
        **({"spec": spec} if "spec" in document else {}),
        **({"status": status} if "status" in document else {}),
    }


def keep_status(document: Document, old: Document) -> Document:
    """Return a pod with the DRA fields of its stored status that a client left out.

    An explicit empty list still clears one.
    """
    status, before = document.get("status") or {}, old.get("status") or {}
    stored_fields = {
        name: before[name] for name in _STATUS_FIELDS if status.get(name) is None and before.get(name) is not None
    }
    return {**document, "status": {**status, **stored_fields}} if stored_fields else document


def _drop_claims(container: Document) -> Document:
    resources = container.get("resources")
    if not isinstance(resources, dict) or "claims" not in resources:
        return container
    return {**container, "resources": {name: value for name, value in resources.items() if name != "claims"}}
