"""Catalog: all published slices, updated one by one, and each node's view of them.

The watcher of slices and taint rules calls :meth:`Catalog.put` and :meth:`Catalog.remove`; the allocator calls
:meth:`Catalog.view`. A change invalidates the views and blocks of the pool it belongs to and nothing else: the next
question from a node that sees that pool rebuilds them, all other nodes keep theirs.

A slice is known by a handle, which is its name unless the caller says otherwise: names are unique in a cluster, but a
list of slices from elsewhere may have one twice, and then both count.

Taint rules are applied here, as slices come in, so that everything behind sees devices with all their taints.

A catalog can be forked for what-if questions. Revisions are unique among all forks, so that a fork can use the views
and blocks that were made before it as long as they show what it has.
"""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Iterable
from typing import Any

from drachma.allocator import features as gates
from drachma.allocator import gathering, placement, pool
from drachma.allocator import view as views
from drachma.api import devicetaintrule, resourceslice
from drachma.claims import identity, taints
from drachma.values import forkmap

_Views = dict[tuple[str, bool, bool], views.View]
_Slices = dict[Hashable, pool.SliceRecord]


class _Blocks:
    """The blocks of a pool at one revision, by the slices that they show."""

    __slots__ = ("by_slices", "revision")

    def __init__(self, revision: int) -> None:
        self.revision = revision
        self.by_slices: dict[Any, pool.Block] = {}


