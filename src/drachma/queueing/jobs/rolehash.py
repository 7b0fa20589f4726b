"""The role of a pod in its group: a hash of what matters for admission, so that pods alike share a pod set.

The hash is taken over Go's JSON of upstream's structs, so fields stand in their declared order and maps in that of
their keys, and what is absent is null.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any, Final

from drachma.values.quantity import Quantity

Document = Mapping[str, Any]

ANNOTATION: Final = "kueue.x-k8s.io/role-hash"
_LENGTH: Final = 8
_FIELDS: Final = (
    "name", "hostPort", "containerPort", "protocol", "hostIP",
    "resourceClaimName", "resourceClaimTemplateName",
    "nodeAffinity", "podAffinity", "podAntiAffinity",
    "requiredDuringSchedulingIgnoredDuringExecution", "preferredDuringSchedulingIgnoredDuringExecution",
    "weight", "preference", "podAffinityTerm", "nodeSelectorTerms",
    "maxSkew",
)  # fmt: skip
"""Fields of structs in their order; those of one struct do not stand in another order in a second one."""
_TERMS: Final = (
    "labelSelector", "namespaces", "topologyKey", "namespaceSelector", "whenUnsatisfiable",
    "minDomains", "nodeAffinityPolicy", "nodeTaintsPolicy", "matchLabelKeys", "mismatchLabelKeys",
    "matchLabels", "matchExpressions", "matchFields",
    "key", "operator", "value", "values", "effect", "tolerationSeconds",
)  # fmt: skip
_RANKS: Final = {field: rank for rank, field in enumerate((*_FIELDS, *_TERMS))}
_SPREAD_FIELDS: Final = (
    "maxSkew", "topologyKey", "whenUnsatisfiable", "labelSelector",
    "minDomains", "nodeAffinityPolicy", "nodeTaintsPolicy", "matchLabelKeys",
)  # fmt: skip
_SPREAD_RANKS: Final = {field: rank for rank, field in enumerate(_SPREAD_FIELDS)}
_MAPS: Final = frozenset({"matchLabels"})


def of_pod(pod: Document) -> str:
    """The role that a pod says it has, or that its spec makes."""
    annotations = pod.get("metadata", {}).get("annotations") or {}
    return annotations[ANNOTATION] if ANNOTATION in annotations else of_spec(pod.get("spec", {}))


def of_spec(spec: Document) -> str:
    """The hash of a spec."""
    shape: dict[str, Any] = {
        "initContainers": _containers(spec.get("initContainers")),
        "containers": _containers(spec.get("containers")),
        "nodeSelector": _sorted(spec.get("nodeSelector")),
        "affinity": _structs(spec.get("affinity")),
        "tolerations": _structs(spec.get("tolerations")),
        "runtimeClassName": spec.get("runtimeClassName"),
        "priority": spec.get("priority"),
        "topologySpreadConstraints": _structs(spec.get("topologySpreadConstraints"), _SPREAD_RANKS),
        "overhead": _amounts(spec.get("overhead")),
        "resourceClaims": _structs(spec.get("resourceClaims")),
    }
    if spec.get("resources") is not None:
        shape["resources"] = _amounts(spec["resources"].get("requests"))
    text = json.dumps({"spec": _sorted(shape)}, ensure_ascii=False, separators=(",", ":"))
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return hashlib.sha256(text.encode()).hexdigest()[:_LENGTH]


def _containers(containers: Any) -> Any:
    return [
        {
            "ports": _structs(each.get("ports")),
            "resources": {"requests": _amounts((each.get("resources") or {}).get("requests"))},
        }
        for each in containers or ()
    ] or None


def _amounts(amounts: Document | None) -> Any:
    return {key: str(Quantity.parse(str(amounts[key]))) for key in sorted(amounts)} if amounts else None


def _sorted(mapping: Document | None) -> Any:
    return {key: mapping[key] for key in sorted(mapping)} if mapping else None


def _structs(value: Any, ranks: Mapping[str, int] = _RANKS) -> Any:
    """Fields in the order of their structs, empty ones left out."""
    if isinstance(value, list | tuple):
        return [_structs(each, ranks) for each in value] or None
    if isinstance(value, Mapping):
        known = sorted(value, key=lambda field: (ranks.get(field, len(ranks)), field))
        return {
            field: _sorted(value[field]) if field in _MAPS else _structs(value[field])
            for field in known
            if value[field] not in (None, "", [], {}, 0) or field in ("maxSkew", "containerPort", "weight")
        }
    return value
