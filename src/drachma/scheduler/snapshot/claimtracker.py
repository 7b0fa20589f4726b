"""Claims as the scheduler knows them: from the informer, from its own writes, and in flight between the two.

An allocation that was decided is *in flight* until it is written. Its devices are taken for every other pod, and a
second pod with the same claim has to wait. After the write the claim is *assumed* until the informer shows it. Every
claim with devices counts once in the allocated state. Informers and binders call this. The state is lost with the
process, and allocations in flight are never written then. Forks are not updated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from msgspec import structs

from drachma.allocator import allocated
from drachma.api import meta, resourceclaim
from drachma.claims import identity, standins, wellknown
from drachma.runtime import cache, resourceversion
from drachma.values import forkmap

Touched = Callable[[set[identity.PoolID], set[str]], None]
"""Function that is called with changed pools, and the nodes that their devices are for."""


class _InFlight(NamedTuple):
    owner: meta.ObjectMeta
    allocation: resourceclaim.AllocationResult


class ClaimTracker:
    """All claims of the cluster."""

    def __init__(
        self,
        state: allocated.AllocatedState,
        touched: Touched,
        *,
        parent: ClaimTracker | None = None,
    ) -> None:
        """``touched`` is called when devices are taken or freed.

        With a ``parent`` this is a fork of it, and ``state`` a fork of its state.
        """
        self._state: Final = state
        self._touched: Final = touched
        self._watchers: Final[dict[str, list[Callable[[], None]]]] = {}
        self.listener: Callable[[cache.Key, meta.ObjectMeta], None] | None = None
        """Called for every claim that changes, or whose allocation in flight begins or ends."""
        if parent is None:
            self._claims = forkmap.ForkMap[cache.Key, resourceclaim.ResourceClaim]()
            self._in_flight = forkmap.ForkMap[str, _InFlight]()
            self._allocations = forkmap.ForkMap[cache.Key, resourceclaim.AllocationResult]()
            self._special = forkmap.ForkMap[str, cache.Key]()
            self._since = forkmap.ForkMap[cache.Key, int]()
        else:
            self._claims = parent._claims.fork()
            self._in_flight = parent._in_flight.fork()
            self._allocations = parent._allocations.fork()
            self._special = parent._special.fork()
            self._since = parent._since.fork()

    def fork(self, state: allocated.AllocatedState, touched: Touched) -> ClaimTracker:
        """Return a copy that can be changed separately, with a fork of the state."""
        return ClaimTracker(state, touched, parent=self)

    def __iter__(self) -> Iterator[resourceclaim.ResourceClaim]:
        return iter(self._claims.values())

    def get(self, namespace: str, name: str) -> resourceclaim.ResourceClaim | None:
        """Return the newest known state of a claim, or None."""
        return self._claims.get(cache.Key(namespace, name))

    def special_claim(self, pod_uid: str) -> resourceclaim.ResourceClaim | None:
        """Return the claim that was created for a pod's extended resources, or None."""
        key = self._special.get(pod_uid)
        return None if key is None else self._claims.get(key)

    def allocated_at(self, namespace: str, name: str) -> int:
        """Return the resource version of a claim's allocation; 0 if it was allocated before this process looked."""
        return self._since.get(cache.Key(namespace, name), 0)

    # Reports of informers and own writes

    def observe(self, claim: resourceclaim.ResourceClaim, *, is_exact: bool = True) -> None:
        """Update a claim, unless a newer state of it is known.

        Without ``is_exact``, states in between may have been missed.
        """
        key = cache.key_of(claim)
        stored_claim = self._claims.get(key)
        if stored_claim is not None and stored_claim.metadata.uid != claim.metadata.uid:
            stored_claim = None
        # This scheduler knows its own writes before the informer shows them.
        if stored_claim is not None and _is_newer(
            stored_claim.metadata.resource_version, claim.metadata.resource_version
        ):
            return
        self._claims[key] = claim
        if claim.status.allocation is None:
            if key in self._since:
                del self._since[key]
        elif stored_claim is None or stored_claim.status.allocation is None:
            version = claim.metadata.resource_version
            self._since[key] = resourceversion.number(version) if is_exact and stored_claim is not None else 0
        if (
            claim.metadata.annotations
            and claim.metadata.annotations.get(wellknown.EXTENDED_RESOURCE_ANNOTATION) == "true"
        ):
            for owner in claim.metadata.owner_references:
                if owner.controller:
                    self._special[owner.uid] = key
        self._count(key, claim.metadata)
        self._tell_watchers(claim.metadata.uid)

    def rewrite(self, claim: resourceclaim.ResourceClaim, status: resourceclaim.ResourceClaimStatus) -> None:
        """Update the status of a claim as if it were written: only for forks."""
        version = str(resourceversion.number(claim.metadata.resource_version) + 1)
        metadata = structs.replace(claim.metadata, resource_version=version)
        self.observe(structs.replace(claim, metadata=metadata, status=status))

    def remove(self, claim: resourceclaim.ResourceClaim) -> None:
        """Remove a deleted claim. An allocation in flight stays until its writer gives up."""
        key = cache.key_of(claim)
        stored_claim = self._claims.get(key)
        if stored_claim is None or stored_claim.metadata.uid != claim.metadata.uid:
            return
        del self._claims[key]
        self._since.pop(key, None)
        for owner in claim.metadata.owner_references:
            if self._special.get(owner.uid) == key:
                del self._special[owner.uid]
        self._count(key, claim.metadata)
        self._tell_watchers(claim.metadata.uid)

    def watch(self, uid: str, heard: Callable[[], None]) -> Callable[[], None]:
        """Call ``heard`` whenever the claim with this uid changes or is deleted. The result ends that."""
        self._watchers.setdefault(uid, []).append(heard)

        def stop() -> None:
            watchers = self._watchers[uid]
            watchers.remove(heard)
            if not watchers:
                del self._watchers[uid]

        return stop

    def _tell_watchers(self, uid: str) -> None:
        if uid in self._watchers:
            for watcher in tuple(self._watchers[uid]):
                watcher()

    # In flight

    def pending(self, uid: str) -> resourceclaim.AllocationResult | None:
        """Return the allocation of a claim that is in flight, or None."""
        in_flight = self._in_flight.get(uid)
        return None if in_flight is None else in_flight.allocation

    def reserve(self, owner: meta.ObjectMeta, allocation: resourceclaim.AllocationResult) -> None:
        """Note that an allocation of a claim is in flight."""
        owner = _make_unique(owner)
        self._in_flight[owner.uid] = _InFlight(owner, allocation)
        self._count(cache.Key(owner.namespace, owner.name), owner)

    def settle(self, uid: str) -> None:
        """Note that an allocation is no longer in flight: it was written, or will not be."""
        in_flight = self._in_flight.pop(uid, None)
        if in_flight is not None:
            owner = in_flight.owner
            self._count(cache.Key(owner.namespace, owner.name), owner)

    def _count(self, key: cache.Key, owner: meta.ObjectMeta) -> None:
        if self.listener is not None:
            self.listener(key, owner)
        claim = self._claims.get(key)
        effective = None if claim is None else claim.status.allocation
        if effective is None:
            in_flight = self._in_flight.get(owner.uid)
            if in_flight is None and claim is not None and claim.metadata.uid != owner.uid:
                in_flight = self._in_flight.get(claim.metadata.uid)
            effective = None if in_flight is None else in_flight.allocation
        before = self._allocations.get(key)
        if before is effective or before == effective:
            return
        if before is not None and effective is not None and before.devices == effective.devices:
            # These are the devices in flight, with the time of the write.
            self._allocations[key] = effective
            return
        pools, places = identity.pools_of(effective), set(standins.places_of(effective))
        if before is not None:
            pools |= identity.pools_of(before)
            places.update(standins.places_of(before))
        if effective is None:
            del self._allocations[key]
            self._state.remove_claim(owner)
        else:
            self._allocations[key] = effective
            self._state.put_allocation(owner, effective)
        self._touched(pools, places)


def _make_unique(owner: meta.ObjectMeta) -> meta.ObjectMeta:
    """Return metadata with a unique name. Claims for extended resources share one name until they are written."""
    if not owner.name.startswith("<") or owner.name.endswith(owner.uid):
        return owner
    return structs.replace(owner, name=f"{owner.name}{owner.uid}")


def _is_newer(version: str, reference: str) -> bool:
    """Return True if a resource version is at least as new as another. Without versions, return False."""
    return version == reference != "" or resourceversion.number(version) > resourceversion.number(reference)
