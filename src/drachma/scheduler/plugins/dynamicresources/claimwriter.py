"""Writes claims: finalizer, allocation and reservation before a pod is bound, and all of it taken back if it is not.

Called before a pod is bound, and after a failed attempt. A write that another one came before is tried again on the
newest state; what makes it pointless (the claim is going, is another one of the same name, or was allocated by somebody
else) is a :class:`ClaimError`. A write without an answer may have been done. The claim is then read until the server
answers, and its devices stay in flight: another claim would get them before the watch shows the first one.
"""

from __future__ import annotations

import contextlib
import random
from typing import Any, Final

import msgspec

from drachma import errors
from drachma.api import pod, resourceclaim
from drachma.claims import identity, reservation, wellknown
from drachma.client import patches, protocol
from drachma.runtime import clock
from drachma.scheduler.framework import verdict

_ATTEMPTS: Final = 5
_PAUSE: Final = 0.01
_OUTAGE_PAUSE: Final = 0.5
_UNANSWERED: Final = (errors.UnreachableError, errors.ServerFaultError)
"""Errors after which a write may have happened or not."""

Claim = resourceclaim.ResourceClaim


class ClaimError(verdict.AbortError):
    """A claim cannot be had; the text says which and why."""


class ClaimWriter:
    """Writes claims through a client."""

    def __init__(
        self, client: protocol.Client, *, time: clock.Clock, chance: random.Random, with_timestamps: bool
    ) -> None:
        """``with_timestamps`` notes when a claim was allocated, which binding conditions need."""
        self._client: Final = client
        self._clock: Final = time
        self._chance: Final = chance
        self._with_timestamps: Final = with_timestamps

    async def reserve(
        self, claim: Claim, consumer: pod.Pod, *, allocation: resourceclaim.AllocationResult | None
    ) -> Claim:
        """The claim with a pod among its consumers, and allocated where ``allocation`` says what."""
        current = claim
        for attempt in range(_ATTEMPTS):
            try:
                return await self._reserve(current, consumer, allocation=allocation)
            except _UNANSWERED as error:
                stored = await self._read_after_outage(claim)
                if _is_written(stored, consumer, allocation=allocation):
                    return stored
                raise ClaimError(f"{_doing(allocation)} claim {identity.label(claim.metadata)}: {error}") from error
            except errors.ObjectConflictError as error:
                if attempt + 1 == _ATTEMPTS:
                    raise ClaimError(f"{_doing(allocation)} claim {identity.label(claim.metadata)}: {error}") from error
            await self._clock.sleep(_PAUSE * (1 + self._chance.random() / 10))
            current = await self._refreshed(claim)
            if allocation is None and current.status.allocation not in (None, claim.status.allocation):
                # The node was chosen for the devices that the claim had.
                raise ClaimError(f"claim {identity.label(claim.metadata)} got allocated elsewhere in the meantime")
        raise AssertionError("the last attempt returns or raises")

    async def _reserve(
        self, claim: Claim, consumer: pod.Pod, *, allocation: resourceclaim.AllocationResult | None
    ) -> Claim:
        if claim.metadata.deletion_timestamp is not None:
            raise ClaimError(f"claim {identity.label(claim.metadata)} got deleted in the meantime")
        status: dict[str, Any] = {}
        if allocation is not None:
            if claim.status.allocation is not None:
                raise ClaimError(f"claim {identity.label(claim.metadata)} got allocated elsewhere in the meantime")
            claim = await self._protected(claim)
            status["allocation"] = self.stamped(allocation)
        elif claim.status.allocation is None:
            raise ClaimError(f"claim {identity.label(claim.metadata)} got deallocated elsewhere in the meantime")
        if not reservation.is_reserved_for(claim, consumer):
            status["reservedFor"] = (*claim.status.reserved_for, reservation.consumer(consumer))
        try:
            return await self._patch_status(claim, status)
        except (errors.ObjectConflictError, *_UNANSWERED):
            raise
        except errors.DrachmaError as error:
            raise ClaimError(f"{_doing(allocation)} claim {identity.label(claim.metadata)}: {error}") from error

    def stamped(self, allocation: resourceclaim.AllocationResult) -> resourceclaim.AllocationResult:
        """An allocation with the time at which it is written, where that is noted."""
        # Only with the allocation itself: once that is written, the server takes no changes of it.
        if not self._with_timestamps or allocation.allocation_timestamp is not None:
            return allocation
        return msgspec.structs.replace(allocation, allocation_timestamp=self._clock.utc().replace(microsecond=0))

    async def _protected(self, claim: Claim) -> Claim:
        """The claim with the finalizer, which has to be there before an allocation is."""
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

    async def _refreshed(self, claim: Claim) -> Claim:
        try:
            found = await self._client.get(Claim, claim.metadata.name, namespace=claim.metadata.namespace)
        except errors.DrachmaError as error:
            raise ClaimError(f"get updated claim {identity.label(claim.metadata)} after conflict: {error}") from error
        if found.metadata.uid != claim.metadata.uid:
            raise ClaimError(f"claim {identity.label(claim.metadata)} got deleted in the meantime")
        return found

    async def _read_after_outage(self, claim: Claim) -> Claim:
        """Return the claim as it is stored, once the server answers again."""
        while True:
            try:
                return await self._refreshed(claim)
            except ClaimError as error:
                if not isinstance(error.__cause__, _UNANSWERED):
                    raise
            await self._clock.sleep(_OUTAGE_PAUSE * (1 + self._chance.random()))

    async def release(self, claim: Claim, consumer: pod.Pod) -> None:
        """Takes a pod off the consumers of a claim, whatever else changed there."""
        entry = {"$patch": "delete", "uid": consumer.metadata.uid}
        patch = patches.strategic({"status": {"reservedFor": [entry]}}, patches.same(claim))
        await self._client.patch(
            Claim, claim.metadata.name, namespace=claim.metadata.namespace, subresource="status", patch=patch
        )

    async def withdraw(self, claim: Claim, consumer: pod.Pod) -> None:
        """Takes back an allocation that collides with another one; as long as others use it, only the reservation."""
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
        """Clears all that a claim's status says, if the claim is still as it is known."""
        return await self._patch_status(claim, {"allocation": None, "reservedFor": None, "devices": None})

    async def create(self, made: Claim) -> Claim:
        """A new claim, under a generated name."""
        try:
            return await self._client.create(made)
        except errors.DrachmaError as error:
            raise ClaimError(f"create claim for extended resources {identity.label(made.metadata)}: {error}") from error

    async def delete(self, claim: Claim) -> None:
        """Deletes a claim for good, in use or not: only for claims that the scheduler made itself."""
        current = claim
        for attempt in range(_ATTEMPTS):
            try:
                if wellknown.CLAIM_FINALIZER in current.metadata.finalizers:
                    left = [name for name in current.metadata.finalizers if name != wellknown.CLAIM_FINALIZER]
                    patch = patches.merge({"metadata": {"finalizers": left}}, patches.unchanged(current))
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


def _is_written(claim: Claim, consumer: pod.Pod, *, allocation: resourceclaim.AllocationResult | None) -> bool:
    """Return True if a write that got no answer was done."""
    stored = claim.status.allocation
    if stored is None or not reservation.is_reserved_for(claim, consumer):
        return False
    timestamp = stored.allocation_timestamp
    return allocation is None or stored == msgspec.structs.replace(allocation, allocation_timestamp=timestamp)


def _doing(allocation: resourceclaim.AllocationResult | None) -> str:
    return "add reservation to" if allocation is None else "add allocation and reservation to"
