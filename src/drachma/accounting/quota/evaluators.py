"""Evaluators by kind."""

from typing import Any, Final

from drachma.accounting.quota import objectcounts, pods, resourceclaims, volumeclaims
from drachma.accounting.quota.evaluator import Evaluator
from drachma.api import gates

_SPECIAL: Final[dict[tuple[str, str], Evaluator[Any]]] = {
    ("", "persistentvolumeclaims"): volumeclaims.VolumeClaims(),
    ("", "pods"): pods.Pods(),
    ("", "services"): objectcounts.Services(),
    ("resource.k8s.io", "resourceclaims"): resourceclaims.ResourceClaims(),
}

ALWAYS: Final = (
    *_SPECIAL,
    *(("", plural) for plural in ("configmaps", "replicationcontrollers", "resourcequotas", "secrets")),
)
"""Kinds that quotas count even if they are not served, with a count of 0."""

_PODS: Final = ("", "pods")
_PODS_WITH_CLAIMS: Final = pods.Pods(counts_claims=True)

_IGNORED: Final = frozenset({("", "events"), ("events.k8s.io", "events"), ("", "bindings")})
"""Kinds that are never limited: there are many objects, or they are not stored."""


def of(group: str, plural: str, enabled: gates.Gates = gates.ALL) -> Evaluator[Any] | None:
    """Return the evaluator of a kind, or None for kinds that no quota counts."""
    if (group, plural) in _IGNORED:
        return None
    if (group, plural) == _PODS and counts_claims(enabled):
        return _PODS_WITH_CLAIMS
    return _SPECIAL.get((group, plural)) or objectcounts.ObjectCount(group, plural)


def counts_claims(enabled: gates.Gates) -> bool:
    """Return True if pods are charged for what their claims add to their requests, which takes two gates."""
    return enabled.on(gates.Gate.NODE_ALLOCATABLE_QUOTA) and enabled.on(gates.Gate.NODE_ALLOCATABLE_RESOURCES)
