"""Volumes and claims for them stay while they are in use: a finalizer goes once nobody uses what is to be deleted.

Admission puts the finalizer on what is new (:mod:`drachma.server.admission.storageprotection`), these controllers on
what is older. A claim also says whether any pod refers to it, and since when not.
"""

from __future__ import annotations

from typing import Any, Final

from drachma.api import meta, persistentvolume, persistentvolumeclaim, pod
from drachma.claims import conditions, podstate, volumeclaims, wellknown
from drachma.client import Client, Selection, patches
from drachma.controllers import statuswrites
from drachma.runtime import Surroundings, cache, controller, informer, workqueue

Claim = persistentvolumeclaim.PersistentVolumeClaim
Volume = persistentvolume.PersistentVolume

_BOUND: Final = "Bound"
_UNUSED: Final = "Unused"


class VolumeClaimProtection:
    """Keeps claims while pods that have a node use them."""

    name: Final = "pvcprotection"

    def __init__(self, surroundings: Surroundings) -> None:
        self._client: Final = surroundings.client
        self._clock: Final = surroundings.clock
        claims, pods = surroundings.informers.of(Claim), surroundings.informers.of(pod.Pod)
        self._claims: Final = claims.cache
        self._pods: Final = pods.cache
        self._queue: Final[workqueue.Queue[cache.Key]] = workqueue.Queue(
            self.name, time=surroundings.clock, measured=surroundings.queues
        )
        claims.add_handler(informer.Handler(added=self._see, updated=lambda _, new: self._see(new)))
        pods.add_handler(
            informer.Handler(added=self._see_pod, updated=lambda _, new: self._see_pod(new), deleted=self._see_pod)
        )

    async def run(self) -> None:
        await controller.work(self._queue, self._reconcile, workers=1)

    def _see(self, of: Claim) -> None:
        self._queue.add(cache.key_of(of))

    def _see_pod(self, of: pod.Pod) -> None:
        for name in volumeclaims.names(of):
            self._queue.add(cache.Key(of.metadata.namespace, name))

    async def _reconcile(self, key: cache.Key) -> None:
        claim = self._claims.get(key.name, namespace=key.namespace)
        if claim is None:
            return
        if claim.metadata.deletion_timestamp is None:
            if wellknown.VOLUME_CLAIM_FINALIZER not in claim.metadata.finalizers:
                await _change_finalizers(self._client, claim, added=wellknown.VOLUME_CLAIM_FINALIZER)
            elif claim.status.phase == _BOUND:
                await self._tell_use(claim)
            return
        has_finalizer = wellknown.VOLUME_CLAIM_FINALIZER in claim.metadata.finalizers
        if has_finalizer and not self._is_in_use(claim) and not await self._is_really_in_use(claim):
            await _change_finalizers(self._client, claim, removed=wellknown.VOLUME_CLAIM_FINALIZER)

    def _is_in_use(self, claim: Claim) -> bool:
        return any(_keeps(each, claim) for each in self._pods.in_namespace(claim.metadata.namespace))

    async def _is_really_in_use(self, claim: Claim) -> bool:
        """Asks the server: a pod may be too new for the cache."""
        current = await self._client.list(pod.Pod, Selection(claim.metadata.namespace))
        return any(_keeps(each, claim) for each in current.items)

    async def _tell_use(self, claim: Claim) -> None:
        is_used = any(_refers(each, claim) for each in self._pods.in_namespace(claim.metadata.namespace))
        before = conditions.find(claim.status.conditions, _UNUSED)
        value = "False" if is_used else "True"
        if before is not None and before.status == value:
            return
        told = {
            "type": _UNUSED,
            "status": value,
            "lastTransitionTime": meta.time_text(self._clock.utc()),
            "reason": "PodUsingPVC" if is_used else "NoPodsUsingPVC",
            "message": (
                "A pod is currently referencing this PVC" if is_used else "No pods are currently referencing this PVC"
            ),
        }
        document = await self._client.get_document(Claim, claim.metadata.name, namespace=claim.metadata.namespace)
        others = [each for each in document["status"].get("conditions") or () if each["type"] != _UNUSED]
        await statuswrites.update(
            self._client,
            Claim,
            of=claim.metadata,
            content={"conditions": [*others, told]},
            meant=patches.unchanged(claim),
        )


class VolumeProtection:
    """Keeps volumes while claims have them."""

    name: Final = "pvprotection"

    def __init__(self, surroundings: Surroundings) -> None:
        self._client: Final = surroundings.client
        volumes = surroundings.informers.of(Volume)
        self._volumes: Final = volumes.cache
        self._queue: Final[workqueue.Queue[cache.Key]] = workqueue.Queue(
            self.name, time=surroundings.clock, measured=surroundings.queues
        )
        volumes.add_handler(informer.Handler(added=self._see, updated=lambda _, new: self._see(new)))

    async def run(self) -> None:
        await controller.work(self._queue, self._reconcile, workers=1)

    def _see(self, of: Volume) -> None:
        has_finalizer = wellknown.VOLUME_FINALIZER in of.metadata.finalizers
        if has_finalizer is (of.metadata.deletion_timestamp is not None):
            self._queue.add(cache.key_of(of))

    async def _reconcile(self, key: cache.Key) -> None:
        volume = self._volumes.get(key.name)
        if volume is None:
            return
        has_finalizer = wellknown.VOLUME_FINALIZER in volume.metadata.finalizers
        if volume.metadata.deletion_timestamp is None:
            if not has_finalizer:
                await _change_finalizers(self._client, volume, added=wellknown.VOLUME_FINALIZER)
        elif has_finalizer and volume.status.phase != _BOUND:
            await _change_finalizers(self._client, volume, removed=wellknown.VOLUME_FINALIZER)


def _keeps(user: pod.Pod, claim: Claim) -> bool:
    """Whether a claim has to stay for a pod that has a node: one that was made for it only while it may run there."""
    if not user.spec.node_name:
        return False
    is_own = volumeclaims.names(user).get(claim.metadata.name)
    return is_own is not None and (not is_own or (_owns(user, claim) and not _is_shut_down(user)))


def _refers(user: pod.Pod, claim: Claim) -> bool:
    """Whether a pod that may still run refers to a claim."""
    is_own = volumeclaims.names(user).get(claim.metadata.name)
    return is_own is not None and not podstate.has_ended(user) and (not is_own or _owns(user, claim))


def _owns(user: pod.Pod, claim: Claim) -> bool:
    return any(each.controller and each.uid == user.metadata.uid for each in claim.metadata.owner_references)


def _is_shut_down(of: pod.Pod) -> bool:
    """Whether a node is done with a pod, or was not waited for."""
    return of.metadata.deletion_timestamp is not None and of.metadata.deletion_grace_period_seconds == 0


async def _change_finalizers(client: Client, of: Claim | Volume, *, added: str = "", removed: str = "") -> None:
    """Writes an object with other finalizers: the roles of these controllers let them update and not patch."""
    metadata = of.metadata
    document: dict[str, Any] = await client.get_document(type(of), metadata.name, namespace=metadata.namespace)
    finalizers = [each for each in document["metadata"].get("finalizers") or () if each not in (added, removed)]
    document["metadata"] |= {"finalizers": [*finalizers, *([added] if added else [])], **patches.unchanged(of).metadata}
    await client.update_document(type(of), document)
