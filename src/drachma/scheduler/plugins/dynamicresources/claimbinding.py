"""Claim bindings: all writes about the claims of one pod before it is bound (PreBind), and their undoing.

These are the finalizer, allocation and reservation of each claim, the claim for extended resources, and the pod's
status about both. With peers, the writes are checked against those of other schedulers. If devices must become ready
first, the pod waits.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import structs

from drachma import errors
from drachma.api import pod, resourceclaim
from drachma.claims import identity, podclaims, reservation, wellknown
from drachma.client import patches, transactions
from drachma.scheduler.framework import bindingwork, handle
from drachma.scheduler.plugins.dynamicresources import bindingconditions, claimplan, claimwriter, extendedclaim, options
from drachma.scheduler.snapshot import assignment, claimtracker

if TYPE_CHECKING:
    from drachma.api import pod, resourceclaim
    from drachma.scheduler.plugins.dynamicresources import bindingconditions, claimplan, claimwriter


_log = logging.getLogger(__name__)

_ALLOCATABLE: Final = "nodeAllocatableResourceClaimStatuses"

Claim = resourceclaim.ResourceClaim


class ClaimBinding(bindingwork.BindingWork):
    """Claims of a pod that is about to be bound."""

    __slots__ = (
        "_assigned", "_created", "_handle", "_is_void", "_node", "_options", "_pod", "_reserved", "_status", "_tracker",
        "_writer", "_wrote_statuses",
    )  # fmt: skip

    def __init__(
        self,
        consumer: pod.Pod,
        assigned: claimplan.ClaimAssignment,
        *,
        node: str,
        tracker: claimtracker.ClaimTracker,
        handle: handle.Handle,
        options: options.Options,
    ) -> None:
        self._pod: Final = consumer
        self._assigned: Final = assigned
        self._node: Final = node
        self._tracker: Final = tracker
        self._handle: Final = handle
        self._options: Final = options
        self._writer: Final = claimwriter.ClaimWriter(
            handle.client, clock=handle.clock, rng=handle.rng, with_timestamps=options.has_binding_conditions
        )
        self._reserved: Final[list[tuple[Claim, reservation.Consumer]]] = []
        """Claims that this attempt reserved for the pod or its group, as they were written."""
        self._created: Claim | None = None
        """Claim that was created for extended resources."""
        self._status: Final[dict[str, Any]] = {}
        """Fields of the pod's status about its claims."""
        self._wrote_statuses = False
        self._is_void = False
        """True if the allocations collide with those of another scheduler, and must not stay."""

    @property
    def contended(self) -> frozenset[str]:
        """Uids of claims that are allocated already, and may be reserved for several pods at the same time."""
        plan = self._assigned.plan
        if plan is None:
            return frozenset()
        return frozenset(entry.claim.metadata.uid for entry in plan.claims if entry.claim.status.allocation is not None)

    # With the binding

    def changes(self) -> Sequence[transactions.Change] | None:
        """Return the changes of claims, if nothing else has to be written for the pod."""
        return _claim_changes(self._assigned, writer=self._writer)

    def committed(self, written_claims: Sequence[Any]) -> None:
        """Note the written claims. Nothing is in flight any more."""
        for claim in written_claims:
            self._tracker.observe(claim)
            self._tracker.settle(claim.metadata.uid)

    # Step by step

    async def write(self) -> None:
        """Write claims, and then the pod's status about them."""
        await self._write_claims()
        self._describe_claims()
        if self._status:
            await self._write_statuses()
        if self._handle.order is not None:
            await self._check_devices(self._handle.order)

    async def _write_claims(self) -> None:
        assigned = self._assigned
        if assigned.plan is None:
            return
        results = {entry.claim.metadata.uid: entry.result for entry in assigned.allocations}
        for entry in _each_once(assigned.plan):
            if not reservation.is_reserved_for(entry.claim, entry.consumer):
                await self._reserve(entry.claim, entry.consumer, allocation=results.get(entry.claim.metadata.uid))
        if assigned.mappings:
            await self._write_special(assigned.allocations[-1])

    async def _reserve(
        self, claim: Claim, consumer: reservation.Consumer, *, allocation: resourceclaim.AllocationResult | None
    ) -> Claim:
        written_claim = await self._writer.reserve(claim, consumer, allocation=allocation)
        self._reserved.append((written_claim, consumer))
        self._tracker.observe(written_claim)
        if self._handle.order is None:
            # The write is done and noted, so nothing is in flight any more.
            self._tracker.settle(claim.metadata.uid)
        return written_claim

    async def _write_special(self, entry: assignment.Allocation) -> None:
        """Create the claim for extended resources, and note its name for the pod's status."""
        metadata = msgspec.structs.replace(entry.claim.metadata, name="", uid="")
        try:
            created_claim = await self._writer.create(msgspec.structs.replace(entry.claim, metadata=metadata))
        except claimwriter.ClaimError:
            self._handle.measures.claim_created("failure")
            raise
        self._handle.measures.claim_created("success")
        self._created = created_claim
        # The allocation was in flight under a placeholder, and is under the real name now.
        self._tracker.settle(entry.claim.metadata.uid)
        self._tracker.reserve(created_claim.metadata, entry.result)
        self._tracker.observe(created_claim)
        reserved_claim = await self._reserve(created_claim, self._pod, allocation=entry.result)
        self._status["extendedResourceClaimStatus"] = pod.PodExtendedResourceClaimStatus(
            request_mappings=self._assigned.mappings, resource_claim_name=reserved_claim.metadata.name
        )

    def _describe_claims(self) -> None:
        """Add to the pod's status what its claims add to its requests (KEP-5517)."""
        created = self._created
        if self._assigned.statuses:
            self._status[_ALLOCATABLE] = [
                msgspec.structs.replace(status, resource_claim_name=created.metadata.name)
                if created is not None and status.resource_claim_name == extendedclaim.IN_MEMORY_NAME
                else status
                for status in self._assigned.statuses
            ]

    async def _write_statuses(self) -> None:
        try:
            await self._patch_pod(self._status)
        except errors.DrachmaError as error:
            if _ALLOCATABLE not in self._status:
                raise
            metadata = self._pod.metadata
            label = f"{metadata.namespace}/{metadata.name}"
            problem = f"updating pod {label} NodeAllocatableResourceClaimStatuses: {error}"
            raise claimwriter.ClaimError(problem) from error
        self._wrote_statuses = True

    async def _patch_pod(self, status: dict[str, Any]) -> None:
        await self._handle.client.patch(
            pod.Pod,
            self._pod.metadata.name,
            namespace=self._pod.metadata.namespace,
            subresource="status",
            patch=patches.merge({"status": status}, patches.same(self._pod)),
        )

    # Binding conditions

    @property
    def is_waiting(self) -> bool:
        """True if devices have binding conditions."""
        return bool(self._unready())

    async def wait(self) -> None:
        """Return once the devices are ready."""
        patience = bindingconditions.DeviceWait(
            self._tracker, handle=self._handle, seconds=self._options.binding_seconds
        )
        await patience.wait_until_ready(self._unready(), self._pod, node=self._node)

    def _unready(self) -> list[Claim]:
        if not self._options.has_binding_conditions:
            return []
        return [claim for claim in self._claims() if bindingconditions.has_binding_conditions(claim.status.allocation)]

    def _claims(self) -> list[Claim]:
        """Return the pod's claims, in their written state if they were written."""
        plan = self._assigned.plan
        claims = {entry.claim.metadata.uid: entry.claim for entry in plan.claims} if plan is not None else {}
        return list((claims | {claim.metadata.uid: claim for claim, _ in self._reserved}).values())

    # Other schedulers

    async def check(self) -> None:
        """Check that no claim was taken away before this scheduler held the pod. Afterwards no peer may."""
        if self._handle.peers is not None:
            await self._check_claims(self._claims())

    async def _check_devices(self, order: handle.AllocationOrder) -> None:
        """Check that the claims are unchanged, and that no other scheduler was faster with their devices."""
        claims = self._claims()
        written_uids = {claim.metadata.uid for claim, _ in self._reserved}
        await self._check_claims(claim for claim in claims if claim.metadata.uid not in written_uids)
        try:
            await order.check_claims(claims)
        except handle.CollisionError:
            self._is_void = True
            raise
        for claim in claims:
            self._tracker.settle(claim.metadata.uid)

    async def _check_claims(self, claims: Iterable[Claim]) -> None:
        for claim in claims:
            metadata = claim.metadata
            current = await self._handle.client.get(Claim, metadata.name, namespace=metadata.namespace)
            is_same = current.metadata.uid == metadata.uid and current.status.allocation == claim.status.allocation
            if not is_same or not reservation.may_be_used_by(current, self._pod):
                raise claimwriter.ClaimError(f"claim {identity.label(metadata)} got taken away in the meantime")

    # Undo

    @property
    def is_clean(self) -> bool:
        """True if nothing was written, and nothing that another scheduler wrote for the pod is void."""
        return not (self._reserved or self._created is not None or self._wrote_statuses or self._is_void)

    async def undo(self) -> None:
        """Take back reservations and void allocations, and delete the claim that was created for the pod."""
        created = self._created
        reserved = {claim.metadata.uid: (claim, consumer) for claim, consumer in self._reserved}
        if self._is_void and self._assigned.plan is not None:
            # Writes of another scheduler for the pod are void as well.
            entries = self._assigned.plan.claims
            reserved |= {entry.claim.metadata.uid: (entry.claim, entry.consumer) for entry in entries}
        for claim, consumer in reserved.values():
            if created is None or claim.metadata.uid != created.metadata.uid:
                undo = self._writer.withdraw if self._is_void else self._writer.release
                await _try_write(undo(claim, consumer), f"unreserve {identity.label(claim.metadata)}")
        if created is not None:
            newest = self._tracker.get(created.metadata.namespace, created.metadata.name) or created
            await _try_write(self._writer.delete(newest), f"delete {identity.label(created.metadata)}")
        if self._wrote_statuses and _ALLOCATABLE in self._status:
            await _try_write(self._patch_pod({_ALLOCATABLE: []}), "clear node allocatable resources")

    def forget(self) -> None:
        """Note that nothing is in flight any more."""
        for entry in self._assigned.allocations:
            self._tracker.settle(entry.claim.metadata.uid)
        if self._created is not None:
            self._tracker.settle(self._created.metadata.uid)


