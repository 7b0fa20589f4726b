"""Autoscaling in virtual time: nodes are planned for jobs that wait, arrive after a delay, and leave when unneeded.

The plans are those of the autoscaler (:mod:`drachma.simulate.growth`). Nodes that are on their way count as existing. A
node of a group leaves when it has run no pod for some time, unless the group would fall below its minimum.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from drachma.api import meta, node, pod
from drachma.simulate import nodeusage
from drachma.simulate.growth import Planner
from drachma.simulate.nodegroup import NodeGroup
from drachma.simulate.simulation import Simulation
from drachma.simulate.timeline.events import ClusterChange

_MOST_PODS: Final = 1_000
"""Number of waiting pods that one plan is made for."""


class ScalingRules(NamedTuple):
    """Times of the autoscaler, in seconds."""

    groups: tuple[NodeGroup, ...]
    delay: float = 300.0
    """Time until a new node can run pods."""
    unneeded: float = 600.0
    """Time without pods after which a node leaves."""
    scan: float = 10.0
    """Time between two decisions."""


class Scaling:
    """Decisions about the number of nodes."""

    def __init__(self, rules: ScalingRules, cluster: Simulation) -> None:
        self.rules: Final = rules
        self._coming: Final[dict[str, tuple[meta.Object, ...]]] = {}
        self._idle_since: Final[dict[str, float]] = {}
        self._numbers: Final = {group.name: itertools.count(1) for group in rules.groups}
        self._next_scan = 0.0
        self._group_of: Final[dict[str, NodeGroup]] = {}
        for info in cluster.snapshot.nodes:
            self.note_node(info.node)

    def note_node(self, new: node.Node) -> None:
        """Note a node that has joined the cluster."""
        name = str(new.metadata.name)
        self._coming.pop(name, None)
        group = next((group for group in self.rules.groups if group.has(new)), None)
        if group is not None:
            self._group_of[name] = group

    def forget_node(self, name: str) -> None:
        """Note a node that has left the cluster."""
        self._group_of.pop(name, None)
        self._idle_since.pop(name, None)

    def counts(self) -> dict[str, int]:
        """Return the number of nodes of each group."""
        counts = {group.name: 0 for group in self.rules.groups}
        for group in self._group_of.values():
            counts[group.name] += 1
        return counts

    def is_due(self, now: float) -> bool:
        """Return True if decisions are made now, and note the time."""
        if now < self._next_scan:
            return False
        self._next_scan = now + self.rules.scan
        return True

    @property
    def next_scan(self) -> float:
        """Time of the next decision."""
        return self._next_scan

    def grow(self, cluster: Simulation, waiting_pods: Sequence[pod.Pod], now: float) -> Iterator[ClusterChange]:
        """Yield the arrivals of new nodes that waiting pods need."""
        if not waiting_pods:
            return
        trial = cluster.fork()
        trial.add([*itertools.chain.from_iterable(self._coming.values()), *waiting_pods[:_MOST_PODS]])
        growth = Planner(trial, self.rules.groups).plan().grow
        for group in self.rules.groups:
            for _ in range(growth.get(group.name, 0)):
                name = self._new_name(group, trial)
                objects = self._coming[name] = group.make(name)
                yield ClusterChange(now + self.rules.delay, applied=objects, title=f"new node {name}")

    def _new_name(self, group: NodeGroup, cluster: Simulation) -> str:
        names = (f"{group.name}-{number}" for number in self._numbers[group.name])
        return next(name for name in names if cluster.snapshot.nodes.find(name) is None and name not in self._coming)

    def shrink(self, cluster: Simulation, now: float) -> Iterator[ClusterChange]:
        """Yield the removal of nodes that are unneeded, and the times at which idle nodes may become so."""
        counts = self.counts()
        for name, group in list(self._group_of.items()):
            info = cluster.snapshot.nodes.find(name)
            if info is None or info.ledger.bookings:
                self._idle_since.pop(name, None)
                continue
            if name not in self._idle_since:
                self._idle_since[name] = now
                yield ClusterChange(now + self.rules.unneeded, title=f"check of node {name}")
            elif now - self._idle_since[name] >= self.rules.unneeded and counts[group.name] > group.min:
                counts[group.name] -= 1
                slices = nodeusage.own_slices(cluster.snapshot, name)
                yield ClusterChange(now, removed=(info.node, *slices), title=f"removal of node {name}")

    def expect(self, new_machines: Iterable[tuple[meta.Object, ...]]) -> None:
        """Take over nodes that are on their way."""
        for objects in new_machines:
            self._coming[str(_node_of(objects).metadata.name)] = objects


def _node_of(objects: Iterable[meta.Object]) -> node.Node:
    return next(each for each in objects if isinstance(each, node.Node))
