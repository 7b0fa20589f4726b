"""Several schedulers at once: before a pod is bound, make sure that nobody was faster with what it takes.

Claims are separate objects, so two schedulers can write the same device into two of them, and nothing in the API keeps
two pods from being bound to a node that has room for one. What decides is the order of writes, which is the same for
everybody: a scheduler writes what it takes (the allocation of claims; the node, as the pod's nomination), waits until
it sees its own writes come back, by which time it has seen every earlier one, and then looks whether what was taken
earlier leaves room. Of two that collide the later one always finds out, gives everything back and tries again; the
earlier one need not know. A pod that one scheduler is taking to a node is left to it, until it has had all the time
in the world.

Without peers none of this is needed, and none of it is done.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from drachma import allocator
from drachma.accounting import ledger
from drachma.api import pod, resourceclaim
from drachma.claims import identity
from drachma.runtime import cache, clock, informers
from drachma.scheduler.plugins import nodeports, noderesourcesfit
from drachma.scheduler.snapshot import Snapshot

Claim = resourceclaim.ResourceClaim


_PATIENCE_SECONDS: Final = 30.0
"""How long a pod that another scheduler takes somewhere is left to it."""

_PROMPT_SECONDS: Final = 10.0
"""How long it may take from saying where a pod goes to binding it; well before others lose their patience."""


class _Intent(NamedTuple):
    """Where a pod is going, the version that said so, and when that was seen."""

    node: str
    version: int
    seen: float


class CollisionError(Exception):
    """Another scheduler was faster; the text says with what."""


class Peers:
    """Checks what was written against what others wrote before."""

    def __init__(
        self,
        shared: informers.Informers,
        snapshot: Snapshot,
        *,
        time: clock.Clock,
    ) -> None:
        self._pods: Final = shared.of(pod.Pod)
        self._claims: Final = shared.of(Claim)
        self._nodes: Final = snapshot.nodes
        self._devices: Final = snapshot.devices
        self._waiters: Final[dict[tuple[type, cache.Key], list[Callable[[], None]]]] = {}
        self._time: Final = time
        self._intents: Final[dict[str, _Intent]] = {}
        """Pods by uid that are being taken to a node."""

    # What handlers tell

    def heard(self, known: pod.Pod | Claim) -> None:
        """An object changed."""
        for waiter in tuple(self._waiters.get((type(known), cache.key_of(known)), ())):
            waiter()
        if isinstance(known, pod.Pod):
            self._note_intent(known)

    def gone(self, known: pod.Pod | Claim) -> None:
        """An object is gone."""
        if isinstance(known, pod.Pod):
            self._intents.pop(known.metadata.uid, None)
        for waiter in tuple(self._waiters.get((type(known), cache.key_of(known)), ())):
            waiter()

    def _note_intent(self, known: pod.Pod) -> None:
        uid, node = known.metadata.uid, known.status.nominated_node_name
        if known.spec.node_name or not node:
            self._intents.pop(uid, None)
            return
        before = self._intents.get(uid)
        if before is None or before.node != node:
            version = int(known.metadata.resource_version) if self._pods.resource_version else 0
            self._intents[uid] = _Intent(node, version, self._time.monotonic())

    # Devices

    async def check_claims(self, claims: list[Claim]) -> None:
        """Returns once it is certain that the devices of these claims, as written, are nobody else's.

        Raises CollisionError where they are, or where a claim was changed in a way that matters.
        """
        for claim in claims:
            await self._until_seen(claim)
        for claim in claims:
            self._check_claim(claim)

    def _check_claim(self, claim: Claim) -> None:
        metadata = claim.metadata
        label = f"{metadata.namespace}/{metadata.name}"
        current = self._devices.claims.get(metadata.namespace, metadata.name)
        if current is None or current.metadata.uid != metadata.uid or current.status.allocation is None:
            raise CollisionError(f"claim {label} got deallocated elsewhere in the meantime")
        allocation = current.status.allocation
        if self._is_undisputed(allocation):
            return
        earlier = self._earlier_than(current)
        pools = identity.pools_of(allocation)
        state = allocator.AllocatedState(consumable_capacity=self._devices.features.consumable_capacity)
        for other in earlier:
            if other.status.allocation is not None and not pools.isdisjoint(identity.pools_of(other.status.allocation)):
                state.put_claim(other)
        for result in allocation.devices.results:
            if result.admin_access:
                continue
            device = identity.device_of(result)
            owners = state.owners(device)
            if owners and (result.share_id is None or any(not _is_share(other, device) for other in earlier)):
                raise CollisionError(f"claim {label}: device {device} got allocated for claim {owners[0]} first")
        state.put_claim(current)
        self._check_totals(label, allocation, state)

    def _is_undisputed(self, allocation: resourceclaim.AllocationResult) -> bool:
        """Whether nobody at all, earlier or later, has anything to do with the same devices; the usual case."""
        state = self._devices.state
        for result in allocation.devices.results:
            device = identity.device_of(result)
            published = self._devices.find(result)
            if result.share_id is not None or published is None or published.consumes_counters:
                return False
            if not result.admin_access and len(state.owners(device)) > 1:
                return False
        return True

    def _earlier_than(self, claim: Claim) -> list[Claim]:
        """The claims that were allocated before this one."""
        tracker = self._devices.claims
        own = tracker.allocated_at(claim.metadata.namespace, claim.metadata.name)
        return [
            other
            for other in tracker
            if other.metadata.uid != claim.metadata.uid
            and other.status.allocation is not None
            and tracker.allocated_at(other.metadata.namespace, other.metadata.name) <= own
        ]

    def _check_totals(
        self, label: str, allocation: resourceclaim.AllocationResult, state: allocator.AllocatedState
    ) -> None:
        """Refuse capacity and counters that are overdrawn."""
        for result in allocation.devices.results:
            device = self._devices.find(result)
            if device is None:
                continue
            name = identity.device_of(result)
            for key, consumed in state.consumed(name).items():
                capacity = device.capacity.get(key)
                if capacity is not None and capacity.value is not None and consumed > capacity.value:
                    raise CollisionError(f"claim {label}: capacity {key} of device {name} got used up first")
        for block in self._blocks(allocation):
            if block.counters is not None and min(state.counters_left(block), default=0) < 0:
                raise CollisionError(f"claim {label}: counters of pool {block.pool_id} got used up first")

    def _blocks(self, allocation: resourceclaim.AllocationResult) -> Iterator[allocator.pool.Block]:
        """The pools of an allocation, as some node sees them."""
        pools = identity.pools_of(allocation)
        for info in self._nodes:
            if not pools:
                return
            for block in self._devices.view(info).blocks:
                if block.pool_id in pools:
                    pools.discard(block.pool_id)
                    yield block

    # Nodes

    def may_take(self, wanted: pod.Pod, *, kept: str) -> pod.Pod:
        """The newest state of a pod that is to be taken to a node; ``kept`` is the node that is kept for it anyway.

        Raises CollisionError where another scheduler has it in hand.
        """
        metadata = wanted.metadata
        current = self._pods.cache.get(metadata.name, namespace=metadata.namespace)
        if current is None or current.metadata.uid != metadata.uid or current.spec.node_name:
            raise CollisionError("the pod got bound or deleted elsewhere in the meantime")
        node = current.status.nominated_node_name
        intent = self._intents.get(metadata.uid)
        if node and node != kept and intent is not None and self._time.monotonic() < intent.seen + _PATIENCE_SECONDS:
            raise CollisionError(f"another scheduler takes the pod to node {node}")
        return current

    async def check_node(self, written: pod.Pod, node: str, *, demand: ledger.Demand) -> None:
        """Returns once it is certain that a node has room for a pod that was written to be going there.

        Raises CollisionError where it has not, or where it took so long that others may have taken the pod over.
        """
        began = self._time.monotonic()
        await self._until_seen(written)
        uid = written.metadata.uid
        intent = self._intents.get(uid)
        if intent is None or intent.node != node or self._time.monotonic() - began > _PROMPT_SECONDS:
            raise CollisionError("the pod got taken over, bound or deleted elsewhere in the meantime")
        info = self._nodes.find(node)
        if info is None:
            raise CollisionError(f"node {node} is gone")
        account = info.ledger.copy()
        account.cancel(uid)
        for booking in self._earlier_on(node, intent.version, but=uid):
            account.book(booking)
        for other in [each for each in account.bookings if self._nodes.is_assumed(each)]:
            # Own plans count only from the moment on that they were written.
            if other not in self._intents or self._intents[other].version > intent.version:
                account.cancel(other)
        if not nodeports.fits(demand.ports, account) or noderesourcesfit.FitQuestion(demand).ask(account).reasons:
            raise CollisionError(f"node {node} got used up first")

    def _earlier_on(self, node: str, version: int, *, but: str) -> Iterator[ledger.Booking]:
        """The pods that are being taken to a node and said so before."""
        for known in self._pods.cache:
            intent = self._intents.get(known.metadata.uid)
            if intent is not None and intent.node == node and intent.version <= version and known.metadata.uid != but:
                claims = known.status.node_allocatable_resource_claim_statuses
                yield ledger.Booking(known, ledger.demand(known, claims=claims))

    # Waiting

    async def _until_seen(self, written: pod.Pod | Claim) -> None:
        """Returns once the informer has come as far as a write, or past the object."""
        key = cache.key_of(written)
        heard = asyncio.Event()
        waiters = self._waiters.setdefault((type(written), key), [])
        waiters.append(heard.set)
        try:
            while not self._is_seen(written):
                heard.clear()
                await heard.wait()
        finally:
            waiters.remove(heard.set)
            if not waiters:
                self._waiters.pop((type(written), key), None)

    def _is_seen(self, written: pod.Pod | Claim) -> bool:
        source = self._pods if isinstance(written, pod.Pod) else self._claims
        version = int(written.metadata.resource_version)
        if int(source.resource_version or 0) >= version:
            return True
        found = source.cache.get(written.metadata.name, namespace=written.metadata.namespace)
        return found is not None and int(found.metadata.resource_version) >= version


def _is_share(claim: Claim, device: identity.DeviceID) -> bool:
    """Whether a claim has no more than a share of a device."""
    allocation = claim.status.allocation
    return allocation is None or all(
        result.share_id is not None or result.admin_access or identity.device_of(result) != device
        for result in allocation.devices.results
    )
