"""The contract of evaluators: charges of the objects of one kind to quotas, with scopes and amounts.

Evaluators have no state. Facts about other objects come as :class:`Facts`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from typing import Final, Generic, NamedTuple, Protocol, TypeAlias, TypeVar

from drachma.accounting import extendedresources
from drachma.api import meta, pod, resourceclaim, resourcequota
from drachma.api.resourcequota import ScopedResourceSelectorRequirement as Requirement
from drachma.values import quantity

TERMINATING: Final = "Terminating"
NOT_TERMINATING: Final = "NotTerminating"
BEST_EFFORT: Final = "BestEffort"
NOT_BEST_EFFORT: Final = "NotBestEffort"
PRIORITY_CLASS: Final = "PriorityClass"
CROSS_NAMESPACE_POD_AFFINITY: Final = "CrossNamespacePodAffinity"
VOLUME_ATTRIBUTES_CLASS: Final = "VolumeAttributesClass"

EXISTS: Final = "Exists"


def scope_requirements(spec: resourcequota.ResourceQuotaSpec) -> tuple[Requirement, ...]:
    """Return all requirements of a quota's scopes."""
    plain = tuple(Requirement(scope_name=scope, operator=EXISTS) for scope in spec.scopes)
    return plain if spec.scope_selector is None else plain + spec.scope_selector.match_expressions


def is_met(requirement: Requirement, names: Collection[str]) -> bool:
    """Return True if an object that refers to these classes meets a requirement; any one of them suffices."""
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


Amounts: TypeAlias = Mapping[str, quantity.Quantity]

ZERO: Final = quantity.Quantity.from_int(0)
ONE: Final = quantity.Quantity.from_int(1)


def add_amounts(first: Amounts, right: Amounts) -> dict[str, quantity.Quantity]:
    """Return the sum for every name of either."""
    total = dict(first)
    for name, amount in right.items():
        total[name] = total[name] + amount if name in total else amount
    return total


def excess(new: Amounts, old: Amounts) -> dict[str, quantity.Quantity]:
    """Return the increase of each name, without those that did not increase."""
    more = {name: amount - old[name] if name in old else amount for name, amount in new.items()}
    return {name: amount for name, amount in more.items() if amount > ZERO}


def select_amounts(amounts: Amounts, names: Collection[str]) -> dict[str, quantity.Quantity]:
    """Return the amounts of some names."""
    return {name: amount for name, amount in amounts.items() if name in names}


def amounts_text(amounts: Amounts) -> str:
    """Return amounts in the form of refusals: ``limits.cpu=2,pods=1``."""
    return ",".join(f"{name}={amounts[name]}" for name in sorted(amounts))


def names_text(names: Iterable[str]) -> str:
    """Return names in the form of refusals."""
    return ",".join(sorted(names))


ObjectT = TypeVar("ObjectT", bound=meta.Object)


class Facts(Protocol):
    """Facts that an evaluator needs in addition to the object."""

    @property
    def now(self) -> datetime: ...

    @property
    def extended(self) -> extendedresources.ExtendedResources:
        """Device classes that back extended resources."""

    def pod(self, namespace: str, name: str) -> pod.Pod | None: ...

    def claims(self, namespace: str) -> Iterable[resourceclaim.ResourceClaim]: ...


class Change(NamedTuple, Generic[ObjectT]):
    """Write of an object. ``old`` is None for a new one; ``subresource`` is empty for the object itself."""

    new: ObjectT
    old: ObjectT | None = None
    subresource: str = ""


class Evaluator(Protocol[ObjectT]):
    """Evaluator of the objects of a kind."""

    @property
    def model(self) -> type[ObjectT]:
        """View of the objects."""

    @property
    def subresources(self) -> frozenset[str]:
        """Subresources through which a write can be charged; the empty one is the object itself."""

    @property
    def owed(self) -> frozenset[str]:
        """Subresources whose writes are charged even beyond the limit, because they report facts."""

    def concerns(self, change: Change[ObjectT]) -> bool:
        """Return True if a write through one of them can be charged."""

    def counted(self, names: Iterable[str], facts: Facts) -> frozenset[str]:
        """Return the resources that objects of this kind use."""

    def is_in_scope(self, subject: ObjectT, requirement: Requirement) -> bool:
        """Return True if an object is in a scope."""

    def omission(self, subject: ObjectT, required: frozenset[str]) -> str:
        """Return the limited resources that an object must state and does not; empty if none is missing."""

    def usage(self, subject: ObjectT, facts: Facts) -> Amounts:
        """Return the use of an object."""
