"""Operations of a stateful set on its pods and volume claims, with upstream's events."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from drachma import errors
from drachma.api import persistentvolumeclaim, pod, statefulset
from drachma.client import patches
from drachma.controllers import objectwrites
from drachma.controllers.statefulset import ordinals, retention
from drachma.controllers.workload import expectations
from drachma.runtime import Surroundings, events

Set = statefulset.StatefulSet
Claim = persistentvolumeclaim.PersistentVolumeClaim


class StatefulPodControl:
    """Pods and volume claims of all stateful sets."""

    def __init__(self, surroundings: Surroundings, *, expected_writes: expectations.Expectations) -> None:
        claims = surroundings.informers.of(Claim)
        self._client: Final = surroundings.client
        self._claims: Final = claims.cache
        self._claim_writer: Final = objectwrites.Writer(surroundings.client, claims)
        self._recorder: Final = surroundings.recorder("statefulset-controller")
        self._expected: Final = expected_writes
        self._expected_claims: Final = expectations.Expectations(claims)

    def is_up_to_date(self, owner: str) -> bool:
        """Return True if the caches have seen all writes for a set, by its uid."""
        return self._expected.are_met(owner) and self._expected_claims.are_met(owner)

    def forget(self, owner: str) -> None:
        self._expected.forget(owner)
        self._expected_claims.forget(owner)

    def has_claims_of_earlier_pod(self, owner: Set, number: int) -> bool:
        """Return True if a claim for a new pod is about to be deleted with the previous pod."""
        name = ordinals.pod_name(owner, number)
        return not retention.is_kept(owner) and any(
            retention.is_of_earlier_pod(claim, name) for claim in self._cached_claims(owner, number)
        )

    async def create(self, owner: Set, number: int, *, template: Mapping[str, Any], revision_name: str) -> None:
        """Create the claims and the pod of an ordinal."""
        document = ordinals.pod_document(owner, number, template=template, revision_name=revision_name)
        name = document["metadata"]["name"]

        async def make() -> None:
            await self.create_claims(owner, number)
            created = await self._client.create_document(pod.Pod, document)
            self._expected.note(owner.metadata.uid, created["metadata"]["resourceVersion"])

        try:
            await self._act_and_record(owner, "Create", name, make)
        except errors.ObjectExistsError:
            # Another pod has the name, or the cache is behind; the watch will tell.
            return

    async def update(self, owner: Set, subject: pod.Pod) -> None:
        """Correct the labels of a pod and the owners of its claims."""
        number = ordinals.ordinal(subject)

        async def change() -> None:
            await self.own_claims(owner, subject)
            if ordinals.has_identity(subject, owner):
                return
            content = {"metadata": {"labels": ordinals.labels(owner, number)}}
            changed = await self._client.patch(
                pod.Pod,
                subject.metadata.name,
                patch=patches.merge(content, patches.same(subject)),
                namespace=subject.metadata.namespace,
            )
            self._expected.note(owner.metadata.uid, changed.metadata.resource_version)

        await self._act_and_record(owner, "Update", subject.metadata.name, change)

    async def delete(self, owner: Set, pod: pod.Pod) -> None:
        """Delete a pod."""

        async def remove() -> None:
            if await objectwrites.delete_pod(self._client, pod):
                self._expected.note_deletion(owner.metadata.uid, pod)

        await self._act_and_record(owner, "Delete", pod.metadata.name, remove)

    # Claims

    async def create_claims(self, owner: Set, number: int) -> None:
        """Create missing claims of an ordinal. Raises ReconcileError if one is being deleted."""
        for each in owner.spec.volume_claim_templates:
            name = ordinals.claim_name(owner, each, number)
            existing = self._claims.get(name, namespace=owner.metadata.namespace)
            if existing is None:
                await self._create_claim(owner, ordinals.claim_document(owner, each, number), number)
            elif existing.metadata.deletion_timestamp is not None:
                raise errors.ReconcileError(f"pvc {name} is being deleted")

    async def _create_claim(self, owner: Set, document: Mapping[str, Any], number: int) -> None:
        name, pod_name = document["metadata"]["name"], ordinals.pod_name(owner, number)
        try:
            created = await self._client.create_document(Claim, document)
        except errors.ObjectExistsError:
            raise
        except errors.RefusedError as error:
            text = f"Create Claim {name} for Pod {pod_name} in StatefulSet {owner.metadata.name} failed error: {error}"
            self._record(owner, events.WARNING, "FailedCreate", text)
            raise
        self._expected_claims.note(owner.metadata.uid, created["metadata"]["resourceVersion"])
        text = f"Create Claim {name} Pod {pod_name} in StatefulSet {owner.metadata.name} success"
        self._record(owner, events.NORMAL, "SuccessfulCreate", text)

    def owns_claims(self, owner: Set, pod: pod.Pod) -> bool:
        """Return True if the claims of a pod have the owners that the set's policy specifies."""
        claims = self._cached_claims(owner, ordinals.ordinal(pod))
        return all(retention.is_right(claim, owner, pod) for claim in claims)

    async def own_claims(self, owner: Set, pod: pod.Pod) -> None:
        """Set the owners of the claims of a pod by the set's policy."""
        for claim in self._cached_claims(owner, ordinals.ordinal(pod)):
            name = claim.metadata.name
            if retention.has_other_controller(claim, owner, pod):
                text = (
                    f"PersistentVolumeClaim {name} has a conflicting OwnerReference that acts as a manging controller, "
                    "the retention policy is ignored for this claim"
                )
                self._record(owner, events.WARNING, "ConflictingController", text)
            if retention.is_right(claim, owner, pod):
                continue
            change = {"metadata": {"ownerReferences": retention.owners(claim, owner, pod)}}
            changed = await self._claim_writer.update(claim, change, only_if_unchanged=True)
            self._expected_claims.note(owner.metadata.uid, changed.metadata.resource_version)

    def _cached_claims(self, owner: Set, number: int) -> list[Claim]:
        names = [ordinals.claim_name(owner, each, number) for each in owner.spec.volume_claim_templates]
        cached = (self._claims.get(name, namespace=owner.metadata.namespace) for name in names)
        return [each for each in cached if each is not None]

    # Events

    async def _act_and_record(self, owner: Set, verb: str, name: str, act: Callable[[], Awaitable[None]]) -> None:
        """Act, and record an event about the result."""
        action = f"{verb} Pod {name} in StatefulSet {owner.metadata.name}"
        try:
            await act()
        except errors.ObjectExistsError:
            raise
        except (errors.RefusedError, errors.ReconcileError) as error:
            self._record(owner, events.WARNING, f"Failed{verb}", f"{action} failed error: {error}")
            raise
        self._record(owner, events.NORMAL, f"Successful{verb}", f"{action} successful")

    def _record(self, owner: Set, kind: events.Type, reason: str, message: str) -> None:
        self._recorder.record(owner, type=kind, reason=reason, message=message)
