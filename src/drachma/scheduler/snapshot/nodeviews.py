"""Sights: nodes that see the very same pools of devices, such as those that are attached to a network.

What is taken in such a pool changes for all of them at once, and one of them answers for all. Nodes with devices of
their own see something of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from typing import Final

from drachma import errors
from drachma.allocator import view as views
from drachma.scheduler import changelog, cluster, nodeclass


class Sights:
    """Which nodes see the same."""

    def __init__(self, nodes: cluster.Cluster, view: Callable[[cluster.NodeState], views.View]) -> None:
        self._cluster: Final = nodes
        self._view: Final = view
        self._stale = changelog.EVERYTHING
        self._of: Final[dict[int, Hashable]] = {}
        self._nodes: Final[dict[Hashable, int]] = {}

    def forget(self, nodes: int) -> None:
        """Look again at what these nodes see."""
        self._stale |= nodes

    def split(self, nodes: int) -> Iterator[tuple[cluster.NodeState, int]]:
        """The sets of nodes that see the same, each with one of them."""
        for slot in nodeclass.slots(self._stale & nodes):
            self._look(slot)
        self._stale &= ~nodes
        while nodes:
            slot = (nodes & -nodes).bit_length() - 1
            same = self._nodes[self._of[slot]] & nodes
            yield self._cluster.nodes[slot], same
            nodes &= ~same

    def _look(self, slot: int) -> None:
        bit = 1 << slot
        before = self._of.pop(slot, None)
        if before is not None:
            left = self._nodes[before] & ~bit
            if left:
                self._nodes[before] = left
            else:
                del self._nodes[before]
        sight = self._of[slot] = self._sight(slot)
        self._nodes[sight] = self._nodes.get(sight, 0) | bit

    def _sight(self, slot: int) -> Hashable:
        try:
            shown = self._view(self._cluster.nodes[slot])
        except errors.AllocationError:
            # It is up to whoever asks the node to say what is wrong with it.
            return slot
        return (shown.pools, shown.misplaced, shown.node.declared_features, bool(shown.placement_errors) and slot)