class Catalog:
    """The slices of a cluster."""

    def __init__(
        self,
        slices: Iterable[resourceslice.ResourceSlice] = (),
        *,
        taint_rules: Iterable[devicetaintrule.DeviceTaintRule] = (),
    ) -> None:
        self._published = forkmap.ForkMap[Hashable, resourceslice.ResourceSlice]()
        self._records = forkmap.ForkMap[Hashable, pool.SliceRecord]()
        self._by_node = forkmap.ForkMap[str, _Slices](copy=dict)
        self._by_pool = forkmap.ForkMap[identity.PoolID, _Slices](copy=dict)
        self._revisions = forkmap.ForkMap[identity.PoolID | str, int]()
        self._rules = forkmap.ForkMap[str, devicetaintrule.DeviceTaintRule]()
        # The own ones first, then those of what this was forked from, which are read only.
        self._views: tuple[_Views, ...] = ({},)
        self._blocks: tuple[dict[identity.PoolID, _Blocks], ...] = ({},)
        self._clock = itertools.count(1)
        self.revision = 0
        """Grows with every change."""
        for rule in taint_rules:
            self._rules[rule.metadata.name] = rule
        for number, published in enumerate(slices):
            name = str(published.metadata.name)
            self.put(published, handle=(name, number) if name in self._records else name)

    def fork(self) -> Catalog:
        """Return an independent copy. Its cost does not depend on the number of slices."""
        fork = Catalog.__new__(Catalog)
        fork._published = self._published.fork()
        fork._records = self._records.fork()
        fork._by_node = self._by_node.fork()
        fork._by_pool = self._by_pool.fork()
        fork._revisions = self._revisions.fork()
        fork._rules = self._rules.fork()
        fork._views = ({}, *self._views)
        fork._blocks = ({}, *self._blocks)
        fork._clock = self._clock
        fork.revision = self.revision
        return fork

    def get(self, handle: Hashable) -> resourceslice.ResourceSlice | None:
        """Return a slice as published, by its handle."""
        return self._published.get(handle)

    def put(self, published: resourceslice.ResourceSlice, *, handle: Hashable = None) -> None:
        """Take in a slice, in place of the one with the same handle if there is one."""
        handle = str(published.metadata.name) if handle is None else handle
        self._published[handle] = published
        self._replace(handle, pool.SliceRecord(taints.apply_rules(published, self._rules.values())))

    def remove(self, handle: Hashable) -> None:
        """Forget a slice by its handle; nothing happens if there is none."""
        self._published.pop(handle, None)
        self._replace(handle, None)

    def put_rule(self, rule: devicetaintrule.DeviceTaintRule) -> list[resourceslice.ResourceSlice]:
        """Apply a taint rule, in place of the one of the same name if there is one. Return the slices concerned."""
        before = self._rules.get(rule.metadata.name)
        self._rules[rule.metadata.name] = rule
        return self._reapply(rule if before is None else before, rule)

    def remove_rule(self, name: str) -> list[resourceslice.ResourceSlice]:
        """Take the taints of a rule away, if there is such a rule. Return the slices concerned."""
        rule = self._rules.pop(name, None)
        return [] if rule is None else self._reapply(rule)

    def slices(self) -> Iterable[resourceslice.ResourceSlice]:
        """Return all slices as published, without the taints of rules."""
        return self._published.values()

    def pool_slices(self, pool_id: identity.PoolID) -> Iterable[pool.SliceRecord]:
        """Return all slices of a pool, of all generations and for all nodes."""
        return self._by_pool.get(pool_id, {}).values()

    def near(self, node_name: str) -> Iterable[pool.SliceRecord]:
        """Yield the slices that name this node, then all slices that name none, each in order of arrival."""
        yield from self._by_node.get(node_name, {}).values()
        if node_name:
            yield from self._by_node.get("", {}).values()

    def view(self, node: placement.Node, features: gates.Features) -> views.View:
        """Return the node's devices in search order. Raises AllocationError if a node selector does not compile."""
        key = (node.name, features.partitionable_devices, features.compatibility_groups)
        for remembered in self._views:
            view = remembered.get(key)
            if view is not None and self._is_current(view, node):
                return view
        gathered = gathering.gather(self, node, features=features)
        parts: list[identity.PoolID | str] = [node.name, "", *gathered.pool_ids]
        depends_on = {part: self._revisions.get(part, 0) for part in parts}
        view = self._views[0][key] = views.View(node, gathered.pools, depends_on=depends_on, revision=self.revision)
        return view

    def _is_current(self, view: views.View, node: placement.Node) -> bool:
        if view.node is not node and view.node != node:
            return False
        if view.revision != self.revision:
            if any(self._revisions.get(part, 0) != revision for part, revision in view.depends_on.items()):
                return False
            view.revision = self.revision
        return True

    def forget_node(self, name: str) -> None:
        """Drop the views of a node that is gone; its slices, if there are any, stay."""
        own = self._views[0]
        for key in [key for key in own if key[0] == name]:
            del own[key]

    def block(
        self,
        pool_id: identity.PoolID,
        targeting: list[pool.SliceRecord],
        *,
        elsewhere: list[pool.SliceRecord],
        partitionable: bool,
    ) -> pool.Block:
        """Return the block of these slices. Nodes that see the same slices share it."""
        # Slices of a pool at one revision live as long as blocks of that revision are looked up.
        key = (tuple(map(id, targeting)), tuple(map(id, elsewhere)), partitionable)
        revision = self._revisions.get(pool_id, 0)
        for remembered in self._blocks:
            blocks = remembered.get(pool_id)
            if blocks is not None and blocks.revision == revision and key in blocks.by_slices:
                return blocks.by_slices[key]
        block = pool.Block(pool_id, targeting, elsewhere=elsewhere, partitionable=partitionable)
        blocks = self._blocks[0].get(pool_id)
        if blocks is None or blocks.revision != revision:
            blocks = self._blocks[0][pool_id] = _Blocks(revision)
        blocks.by_slices[key] = block
        return block

    def _replace(self, handle: Hashable, record: pool.SliceRecord | None) -> None:
        before = self._records.pop(handle, None)
        if before is None and record is None:
            return
        self.revision = next(self._clock)
        if before is not None:
            self._touch(before)
            # A slice that stays where it is keeps its place in the order.
            if record is None or record.node_name != before.node_name:
                self._forget(self._by_node, before.node_name, handle=handle)
            if record is None or record.pool_id != before.pool_id:
                self._forget(self._by_pool, before.pool_id, handle=handle)
        if record is not None:
            self._records[handle] = record
            if record.node_name not in self._by_node:
                self._by_node[record.node_name] = {}
            if record.pool_id not in self._by_pool:
                self._by_pool[record.pool_id] = {}
            self._by_node.mutable(record.node_name)[handle] = record
            self._by_pool.mutable(record.pool_id)[handle] = record
            self._touch(record)

    def _forget(
        self,
        index: forkmap.ForkMap[Any, _Slices],
        key: identity.PoolID | str,
        *,
        handle: Hashable,
    ) -> None:
        entries = index.mutable(key)
        del entries[handle]
        if not entries:
            # What is not there has revision 0, which no view that saw it has.
            del index[key], self._revisions[key]

    def _touch(self, record: pool.SliceRecord) -> None:
        self._revisions[record.node_name] = self._revisions[record.pool_id] = self.revision
        self._blocks[0].pop(record.pool_id, None)

    def _reapply(self, *rules: devicetaintrule.DeviceTaintRule) -> list[resourceslice.ResourceSlice]:
        """Apply all rules again to the slices that some of these may select, and return the slices."""
        handles: dict[Hashable, None] = {}
        for rule in rules:
            selector = rule.spec.device_selector
            if selector is not None and selector.driver is not None and selector.pool is not None:
                handles |= dict.fromkeys(self._by_pool.get(identity.PoolID(selector.driver, selector.pool), {}))
            else:
                records = self._records.items()
                handles |= {
                    handle: None
                    for handle, record in records
                    if taints.selects_pool(rule, driver=record.pool_id.driver, pool=record.pool_id.pool)
                }
        published = [self._published[handle] for handle in handles]
        for handle, each in zip(handles, published, strict=True):
            self.put(each, handle=handle)
        return published
