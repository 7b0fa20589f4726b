"""Node views: the devices that each node of a snapshot sees, and the nodes that see the same devices.

Nodes that see the same pools, such as network-attached devices, are affected together when a device of the pool is
taken, and one of them answers for all. Nodes with local devices have a view of their own.

Changes are noted as sets of nodes: those that are known to see a pool, and all that were not looked at yet.
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
    """Devices that nodes see, and their changes."""

    def __init__(
        self,
        node_at: Callable[[int], nodeinfo.NodeInfo],
        catalog: allocator.Catalog,
        features: allocator.Features,
        *,
        parent: NodeViews | None = None,
    ) -> None:
        """With a ``parent`` this is a fork of it: nodes and catalog are forks too."""
        self._node_at: Final = node_at
        self._catalog: Final = catalog
        self._features: Final = features
        self._parent: Final = parent
        if parent is None:
            self._changes = nodechanges.NodeChanges()
            self.availability = nodechanges.NodeChanges()
            """Changes of the devices that nodes see, and of their use."""
            # Nodes that are onlookers of all pools that they see.
            self._viewed = 0
            self._onlookers = forkmap.ForkMap[identity.PoolID, int]()
        else:
            self._changes = nodechanges.NodeChanges(parent._changes)
            self.availability = nodechanges.NodeChanges(parent.availability)
            self._viewed = parent._viewed
            self._onlookers = parent._onlookers.fork()
        # Views of the nodes that were looked at here, and the nodes with each view.
        self._content_of: Final[dict[int, Hashable]] = {}
        self._alike: Final[dict[Hashable, int]] = {}
        self._sorted = 0

    def view(self, info: nodeinfo.NodeInfo) -> views.View:
        """Return the devices that a node sees. Raises AllocationError for a selector that does not compile."""
        view = self._catalog.view(info.place, self._features)
        if not self._viewed & info.bit:
            self._viewed |= info.bit
            for gathered in view.pools:
                self._onlookers[gathered.pool_id] = self._onlookers.get(gathered.pool_id, 0) | info.bit
        return view

    def groups(self, nodes: int) -> Iterator[tuple[int, int]]:
        """Yield sets of nodes that see the same pools, each with the slot of one member."""
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
        """Note that nodes see other devices."""
        self._viewed &= ~nodes
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
        """Note that the slices of a pool changed: for the nodes that see it, and for some more nodes."""
        self.changed(nodes | self._concerned(pool_id))
        if next(iter(self._catalog.pool_slices(pool_id)), None) is None:
            self._onlookers.pop(pool_id, None)

    def touched(self, pools: set[identity.PoolID], nodes: int) -> None:
        """Note that devices of pools were taken or freed, which concerns some more nodes."""
        for pool_id in pools:
            nodes |= self._concerned(pool_id)
        self.availability.append(nodes)

    def _concerned(self, pool_id: identity.PoolID) -> int:
        return self._onlookers.get(pool_id, 0) | ~self._viewed

    # Views

    def _sort_in(self, slot: int) -> None:
        content = self._content_of[slot] = self._content(slot)
        self._alike[content] = self._alike.get(content, 0) | 1 << slot
        self._sorted |= 1 << slot

    def _sort_out(self, slot: int) -> None:
        content = self._content_of.pop(slot)
        alike = self._alike.pop(content) & ~(1 << slot)
        if alike:
            self._alike[content] = alike
        self._sorted &= ~(1 << slot)

    def _content(self, slot: int) -> Hashable:
        try:
            view = self.view(self._node_at(slot))
        except errors.AllocationError:
            # The question to the node reports the error.
            return slot
        return (view.pools, view.misplaced, view.node.declared_features, bool(view.placement_errors) and slot)