async def _try_write(write: Awaitable[None], what: str) -> None:
    try:
        await write
    except errors.DrachmaError as error:
        _log.warning("%s failed: %s", what, error)


def _each_once(plan: claimplan.ClaimPlan) -> list[podclaims.PodClaim]:
    """Return each claim and consumer once: a pod may refer to a claim under several names."""
    return list({(each.claim.metadata.uid, each.consumer.metadata.uid): each for each in plan.claims}.values())


def _claim_changes(
    assigned: claimplan.ClaimAssignment, *, writer: claimwriter.ClaimWriter
) -> list[transactions.Change] | None:
    """Return a change for each claim that is not reserved for its consumer yet; None if states in between matter.

    They matter if devices must become ready first, if a claim must be created or the pod's status written, or if a
    claim has changed, for which the writer has a message.
    """
    if assigned.mappings or assigned.statuses:
        return None
    if assigned.plan is None:
        return []
    results = {entry.claim.metadata.uid: entry.result for entry in assigned.allocations}
    changes: list[transactions.Change] = []
    for entry in _each_once(assigned.plan):
        claim, consumer = entry.claim, entry.consumer
        if bindingconditions.has_binding_conditions(
            claim.status.allocation
        ) or bindingconditions.has_binding_conditions(results.get(claim.metadata.uid)):
            return None
        if reservation.is_reserved_for(claim, consumer):
            continue
        change = _change(claim, consumer, results, writer=writer)
        if change is None:
            return None
        changes.append(change)
    return changes


def _change(
    claim: resourceclaim.ResourceClaim,
    consumer: reservation.Consumer,
    results: Mapping[str, resourceclaim.AllocationResult],
    *,
    writer: claimwriter.ClaimWriter,
) -> transactions.StatusChange | None:
    allocation = results.get(claim.metadata.uid)
    # The claim must either be allocated, or get an allocation.
    if claim.metadata.deletion_timestamp is not None or (allocation is None) is (claim.status.allocation is None):
        return None
    finalizers, status = claim.metadata.finalizers, claim.status
    reserved_for = (*status.reserved_for, reservation.consumer(consumer))
    if allocation is None:
        return transactions.StatusChange(claim, structs.replace(status, reserved_for=reserved_for), finalizers)
    if wellknown.CLAIM_FINALIZER not in finalizers:
        finalizers = (*finalizers, wellknown.CLAIM_FINALIZER)
    status = structs.replace(status, allocation=writer.stamped(allocation), reserved_for=reserved_for)
    return transactions.StatusChange(claim, status, finalizers)
