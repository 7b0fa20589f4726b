"""Release of a claim: reservations of deleted or finished pods are removed, and unused allocations and claims released.

A claim whose last user is gone is deallocated in the same write, so that no scheduler sees it allocated and unused. All
writes require the version that was examined: a reservation in between wins, and the claim is reconciled again. If the
server makes several changes at once, the finalizer is removed in the same version. A claim that was created for a pod
that is certainly gone is deleted then; otherwise the garbage collector deletes it later.
"""

from collections import OrderedDict
from typing import Final

from msgspec import structs

from drachma import errors
from drachma.api import gates as features
from drachma.api import meta, pod, podgroup, resourceclaim
from drachma.claims import ownership, podstate, reservation, wellknown
from drachma.client import Client, patches, transactions
from drachma.runtime import Surroundings

_DELETED: Final = 500
"""Number of deleted pods and groups that are cached, to save requests to the server."""

Claim = resourceclaim.ResourceClaim


class Upkeep:
    """Reconciles one claim after another."""

    def __init__(self, surroundings: Surroundings) -> None:
        self._client: Final[Client] = surroundings.client
        self._transactions: Final = transactions.offered(surroundings.client)
        self._pods: Final = surroundings.informers.of(pod.Pod).cache
        self._claims: Final = surroundings.informers.of(Claim).cache
        self._groups: Final = (
            surroundings.informers.of(podgroup.PodGroup).cache
            if surroundings.gates.on(features.Gate.WORKLOAD_RESOURCE_CLAIMS)
            else None
        )
        self._deleted: Final[OrderedDict[str, None]] = OrderedDict()

    def note_deleted(self, consumer: reservation.Consumer) -> None:
        """Note that a pod or a group no longer exists."""
        self._deleted[consumer.metadata.uid] = None
        if len(self._deleted) > _DELETED:
            self._deleted.popitem(last=False)

    def is_due(self, claim: Claim) -> bool:
        """Return True if, by the caches, there is anything to release or to ask the server about."""
        if claim.metadata.deletion_timestamp is not None:
            return True
        reserved = claim.status.reserved_for
        if reserved:
            return any(self._is_known_user(each, claim.metadata.namespace) is not True for each in reserved)
        owner = ownership.owning_pod(claim)
        return owner is not None and self._is_without(owner, claim.metadata.namespace)

    async def sync(self, namespace: str, name: str) -> None:
        """Release the unused parts of a claim."""
        claim = self._claims.get(name, namespace=namespace)
        if claim is None:
            return
        reserved = claim.status.reserved_for
        needed = tuple([each for each in reserved if await self._is_needed(each, namespace)])
        is_protected = wellknown.CLAIM_FINALIZER in claim.metadata.finalizers
        if len(needed) < len(reserved):
            # Only the end of use deallocates: a scheduler may be about to reserve an allocated claim.
            allocation = claim.status.allocation if needed or not is_protected else None
            claim = await self._give_back(
                claim, structs.replace(claim.status, reserved_for=needed, allocation=allocation)
            )
        elif is_protected and claim.metadata.deletion_timestamp is not None and not needed:
            claim = await self._give_back(claim, structs.replace(claim.status, allocation=None))
        if not needed:
            await self._delete_unused(claim)

    async def _is_needed(self, reference: resourceclaim.ResourceClaimConsumerReference, namespace: str) -> bool:
        is_needed = self._is_known_user(reference, namespace)
        if is_needed is not None:
            return is_needed
        # The pod or group may be too new for the cache, and must not lose its claim: ask the server.
        kind: type[reservation.Consumer] = podgroup.PodGroup if reservation.is_group(reference) else pod.Pod
        try:
            user = await self._client.get(kind, reference.name, namespace=namespace)
        except errors.ObjectNotFoundError:
            return False
        return user.metadata.uid == reference.uid

    def _is_known_user(self, reference: resourceclaim.ResourceClaimConsumerReference, namespace: str) -> bool | None:
        """Return True if a claim's user needs it, or None if the caches do not tell."""
        if reservation.is_group(reference) and self._groups is not None:
            # The reservation of a group ends with the group, not with its pods.
            if reference.uid in self._deleted:
                return False
            group = self._groups.get(reference.name, namespace=namespace)
            return None if group is None or group.metadata.uid != reference.uid else True
        if not reservation.is_pod(reference):
            # An unknown consumer: its owner removes the reservation.
            return True
        if reference.uid in self._deleted:
            return False
        user = self._pods.get(reference.name, namespace=namespace)
        if user is None:
            return None
        return user.metadata.uid == reference.uid and not podstate.is_done(user)

    def _is_without(self, owner: meta.OwnerReference, namespace: str) -> bool:
        """Return True if a claim's own pod will not run.

        An unknown pod may be too new for the cache; if it is gone, the garbage collector notices.
        """
        cached = self._pods.get(owner.name, namespace=namespace)
        return cached is not None and (cached.metadata.uid != owner.uid or podstate.is_done(cached))

    async def _give_back(self, claim: Claim, status: resourceclaim.ResourceClaimStatus) -> Claim:
        """Write a new status of a claim, and remove the finalizer if the claim is not allocated any more."""
        is_unprotected = status.allocation is None and wellknown.CLAIM_FINALIZER in claim.metadata.finalizers
        if self._transactions is None or not is_unprotected:
            if status != claim.status:
                claim = await self._write_status(claim, status)
            return await self._unprotect(claim) if is_unprotected else claim
        unprotected = _unprotected(claim)
        changes: list[transactions.Change] = [transactions.StatusChange(claim, status, unprotected)]
        if self._is_orphan(claim):
            # Its devices are free once it is deleted.
            changes = [transactions.Finalizers(claim, unprotected), transactions.Delete(claim)]
        try:
            updated: Claim = (await self._transactions.commit(changes))[0]
        except errors.CommitRefusedError as error:
            raise error.refusal from error
        return updated

    def _is_orphan(self, claim: Claim) -> bool:
        """Return True if the pod that a claim was created for is certainly gone, and the claim has no other owner."""
        if claim.metadata.deletion_timestamp is not None or len(claim.metadata.owner_references) != 1:
            return False
        owner = ownership.owning_pod(claim)
        return owner is not None and owner.uid in self._deleted

    async def _write_status(self, claim: Claim, status: resourceclaim.ResourceClaimStatus) -> Claim:
        content: dict[str, object] = {"reservedFor": status.reserved_for or None}
        if status.allocation is None:
            content["allocation"] = None
        return await self._client.patch(
            Claim,
            claim.metadata.name,
            patch=patches.merge({"status": content}, patches.unchanged(claim)),
            namespace=claim.metadata.namespace,
            subresource="status",
        )

    async def _unprotect(self, claim: Claim) -> Claim:
        finalizers = _unprotected(claim)
        return await self._client.patch(
            Claim,
            claim.metadata.name,
            patch=patches.merge({"metadata": {"finalizers": finalizers or None}}, patches.unchanged(claim)),
            namespace=claim.metadata.namespace,
        )

    async def _delete_unused(self, claim: Claim) -> None:
        """Delete a generated claim whose pod will not run, because the pod itself may exist for long."""
        owner = ownership.owning_pod(claim)
        if owner is None or claim.metadata.deletion_timestamp is not None:
            return
        if not self._is_without(owner, claim.metadata.namespace):
            return
        try:
            await self._client.delete(
                Claim, claim.metadata.name, namespace=claim.metadata.namespace, preconditions=patches.same(claim)
            )
        except errors.ObjectNotFoundError:
            return


def _unprotected(claim: Claim) -> tuple[str, ...]:
    """Return the finalizers of a claim without the one that protects its allocation."""
    return tuple([each for each in claim.metadata.finalizers if each != wellknown.CLAIM_FINALIZER])
