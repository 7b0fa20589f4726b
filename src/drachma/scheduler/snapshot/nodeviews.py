"""Node views: what the nodes of a snapshot see of its devices, and which of them see the very same.

Where nodes see the same pools, such as those of devices that are attached to a network, what is taken in a pool
changes for all of them at once, and one of them answers for all. Nodes with devices of their own see something of
their own.

Changes are noted as the sets of nodes that they concern: those that were seen to look at a pool, and all that were not
looked at yet.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from typing import Final

from drachma import allocator, errors
from drachma.allocator import view as views
from drachma.claims import identity
from drachma.scheduler.snapshot import nodechanges, nodeclass, nodeinfo
from drachma.values import forkmap


class NodeViews:
    """Which devices nodes see, and where that changed."""

    def __init__(
        self,
        node_at: Callable[[int], nodeinfo.NodeInfo],
        catalog: allocator.Catalog,
        features: allocator.Features,
        *,
        parent: NodeViews | None = None,
    ) -> None:
        """With a ``parent`` this is a fork of it: nodes and catalog are forks of its own."""
        self._node_at: Final = node_at
        self._catalog: Final = catalog
        self._features: Final = features
        self._parent: Final = parent
        if parent is None:
            self._changes = nodechanges.NodeChanges()
            self.availability = nodechanges.NodeChanges()
            """Changes of the devices that nodes see, and of what is taken of them."""
            # The nodes that are among the onlookers of all pools that they see.
            self._seen = 0
            self._onlookers = forkmap.ForkMap[identity.PoolID, int]()
        else:
            self._changes = nodechanges.NodeChanges(parent._changes)
            self.availability = nodechanges.NodeChanges(parent.availability)
            self._seen = parent._seen
            self._onlookers = parent._onlookers.fork()
        # What the nodes that were looked at here see, and which nodes see it.
        self._content_of: Final[dict[int, Hashable]] = {}
        self._alike: Final[dict[Hashable, int]] = {}
        self._sorted = 0

    def view(self, info: nodeinfo.NodeInfo) -> views.View:
        """The devices that a node sees; raises AllocationError for a selector that does not compile."""
        shown = self._catalog.view(info.place, self._features)
        if not self._seen & info.bit:
            self._seen |= info.bit
            for gathered in shown.pools:
                self._onlookers[gathered.pool_id] = self._onlookers.get(gathered.pool_id, 0) | info.bit
        return shown

    def groups(self, nodes: int) -> Iterator[tuple[int, int]]:
        """The sets of nodes that see the same pools, each with the slot of one of them."""
        here = nodes if self._parent is None else nodes & self._changes.differing()
        elsewhere = nodes & ~here
        for slot in nodeclass.slots(here & ~self._sorted):
            self._sort_in(slot)
        while here:
            slot = (here & -here).bit_length() - 1
            same = self._alike[self._content_of[slot]] & here
            yield slot, same
            here &= ~same
        if elsewhere and self._parent is not None:
            yield from self._parent.groups(elsewhere)

    # Changes

    def changed(self, nodes: int) -> None:
        """Note that these nodes see something else."""
        self._seen &= ~nodes
        if self._sorted & ~nodes:
            for slot in nodeclass.slots(nodes & self._sorted):
                self._sort_out(slot)
        else:
            self._content_of.clear()
            self._alike.clear()
            self._sorted = 0
        self._changes.append(nodes)
        self.availability.append(nodes)

    def pool_changed(self, pool_id: identity.PoolID, nodes: int) -> None:
        """Note that a pool has other slices: for those that see it, and for some more nodes."""
        self.changed(nodes | self._concerned(pool_id))
        if next(iter(self._catalog.in_pool(pool_id)), None) is None:
            self._onlookers.pop(pool_id, None)

    def touched(self, pools: set[identity.PoolID], nodes: int) -> None:
        """Note that devices of these pools were taken or given back, which concerns some more nodes."""
        for pool_id in pools:
            nodes |= self._concerned(pool_id)
        self.availability.append(nodes)

    def _concerned(self, pool_id: identity.PoolID) -> int:
        return self._onlookers.get(pool_id, 0) | ~self._seen

    # What nodes see

    def _sort_in(self, slot: int) -> None:
        content = self._content_of[slot] = self._content(slot)
        self._alike[content] = self._alike.get(content, 0) | 1 << slot
        self._sorted |= 1 << slot

    def _sort_out(self, slot: int) -> None:
        content = self._content_of.pop(slot)
        left = self._alike.pop(content) & ~(1 << slot)
        if left:
            self._alike[content] = left
        self._sorted &= ~(1 << slot)

    def _content(self, slot: int) -> Hashable:
        try:
            shown = self.view(self._node_at(slot))
        except errors.AllocationError:
            # It is up to whoever asks the node to say what is wrong with it.
            return slot
        return (shown.pools, shown.misplaced, shown.node.declared_features, bool(shown.placement_errors) and slot)
