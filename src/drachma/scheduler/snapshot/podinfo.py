"""What scheduling reads of a pod, worked out once per version of the pod."""

from __future__ import annotations

from drachma.accounting import ledger
from drachma.api import pod
from drachma.runtime import cache


class PodInfo:
    """A pod that wants a node."""

    __slots__ = ("_demand", "key", "pod", "priority", "uid")

    def __init__(self, waiting: pod.Pod) -> None:
        self.pod = waiting
        self.uid = waiting.metadata.uid
        self.key = cache.key_of(waiting)
        self.priority = waiting.spec.priority or 0
        self._demand: ledger.Demand | None = None

    @property
    def demand(self) -> ledger.Demand:
        """What it takes of a node, without what its claims will add."""
        if self._demand is None:
            self._demand = ledger.demand(self.pod)
        return self._demand
