"""Several schedulers at once: each announces a pod before it writes, and checks earlier announcements.

The API does not prevent two schedulers from allocating one device twice, or from binding two pods to a node with room
for one. So a scheduler announces a pod before it writes anything for it. It waits until it reads its own announcement
back: by then it has read every earlier announcement. Then it checks that the pod, its node and its devices are still
free. If two announcements collide, the later scheduler always finds out before it has written anything, and tries
again. A scheduler that has announced a pod holds it: only then does it bind the pod, or allocate or deallocate claims
for it.

Pods are divided among the schedulers of one name (:mod:`drachma.scheduler.peering.membership`). Each scheduler counts
the announcements of its peers in its snapshot, so that schedulers rarely choose the same node. Without peers, none of
this happens.
"""

from __future__ import annotations

import asyncio
import itertools
import random
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from drachma.accounting import ledger
from drachma.api import meta, pod, resourceclaim
from drachma.claims import identity
from drachma.client import protocol
from drachma.runtime import clock, informer, informers
from drachma.scheduler import queue, settings
from drachma.scheduler.framework import handle, profile
from drachma.scheduler.peering import (
    announcements,
    anticipation,
    claimorder,
    lookout,
    membership,
    peerlease,
    progress,
)
from drachma.scheduler.snapshot import Snapshot, assignment

Claim = resourceclaim.ResourceClaim


class Hold:
    """Hold on a pod that this scheduler has announced."""

    __slots__ = ("uid",)

    def __init__(self, uid: str) -> None:
        self.uid = uid


