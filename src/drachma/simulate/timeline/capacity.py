"""Capacity of a cluster over time, and its fragmentation, for the measures of a simulation."""

from __future__ import annotations

import collections
from collections.abc import Iterable, Mapping
from typing import Final

from drachma.accounting import ledger, resourcenames
from drachma.api import resourceslice
from drachma.scheduler.snapshot import nodeclass, podinfo
from drachma.simulate import nodeusage
from drachma.simulate.simulation import Simulation
from drachma.simulate.timeline.events import Arrival, JobShape
from drachma.simulate.timeline.jobrun import JobRun
from drachma.simulate.timeline.measures import DEVICES, Measures
from drachma.simulate.timeline.scaling import Scaling

_TYPICAL_SHAPES: Final = 5
"""Number of the most frequent shapes that fragmentation is measured with."""
_MOST_NODES: Final = 400
"""Number of nodes that fragmentation is measured on; of larger clusters, evenly chosen ones."""


class ShapeAmounts:
    """Resources that a pod of each shape uses on its node. They are computed once for each shape."""

    def __init__(self) -> None:
        self._amounts: Final[dict[JobShape, dict[str, int]]] = {}

    def get(self, shape: JobShape) -> dict[str, int]:
        """Return the amounts of a shape."""
        amounts = self._amounts.get(shape)
        if amounts is None:
            example = JobRun(Arrival(0, "", shape, None)).make_pod(0)
            amounts = self._amounts[shape] = dict(podinfo.PodInfo(example).demand.amounts)
        return amounts


class Capacity:
    """Writes the capacity of nodes into the measures."""

    def __init__(
        self, cluster: Simulation, measures: Measures, amounts: ShapeAmounts, *, scaling: Scaling | None
    ) -> None:
        self._cluster: Final = cluster
        self._measures: Final = measures
        self._amounts: Final = amounts
        self._scaling: Final = scaling
        self.shape_counts: Final[collections.Counter[JobShape]] = collections.Counter()
        """Number of jobs of each shape that have arrived."""

    def count_all(self) -> None:
        """Count all nodes of the cluster."""
        self._measures.capacity = {}
        snapshot = self._cluster.snapshot
        for info in snapshot.nodes:
            self.count_node(info.ledger.allocatable, nodeusage.own_slices(snapshot, info.name), 1)
        self.count_groups()

    def count_new(self, names: Iterable[str]) -> None:
        """Count nodes that have joined."""
        snapshot = self._cluster.snapshot
        for name in names:
            info = snapshot.nodes.find(name)
            assert info is not None, "the node was added"
            self.count_node(info.ledger.allocatable, nodeusage.own_slices(snapshot, name), 1)
        self.count_groups()

    def count_node(
        self, allocatable: Mapping[str, int], slices: Iterable[resourceslice.ResourceSlice], sign: int
    ) -> None:
        """Count a node that joins (``sign`` 1) or leaves (-1)."""
        capacity = self._measures.capacity
        for name, amount in allocatable.items():
            if name != resourcenames.EPHEMERAL_STORAGE:
                capacity[name] = capacity.get(name, 0) + sign * amount
        devices = sum(len(each.spec.devices) for each in slices)
        if devices:
            capacity[DEVICES] = capacity.get(DEVICES, 0) + sign * devices

    def count_groups(self) -> None:
        """Count the nodes of each node group."""
        if self._scaling is not None:
            self._measures.group_nodes = self._scaling.counts()

    def fragmentation(self) -> float | None:
        """Return the share of free capacity on nodes where a typical pod lacks some resource, or None if all is used.

        The capacity is that of the scarcest resource: the one with the largest used share.
        """
        shares = {name: share for name, share in self._measures.shares().items() if name != DEVICES}
        typical = self.shape_counts.most_common(_TYPICAL_SHAPES)
        if not shares or not typical:
            return None
        scarce = max(shares, key=lambda name: shares[name])
        nodes = self._cluster.snapshot.nodes
        slots = list(nodeclass.slots(nodes.all_nodes))
        accounts = [nodes.at(slot).ledger for slot in slots[:: -(-len(slots) // _MOST_NODES) or 1]]
        free = sum(max(account.left(scarce), 0) for account in accounts)
        weights = sum(count for _, count in typical)
        lost = sum(
            count * account.left(scarce)
            for shape, count in typical
            for account in accounts
            if account.left(scarce) > 0 and ledger.lacking_resources(tuple(self._amounts.get(shape).items()), account)
        )
        return lost / weights / free if free else None
