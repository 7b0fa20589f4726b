"""Catalog: all published slices, kept up to date one by one, and the view that each node has of them.

Whoever watches slices and taint rules calls :meth:`Catalog.put` and :meth:`Catalog.remove`; the allocator asks for
:meth:`Catalog.view`. A change invalidates the views and blocks of the pool it belongs to and nothing else: the next
question from a node that sees that pool rebuilds them, all other nodes keep theirs.

A slice is known by a handle, which is its name unless the caller says otherwise: names are unique in a cluster, but a
list of slices from elsewhere may have one twice, and then both count.

Taint rules are applied here, as slices come in, so that everything behind sees devices with all their taints.
"""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Iterable
from typing import Any

from drachma.allocator import features as gates
from drachma.allocator import gathering, placement, pool
from drachma.allocator import view as views
from drachma.api import devicetaintrule, resourceslice
from drachma.claims import identity, taintrules


class Catalog:
    """The slices of a cluster."""

    def __init__(
        self,
        slices: Iterable[resourceslice.ResourceSlice] = (),
        *,
        taint_rules: Iterable[devicetaintrule.DeviceTaintRule] = (),
    ) -> None:
        self._published: dict[Hashable, resourceslice.ResourceSlice] = {}
        self._records: dict[Hashable, pool.SliceRecord] = {}
        self._by_node: dict[str, dict[Hashable, pool.SliceRecord]] = {}
        self._by_pool: dict[identity.PoolID, dict[Hashable, pool.SliceRecord]] = {}
        self._blocks: dict[identity.PoolID, dict[Any, pool.Block]] = {}
        self._revisions: dict[identity.PoolID | str, int] = {}
        self._rules: dict[str, devicetaintrule.DeviceTaintRule] = {}
        self._views: dict[tuple[str, bool, bool], views.View] = {}
        self._clock = itertools.count(1)
        self.revision = 0
        """Grows with every change."""
        for rule in taint_rules:
            self._rules[rule.metadata.name] = rule
        for number, published in enumerate(slices):
            name = str(published.metadata.name)
            self.put(published, handle=(name, number) if name in self._records else name)

    def put(self, published: resourceslice.ResourceSlice, *, handle: Hashable = None) -> None:
        """Take in a slice, in place of the one with the same handle if there is one."""
        handle = str(published.metadata.name) if handle is None else handle
        self._published[handle] = published
        self._replace(handle, pool.SliceRecord(taintrules.apply_rules(published, self._rules.values())))

    def remove(self, handle: Hashable) -> None:
        """Forget a slice by its handle; nothing happens if there is none."""
        self._published.pop(handle, None)
        self._replace(handle, None)

    def put_rule(self, rule: devicetaintrule.DeviceTaintRule) -> None:
        """Apply a taint rule, in place of the one of the same name if there is one."""
        before = self._rules.get(rule.metadata.name)
        self._rules[rule.metadata.name] = rule
        self._reapply(rule if before is None else before, rule)

    def remove_rule(self, name: str) -> None:
        """Take the taints of a rule away; nothing happens if there is no such rule."""
        rule = self._rules.pop(name, None)
        if rule is not None:
            self._reapply(rule)

    def slices(self) -> Iterable[resourceslice.ResourceSlice]:
        """All slices as published, without what taint rules added."""
        return self._published.values()

    def in_pool(self, pool_id: identity.PoolID) -> Iterable[pool.SliceRecord]:
        """All slices of a pool, of all generations, whatever node they are for."""
        return self._by_pool.get(pool_id, {}).values()

    def near(self, node_name: str) -> Iterable[pool.SliceRecord]:
        """The slices for this node by name, then all that do not name a node; each in the order they came."""
        yield from self._by_node.get(node_name, {}).values()
        if node_name:
            yield from self._by_node.get("", {}).values()

    def view(self, node: placement.Node, features: gates.Features) -> views.View:
        """What the node can use, in search order. Raises AllocationError for a node selector that does not compile."""
        key = (node.name, features.partitionable_devices, features.compatibility_groups)
        known = self._views.get(key)
        if known is not None and (known.node is node or known.node == node):
            if known.revision == self.revision:
                return known
            if all(self._revisions.get(part, 0) == seen for part, seen in known.depends_on.items()):
                known.revision = self.revision
                return known
        gathered = gathering.gather(self, node, features=features)
        parts: list[identity.PoolID | str] = [node.name, "", *gathered.pool_ids]
        depends_on = {part: self._revisions.get(part, 0) for part in parts}
        fresh = views.View(node, gathered.pools, depends_on=depends_on, revision=self.revision)
        self._views[key] = fresh
        return fresh

    def forget_node(self, name: str) -> None:
        """Drop the views of a node that is gone; its slices, if there are any, stay."""
        for key in [key for key in self._views if key[0] == name]:
            del self._views[key]

    def block(
        self,
        pool_id: identity.PoolID,
        targeting: list[pool.SliceRecord],
        *,
        elsewhere: list[pool.SliceRecord],
        partitionable: bool,
    ) -> pool.Block:
        """The block of these slices; the same one for all nodes that see the same slices."""
        key = (tuple(map(id, targeting)), tuple(map(id, elsewhere)), partitionable)
        blocks = self._blocks.setdefault(pool_id, {})
        found = blocks.get(key)
        if found is None:
            found = blocks[key] = pool.Block(pool_id, targeting, elsewhere=elsewhere, partitionable=partitionable)
        return found

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
            self._by_node.setdefault(record.node_name, {})[handle] = record
            self._by_pool.setdefault(record.pool_id, {})[handle] = record
            self._touch(record)

    def _forget(
        self,
        index: dict[Any, dict[Hashable, pool.SliceRecord]],
        key: identity.PoolID | str,
        *,
        handle: Hashable,
    ) -> None:
        entries = index[key]
        del entries[handle]
        if not entries:
            # What is not there has revision 0, which no view that saw it has.
            del index[key], self._revisions[key]

    def _touch(self, record: pool.SliceRecord) -> None:
        self._revisions[record.node_name] = self._revisions[record.pool_id] = self.revision
        self._blocks.pop(record.pool_id, None)

    def _reapply(self, *rules: devicetaintrule.DeviceTaintRule) -> None:
        for handle, record in list(self._records.items()):
            driver, pool_name = record.pool_id
            if any(taintrules.means_pool(rule, driver=driver, pool=pool_name) for rule in rules):
                self.put(self._published[handle], handle=handle)
