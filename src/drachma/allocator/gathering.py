"""Gathering: which pools a node can use, and whether they are complete and valid (KEP-4381, "Publishing information").

Called by the catalog when it has no valid view of a node. Only the highest generation of a pool counts. A pool that
the node sees in part is complete if the other slices exist, whatever node they are for. Pools come in the order of
their names, and those with binding conditions after all others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from drachma import errors
from drachma.allocator import features as gates
from drachma.allocator import placement, pool
from drachma.claims import identity

if TYPE_CHECKING:
    from drachma.allocator import catalog


class GatheredPool(NamedTuple):
    """A pool as a node sees it; without a block it is incomplete at the moment."""

    pool_id: identity.PoolID
    block: pool.Block | None


class Gathered(NamedTuple):
    """All pools of a node in search order, and the names of all that were looked at."""

    pools: tuple[GatheredPool, ...]
    pool_ids: tuple[identity.PoolID, ...]


def gather(source: catalog.Catalog, node: placement.Node, *, features: gates.Features) -> Gathered:
    """Return the pools of a node. Raises AllocationError for node selectors that do not compile."""
    records_by_pool: dict[identity.PoolID, list[pool.SliceRecord]] = {}
    for record in source.near(node.name):
        if _readable(record, features) and _relevant(record, node):
            _add(records_by_pool, record)
    early: list[GatheredPool] = []
    late: list[GatheredPool] = []
    for pool_id, records in records_by_pool.items():
        gathered = _complete(source, pool_id, records=records, features=features)
        if gathered is not None:
            conditional = gathered.block is not None and gathered.block.has_binding_conditions
            (late if conditional else early).append(gathered)
    early.sort(key=lambda entry: entry.pool_id)
    late.sort(key=lambda entry: entry.pool_id)
    return Gathered((*early, *late), tuple(records_by_pool))


def _readable(record: pool.SliceRecord, features: gates.Features) -> bool:
    """Return True if all parts of the slice are understood. Other slices count as absent."""
    spec = record.spec
    if not features.partitionable_devices and (spec.per_device_node_selection is not None or spec.shared_counters):
        return False
    return features.compatibility_groups or not record.uses_groups


def _relevant(record: pool.SliceRecord, node: placement.Node) -> bool:
    if record.placement.known:
        try:
            return record.placement.covers(node)
        except errors.AllocationError as error:
            raise errors.AllocationError(
                f"gather pool information: failed to perform node selection for slice {record.name}: {error}"
            ) from None
    for device, place in zip(record.spec.devices, record.device_placements, strict=False):
        try:
            if place.covers(node):
                return True
        except errors.AllocationError as error:
            # Differs from upstream: its message has all of the device, in Go's notation, where this has its name.
            raise errors.AllocationError(
                f"gather pool information: failed to perform node selection for device {device.name} "
                f"in slice {record.name}: {error}"
            ) from None
    return False


def _add(records_by_pool: dict[identity.PoolID, list[pool.SliceRecord]], record: pool.SliceRecord) -> None:
    records = records_by_pool.setdefault(record.pool_id, [])
    newest = records[0].spec.pool.generation if records else record.spec.pool.generation
    if record.spec.pool.generation > newest:
        records.clear()
    if record.spec.pool.generation >= newest:
        records.append(record)


def _complete(
    source: catalog.Catalog,
    pool_id: identity.PoolID,
    *,
    records: list[pool.SliceRecord],
    features: gates.Features,
) -> GatheredPool | None:
    """Return the pool with these slices, or None while the driver replaces them by a newer generation."""
    declared = records[0].spec.pool
    elsewhere: list[pool.SliceRecord] = []
    if len(records) != declared.resource_slice_count:
        # The missing ones may be for other nodes.
        all_records = list(source.pool_slices(pool_id))
        if any(record.spec.pool.generation > declared.generation for record in all_records):
            return None
        current = [
            record
            for record in all_records
            if record.spec.pool.generation == declared.generation
            and (features.compatibility_groups or not record.uses_groups)
        ]
        if len(current) != declared.resource_slice_count:
            return GatheredPool(pool_id, None)
        if features.partitionable_devices:
            # They matter for counters only.
            near = {record.name for record in records}
            elsewhere = [record for record in current if record.name not in near]
    block = source.block(pool_id, records, elsewhere=elsewhere, partitionable=features.partitionable_devices)
    return GatheredPool(pool_id, block)
