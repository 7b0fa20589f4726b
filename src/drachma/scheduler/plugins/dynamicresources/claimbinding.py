"""Claim bindings: all that is written about the claims of one pod before it is bound (PreBind), or taken back.

Finalizer, allocation and reservation of each claim; the claim that is made for extended resources; what the pod's
status says of both. Where other schedulers work, what was written is checked against theirs, and where devices have to
become ready first, the pod waits for that.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Iterable, Sequence
from typing import Any, Final

import msgspec

from drachma import errors
from drachma.api import pod, resourceclaim
from drachma.claims import identity, reservation
from drachma.client import patches, transactions
from drachma.scheduler.framework import bindingwork, collision
from drachma.scheduler.plugins.dynamicresources import (
    bindingconditions,
    claimassignment,
    claimchanges,
    claimwriter,
    devicewait,
    extendedclaim,
    options,
)
from drachma.scheduler.snapshot import assignment, claimtracker

_log = logging.getLogger(__name__)

_ALLOCATABLE: Final = "nodeAllocatableResourceClaimStatuses"

Claim = resourceclaim.ResourceClaim


class ClaimBinding(bindingwork.BindingWork):
    """The claims of a pod that is about to be bound."""

    __slots__ = (
        "_assigned", "_created", "_handle", "_is_void", "_node", "_options", "_pod", "_reserved", "_status", "_tracker",
        "_writer", "_wrote_statuses",
    )  # fmt: skip

    def __init__(
        self,
        consumer: pod.Pod,
        assigned: claimassignment.ClaimAssignment,
        *,
        node: str,
        tracker: claimtracker.ClaimTracker,
        handle: bindingwork.Handle,
        chosen: options.Options,
    ) -> None:
        self._pod: Final = consumer
        self._assigned: Final = assigned
        self._node: Final = node
        self._tracker: Final = tracker
        self._handle: Final = handle
        self._options: Final = chosen
        self._writer: Final = claimwriter.ClaimWriter(
            handle.client, time=handle.clock, chance=handle.chance, with_timestamps=chosen.has_binding_conditions
        )
        self._reserved: Final[list[Claim]] = []
        """Claims that have the pod among their consumers because of this attempt, as they were written."""
        self._created: Claim | None = None
        """The claim that was made for extended resources."""
        self._status: Final[dict[str, Any]] = {}
        """What the pod's status says about its claims."""
        self._wrote_statuses = False
        self._is_void = False
        """Whether its allocations collide with those of another scheduler, and must not stay."""

    # With the binding

    def changes(self) -> Sequence[transactions.Change] | None:
        """What is written to claims, if nothing but that is to be done for the pod."""
        return claimchanges.of(self._pod, self._assigned, writer=self._writer)

    def committed(self, written: Sequence[Any]) -> None:
        """Claims are as they were written, and nothing is in flight any more."""
        for claim in written:
            self._tracker.observe(claim)
            self._tracker.settle(claim.metadata.uid)

    # Step by step

    async def write(self) -> None:
        """Writes claims, and then what the pod's status says of them."""
        await self._write_claims()
        self._describe_claims()
        if self._status:
            await self._write_statuses()
        if self._handle.others is not None:
            await self._check_devices(self._handle.others)

    async def _write_claims(self) -> None:
        assigned = self._assigned
        if assigned.plan is None:
            return
        results = {entry.claim.metadata.uid: entry.result for entry in assigned.allocations}
        # A pod may refer to a claim under several names.
        for uid, claim in {entry.claim.metadata.uid: entry.claim for entry in assigned.plan.claims}.items():
            if not reservation.is_reserved_for(claim, self._pod):
                await self._reserve(claim, allocation=results.get(uid))
        if assigned.mappings:
            await self._write_special(assigned.allocations[-1])

    async def _reserve(self, claim: Claim, *, allocation: resourceclaim.AllocationResult | None) -> Claim:
        written = await self._writer.reserve(claim, self._pod, allocation=allocation)
        self._reserved.append(written)
        self._tracker.observe(written)
        if self._handle.others is None:
            # Written and seen: nothing is in flight any more.
            self._tracker.settle(claim.metadata.uid)
        return written

    async def _write_special(self, entry: assignment.Allocation) -> None:
        """Make the claim for extended resources, and tell the pod's containers about it."""
        metadata = msgspec.structs.replace(entry.claim.metadata, name="", uid="")
        try:
            made = await self._writer.create(msgspec.structs.replace(entry.claim, metadata=metadata))
        except claimwriter.ClaimError:
            self._handle.measures.claim_created("failure")
            raise
        self._handle.measures.claim_created("success")
        self._created = made
        # What was in flight under a name of its own now is under the real one.
        self._tracker.settle(entry.claim.metadata.uid)
        self._tracker.reserve(made.metadata, entry.result)
        self._tracker.observe(made)
        written = await self._reserve(made, allocation=entry.result)
        self._status["extendedResourceClaimStatus"] = pod.PodExtendedResourceClaimStatus(
            request_mappings=self._assigned.mappings, resource_claim_name=written.metadata.name
        )

    def _describe_claims(self) -> None:
        """Have the pod's status say what its claims add to its requests (KEP-5517)."""
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

    # Devices that have to become ready

    @property
    def is_waiting(self) -> bool:
        """Whether devices have conditions that somebody else has to see to."""
        return bool(self._unready())

    async def wait(self) -> None:
        """Returns once the devices are ready."""
        patience = devicewait.DeviceWait(self._tracker, handle=self._handle, seconds=self._options.binding_seconds)
        await patience.until_ready(self._unready(), self._pod, node=self._node)

    def _unready(self) -> list[Claim]:
        if not self._options.has_binding_conditions:
            return []
        return [claim for claim in self._claims() if bindingconditions.awaited(claim.status.allocation)]

    def _claims(self) -> list[Claim]:
        """The pod's claims, those that were written as they were written."""
        plan = self._assigned.plan
        claims = {entry.claim.metadata.uid: entry.claim for entry in plan.claims} if plan is not None else {}
        return list((claims | {claim.metadata.uid: claim for claim in self._reserved}).values())

    # Other schedulers

    async def check(self) -> None:
        """Makes sure that nobody took claims away before the pod was in hand; afterwards nobody may."""
        if self._handle.others is not None:
            await self._check_claims(self._claims())

    async def _check_devices(self, others: bindingwork.Others) -> None:
        """Make sure that the claims are what they were decided to be, and that nobody was faster with the devices."""
        claims = self._claims()
        written = {claim.metadata.uid for claim in self._reserved}
        await self._check_claims(claim for claim in claims if claim.metadata.uid not in written)
        try:
            await others.check_claims(claims)
        except collision.CollisionError:
            self._is_void = True
            raise
        for claim in claims:
            self._tracker.settle(claim.metadata.uid)

    async def _check_claims(self, claims: Iterable[Claim]) -> None:
        for claim in claims:
            metadata = claim.metadata
            current = await self._handle.client.get(Claim, metadata.name, namespace=metadata.namespace)
            is_same = current.metadata.uid == metadata.uid and current.status.allocation == claim.status.allocation
            if not is_same or not reservation.is_reserved_for(current, self._pod):
                raise claimwriter.ClaimError(f"claim {identity.label(metadata)} got taken away in the meantime")

    # Taking back

    @property
    def is_clean(self) -> bool:
        """Whether nothing was written, and nothing that another scheduler wrote for the pod is void."""
        return not (self._reserved or self._created is not None or self._wrote_statuses or self._is_void)

    async def undo(self) -> None:
        """Takes reservations back, and allocations that are void; deletes the claim that was made for the pod."""
        created = self._created
        claims = {claim.metadata.uid: claim for claim in self._reserved}
        if self._is_void and self._assigned.plan is not None:
            # What another scheduler wrote for the pod and left is void as well.
            claims |= {entry.claim.metadata.uid: entry.claim for entry in self._assigned.plan.claims}
        for claim in claims.values():
            if created is None or claim.metadata.uid != created.metadata.uid:
                undo = self._writer.withdraw if self._is_void else self._writer.release
                await _tried(undo(claim, self._pod), f"unreserve {identity.label(claim.metadata)}")
        if created is not None:
            newest = self._tracker.get(created.metadata.namespace, created.metadata.name) or created
            await _tried(self._writer.delete(newest), f"delete {identity.label(created.metadata)}")
        if self._wrote_statuses and _ALLOCATABLE in self._status:
            await _tried(self._patch_pod({_ALLOCATABLE: []}), "clear node allocatable resources")

    def forget(self) -> None:
        """Nothing is in flight any more."""
        for entry in self._assigned.allocations:
            self._tracker.settle(entry.claim.metadata.uid)
        if self._created is not None:
            self._tracker.settle(self._created.metadata.uid)


async def _tried(write: Awaitable[None], what: str) -> None:
    try:
        await write
    except errors.DrachmaError as error:
        _log.warning("%s failed: %s", what, error)
