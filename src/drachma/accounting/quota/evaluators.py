"""Which evaluator looks at which kind."""

from typing import Any, Final

from drachma.accounting.quota import objectcounts, pods, resourceclaims, services, volumeclaims
from drachma.accounting.quota.evaluator import Evaluator

_SPECIAL: Final[dict[tuple[str, str], Evaluator[Any]]] = {
    ("", "persistentvolumeclaims"): volumeclaims.VolumeClaims(),
    ("", "pods"): pods.Pods(),
    ("", "services"): services.Services(),
    ("resource.k8s.io", "resourceclaims"): resourceclaims.ResourceClaims(),
}

ALWAYS: Final = (
    *_SPECIAL,
    *(("", plural) for plural in ("configmaps", "replicationcontrollers", "resourcequotas", "secrets")),
)
"""Kinds that quotas count even where they are not served: there are none of them then."""

_IGNORED: Final = frozenset({("", "events"), ("events.k8s.io", "events"), ("", "bindings")})
"""Never limited: there are many, or they are not stored."""


def of(group: str, plural: str) -> Evaluator[Any] | None:
    """The evaluator of a kind; None for kinds that no quota counts."""
    if (group, plural) in _IGNORED:
        return None
    return _SPECIAL.get((group, plural)) or objectcounts.ObjectCount(group, plural)
