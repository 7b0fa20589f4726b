"""Counting in leaves: how many pods of a kind, and whether their leader, fit into single leaves."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

import msgspec

from drachma.api import node, pod
from drachma.claims import nodeaffinity, taints
from drachma.queueing.amounts import Requests
from drachma.queueing.topology.devicerooms import DeviceRoom, Expected
from drachma.queueing.topology.places import MOST
from drachma.queueing.topology.rooms import Room
from drachma.queueing.topology.tree import PODS, Amounts, Leaf, Tree
from drachma.values import nodes, quotation

Assumed = Mapping[tuple[str, ...], Mapping[str, int]]
"""Usage that counts in addition to that of a tree, by leaf."""

_NOTHING: Final[Mapping[str, int]] = {}


class Pods(NamedTuple):
    """Pods to be counted, and the conditions of their placement."""

    per_pod: Requests
    leader: Requests | None
    node_selector: Mapping[str, str]
    affinity: pod.NodeAffinity | None
    tolerations: tuple[pod.Toleration, ...]
    within: str = ""
    """Identity of the domain that a replacement must be in."""
    ignores_usage: bool = False
    """True to count as if no workload were admitted."""
    respects_preferences: bool = False
    """True to weigh preferred node affinity."""
    devices: DeviceRoom | None = None
    """Room of nodes for the devices of the pods; None if their claims do not matter."""
    assumed_devices: Mapping[tuple[str, ...], Expected] = {}
    """Claims of earlier pod sets of the workload, by leaf."""

    @property
    def identity(self) -> tuple[object, ...]:
        """Value that is equal exactly for pods with the same counts."""
        return (
            tuple(sorted(self.per_pod.items())),
            None if self.leader is None else tuple(sorted(self.leader.items())),
            tuple(sorted(self.node_selector.items())),
            None if self.affinity is None else msgspec.json.encode(self.affinity),
            self.tolerations,
            self.ignores_usage,
            self.respects_preferences,
        )


class Count(NamedTuple):
    """Pods that fit into a leaf, in the order of the fields of a place."""

    pods: int
    slices: int = 0
    leaders: int = 0
    pods_with_leader: int = 0
    slices_with_leader: int = 0
    score: int = 0
    reason: str = ""


class LeafCounter:
    """Counts pods of one kind in the leaves of a tree."""

    def __init__(self, tree: Tree, pods: Pods, *, slice_size: int | None) -> None:
        """``slice_size`` is the number of pods of a slice if slices stay within leaves, else None."""
        self._pods: Final = pods
        self._slice_size: Final = slice_size
        self._per_pod: Final = _with_pod(pods.per_pod)
        self._leader: Final = None if pods.leader is None else _with_pod(pods.leader)
        self._matcher: Final = _required_matcher(pods)
        self._preferences: Final = _preferences(pods) if pods.respects_preferences else ()
        has_conditions = pods.node_selector or self._matcher is not None or self._preferences or tree.has_taints
        self._checks_nodes: Final = tree.has_hostnames and bool(has_conditions)
        self._is_room_enough: Final = not pods.within and pods.devices is None
        """True if nodes matter by their room and conditions alone."""

    def count(self, leaves: Sequence[Leaf], assumed: Assumed) -> Iterable[Count]:
        """Return the counts of leaves in their order."""
        rooms = [leaf.room for leaf in leaves]
        counts = {room: self._count(room, _NOTHING) for room in set(rooms)}
        if self._checks_nodes or assumed or not self._is_room_enough:
            return [self._count_leaf(leaf, counts[leaf.room], assumed) for leaf in leaves]
        return map(counts.__getitem__, rooms)

    def _count_leaf(self, leaf: Leaf, count: Count, assumed: Assumed) -> Count:
        """Return the count of a leaf, which is ``count`` if nothing but its room matters."""
        score = 0
        if self._checks_nodes:
            score, reason = self._match(leaf)
            if reason:
                return Count(0, reason=reason)
        if not leaf.is_within(self._pods.within):
            return Count(0, score=score, reason="topologyDomain")
        if leaf.key in assumed:
            count = self._count(leaf.room, assumed[leaf.key])
        if self._pods.devices is not None and leaf.node is not None and count.pods:
            count = self._limit(count, leaf.node, self._pods.devices, self._pods.assumed_devices.get(leaf.key, ()))
        return count._replace(score=score) if score else count

    def _count(self, room: Room, assumed: Mapping[str, int]) -> Count:
        """Return the count of a room without the assumed usage."""
        free = self._free(room, assumed)
        pods, limit = _times(self._per_pod, free)
        pods_with_leader, leaders = pods, 0
        if self._leader is not None and _times(self._leader, free)[0]:
            leaders = 1
            for name, amount in self._leader.items():
                free[name] = free.get(name, 0) - amount
            pods_with_leader = _times(self._per_pod, free)[0]
        return self._in_slices(pods, leaders, pods_with_leader, f"resource {quotation.quote(limit)}")

    def _limit(self, count: Count, at: node.Node, devices: DeviceRoom, assumed: Expected) -> Count:
        """Limit a count to pods that find devices."""
        pods = devices.count(at, count.pods, assumed)
        leaders = 1 if count.leaders and devices.takes_leader(at, assumed) else 0
        pods_with_leader = pods
        if leaders:
            pods_with_leader = devices.count_with_leader(at, min(pods, count.pods_with_leader), assumed)
        return self._in_slices(pods, leaders, pods_with_leader, "devices")

    def _in_slices(self, pods: int, leaders: int, pods_with_leader: int, reason: str) -> Count:
        """Return a count with its slices, and with the reason if no pod fits."""
        size = self._slice_size
        return Count(
            pods=pods,
            slices=pods // size if size else 0,
            leaders=leaders,
            pods_with_leader=pods_with_leader,
            slices_with_leader=pods_with_leader // size if size else 0,
            reason="" if pods else reason,
        )

    def _free(self, room: Room, assumed: Mapping[str, int]) -> Amounts:
        free = dict(room.capacity)
        for usage in (assumed,) if self._pods.ignores_usage else (assumed, room.usage):
            for name, amount in usage.items():
                free[name] = free.get(name, 0) - amount
        return free

    def _match(self, leaf: Leaf) -> tuple[int, str]:
        """Return the weight of preferences that the node of a leaf matches, and why it does not suit the pods."""
        at = leaf.node
        assert at is not None, "a leaf with a hostname is a node"
        taint = taints.first_untolerated(at.spec.taints, self._pods.tolerations) if at.spec.taints else None
        if taint is not None:
            value = f"={taint.value}" if taint.value else ""
            return 0, f"taint {quotation.quote(f'{taint.key}{value}:{taint.effect}')}"
        labels = at.metadata.labels
        if any(labels.get(key) != value for key, value in self._pods.node_selector.items()):
            return 0, "nodeSelector"
        if self._matcher is not None and not self._matcher.matches(labels, at.metadata.name):
            return 0, "affinity"
        return sum(weight for weight, each in self._preferences if each.matches(labels, at.metadata.name)), ""


def _with_pod(per_pod: Requests) -> Amounts:
    return {**per_pod, PODS: per_pod.get(PODS, 0) + 1}


def _times(requests: Requests, room: Mapping[str, int]) -> tuple[int, str]:
    """Return how often requests fit, and the resource that limits them; of several the first by name."""
    counts = [
        (max(0, min(room.get(name, 0) // amount, MOST)) if amount else MOST, name) for name, amount in requests.items()
    ]
    return min(counts)


def _required_matcher(pods: Pods) -> nodes.NodeSelectorMatcher | None:
    required = None if pods.affinity is None else pods.affinity.required_during_scheduling_ignored_during_execution
    if required is None:
        return None
    return nodes.NodeSelectorMatcher.compile(nodeaffinity.terms(required.node_selector_terms))


def _preferences(pods: Pods) -> tuple[tuple[int, nodes.NodeSelectorMatcher], ...]:
    preferred: Iterable[pod.PreferredSchedulingTerm] = (
        () if pods.affinity is None else pods.affinity.preferred_during_scheduling_ignored_during_execution
    )
    return tuple(
        (each.weight, nodes.NodeSelectorMatcher.compile(nodeaffinity.terms((each.preference,))))
        for each in preferred
        if each.weight
    )
