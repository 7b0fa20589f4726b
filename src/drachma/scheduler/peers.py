"""Several schedulers at once: each says what it is about to do, and makes sure that nobody said so before.

Nothing in the API keeps two schedulers from giving one device away twice, or from binding two pods to a node that has
room for one. So a scheduler announces a pod before it writes anything for it, waits until it sees its announcement
come back, by which time it has seen every earlier one of anybody, and looks whether those leave the pod and room for
it. Of two that collide the later one always finds out, before it has written anything, and tries again. Whoever has
announced a pod has it in hand: only then is it bound, and only then are claims given to it or taken from it.

Pods are dealt out among the schedulers of one name (:mod:`drachma.scheduler.peering.membership`), and what others
announce is counted here as if it were done, so that schedulers rarely want the same. Without peers none of this is
needed, and none of it is done.
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
from drachma.scheduler.framework import collision
from drachma.scheduler.peering import (
    announcements,
    anticipation,
    claimorder,
    lookout,
    membership,
    peerlease,
    progress,
)
from drachma.scheduler.plugins import nodeports, noderesourcesfit
from drachma.scheduler.snapshot import Snapshot, assignment

Claim = resourceclaim.ResourceClaim


class Hold:
    """A pod in hand."""

    __slots__ = ("uid",)

    def __init__(self, uid: str) -> None:
        self.uid = uid


class Peers:
    """The other schedulers, as one of them sees them."""

    def __init__(
        self,
        client: protocol.Client,
        shared: informers.Informers,
        snapshot: Snapshot,
        waiting: queue.Queue,
        *,
        chosen: settings.Settings,
        time: clock.Clock,
        chance: random.Random,
    ) -> None:
        self._pods: Final = shared.of(pod.Pod)
        self._claims: Final = shared.of(Claim)
        self._nodes: Final = snapshot.nodes
        self._state: Final = snapshot.devices.state
        self._lease: Final = peerlease.PeerLease(client, scheduler=chosen.name, time=time, chance=chance)
        self._members: Final = membership.Membership(
            self._lease.name, scheduler=chosen.name, monotonic=time.monotonic, has_gangs=chosen.has_gangs
        )
        self._anticipation: Final = anticipation.Anticipation(self._pods, snapshot, waiting=waiting)
        self._lookout: Final = lookout.Lookout(
            client,
            shared,
            own=self._lease.name,
            members=self._members,
            counting=self._anticipation,
            time=time,
        )
        self._claim_progress: Final = progress.Progress(self._claims)
        self._order: Final = claimorder.ClaimOrder(snapshot, self._claim_progress)
        self._holds: Final[dict[str, Hold]] = {}
        self._numbers: Final = itertools.count(1)
        self._home = 0
        self._home_basis: tuple[int, tuple[str, ...]] = (0, ())

    def register(self, assign: Callable[[pod.Pod], None]) -> None:
        """Hear of everything that matters, after all other handlers.

        ``assign`` gets pods that have no node whenever they may be this scheduler's to look after, or no longer.
        """
        self._claims.add_handler(
            informer.Handler(
                added=self._claim_progress.heard,
                updated=lambda _, new: self._claim_progress.heard(new),
                deleted=self._claim_progress.heard,
            )
        )
        self._lookout.register(assign)

    async def run(self) -> None:
        """Keeps in touch until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._lease.run(), name="lease of the scheduler")
            group.create_task(self._lookout.run(), name="leases of other schedulers")

    async def joined(self) -> None:
        """Returns once the other schedulers can see that this one is there."""
        await self._lookout.until_own(await self._lease.written())
        self._lookout.reassign()

    def is_responsible(self, waiting: pod.Pod) -> bool:
        """Whether a pod is this scheduler's to look after, and not that of another one of the same name."""
        return self._members.is_responsible(waiting)

    def favoured(self, nodes: int) -> int:
        """Of equally good nodes those that other schedulers choose last, so that all choose different ones."""
        basis = (self._nodes.everyone, self._members.everybody)
        if basis != self._home_basis:
            self._home_basis = basis
            self._home = sum(info.bit for info in self._nodes if self._members.is_home(info.name))
        return nodes & self._home or nodes

    # Pods in hand

    def is_elsewhere(self, uid: str) -> bool:
        """Whether another scheduler has a pod in hand."""
        return any(other.peer != self._lease.name for other in self._lookout.announced.of_pod(uid))

    async def take(self, together: Sequence[assignment.Assignment]) -> list[Hold]:
        """Takes pods in hand to go to their nodes, all in one announcement: others see all of it or nothing.

        Raises CollisionError where another scheduler was faster with one of the pods, its node or its devices. Then
        none is in hand.
        """
        await self._lookout.catch_up()
        for planned in together:
            self._check_pod(planned.pod, own=None)
        holds = [Hold(planned.pod.metadata.uid) for planned in together]
        self._holds.update((hold.uid, hold) for hold in holds)
        contents = {planned.pod.metadata.uid: self._announcement(planned) for planned in together}
        await self._lookout.until_own(await self._lease.announce(contents))
        try:
            for planned in together:
                self._check(planned)
        except collision.CollisionError:
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

    async def hold_back(self, waiting: pod.Pod) -> Hold:
        """Takes a pod in hand that goes nowhere for the moment; CollisionError where another scheduler has it."""
        (hold,) = await self.take([assignment.Assignment(waiting, "", announcements.NOTHING)])
        return hold

    def check_hold(self, hold: Hold) -> None:
        """Raises CollisionError where others may have taken over what this scheduler had in hand."""
        if self._holds.get(hold.uid) is not hold or not self._lease.is_current:
            raise collision.HeldError("the pod may have been taken over by another scheduler in the meantime")

    def let_go(self, hold: Hold) -> None:
        """Leaves a pod that is not bound to others."""
        if self._holds.get(hold.uid) is hold:
            del self._holds[hold.uid]
            self._lease.take_back(hold.uid)

    def done(self, hold: Hold) -> None:
        """A pod in hand is bound."""
        if self._holds.get(hold.uid) is hold:
            del self._holds[hold.uid]
            self._lease.drop(hold.uid)

    async def check_claims(self, claims: Iterable[Claim]) -> None:
        """Returns once it is certain that the devices of these claims, as written, are nobody else's."""
        await self._order.check(claims)

    def _check(self, planned: assignment.Assignment) -> None:
        own = self._lookout.announced.by(self._lease.name, planned.pod.metadata.uid)
        self._check_pod(planned.pod, own=own)
        if own is None or not own.version or self._lookout.has_gap or not self._lease.is_current:
            raise collision.CollisionError("the announcement of the pod got lost")
        if planned.node:
            self._check_node(own, delegated=planned.delegated)
        labels = {
            announcements.claim_key(each.claim): identity.label(each.claim.metadata) for each in planned.allocations
        }
        for claim, device in own.content.exclusive():
            self._check_device(device, claim, labels[claim], own=own)

    def _check_pod(self, waiting: pod.Pod, *, own: announcements.Record | None) -> None:
        metadata = waiting.metadata
        current = self._pods.cache.get(metadata.name, namespace=metadata.namespace)
        if current is None or current.metadata.uid != metadata.uid or current.spec.node_name:
            raise collision.HeldError("the pod got bound or deleted elsewhere in the meantime")
        for other in self._lookout.announced.of_pod(metadata.uid):
            if other.peer != self._lease.name and (own is None or _is_earlier(other, own)):
                raise collision.HeldError(f"another scheduler takes the pod to node {other.content.node}")

    def _check_node(self, own: announcements.Record, *, delegated: frozenset[str]) -> None:
        """Only what is bound, and what was announced before, counts: what was announced later has to give way."""
        node, demand = own.content.node, own.content.demand
        state = self._nodes.find(node)
        if state is None:
            raise collision.CollisionError(f"node {node} is gone")
        account = state.ledger.copy()
        for uid in [uid for uid in account.bookings if self._nodes.is_assumed(uid)]:
            account.cancel(uid)
        for other in self._lookout.announced.on_node(node):
            if other.uid != own.uid and other.uid not in account.bookings and _is_earlier(other, own):
                announced = pod.Pod(metadata=meta.ObjectMeta(uid=other.uid))
                account.book(ledger.Booking(announced, other.content.demand))
        is_short = noderesourcesfit.FitQuestion(demand, delegated).ask(account).reasons
        if is_short or not nodeports.fits(demand.ports, account):
            raise collision.CollisionError(f"node {node} got used up first")

    def _check_device(self, device: identity.DeviceID, claim: str, label: str, *, own: announcements.Record) -> None:
        for other in self._lookout.announced.with_device(device):
            # Several pods may be about to allocate one and the same claim: which one does is for the claim to say.
            if _is_earlier(other, own) and claim not in other.content.devices:
                raise collision.CollisionError(f"device {device} got announced for another pod first")
        for owner in self._state.owners(device, places=(own.content.node,)):
            if owner != label and announcements.is_claim(owner):
                raise collision.CollisionError(f"device {device} got allocated for claim {owner} first")


def _is_earlier(other: announcements.Record, own: announcements.Record) -> bool:
    return other.version <= own.version


def _essence(result: resourceclaim.AllocationResult) -> Iterable[announcements.Result]:
    """What of an allocation takes something away from others."""
    for each in result.devices.results:
        if not each.admin_access:
            yield announcements.Result(
                driver=each.driver,
                pool=each.pool,
                device=each.device,
                share_id=each.share_id,
                consumed_capacity=each.consumed_capacity,
            )
