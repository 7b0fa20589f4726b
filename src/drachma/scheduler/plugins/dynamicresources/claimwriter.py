"""Writes of claims: finalizer, allocation and reservation before a pod is bound, and their undoing.

A write with a conflict is tried again on the newest state. A :class:`ClaimError` says that a retry is pointless: the
claim is being deleted, was replaced, or was allocated elsewhere. A write without an answer may have happened. Then the
claim is read until the server answers, and its devices stay in flight: otherwise another claim would get them before
the watch shows the first one.

The remedies that PostFilter proposes for claims are here too.
"""

from __future__ import annotations

import contextlib
import random
from typing import Any, Final, NamedTuple

import msgspec

from drachma import errors
from drachma.api import pod, resourceclaim
from drachma.claims import identity, reservation, wellknown
from drachma.client import patches, protocol
from drachma.runtime import clock
from drachma.scheduler.framework import handle, verdict

_ATTEMPTS: Final = 5
_PAUSE: Final = 0.01
_OUTAGE_PAUSE: Final = 0.5
_UNANSWERED: Final = (errors.UnreachableError, errors.ServerFaultError)
"""Errors after which a write may or may not have happened."""

Claim = resourceclaim.ResourceClaim


class ClaimError(verdict.AbortError):
    """Error of a claim that cannot be used, with its name and the reason."""


