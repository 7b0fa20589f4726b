"""Node infos: one node of a snapshot with its ledger, which is what filters and scores look at."""

from __future__ import annotations

from drachma.accounting import ledger
from drachma.allocator import placement
from drachma.api import node as nodes
from drachma.scheduler.snapshot import podaffinity


class NodeInfo:
    """One node and what its pods take of it. Only :class:`drachma.scheduler.snapshot.nodes.Nodes` changes it."""

    __slots__ = ("affine", "bit", "ledger", "name", "node", "place", "slot")

    def __init__(self, name: str, slot: int, account: ledger.Ledger) -> None:
        self.name = name
        self.slot = slot
        """A small number, unique among the nodes of a snapshot."""
        self.bit = 1 << slot
        """The set of this node alone."""
        self.ledger = account
        self.node = nodes.Node()
        self.place = placement.Node(name)
        """The node as the allocator sees it."""
        self.affine: dict[str, podaffinity.PodAffinity] = {}
        """The rules about other pods of those of its pods that have any, by uid."""

    def copy(self) -> NodeInfo:
        """The same, to be changed apart."""
        other = NodeInfo(self.name, self.slot, self.ledger.copy())
        other.node = self.node
        other.place = self.place
        other.affine = self.affine.copy()
        return other
