"""What is written to the claims of a pod that is bound, as changes for one commit with the binding.

The binder writes them where the server makes several changes at once and nobody else schedules. They are what
:class:`claimwriter.ClaimWriter` writes one after the other: finalizer, allocation and reservation.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from msgspec import structs

from drachma.claims import reservation, wellknown
from drachma.client import transactions
from drachma.scheduler.plugins.dynamicresources import bindingconditions

if TYPE_CHECKING:
    from drachma.api import pod, resourceclaim
    from drachma.scheduler.plugins.dynamicresources import claimassignment, claimwriter


def of(
    consumer: pod.Pod, assigned: claimassignment.ClaimAssignment, *, writer: claimwriter.ClaimWriter
) -> list[transactions.Change] | None:
    """One for each claim that is not the pod's yet; None where states in between mean something.

    They do where devices have to become ready first, where a claim is to be made or the pod's status to be written,
    and where a claim is not as it was taken to be, which the writer has words for.
    """
    if assigned.mappings or assigned.statuses:
        return None
    if assigned.plan is None:
        return []
    results = {entry.claim.metadata.uid: entry.result for entry in assigned.allocations}
    changes: list[transactions.Change] = []
    # A pod may refer to a claim under several names.
    for uid, claim in {entry.claim.metadata.uid: entry.claim for entry in assigned.plan.claims}.items():
        if bindingconditions.awaited(claim.status.allocation) or bindingconditions.awaited(results.get(uid)):
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
    consumer: pod.Pod,
    results: Mapping[str, resourceclaim.AllocationResult],
    *,
    writer: claimwriter.ClaimWriter,
) -> transactions.ClaimState | None:
    allocation = results.get(claim.metadata.uid)
    # Either it is allocated, or it is to be.
    if claim.metadata.deletion_timestamp is not None or (allocation is None) is (claim.status.allocation is None):
        return None
    finalizers, status = claim.metadata.finalizers, claim.status
    reserved_for = (*status.reserved_for, reservation.consumer(consumer))
    if allocation is None:
        return transactions.ClaimState(claim, structs.replace(status, reserved_for=reserved_for), finalizers)
    if wellknown.CLAIM_FINALIZER not in finalizers:
        finalizers = (*finalizers, wellknown.CLAIM_FINALIZER)
    status = structs.replace(status, allocation=writer.stamped(allocation), reserved_for=reserved_for)
    return transactions.ClaimState(claim, status, finalizers)
