"""Scopes of quotas: a quota with scopes counts only the objects that are in all of them."""

from collections.abc import Collection
from typing import Final

from drachma.api import resourcequota
from drachma.api.resourcequota import ScopedResourceSelectorRequirement as Requirement

TERMINATING: Final = "Terminating"
NOT_TERMINATING: Final = "NotTerminating"
BEST_EFFORT: Final = "BestEffort"
NOT_BEST_EFFORT: Final = "NotBestEffort"
PRIORITY_CLASS: Final = "PriorityClass"
CROSS_NAMESPACE_POD_AFFINITY: Final = "CrossNamespacePodAffinity"
VOLUME_ATTRIBUTES_CLASS: Final = "VolumeAttributesClass"

EXISTS: Final = "Exists"


def of(spec: resourcequota.ResourceQuotaSpec) -> tuple[Requirement, ...]:
    """All that a quota asks of what it counts."""
    plain = tuple(Requirement(scope_name=scope, operator=EXISTS) for scope in spec.scopes)
    return plain if spec.scope_selector is None else plain + spec.scope_selector.match_expressions


def chooses(requirement: Requirement, names: Collection[str]) -> bool:
    """Whether an object that refers to these classes meets a requirement; each of them may be the one."""
    return any(_chooses(requirement, name) for name in names) if names else _chooses(requirement, None)


def _chooses(requirement: Requirement, name: str | None) -> bool:
    match requirement.operator:
        case "In":
            return name in requirement.values
        case "NotIn":
            return name not in requirement.values
        case "Exists":
            return name is not None
        case "DoesNotExist":
            return name is None
    return False
