"""Work on a claim: reservations of pods that are gone or done are taken back, and what nobody uses is given back.

A claim whose last user went is deallocated in the same write, so no scheduler ever sees it allocated and unused. All
writes ask for the version that was looked at: whoever reserves the claim meanwhile wins, and the claim comes again.
Where the server makes several changes at once, the finalizer goes in the same version. A claim that was made for a pod
which is certainly gone goes as a whole then, with all that it had: otherwise the garbage collector deletes it later.
"""

from collections import OrderedDict
from typing import Final

from msgspec import structs

from drachma import errors
from drachma.api import meta, pod, resourceclaim
from drachma.claims import ownership, podstate, reservation, wellknown
from drachma.client import Client, patches, transactions
from drachma.runtime import Surroundings

_DELETED_PODS: Final = 500
"""Pods that are remembered as deleted, which saves asking the server for each."""

Claim = resourceclaim.ResourceClaim


class Upkeep:
    """Brings one claim after another in order."""

    def __init__(self, surroundings: Surroundings) -> None:
        self._client: Final[Client] = surroundings.client
        self._transactions: Final = transactions.offered(surroundings.client)
        self._pods: Final = surroundings.informers.of(pod.Pod).cache
        self._claims: Final = surroundings.informers.of(Claim).cache
        self._deleted: Final[OrderedDict[str, None]] = OrderedDict()

    def note_deleted(self, gone: pod.Pod) -> None:
        """A pod of which it is certain that it no longer exists."""
        self._deleted[gone.metadata.uid] = None
        if len(self._deleted) > _DELETED_PODS:
            self._deleted.popitem(last=False)

    def is_due(self, claim: Claim) -> bool:
        """Whether there is anything to give back, or to ask the server about, as far as the caches tell."""
        if claim.metadata.deletion_timestamp is not None:
            return True
        reserved = claim.status.reserved_for
        if reserved:
            return any(self._is_known_user(each, claim.metadata.namespace) is not True for each in reserved)
        owner = ownership.owning_pod(claim)
        return owner is not None and self._is_without(owner, claim.metadata.namespace)

    async def sync(self, namespace: str, name: str) -> None:
        """Gives back whatever of a claim is not needed."""
        claim = self._claims.get(name, namespace=namespace)
        if claim is None:
            return
        reserved = claim.status.reserved_for
        remaining = tuple([each for each in reserved if await self._is_needed(each, namespace)])
        is_protected = wellknown.CLAIM_FINALIZER in claim.metadata.finalizers
        if len(remaining) < len(reserved):
            # Only the end of use deallocates: allocated but not reserved may be what somebody is about to use.
            allocation = claim.status.allocation if remaining or not is_protected else None
            claim = await self._give_back(
                claim, structs.replace(claim.status, reserved_for=remaining, allocation=allocation)
            )
        elif is_protected and claim.metadata.deletion_timestamp is not None and not remaining:
            claim = await self._give_back(claim, structs.replace(claim.status, allocation=None))
        if not remaining:
            await self._delete_unused(claim)

    async def _is_needed(self, reference: resourceclaim.ResourceClaimConsumerReference, namespace: str) -> bool:
        is_needed = self._is_known_user(reference, namespace)
        if is_needed is not None:
            return is_needed
        # Perhaps not seen yet. Taking the claim from a pod that is just being scheduled would be bad: ask.
        try:
            user = await self._client.get(pod.Pod, reference.name, namespace=namespace)
        except errors.ObjectNotFoundError:
            return False
        return user.metadata.uid == reference.uid

    def _is_known_user(self, reference: resourceclaim.ResourceClaimConsumerReference, namespace: str) -> bool | None:
        """Whether a claim's user needs it; None where the caches do not tell."""
        if not reservation.is_pod(reference):
            # Not a pod: whoever put it there knows when it goes.
            return True
        if reference.uid in self._deleted:
            return False
        user = self._pods.get(reference.name, namespace=namespace)
        if user is None:
            return None
        return user.metadata.uid == reference.uid and not podstate.is_done(user)

    def _is_without(self, owner: meta.OwnerReference, namespace: str) -> bool:
        """Whether a claim's own pod will not run.

        A pod that is not known may be one that is not known yet; if it is gone, the garbage collector notices.
        """
        found = self._pods.get(owner.name, namespace=namespace)
        return found is not None and (found.metadata.uid != owner.uid or podstate.is_done(found))

    async def _give_back(self, claim: Claim, status: resourceclaim.ResourceClaimStatus) -> Claim:
        """Gives a claim another status, and takes the finalizer where that says that it is not allocated."""
        is_unprotected = status.allocation is None and wellknown.CLAIM_FINALIZER in claim.metadata.finalizers
        if self._transactions is None or not is_unprotected:
            if status != claim.status:
                claim = await self._write_status(claim, status)
            return await self._unprotect(claim) if is_unprotected else claim
        unprotected = _unprotected(claim)
        changes: list[transactions.Change] = [transactions.ClaimState(claim, status, unprotected)]
        if self._is_orphan(claim):
            # It goes with its allocation: whoever counts devices learns from its end that they are free.
            changes = [transactions.Finalizers(claim, unprotected), transactions.Delete(claim)]
        try:
            written: Claim = (await self._transactions.commit(changes))[0]
        except errors.CommitRefusedError as error:
            raise error.refusal from error
        return written

    def _is_orphan(self, claim: Claim) -> bool:
        """Whether a claim is certainly without the pod that it was made for, and nobody else owns it."""
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
        kept = _unprotected(claim)
        return await self._client.patch(
            Claim,
            claim.metadata.name,
            patch=patches.merge({"metadata": {"finalizers": kept or None}}, patches.unchanged(claim)),
            namespace=claim.metadata.namespace,
        )

    async def _delete_unused(self, claim: Claim) -> None:
        """Deletes a generated claim whose pod will not run, which may take a while to be deleted itself."""
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
    """The finalizers of a claim without that which keeps it while it is allocated."""
    return tuple([each for each in claim.metadata.finalizers if each != wellknown.CLAIM_FINALIZER])
