"""Reach: the devices of a cluster that a node cannot use at all, whatever is asked for, and why.

Called once per node that is explained. What is the same for all nodes is worked out once per state of the catalog, so
that a node costs what it sees and what is for no node by name, not what the cluster has. Slices that a newer
generation of their pool replaced do not count.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Final

from drachma import errors
from drachma.allocator import catalog as catalogs
from drachma.allocator import gathering, placement, pool
from drachma.allocator import view as views
from drachma.allocator.explanation import cause, report
from drachma.claims import identity

MAX_LISTED: Final = 128
"""Most devices that an obstacle names."""

_ANOTHER_NODE: Final = cause.NotReachable(because="their slice is for another node")
_NODE_SELECTOR: Final = cause.NotReachable(because="the node selector of their slice does not match the node")
OWN_CHOICE: Final = cause.NotReachable(because="their own node selection does not include the node")


class Inventory:
    """All devices of a catalog, as it is when the inventory is taken."""

    def __init__(self, source: catalogs.Catalog) -> None:
        self._source = source
        self.revision = source.revision
        self._by_node: dict[str, list[pool.SliceRecord]] = {}
        pool_ids = dict.fromkeys(identity.PoolID(entry.spec.driver, entry.spec.pool.name) for entry in source.slices())
        for pool_id in pool_ids:
            records = list(source.pool_slices(pool_id))
            newest = max(record.spec.pool.generation for record in records)
            for record in records:
                if record.spec.pool.generation == newest:
                    self._by_node.setdefault(record.node_name, []).append(record)
        self._sizes = {name: sum(map(_size, records)) for name, records in self._by_node.items()}
        self._size_of_nodes = sum(size for name, size in self._sizes.items() if name)

    def beyond(self, view: views.View) -> tuple[report.Obstacle, ...]:
        """Return the devices outside the node's view, by cause."""
        inside = {id(owner) for block in view.blocks for owner in block.owners}
        records_by_cause: dict[cause.Cause, list[pool.SliceRecord]] = {}
        states = {gathered.pool_id: gathered for gathered in view.pools}
        visible: set[int] = set()
        # Older generations count where the node sees nothing newer: it has devices, and cannot use them.
        for record in itertools.chain(
            self._source.near(view.node.name), self._by_node.get(view.node.name, ()), self._by_node.get("", ())
        ):
            if id(record) in inside or id(record) in visible or not record.spec.devices:
                continue
            visible.add(id(record))
            why = self._why(record, view.node, states=states)
            if why is not None:
                records_by_cause.setdefault(why, []).append(record)
        obstacles = [_obstacle(why, records) for why, records in records_by_cause.items()]
        elsewhere = self._size_of_nodes - (self._sizes.get(view.node.name, 0) if view.node.name else 0)
        if elsewhere:
            names = itertools.islice(self._elsewhere(view.node.name), MAX_LISTED)
            obstacles.append(report.Obstacle(cause=_ANOTHER_NODE, count=elsewhere, devices=tuple(names)))
        return tuple(obstacles)

    def _elsewhere(self, node_name: str) -> Iterator[str]:
        for name, records in self._by_node.items():
            if name not in ("", node_name):
                for record in records:
                    yield from _names(record)

    def _why(
        self,
        record: pool.SliceRecord,
        node: placement.Node,
        *,
        states: dict[identity.PoolID, gathering.GatheredPool],
    ) -> cause.Cause | None:
        if not _covers(record, node):
            if self._is_stale(record):
                return None
            return OWN_CHOICE if record.device_placements else _NODE_SELECTOR
        gathered = states.get(record.pool_id)
        pool_name = str(record.pool_id)
        if gathered is None and not self._is_stale(record):
            detail = "its slices use a feature that is off"
            return cause.PoolUnusable(pool=pool_name, state="incomplete", detail=detail)
        if gathered is None:
            detail = f"the node sees generation {record.spec.pool.generation} and there is a newer one"
            return cause.PoolUnusable(pool=pool_name, state="outdated", detail=detail)
        if gathered.block is None:
            if self._is_stale(record):
                return None
            return cause.PoolUnusable(pool=pool_name, state="incomplete", detail=self._missing(record))
        if gathered.block.invalid:
            return cause.PoolUnusable(pool=pool_name, state="invalid", detail=gathered.block.invalid)
        return None

    def _is_stale(self, record: pool.SliceRecord) -> bool:
        generation = record.spec.pool.generation
        return any(sibling.spec.pool.generation > generation for sibling in self._source.pool_slices(record.pool_id))

    def _missing(self, record: pool.SliceRecord) -> str:
        declared = record.spec.pool
        there = sum(
            sibling.spec.pool.generation == declared.generation for sibling in self._source.pool_slices(record.pool_id)
        )
        slice_count = declared.resource_slice_count
        if there == slice_count:
            return f"some of its {slice_count} slices use a feature that is off"
        return f"{there} of {slice_count} slices of generation {declared.generation} are published"


def _covers(record: pool.SliceRecord, node: placement.Node) -> bool:
    placements = (record.placement,) if record.placement.known else record.device_placements
    try:
        return any(entry.covers(node) for entry in placements)
    except errors.AllocationError:
        return False


def _size(record: pool.SliceRecord) -> int:
    return len(record.spec.devices)


def _names(record: pool.SliceRecord) -> Iterator[str]:
    return (f"{record.pool_id}/{device.name}" for device in record.spec.devices)


def _obstacle(why: cause.Cause, records: list[pool.SliceRecord]) -> report.Obstacle:
    names = itertools.islice(itertools.chain.from_iterable(map(_names, records)), MAX_LISTED)
    return report.Obstacle(cause=why, count=sum(map(_size, records)), devices=tuple(names))