class ClaimWriter:
    """Writes claims through a client."""

    def __init__(
        self, client: protocol.Client, *, clock: clock.Clock, rng: random.Random, with_timestamps: bool
    ) -> None:
        """``with_timestamps`` records the time of each allocation, which binding conditions need."""
        self._client: Final = client
        self._clock: Final = clock
        self._rng: Final = rng
        self._with_timestamps: Final = with_timestamps

    async def reserve(
        self, claim: Claim, consumer: reservation.Consumer, *, allocation: resourceclaim.AllocationResult | None
    ) -> Claim:
        """Reserve a claim for a pod or a group, with an allocation if it has none, and return it."""
        current = claim
        for attempt in range(_ATTEMPTS):
            try:
                return await self._reserve(current, consumer, allocation=allocation)
            except _UNANSWERED as error:
                stored_claim = await self._read_after_outage(claim)
                if _is_written(stored_claim, consumer, allocation=allocation):
                    return stored_claim
                raise ClaimError(f"{_action(allocation)} claim {identity.label(claim.metadata)}: {error}") from error
            except errors.ObjectConflictError as error:
                if attempt + 1 == _ATTEMPTS:
                    raise ClaimError(
                        f"{_action(allocation)} claim {identity.label(claim.metadata)}: {error}"
                    ) from error
            await self._clock.sleep(_PAUSE * (1 + self._rng.random() / 10))
            current = await self._read_again(claim)
            if allocation is None and current.status.allocation not in (None, claim.status.allocation):
                # The node was chosen for the devices that the claim had.
                raise ClaimError(f"claim {identity.label(claim.metadata)} got allocated elsewhere in the meantime")
        raise AssertionError("the last attempt returns or raises")

    async def _reserve(
        self, claim: Claim, consumer: reservation.Consumer, *, allocation: resourceclaim.AllocationResult | None
    ) -> Claim:
        if claim.metadata.deletion_timestamp is not None:
            raise ClaimError(f"claim {identity.label(claim.metadata)} got deleted in the meantime")
        status: dict[str, Any] = {}
        if allocation is not None:
            if claim.status.allocation is not None:
                raise ClaimError(f"claim {identity.label(claim.metadata)} got allocated elsewhere in the meantime")
            claim = await self._add_finalizer(claim)
            status["allocation"] = self.stamped(allocation)
        elif claim.status.allocation is None:
            raise ClaimError(f"claim {identity.label(claim.metadata)} got deallocated elsewhere in the meantime")
        if not reservation.is_reserved_for(claim, consumer):
            status["reservedFor"] = (*claim.status.reserved_for, reservation.consumer(consumer))
        try:
            stored_claim = await self._patch_status(claim, status)
        except (errors.ObjectConflictError, *_UNANSWERED):
            raise
        except errors.DrachmaError as error:
            raise ClaimError(f"{_action(allocation)} claim {identity.label(claim.metadata)}: {error}") from error
        if allocation is not None:
            await self._check_kept(stored_claim, allocation)
        return stored_claim

    async def _check_kept(self, stored_claim: Claim, allocation: resourceclaim.AllocationResult) -> None:
        """Withdraw an allocation that the API server stored without fields whose feature gates are off.

        Without these fields, other schedulers and the kubelet would use the devices in another way.
        """
        missing_fields = _fields_not_kept(stored_claim, allocation)
        if not missing_fields:
            return
        await self.deallocate(stored_claim)
        raise ClaimError(
            f"claim {identity.label(stored_claim.metadata)}: the API server stored the allocation without "
            f"{', '.join(missing_fields)}; the feature gates of these fields are off there"
        )

    def stamped(self, allocation: resourceclaim.AllocationResult) -> resourceclaim.AllocationResult:
        """Return an allocation with the time of the write, if timestamps are recorded."""
        # The server accepts the timestamp only together with the allocation.
        if not self._with_timestamps or allocation.allocation_timestamp is not None:
            return allocation
        return msgspec.structs.replace(allocation, allocation_timestamp=self._clock.utc().replace(microsecond=0))

    async def _add_finalizer(self, claim: Claim) -> Claim:
        """Return the claim with the finalizer, which must be written before the allocation."""
        if wellknown.CLAIM_FINALIZER in claim.metadata.finalizers:
            return claim
        finalizers = [*claim.metadata.finalizers, wellknown.CLAIM_FINALIZER]
        try:
            return await self._client.patch(
                Claim,
                claim.metadata.name,
                namespace=claim.metadata.namespace,
                patch=patches.merge({"metadata": {"finalizers": finalizers}}, patches.unchanged(claim)),
            )
        except errors.ObjectConflictError:
            raise
        except errors.DrachmaError as error:
            raise ClaimError(f"add finalizer to claim {identity.label(claim.metadata)}: {error}") from error

    async def _read_again(self, claim: Claim) -> Claim:
        try:
            current = await self._client.get(Claim, claim.metadata.name, namespace=claim.metadata.namespace)
        except errors.DrachmaError as error:
            raise ClaimError(f"get updated claim {identity.label(claim.metadata)} after conflict: {error}") from error
        if current.metadata.uid != claim.metadata.uid:
            raise ClaimError(f"claim {identity.label(claim.metadata)} got deleted in the meantime")
        return current

    async def _read_after_outage(self, claim: Claim) -> Claim:
        """Return the claim as it is stored, once the server answers again."""
        while True:
            try:
                return await self._read_again(claim)
            except ClaimError as error:
                if not isinstance(error.__cause__, _UNANSWERED):
                    raise
            await self._clock.sleep(_OUTAGE_PAUSE * (1 + self._rng.random()))

    async def release(self, claim: Claim, consumer: reservation.Consumer) -> None:
        """Remove a pod or a group from the consumers of a claim, whatever else has changed."""
        entry = {"$patch": "delete", "uid": consumer.metadata.uid}
        patch = patches.strategic({"status": {"reservedFor": [entry]}}, patches.same(claim))
        await self._client.patch(
            Claim, claim.metadata.name, namespace=claim.metadata.namespace, subresource="status", patch=patch
        )

    async def withdraw(self, claim: Claim, consumer: reservation.Consumer) -> None:
        """Take back an allocation that collides with another one, or only the reservation while other pods use it."""
        for _ in range(_ATTEMPTS):
            current = await self._client.get(Claim, claim.metadata.name, namespace=claim.metadata.namespace)
            if current.metadata.uid != claim.metadata.uid or current.status.allocation is None:
                return
            if any(user.uid != consumer.metadata.uid for user in current.status.reserved_for):
                await self.release(current, consumer)
                return
            with contextlib.suppress(errors.ObjectConflictError):
                await self.deallocate(current)
                return

    async def deallocate(self, claim: Claim) -> Claim:
        """Clear the status of a claim, if the claim is unchanged."""
        return await self._patch_status(claim, {"allocation": None, "reservedFor": None, "devices": None})

    async def create(self, draft: Claim) -> Claim:
        """Create a claim under a generated name."""
        try:
            return await self._client.create(draft)
        except errors.DrachmaError as error:
            raise ClaimError(
                f"create claim for extended resources {identity.label(draft.metadata)}: {error}"
            ) from error

    async def delete(self, claim: Claim) -> None:
        """Delete a claim, in use or not: only for claims that the scheduler created."""
        current = claim
        for attempt in range(_ATTEMPTS):
            try:
                if wellknown.CLAIM_FINALIZER in current.metadata.finalizers:
                    finalizers = [name for name in current.metadata.finalizers if name != wellknown.CLAIM_FINALIZER]
                    patch = patches.merge({"metadata": {"finalizers": finalizers}}, patches.unchanged(current))
                    await self._client.patch(
                        Claim, claim.metadata.name, namespace=claim.metadata.namespace, patch=patch
                    )
                break
            except errors.ObjectConflictError:
                if attempt + 1 == _ATTEMPTS:
                    raise
                current = await self._client.get(Claim, claim.metadata.name, namespace=claim.metadata.namespace)
        with contextlib.suppress(errors.ObjectNotFoundError):
            await self._client.delete(
                Claim,
                claim.metadata.name,
                namespace=claim.metadata.namespace,
                preconditions=patches.same(claim),
            )

    async def _patch_status(self, claim: Claim, status: dict[str, Any]) -> Claim:
        return await self._client.patch(
            Claim,
            claim.metadata.name,
            namespace=claim.metadata.namespace,
            subresource="status",
            patch=patches.merge({"status": status}, patches.unchanged(claim)),
        )


