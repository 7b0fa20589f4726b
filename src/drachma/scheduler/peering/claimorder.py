"""The order of allocations: checks that the devices of a claim were not allocated to another claim before.

Claims are separate objects, so two schedulers can write the same device into two of them. The order of writes decides.
A scheduler waits until it reads its own write back: by then it has read every earlier write. Then it checks that
earlier allocations leave room. Of two claims that collide, the later writer always finds out, and the earlier one need
not know. Schedulers that announce their decisions collide here only over shares and counters, or with other writers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from drachma import allocator
from drachma.api import resourceclaim
from drachma.claims import identity, standins
from drachma.scheduler.framework import handle
from drachma.scheduler.peering import announcements, progress
from drachma.scheduler.snapshot import Snapshot

Claim = resourceclaim.ResourceClaim


class ClaimOrder:
    """Checks claims after they are written."""

    def __init__(self, snapshot: Snapshot, claims: progress.Progress[Claim]) -> None:
        self._nodes: Final = snapshot.nodes
        self._devices: Final = snapshot.devices
        self._claims: Final = claims

    async def check(self, claims: Iterable[Claim]) -> None:
        """Return once no other claim can own the devices of these claims, as written.

        Raises CollisionError if one does, or if a claim was changed in a way that matters.
        """
        written_claims = tuple(claims)
        for claim in written_claims:
            await self._claims.wait_for(claim)
        for claim in written_claims:
            self._check(claim)

    def collision(self, claim: Claim) -> str | None:
        """Return why earlier allocations leave no room for the allocation of a claim as it is known, or None.

        The order of allocations that were made before this process looked is not known; they never collide.
        """
        if claim.status.allocation is None or not self._devices.claims.allocated_at(
            claim.metadata.namespace, claim.metadata.name
        ):
            return None
        try:
            self._check(claim)
        except handle.CollisionError as error:
            return str(error)
        return None

    def _check(self, claim: Claim) -> None:
        metadata = claim.metadata
        label = f"{metadata.namespace}/{metadata.name}"
        current = self._devices.claims.get(metadata.namespace, metadata.name)
        if current is None or current.metadata.uid != metadata.uid or current.status.allocation is None:
            raise handle.CollisionError(f"claim {label} got deallocated elsewhere in the meantime")
        allocation = current.status.allocation
        if self._is_undisputed(allocation):
            return
        earlier = self._earlier_than(current)
        drivers, places = _drivers(allocation), standins.places_of(allocation)
        state = allocator.AllocatedState(consumable_capacity=self._devices.features.consumable_capacity)
        for earlier_claim in earlier:
            if earlier_claim.status.allocation is not None and not drivers.isdisjoint(
                _drivers(earlier_claim.status.allocation)
            ):
                state.put_claim(earlier_claim)
        for result in allocation.devices.results:
            if result.admin_access:
                continue
            device = identity.device_of(result)
            owners = state.owners(device, places=places)
            is_double = owners != state.owners(device)
            if is_double or (owners and (result.share_id is None or any(not _is_share(c, device) for c in earlier))):
                raise handle.CollisionError(f"claim {label}: device {device} got allocated for claim {owners[0]} first")
        state.put_claim(current)
        self._check_totals(label, allocation, state)

    def _is_undisputed(self, allocation: resourceclaim.AllocationResult) -> bool:
        """Return True if no other claim uses the same devices at all, which is the usual case."""
        state, places = self._devices.state, standins.places_of(allocation)
        for result in allocation.devices.results:
            device = identity.device_of(result)
            published = self._devices.find(result)
            if result.share_id is not None or published is None or published.consumes_counters:
                return False
            owners = state.owners(device, places=places)
            if not result.admin_access and sum(map(announcements.is_claim, owners)) > 1:
                return False
        return True

    def _earlier_than(self, claim: Claim) -> list[Claim]:
        """Return the claims that were allocated before this one."""
        tracker = self._devices.claims
        own = tracker.allocated_at(claim.metadata.namespace, claim.metadata.name)
        return [
            earlier_claim
            for earlier_claim in tracker
            if earlier_claim.metadata.uid != claim.metadata.uid
            and earlier_claim.status.allocation is not None
            and tracker.allocated_at(earlier_claim.metadata.namespace, earlier_claim.metadata.name) <= own
        ]

    def _check_totals(
        self, label: str, allocation: resourceclaim.AllocationResult, state: allocator.AllocatedState
    ) -> None:
        """Raise CollisionError for capacity and counters that are overdrawn."""
        for result in allocation.devices.results:
            device = self._devices.find(result)
            if device is None:
                continue
            name = identity.device_of(result)
            for key, consumed in state.consumed(name).items():
                capacity = device.capacity.get(key)
                if capacity is not None and capacity.value is not None and consumed > capacity.value:
                    raise handle.CollisionError(f"claim {label}: capacity {key} of device {name} got used up first")
        for block in self._blocks(allocation):
            if block.counters is not None and min(state.counters_left(block), default=0) < 0:
                raise handle.CollisionError(f"claim {label}: counters of pool {block.pool_id} got used up first")

    def _blocks(self, allocation: resourceclaim.AllocationResult) -> Iterator[allocator.pool.Block]:
        """Yield the pools of an allocation, as some node sees them."""
        pools = identity.pools_of(allocation)
        for info in self._nodes:
            if not pools:
                return
            for block in self._devices.view(info).blocks:
                if block.pool_id in pools:
                    pools.discard(block.pool_id)
                    yield block


def _drivers(allocation: resourceclaim.AllocationResult) -> set[str]:
    return {result.driver for result in allocation.devices.results}


def _is_share(claim: Claim, device: identity.DeviceID) -> bool:
    """Return True if a claim has only a share of a device."""
    allocation = claim.status.allocation
    return allocation is None or all(
        result.share_id is not None or result.admin_access or identity.device_of(result) != device
        for result in allocation.devices.results
    )
