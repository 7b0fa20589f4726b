"""Node infos: one node of a snapshot with its ledger, for filters and scores."""

from __future__ import annotations

from drachma.accounting import ledger
from drachma.allocator import placement
from drachma.api import node as nodes
from drachma.scheduler.snapshot import podaffinity


class NodeInfo:
    """Node with the resources that its pods take. Only :class:`drachma.scheduler.snapshot.nodes.Nodes` changes it."""

    __slots__ = ("affine", "bit", "ledger", "name", "node", "place", "slot")

    def __init__(self, name: str, slot: int, account: ledger.Ledger) -> None:
        self.name = name
        self.slot = slot
        """Small number, unique among the nodes of a snapshot."""
        self.bit = 1 << slot
        """Set of this node alone."""
        self.ledger = account
        self.node = nodes.Node()
        self.place = placement.Node(name)
        """Node as the allocator sees it."""
        self.affine: dict[str, podaffinity.PodAffinity] = {}
        """Affinity rules of its pods that have any, by uid."""

    def copy(self) -> NodeInfo:
        """Return a copy that can be changed separately."""
        copy = NodeInfo(self.name, self.slot, self.ledger.copy())
        copy.node = self.node
        copy.place = self.place
        copy.affine = self.affine.copy()
        return copy
