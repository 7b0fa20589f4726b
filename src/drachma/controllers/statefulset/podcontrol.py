"""What a stateful set does to its pods and to their volume claims, with upstream's events."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from drachma import errors
from drachma.api import persistentvolumeclaim, pod, statefulset
from drachma.client import patches
from drachma.controllers import podwrites
from drachma.controllers.statefulset import ordinals, retention
from drachma.controllers.workload import expectations
from drachma.runtime import Surroundings, events

Set = statefulset.StatefulSet
Claim = persistentvolumeclaim.PersistentVolumeClaim


class StatefulPodControl:
    """The pods and volume claims of all stateful sets."""

    def __init__(self, surroundings: Surroundings, *, expected: expectations.Expectations) -> None:
        claims = surroundings.informers.of(Claim)
        self._client: Final = surroundings.client
        self._claims: Final = claims.cache
        self._recorder: Final = surroundings.recorder("statefulset-controller")
        self._expected: Final = expected
        self._expected_claims: Final = expectations.Expectations(claims)

    def is_up_to_date(self, owner: str) -> bool:
        """Whether the caches have seen all that was written for a set, by its uid."""
        return self._expected.are_met(owner) and self._expected_claims.are_met(owner)

    def forget(self, owner: str) -> None:
        self._expected.forget(owner)
        self._expected_claims.forget(owner)

    def has_claims_of_earlier_pod(self, owner: Set, number: int) -> bool:
        """Whether a claim that a new pod would use is about to go with the pod before it."""
        name = ordinals.pod_name(owner, number)
        return not retention.is_kept(owner) and any(
            retention.is_of_earlier_pod(claim, name) for claim in self._known_claims(owner, number)
        )

    async def create(self, owner: Set, number: int, *, template: Mapping[str, Any], revision_name: str) -> None:
        """Makes the pod of an ordinal, and its claims before it."""
        document = ordinals.pod_document(owner, number, template=template, revision_name=revision_name)
        name = document["metadata"]["name"]

        async def make() -> None:
            await self.create_claims(owner, number)
            made = await self._client.create_document(pod.Pod, document)
            self._expected.note(owner.metadata.uid, made["metadata"]["resourceVersion"])

        try:
            await self._told(owner, "Create", name, make)
        except errors.ObjectExistsError:
            # Somebody else has the name, or the cache is behind; either is known soon.
            return

    async def update(self, owner: Set, of: pod.Pod) -> None:
        """Has a pod say who it is, and its claims who owns them."""
        number = ordinals.ordinal(of)

        async def change() -> None:
            await self.own_claims(owner, of)
            if ordinals.has_identity(of, owner):
                return
            content = {"metadata": {"labels": ordinals.labels(owner, number)}}
            changed = await self._client.patch(
                pod.Pod,
                of.metadata.name,
                patch=patches.merge(content, patches.same(of)),
                namespace=of.metadata.namespace,
            )
            self._expected.note(owner.metadata.uid, changed.metadata.resource_version)

        await self._told(owner, "Update", of.metadata.name, change)

    async def delete(self, owner: Set, of: pod.Pod) -> None:
        """Deletes a pod."""

        async def remove() -> None:
            if await podwrites.delete(self._client, of):
                self._expected.note_deletion(owner.metadata.uid, of)

        await self._told(owner, "Delete", of.metadata.name, remove)

    # Claims

    async def create_claims(self, owner: Set, number: int) -> None:
        """Makes the claims of an ordinal that are missing; ReconcileError where one is on its way out."""
        for each in owner.spec.volume_claim_templates:
            name = ordinals.claim_name(owner, each, number)
            existing = self._claims.get(name, namespace=owner.metadata.namespace)
            if existing is None:
                await self._create_claim(owner, ordinals.claim_document(owner, each, number), number)
            elif existing.metadata.deletion_timestamp is not None:
                raise errors.ReconcileError(f"pvc {name} is being deleted")

    async def _create_claim(self, owner: Set, document: Mapping[str, Any], number: int) -> None:
        name, of = document["metadata"]["name"], ordinals.pod_name(owner, number)
        try:
            made = await self._client.create_document(Claim, document)
        except errors.ObjectExistsError:
            raise
        except errors.RefusedError as error:
            text = f"Create Claim {name} for Pod {of} in StatefulSet {owner.metadata.name} failed error: {error}"
            self._tell(owner, events.WARNING, "FailedCreate", text)
            raise
        self._expected_claims.note(owner.metadata.uid, made["metadata"]["resourceVersion"])
        text = f"Create Claim {name} Pod {of} in StatefulSet {owner.metadata.name} success"
        self._tell(owner, events.NORMAL, "SuccessfulCreate", text)

    def owns_claims(self, owner: Set, of: pod.Pod) -> bool:
        """Whether the claims of a pod are owned as the set's policy says."""
        known = self._known_claims(owner, ordinals.ordinal(of))
        return all(retention.is_right(claim, owner, of) for claim in known)

    async def own_claims(self, owner: Set, of: pod.Pod) -> None:
        """Has the claims of a pod owned as the set's policy says."""
        for claim in self._known_claims(owner, ordinals.ordinal(of)):
            name = claim.metadata.name
            if retention.has_other_controller(claim, owner, of):
                text = (
                    f"PersistentVolumeClaim {name} has a conflicting OwnerReference that acts as a manging controller, "
                    "the retention policy is ignored for this claim"
                )
                self._tell(owner, events.WARNING, "ConflictingController", text)
            if retention.is_right(claim, owner, of):
                continue
            # As a whole: upstream's role lets this controller update claims and not patch them.
            document = await self._client.get_document(Claim, name, namespace=claim.metadata.namespace)
            meant = patches.unchanged(claim).metadata
            owned = {"ownerReferences": retention.owners(claim, owner, of)}
            document["metadata"] = {**document["metadata"], **owned, **meant}
            changed = await self._client.update_document(Claim, document)
            self._expected_claims.note(owner.metadata.uid, changed["metadata"]["resourceVersion"])

    def _known_claims(self, owner: Set, number: int) -> list[Claim]:
        names = [ordinals.claim_name(owner, each, number) for each in owner.spec.volume_claim_templates]
        known = (self._claims.get(name, namespace=owner.metadata.namespace) for name in names)
        return [each for each in known if each is not None]

    # Events

    async def _told(self, owner: Set, verb: str, name: str, act: Callable[[], Awaitable[None]]) -> None:
        """Acts, and tells how that went."""
        about = f"{verb} Pod {name} in StatefulSet {owner.metadata.name}"
        try:
            await act()
        except errors.ObjectExistsError:
            raise
        except (errors.RefusedError, errors.ReconcileError) as error:
            self._tell(owner, events.WARNING, f"Failed{verb}", f"{about} failed error: {error}")
            raise
        self._tell(owner, events.NORMAL, f"Successful{verb}", f"{about} successful")

    def _tell(self, owner: Set, kind: events.Type, reason: str, message: str) -> None:
        self._recorder.record(owner, type=kind, reason=reason, message=message)
