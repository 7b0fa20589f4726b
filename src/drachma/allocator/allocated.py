"""Allocated state: the devices that are taken, shared or partly consumed, updated claim by claim.

The watcher of claims calls :meth:`AllocatedState.put_claim` and :meth:`AllocatedState.remove_claim`; the allocator
reads by block. A device allocated with admin access is not taken. A result with a share ID is a share of its device,
unless consumable capacity is off: then it takes the device as any other result does. A device held in a stand-in
(:mod:`drachma.claims.standins`) is also taken in other pools of its driver and node, and vice versa.

Nothing is checked here: a device may be recorded twice or be in no slice at all, as in any cluster.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from drachma.allocator import counters, pool
from drachma.api import meta, resourceclaim
from drachma.claims import identity, standins
from drachma.values import forkmap, quantity

_UNKNOWN_OWNER = ""
_BLOCKS_REMEMBERED = 64
_NOTHING: Final[frozenset[str]] = frozenset()


class Holding(NamedTuple):
    """Device, or share of a device, that a claim holds."""

    device: identity.DeviceID
    share_id: str | None = None
    consumed: Mapping[str, quantity.Quantity] | None = None
    places: tuple[str, ...] = ()
    """The nodes whose stand-ins may have it too; none for a device of a stand-in."""


class _PoolState:
    """Holdings in one pool by device name, and the same as masks of the blocks that were asked for."""

    __slots__ = ("consumed", "groups", "left", "masks", "owners", "shares")

    def __init__(self) -> None:
        self.owners: dict[str, list[str]] = {}
        self.shares: dict[str, dict[str, str]] = {}
        self.consumed: dict[str, dict[str, quantity.Quantity]] = {}
        self.masks: dict[pool.Block, tuple[int, int]] = {}
        self.left: dict[pool.Block, tuple[int, ...]] = {}
        self.groups: dict[pool.Block, tuple[int, ...]] = {}

    def is_held(self, name: str) -> bool:
        return name in self.owners or name in self.shares or name in self.consumed

    def names(self) -> set[str]:
        return {*self.owners, *self.shares, *self.consumed}

    def mask(self, block: pool.Block) -> tuple[int, int]:
        """Return the devices of a block that are held exclusively, and those held in part."""
        masks = self.masks.get(block)
        if masks is None:
            if len(self.masks) >= _BLOCKS_REMEMBERED:
                # Blocks of slices that are long gone; those still in use come back.
                self.masks.clear()
            in_part = _mask(block, self.shares) | _mask(block, self.consumed)
            masks = self.masks[block] = (_mask(block, self.owners), in_part)
        return masks

    def copy(self) -> _PoolState:
        """Return an independent copy."""
        copied = _PoolState()
        copied.owners = {name: list(owners) for name, owners in self.owners.items()}
        copied.shares = {name: dict(shares) for name, shares in self.shares.items()}
        copied.consumed = {name: dict(consumed) for name, consumed in self.consumed.items()}
        copied.masks, copied.left, copied.groups = dict(self.masks), dict(self.left), dict(self.groups)
        return copied

    def changed(self, name: str) -> None:
        """Bring the masks up to date for one device, which costs the same however much is held."""
        self.left.clear()
        self.groups.clear()
        for block, (exclusive, in_part) in self.masks.items():
            place = block.index.get(name)
            if place is not None:
                bit = 1 << place
                exclusive = exclusive | bit if name in self.owners else exclusive & ~bit
                in_part = in_part | bit if name in self.shares or name in self.consumed else in_part & ~bit
                self.masks[block] = (exclusive, in_part)


class AllocatedState:
    """Allocated devices of a cluster."""

    def __init__(self, claims: Iterable[resourceclaim.ResourceClaim] = (), *, consumable_capacity: bool) -> None:
        self._consumable = consumable_capacity
        self._pools = forkmap.ForkMap[identity.PoolID, _PoolState](copy=_PoolState.copy)
        self._claims = forkmap.ForkMap[str, tuple[Holding, ...]]()
        # For stand-ins: the holders of a device of that name in another pool.
        self._doubles = forkmap.ForkMap[identity.PoolID, dict[str, list[str]]](copy=_copied)
        self.revision = 0
        """Grows with every change."""
        for claim in claims:
            self.put_claim(claim)

    def put_claim(self, claim: resourceclaim.ResourceClaim) -> None:
        """Count what the claim's status says is allocated to it, in place of what was counted for it before."""
        self.put_allocation(claim.metadata, claim.status.allocation)

    def put_allocation(self, owner: meta.ObjectMeta, allocation: resourceclaim.AllocationResult | None) -> None:
        """Count an allocation for a claim whose status does not show it yet, or no longer."""
        name = identity.label(owner)
        holdings = () if allocation is None else tuple(self._holdings(allocation))
        before = self._claims.get(name, ())
        if before == holdings:
            return
        if before:
            self.remove_claim(owner)
        self._claims[name] = holdings
        for holding in holdings:
            self.hold(holding, owner=name)

    def remove_claim(self, owner: meta.ObjectMeta) -> None:
        """Give back all that was counted for a claim; nothing happens if nothing was."""
        name = identity.label(owner)
        for holding in self._claims.pop(name, ()):
            self.release(holding, owner=name)

    def fork(self) -> AllocatedState:
        """Return an independent copy. Its cost does not depend on how much is allocated."""
        copied = AllocatedState.__new__(AllocatedState)
        copied._consumable = self._consumable
        copied._pools = self._pools.fork()
        copied._claims = self._claims.fork()
        copied._doubles = self._doubles.fork()
        copied.revision = self.revision
        return copied

    def without(self, owner: str) -> AllocatedState:
        """Return a fork without the holdings of a claim (``namespace/name``)."""
        fork = self.fork()
        for holding in fork._claims.pop(owner, ()):
            fork.release(holding, owner=owner)
        return fork

    def claim_holdings(self, owner: str) -> tuple[Holding, ...]:
        """Return the holdings of a claim (``namespace/name``)."""
        return self._claims.get(owner, ())

    def hold(self, holding: Holding, *, owner: str = _UNKNOWN_OWNER) -> None:
        """Count one device, one share, or (without a share ID) consumed capacity alone."""
        pool_id = holding.device.pool_id
        if pool_id not in self._pools:
            self._pools[pool_id] = _PoolState()
        state = self._pools.mutable(pool_id)
        name = holding.device.device
        if holding.share_id is not None:
            state.shares.setdefault(name, {})[holding.share_id] = owner
        elif holding.consumed is None:
            state.owners.setdefault(name, []).append(owner)
        if holding.consumed is not None:
            total = state.consumed.setdefault(name, {})
            for key, amount in holding.consumed.items():
                total[key] = total[key] + amount if key in total else amount
        state.changed(name)
        for place in holding.places:
            double = standins.pool_id(pool_id.driver, place)
            if double not in self._doubles:
                self._doubles[double] = {}
            self._doubles.mutable(double).setdefault(name, []).append(owner)
        self.revision += 1

    def release(self, holding: Holding, *, owner: str = _UNKNOWN_OWNER) -> None:
        """Undo :meth:`hold`."""
        if holding.device.pool_id not in self._pools:
            return
        state = self._pools.mutable(holding.device.pool_id)
        name = holding.device.device
        if holding.share_id is not None:
            state.shares.get(name, {}).pop(holding.share_id, None)
            if not state.shares.get(name, True):
                del state.shares[name]
        elif holding.consumed is None and owner in state.owners.get(name, ()):
            state.owners[name].remove(owner)
            if not state.owners[name]:
                del state.owners[name]
        if holding.consumed is not None and name in state.consumed:
            total = state.consumed[name]
            for key, amount in holding.consumed.items():
                if key in total:
                    total[key] = total[key] - amount
            if not any(amount.nanos for amount in total.values()):
                del state.consumed[name]
        state.changed(name)
        for place in holding.places:
            double = standins.pool_id(holding.device.driver, place)
            owners_by_name = self._doubles.mutable(double)
            owners_by_name[name].remove(owner)
            if not owners_by_name[name]:
                del owners_by_name[name]
            if not owners_by_name:
                del self._doubles[double]
        self.revision += 1
        if not (state.owners or state.shares or state.consumed):
            del self._pools[holding.device.pool_id]

    def is_allocated(self, device: identity.DeviceID) -> bool:
        """Return True if any claim holds the device or a part of it."""
        state = self._pools.get(device.pool_id)
        return state is not None and any(
            device.device in devices for devices in (state.owners, state.shares, state.consumed)
        )

    def owners(self, device: identity.DeviceID, *, places: Iterable[str] = ()) -> tuple[str, ...]:
        """Return the known claims (``namespace/name``) that hold the device or a share of it.

        ``places`` are the nodes whose stand-ins may have the device too.
        """
        name, owners = device.device, []
        for pool_id in (device.pool_id, *(standins.pool_id(device.driver, place) for place in places)):
            state = self._pools.get(pool_id)
            if state is not None:
                owners += [*state.owners.get(name, ()), *state.shares.get(name, {}).values()]
        owners += self._doubles.get(device.pool_id, {}).get(name, ())
        return tuple(filter(None, owners))

    def holders(self, block: pool.Block, place: int) -> tuple[str, ...]:
        """Return the claims that hold a device of a block, or a share of it, in any pool."""
        places = () if block.is_stand_in else (block.owners[place].node_name,)
        return self.owners(block.device_id(place), places=places)

    def consumed(self, device: identity.DeviceID) -> Mapping[str, quantity.Quantity]:
        """Return the consumed amount of each capacity of a device."""
        state = self._pools.get(device.pool_id)
        return {} if state is None else state.consumed.get(device.device, {})

    def taken(self, block: pool.Block) -> int:
        """Return the devices of a block that are held exclusively."""
        state = self._pools.get(block.pool_id)
        mask = 0 if state is None else state.mask(block)[0]
        elsewhere = self._devices_held_elsewhere(block)
        return mask | _mask(block, elsewhere) if elsewhere else mask

    def partly_used(self, block: pool.Block) -> int:
        """Return the devices of a block that have shares or consumed capacity."""
        state = self._pools.get(block.pool_id)
        return 0 if state is None else state.mask(block)[1]

    def counters_left(self, block: pool.Block) -> tuple[int, ...]:
        """Return the remaining counters of a block's pool in the order of its counter table. May be negative."""
        elsewhere = self._devices_held_elsewhere(block)
        if elsewhere:
            return _table(block).available(self._names(block) | elsewhere)
        state = self._pools.get(block.pool_id)
        if state is None:
            return _table(block).limits
        amounts = state.left.get(block)
        if amounts is None:
            amounts = state.left[block] = _table(block).available(state.names())
        return amounts

    def groups_left(self, block: pool.Block) -> tuple[int, ...]:
        """Return the compatibility groups still open on each counter set of a block's pool, in table order."""
        elsewhere = self._devices_held_elsewhere(block)
        if elsewhere:
            return _table(block).bound(self._names(block) | elsewhere)
        state = self._pools.get(block.pool_id)
        if state is None:
            return _table(block).bound(())
        groups = state.groups.get(block)
        if groups is None:
            groups = state.groups[block] = _table(block).bound(state.names())
        return groups

    def _names(self, block: pool.Block) -> set[str]:
        state = self._pools.get(block.pool_id)
        return set() if state is None else state.names()

    def _devices_held_elsewhere(self, block: pool.Block) -> frozenset[str]:
        """Return the devices of a block that are held under the same name in another pool."""
        if block.is_stand_in:
            return frozenset(block.index.keys() & self._doubles.get(block.pool_id, {}).keys())
        devices = _NOTHING
        for stand_in, node in block.stand_ins:
            state = self._pools.get(stand_in)
            if state is not None:
                names = block.index.keys() & state.names()
                devices |= {name for name in names if block.owners[block.index[name]].node_name == node}
        return devices

    def _holdings(self, allocation: resourceclaim.AllocationResult) -> Iterable[Holding]:
        places = standins.places_of(allocation)
        for result in allocation.devices.results:
            if result.admin_access:
                continue
            device = identity.device_of(result)
            doubles = () if standins.is_stand_in(result.pool) else places
            if self._consumable and result.share_id is not None:
                yield Holding(device, result.share_id, result.consumed_capacity or None, doubles)
            else:
                yield Holding(device, places=doubles)


def _copied(doubles: dict[str, list[str]]) -> dict[str, list[str]]:
    return {name: list(owners) for name, owners in doubles.items()}


def _mask(block: pool.Block, names: Iterable[str]) -> int:
    mask = 0
    for name in names:
        place = block.index.get(name)
        if place is not None:
            mask |= 1 << place
    return mask


def _table(block: pool.Block) -> counters.CounterTable:
    if block.counters is None:
        raise ValueError(f"pool {block.pool_id} has no counters")
    return block.counters
