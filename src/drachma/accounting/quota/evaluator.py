"""The contract of evaluators: what the objects of one kind mean for quotas.

Evaluators keep nothing; what they must know of other objects comes as :class:`Facts`.
"""

from collections.abc import Iterable
from datetime import datetime
from typing import Generic, NamedTuple, Protocol, TypeVar

from drachma.accounting import extendedresources
from drachma.accounting.quota import amounts
from drachma.api import meta, pod, resourceclaim
from drachma.api.resourcequota import ScopedResourceSelectorRequirement as Requirement

ObjectT = TypeVar("ObjectT", bound=meta.Object)


class Facts(Protocol):
    """What is so at the moment besides the object itself."""

    @property
    def now(self) -> datetime: ...

    @property
    def extended(self) -> extendedresources.ExtendedResources:
        """The device classes behind extended resources."""

    def pod(self, namespace: str, name: str) -> pod.Pod | None: ...

    def claims(self, namespace: str) -> Iterable[resourceclaim.ResourceClaim]: ...


class Change(NamedTuple, Generic[ObjectT]):
    """A write of an object: ``old`` is None for a new one; ``subresource`` is empty for the object itself."""

    new: ObjectT
    old: ObjectT | None = None
    subresource: str = ""


class Evaluator(Protocol[ObjectT]):
    """What objects of a kind charge."""

    @property
    def model(self) -> type[ObjectT]:
        """The view of objects that it looks at."""

    @property
    def subresources(self) -> frozenset[str]:
        """Through which of them a write can charge anything; the empty one is the object itself."""

    def concerns(self, change: Change[ObjectT]) -> bool:
        """Whether a write through one of them can."""

    def counted(self, names: Iterable[str], facts: Facts) -> frozenset[str]:
        """Those of the resources that objects of this kind use."""

    def is_in_scope(self, subject: ObjectT, requirement: Requirement) -> bool:
        """Whether an object is one that a scope is about."""

    def omission(self, subject: ObjectT, required: frozenset[str]) -> str:
        """What an object must state because a quota limits it, and does not; empty where nothing is missing."""

    def usage(self, subject: ObjectT, facts: Facts) -> amounts.Amounts:
        """What an object uses."""