_GATED_FIELDS: Final = {
    "admin_access": "adminAccess",
    "binding_conditions": "bindingConditions",
    "consumed_capacity": "consumedCapacity",
    "share_id": "shareID",
}
"""Fields of an allocated device that a server drops without their feature gates, by their names in Python."""


def _fields_not_kept(claim: Claim, allocation: resourceclaim.AllocationResult) -> list[str]:
    """Return the fields of an allocation that are absent in what the server stored."""
    stored_allocation = claim.status.allocation
    stored_results = stored_allocation.devices.results if stored_allocation is not None else ()
    return sorted(
        {
            title
            for result, stored_result in zip(allocation.devices.results, stored_results, strict=False)
            for name, title in _GATED_FIELDS.items()
            if getattr(result, name) and not getattr(stored_result, name)
        }
    )


def _is_written(
    claim: Claim, consumer: reservation.Consumer, *, allocation: resourceclaim.AllocationResult | None
) -> bool:
    """Return True if a write that got no answer was done."""
    stored_allocation = claim.status.allocation
    if stored_allocation is None or not reservation.is_reserved_for(claim, consumer):
        return False
    timestamp = stored_allocation.allocation_timestamp
    return allocation is None or stored_allocation == msgspec.structs.replace(
        allocation, allocation_timestamp=timestamp
    )


def _action(allocation: resourceclaim.AllocationResult | None) -> str:
    return "add reservation to" if allocation is None else "add allocation and reservation to"


# Remedies


class Deallocation(NamedTuple):
    """Deallocation of a claim whose devices the pod cannot use, and that no other pod uses. A remedy."""

    claim: Claim
    waiting_pod: pod.Pod
    """Pod that cannot use the devices."""

    @property
    def title(self) -> str:
        """Name of the action in logs."""
        return f"deallocation of {identity.label(self.claim.metadata)}"

    @property
    def victims(self) -> tuple[pod.Pod, ...]:
        """No pods."""
        return ()

    async def apply(self, handle: handle.Handle) -> bool:
        """Write the claim without its allocation and without the waiting pod's reservation."""
        writer = _remedy_writer(handle)
        if handle.peers is None or not self.claim.status.reserved_for:
            await writer.deallocate(self.claim)
            return True
        # Another scheduler may be about to bind the pod with this claim. Then the claim is not in the way.
        hold = await handle.peers.hold_back(self.waiting_pod)
        try:
            await writer.deallocate(self.claim)
        finally:
            handle.peers.let_go(hold)
        return True


class Deletion(NamedTuple):
    """Deletion of a claim that an earlier attempt left behind. A remedy."""

    claim: Claim

    @property
    def title(self) -> str:
        """Name of the action in logs."""
        return f"deletion of {identity.label(self.claim.metadata)}"

    @property
    def victims(self) -> tuple[pod.Pod, ...]:
        """No pods."""
        return ()

    async def apply(self, handle: handle.Handle) -> bool:
        """Delete the claim."""
        await _remedy_writer(handle).delete(self.claim)
        return True


def _remedy_writer(handle: handle.Handle) -> ClaimWriter:
    return ClaimWriter(handle.client, clock=handle.clock, rng=handle.rng, with_timestamps=False)
