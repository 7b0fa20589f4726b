"""Protection of volumes and claims in use: a finalizer is removed once no pod uses an object that is being deleted.

Admission adds the finalizer to new objects (:mod:`drachma.server.admission.newobjects`), these controllers to
older ones. A condition of a claim says whether any pod refers to it, and since when none does.
"""

from __future__ import annotations

from typing import Final, TypeVar

from drachma.api import meta, persistentvolume, persistentvolumeclaim, pod
from drachma.claims import conditions, podstate, volumeclaims, wellknown
from drachma.client import Selection
from drachma.controllers import objectwrites
from drachma.runtime import Surroundings, cache, controller, informer, workqueue

Claim = persistentvolumeclaim.PersistentVolumeClaim
Volume = persistentvolume.PersistentVolume

ObjectT = TypeVar("ObjectT", bound=meta.Object)

_BOUND: Final = "Bound"
_UNUSED: Final = "Unused"


class VolumeClaimProtection:
    """Protects claims while scheduled pods use them."""

    name: Final = "pvcprotection"

    def __init__(self, surroundings: Surroundings) -> None:
        self._client: Final = surroundings.client
        self._clock: Final = surroundings.clock
        claims, pods = surroundings.informers.of(Claim), surroundings.informers.of(pod.Pod)
        self._claims: Final = claims.cache
        self._writer: Final = objectwrites.Writer(surroundings.client, claims)
        self._pods: Final = pods.cache
        self._queue: Final[workqueue.Queue[cache.Key]] = workqueue.Queue(
            self.name, clock=surroundings.clock, metrics=surroundings.queues
        )
        claims.add_handler(informer.Handler.on_write(self._enqueue))
        pods.add_handler(informer.Handler.on_change(self._handle_pod))

    async def run(self) -> None:
        await controller.work(self._queue, self._reconcile, workers=1)

    def _enqueue(self, claim: Claim) -> None:
        self._queue.add(cache.key_of(claim))

    def _handle_pod(self, pod: pod.Pod) -> None:
        for name in volumeclaims.names(pod):
            self._queue.add(cache.Key(pod.metadata.namespace, name))

    async def _reconcile(self, key: cache.Key) -> None:
        claim = self._claims.get(key.name, namespace=key.namespace)
        if claim is None:
            return
        if claim.metadata.deletion_timestamp is None:
            if wellknown.VOLUME_CLAIM_FINALIZER not in claim.metadata.finalizers:
                await _change_finalizers(self._writer, claim, added=wellknown.VOLUME_CLAIM_FINALIZER)
            elif claim.status.phase == _BOUND:
                await self._write_condition(claim)
            return
        has_finalizer = wellknown.VOLUME_CLAIM_FINALIZER in claim.metadata.finalizers
        if has_finalizer and not self._is_in_use(claim) and not await self._is_really_in_use(claim):
            await _change_finalizers(self._writer, claim, removed=wellknown.VOLUME_CLAIM_FINALIZER)

    def _is_in_use(self, claim: Claim) -> bool:
        return any(_keeps(each, claim) for each in self._pods.list_namespace(claim.metadata.namespace))

    async def _is_really_in_use(self, claim: Claim) -> bool:
        """Ask the server whether a pod uses a claim, because a pod may be too new for the cache."""
        current = await self._client.list(pod.Pod, Selection(claim.metadata.namespace))
        return any(_keeps(each, claim) for each in current.items)

    async def _write_condition(self, claim: Claim) -> None:
        is_used = any(_refers(each, claim) for each in self._pods.list_namespace(claim.metadata.namespace))
        before = conditions.find(claim.status.conditions, _UNUSED)
        value = "False" if is_used else "True"
        if before is not None and before.status == value:
            return
        condition = conditions.document(
            _UNUSED,
            value,
            reason="PodUsingPVC" if is_used else "NoPodsUsingPVC",
            message="A pod is currently referencing this PVC"
            if is_used
            else "No pods are currently referencing this PVC",
            now=self._clock.utc(),
        )
        document = self._writer.document(claim, only_if_unchanged=True)
        status = document["status"]
        status["conditions"] = conditions.put_document(status.get("conditions") or (), condition)
        await self._writer.replace(document, subresource="status")


class VolumeProtection:
    """Protects volumes while they are bound."""

    name: Final = "pvprotection"

    def __init__(self, surroundings: Surroundings) -> None:
        self._client: Final = surroundings.client
        volumes = surroundings.informers.of(Volume)
        self._volumes: Final = volumes.cache
        self._writer: Final = objectwrites.Writer(surroundings.client, volumes)
        self._queue: Final[workqueue.Queue[cache.Key]] = workqueue.Queue(
            self.name, clock=surroundings.clock, metrics=surroundings.queues
        )
        volumes.add_handler(informer.Handler.on_write(self._enqueue))

    async def run(self) -> None:
        await controller.work(self._queue, self._reconcile, workers=1)

    def _enqueue(self, volume: Volume) -> None:
        has_finalizer = wellknown.VOLUME_FINALIZER in volume.metadata.finalizers
        if has_finalizer is (volume.metadata.deletion_timestamp is not None):
            self._queue.add(cache.key_of(volume))

    async def _reconcile(self, key: cache.Key) -> None:
        volume = self._volumes.get(key.name)
        if volume is None:
            return
        has_finalizer = wellknown.VOLUME_FINALIZER in volume.metadata.finalizers
        if volume.metadata.deletion_timestamp is None:
            if not has_finalizer:
                await _change_finalizers(self._writer, volume, added=wellknown.VOLUME_FINALIZER)
        elif has_finalizer and volume.status.phase != _BOUND:
            await _change_finalizers(self._writer, volume, removed=wellknown.VOLUME_FINALIZER)


def _keeps(user: pod.Pod, claim: Claim) -> bool:
    """Return True if a scheduled pod needs a claim. A claim made for a pod is needed only while the pod may run."""
    if not user.spec.node_name:
        return False
    is_own = volumeclaims.names(user).get(claim.metadata.name)
    return is_own is not None and (not is_own or (_owns(user, claim) and not _is_shut_down(user)))


def _refers(user: pod.Pod, claim: Claim) -> bool:
    """Return True if a pod that is not finished refers to a claim."""
    is_own = volumeclaims.names(user).get(claim.metadata.name)
    return is_own is not None and not podstate.has_ended(user) and (not is_own or _owns(user, claim))


def _owns(user: pod.Pod, claim: Claim) -> bool:
    return any(each.controller and each.uid == user.metadata.uid for each in claim.metadata.owner_references)


def _is_shut_down(pod: pod.Pod) -> bool:
    """Return True if the kubelet has ended a pod, or was not waited for."""
    return pod.metadata.deletion_timestamp is not None and pod.metadata.deletion_grace_period_seconds == 0


async def _change_finalizers(
    writer: objectwrites.Writer[ObjectT], subject: ObjectT, *, added: str = "", removed: str = ""
) -> None:
    """Add or remove a finalizer of an object, if the object has not changed."""
    finalizers = [each for each in subject.metadata.finalizers if each not in (added, removed)]
    change = {"metadata": {"finalizers": [*finalizers, *([added] if added else [])]}}
    await writer.update(subject, change, only_if_unchanged=True)