class Peers:
    """The other schedulers, from the view of one of them."""

    def __init__(
        self,
        client: protocol.Client,
        informers: informers.Informers,
        snapshot: Snapshot,
        queue: queue.Queue,
        *,
        profile: profile.Profile,
        settings: settings.Settings,
        clock: clock.Clock,
        rng: random.Random,
    ) -> None:
        self._profile: Final = profile
        self._pods: Final = informers.of(pod.Pod)
        self._claims: Final = informers.of(Claim)
        self._nodes: Final = snapshot.nodes
        self._state: Final = snapshot.devices.state
        self._lease: Final = peerlease.PeerLease(client, scheduler=settings.name, clock=clock, rng=rng)
        self._members: Final = membership.Membership(
            self._lease.name, scheduler=settings.name, monotonic=clock.monotonic, has_gangs=settings.has_gangs
        )
        self._anticipation: Final = anticipation.Anticipation(self._pods, snapshot, queue=queue)
        self._lookout: Final = lookout.Lookout(
            client,
            informers,
            own=self._lease.name,
            members=self._members,
            anticipation=self._anticipation,
            clock=clock,
        )
        self._claim_progress: Final = progress.Progress(self._claims)
        self._order: Final = claimorder.ClaimOrder(snapshot, self._claim_progress)
        self._holds: Final[dict[str, Hold]] = {}
        self._numbers: Final = itertools.count(1)
        self._home = 0
        self._home_basis: tuple[int, tuple[str, ...]] = (0, ())

    def register(self, assign: Callable[[pod.Pod], None]) -> None:
        """Register handlers, after all other handlers.

        ``assign`` is called with waiting pods whenever the responsibility for them may have changed.
        """
        self._claims.add_handler(informer.Handler.on_change(self._claim_progress.heard))
        self._lookout.register(assign)

    async def run(self) -> None:
        """Renew the lease and follow the leases of peers, until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._lease.run(), name="lease of the scheduler")
            group.create_task(self._lookout.run(), name="leases of other schedulers")

    async def joined(self) -> None:
        """Return once the other schedulers can see this one."""
        await self._lookout.wait_for_own(await self._lease.written())
        self._lookout.reassign()

    def is_responsible(self, waiting_pod: pod.Pod) -> bool:
        """Return True if this scheduler is responsible for a pod, and no other one of the same name."""
        return self._members.is_responsible(waiting_pod)

    def prefer(self, nodes: int) -> int:
        """Return the equally good nodes that other schedulers choose last, so that choices differ."""
        basis = (self._nodes.all_nodes, self._members.living)
        if basis != self._home_basis:
            self._home_basis = basis
            self._home = sum(info.bit for info in self._nodes if self._members.is_home(info.name))
        return nodes & self._home or nodes

    # Holds

    def is_elsewhere(self, uid: str) -> bool:
        """Return True if another scheduler holds a pod."""
        return any(record.peer != self._lease.name for record in self._lookout.announced.pod_records(uid))

    async def take(self, batch: Sequence[assignment.Assignment]) -> list[Hold]:
        """Take hold of pods for their nodes, in one announcement, so that others see all of them or none.

        Raises CollisionError if another scheduler was faster with one of the pods, its node or its devices. Then this
        scheduler holds none of them.
        """
        await self._lookout.catch_up()
        for planned in batch:
            self._check_pod(planned.pod, own=None)
        holds = [Hold(planned.pod.metadata.uid) for planned in batch]
        self._holds.update((hold.uid, hold) for hold in holds)
        contents = {planned.pod.metadata.uid: self._announcement(planned) for planned in batch}
        await self._lookout.wait_for_own(await self._lease.announce(contents))
        try:
            for planned in batch:
                self._check(planned)
        except handle.CollisionError:
            for hold in holds:
                self.let_go(hold)
            raise
        return holds

    def _announcement(self, planned: assignment.Assignment) -> announcements.Announcement:
        metadata = planned.pod.metadata
        return announcements.Announcement(
            namespace=metadata.namespace,
            name=metadata.name,
            number=next(self._numbers),
            node=planned.node,
            demand=planned.demand,
            devices={announcements.claim_key(each.claim): tuple(_essence(each.result)) for each in planned.allocations},
        )

    async def hold_back(self, waiting_pod: pod.Pod) -> Hold:
        """Take hold of a pod that gets no node for now. Raises CollisionError if another scheduler holds it."""
        (hold,) = await self.take([assignment.Assignment(waiting_pod, "", announcements.NOTHING)])
        return hold

    def check_hold(self, hold: Hold) -> None:
        """Raise CollisionError if another scheduler may have taken over the pod."""
        if self._holds.get(hold.uid) is not hold or not self._lease.is_current:
            raise handle.HeldError("the pod may have been taken over by another scheduler in the meantime")

    def let_go(self, hold: Hold) -> None:
        """Release a pod that is not bound."""
        if self._holds.get(hold.uid) is hold:
            del self._holds[hold.uid]
            self._lease.take_back(hold.uid)

    def done(self, hold: Hold) -> None:
        """Release a pod that is bound."""
        if self._holds.get(hold.uid) is hold:
            del self._holds[hold.uid]
            self._lease.drop(hold.uid)

    async def check_claims(self, claims: Iterable[Claim]) -> None:
        """Return once no other scheduler can own the devices of these claims. Raises CollisionError if one does."""
        await self._order.check(claims)

    def _check(self, planned: assignment.Assignment) -> None:
        own = self._lookout.announced.peer_record(self._lease.name, planned.pod.metadata.uid)
        self._check_pod(planned.pod, own=own)
        if own is None or not own.version or self._lookout.has_gap or not self._lease.is_current:
            raise handle.CollisionError("the announcement of the pod got lost")
        if planned.node:
            self._check_node(planned, own)
        labels = {
            announcements.claim_key(each.claim): identity.label(each.claim.metadata) for each in planned.allocations
        }
        for claim, device in own.content.exclusive():
            self._check_device(device, claim, labels[claim], own=own)

    def _check_pod(self, waiting_pod: pod.Pod, *, own: announcements.Record | None) -> None:
        metadata = waiting_pod.metadata
        current = self._pods.cache.get(metadata.name, namespace=metadata.namespace)
        if current is None or current.metadata.uid != metadata.uid or current.spec.node_name:
            raise handle.HeldError("the pod got bound or deleted elsewhere in the meantime")
        for record in self._lookout.announced.pod_records(metadata.uid):
            if record.peer != self._lease.name and (own is None or _is_earlier(record, own)):
                raise handle.HeldError(f"another scheduler takes the pod to node {record.content.node}")

    def _check_node(self, planned: assignment.Assignment, own: announcements.Record) -> None:
        """Raise CollisionError if the node has no room next to bound pods and earlier announcements."""
        node = planned.node
        state = self._nodes.find(node)
        if state is None:
            raise handle.CollisionError(f"node {node} is gone")
        account = state.ledger.copy()
        for uid in [uid for uid in account.bookings if self._nodes.is_assumed(uid)]:
            account.cancel(uid)
        for record in self._lookout.announced.node_records(node):
            if record.uid != own.uid and record.uid not in account.bookings and _is_earlier(record, own):
                announced = pod.Pod(metadata=meta.ObjectMeta(uid=record.uid))
                account.book(ledger.Booking(announced, record.content.demand))
        if not self._profile.still_fits(planned, account):
            raise handle.CollisionError(f"node {node} got used up first")

    def _check_device(self, device: identity.DeviceID, claim: str, label: str, *, own: announcements.Record) -> None:
        for record in self._lookout.announced.device_records(device):
            # Several pods may allocate the same claim. The write of the claim decides which one does.
            if _is_earlier(record, own) and claim not in record.content.devices:
                raise handle.CollisionError(f"device {device} got announced for another pod first")
        for owner in self._state.owners(device, places=(own.content.node,)):
            if owner != label and announcements.is_claim(owner):
                raise handle.CollisionError(f"device {device} got allocated for claim {owner} first")


def _is_earlier(record: announcements.Record, own: announcements.Record) -> bool:
    return record.version <= own.version


def _essence(result: resourceclaim.AllocationResult) -> Iterable[announcements.Result]:
    """Yield the results of an allocation that leave fewer devices for other claims."""
    for each in result.devices.results:
        if not each.admin_access:
            yield announcements.Result(
                driver=each.driver,
                pool=each.pool,
                device=each.device,
                share_id=each.share_id,
                consumed_capacity=each.consumed_capacity,
            )
