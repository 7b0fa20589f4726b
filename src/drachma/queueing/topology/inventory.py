"""Inventory: the nodes of a cluster, and the resources of pods outside topology aware scheduling that run on them.

It builds the trees of flavors. Trees that exist already follow pods that come and go; after a change of a node they
have to be built again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from drachma.accounting import requests
from drachma.api import node, pod
from drachma.queueing import amounts
from drachma.queueing.kinds import topology
from drachma.queueing.topology import podusage
from drachma.queueing.topology.tree import Tree


class _PodUsage(NamedTuple):
    node: str
    requests: Mapping[str, int]


class Inventory:
    """Nodes and pods."""

    def __init__(self) -> None:
        self._nodes: Final[dict[str, node.Node]] = {}
        self._pods: Final[dict[str, _PodUsage]] = {}
        self._trees: list[Tree] = []

    @property
    def nodes(self) -> Mapping[str, node.Node]:
        """Nodes by name."""
        return self._nodes

    def set_node(self, new: node.Node) -> bool:
        """Add or update a node. Return True if a tree may have changed."""
        old = self._nodes.get(new.metadata.name)
        self._nodes[new.metadata.name] = new
        return old is None or bool(podusage.changed_properties(old, new))

    def remove_node(self, name: str) -> bool:
        """Remove a node. Return True if it was there."""
        return self._nodes.pop(name, None) is not None

    def set_pod(self, key: str, new: pod.Pod) -> bool:
        """Count a pod if it is outside topology aware scheduling and runs. Return True if room became free."""
        usage = None
        if podusage.is_outside(new):
            nanos = requests.total(new)
            one_pod = {name: amounts.amount_of_nanos(name, amount) for name, amount in nanos.items()}
            usage = _PodUsage(new.spec.node_name, one_pod)
        old = self._pods.get(key)
        if usage == old:
            return False
        is_freed = self.remove_pod(key)
        if usage is not None:
            self._pods[key] = usage
            for tree in self._trees:
                tree.add_pod(usage.node, usage.requests)
        return is_freed

    def remove_pod(self, key: str) -> bool:
        """Stop counting a pod. Return True if it was counted."""
        usage = self._pods.pop(key, None)
        if usage is None:
            return False
        for tree in self._trees:
            tree.add_pod(usage.node, usage.requests, sign=-1)
        return True

    def build(self, described: Iterable[tuple[topology.Topology, Mapping[str, str]]]) -> list[Tree]:
        """Return new trees, one for each topology and node labels of a flavor. They replace earlier trees."""
        self._trees = [self._build(kind, labels) for kind, labels in described]
        return self._trees

    def _build(self, kind: topology.Topology, node_labels: Mapping[str, str]) -> Tree:
        tree = Tree(kind.metadata.name, [level.node_label for level in kind.spec.levels])
        for each in self._nodes.values():
            tree.add_node(each, node_labels=node_labels)
        for usage in self._pods.values():
            tree.add_pod(usage.node, usage.requests)
        return tree
