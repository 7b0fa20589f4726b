"""The controller: binds volumes to claims, writes the phases of both, and asks provisioners for what is missing."""

from __future__ import annotations

from typing import Any, Final, NamedTuple, assert_never

from drachma import errors
from drachma.api import meta, persistentvolume, persistentvolumeclaim, storageclass
from drachma.claims import volumeclaims
from drachma.client import patches
from drachma.controllers import statuswrites
from drachma.controllers.persistentvolume import bindings
from drachma.runtime import Surroundings, controller, informer, workqueue

Claim = persistentvolumeclaim.PersistentVolumeClaim
Volume = persistentvolume.PersistentVolume
StorageClass = storageclass.StorageClass

_PROVISIONER: Final = ("volume.kubernetes.io/storage-provisioner", "volume.beta.kubernetes.io/storage-provisioner")
_YES: Final = "yes"


class _Key(NamedTuple):
    """A claim by namespace and name, or a volume by its name."""

    namespace: str
    name: str
    is_claim: bool


class PersistentVolumeBinder:
    """Brings volumes and claims together."""

    name: Final = "persistentvolume-binder"

    def __init__(self, surroundings: Surroundings) -> None:
        self._client: Final = surroundings.client
        self._recorder: Final = surroundings.recorder("persistentvolume-controller")
        claims, volumes = surroundings.informers.of(Claim), surroundings.informers.of(Volume)
        classes = surroundings.informers.of(StorageClass)
        self._claims: Final = claims.cache
        self._volumes: Final = volumes.cache
        self._classes: Final = classes.cache
        # One worker: two claims never run for the same volume.
        self._queue: Final[workqueue.Queue[_Key]] = workqueue.Queue(
            self.name, time=surroundings.clock, measured=surroundings.queues
        )
        claims.add_handler(
            informer.Handler(
                added=self._see_claim, updated=lambda _, new: self._see_claim(new), deleted=self._lose_claim
            )
        )
        volumes.add_handler(
            informer.Handler(
                added=self._see_volume, updated=lambda _, new: self._see_volume(new), deleted=self._see_volume
            )
        )
        classes.add_handler(
            informer.Handler(added=lambda _: self._see_waiting(), updated=lambda *_: self._see_waiting())
        )

    async def run(self) -> None:
        await controller.work(self._queue, self._reconcile, workers=1)

    # News

    def _see_claim(self, of: Claim) -> None:
        self._queue.add(_Key(of.metadata.namespace, of.metadata.name, is_claim=True))
        if of.spec.volume_name:
            self._queue.add(_Key("", of.spec.volume_name, is_claim=False))

    def _lose_claim(self, of: Claim) -> None:
        if of.spec.volume_name:
            self._queue.add(_Key("", of.spec.volume_name, is_claim=False))

    def _see_volume(self, of: Volume) -> None:
        self._queue.add(_Key("", of.metadata.name, is_claim=False))
        reference = of.spec.claim_ref
        if reference is not None:
            self._queue.add(_Key(reference.namespace, reference.name, is_claim=True))
        else:
            self._see_waiting()

    def _see_waiting(self) -> None:
        """There may be something for claims that have nothing."""
        for each in self._claims:
            if volumeclaims.BIND_COMPLETED not in each.metadata.annotations:
                self._queue.add(_Key(each.metadata.namespace, each.metadata.name, is_claim=True))

    # Work

    async def _reconcile(self, key: _Key) -> None:
        if key.is_claim:
            claim = self._claims.get(key.name, namespace=key.namespace)
            if claim is not None:
                await self._settle_claim(claim)
        else:
            volume = self._volumes.get(key.name)
            if volume is not None:
                await self._settle_volume(volume)

    async def _settle_claim(self, claim: Claim) -> None:
        volumes = {each.metadata.name: each for each in self._volumes}
        classes = {each.metadata.name: each for each in self._classes}
        fate = bindings.of_claim(claim, volumes, classes)
        match fate:
            case bindings.Bind(volume):
                await self._bind(volume, claim)
            case bindings.Classify(name):
                await self._change(Claim, claim, {"spec": {"storageClassName": name}})
            case bindings.Provision(provisioner):
                await self._ask(claim, provisioner)
            case bindings.Wait(phase, reason, message, is_warning):
                if reason:
                    self._recorder.record(
                        claim, type="Warning" if is_warning else "Normal", reason=reason, message=message
                    )
                if claim.status.phase != phase:
                    await self._write_status(Claim, claim, {"phase": phase})
            case _:
                assert_never(fate)

    async def _settle_volume(self, volume: Volume) -> None:
        reference = volume.spec.claim_ref
        claim = None
        if reference is not None and reference.uid:
            claim = await self._fresh(reference.namespace, reference.name)
        fate = bindings.of_volume(volume, claim)
        if fate is None:
            return
        if fate.is_let_go:
            by_controller = volumeclaims.BOUND_BY_CONTROLLER in volume.metadata.annotations
            reference_left = {"claimRef": None} if by_controller else {"claimRef": {"uid": None}}
            change = {"spec": reference_left, "metadata": {"annotations": {volumeclaims.BOUND_BY_CONTROLLER: None}}}
            await self._change(Volume, volume, change)
        elif volume.status.phase != fate.phase:
            await self._write_status(Volume, volume, {"phase": fate.phase})

    async def _fresh(self, namespace: str, name: str) -> Claim | None:
        """A claim as it is, not as it was: data may be deleted where there is none."""
        try:
            return await self._client.get(Claim, name, namespace=namespace)
        except errors.ObjectNotFoundError:
            return None

    async def _bind(self, volume: Volume, claim: Claim) -> None:
        """Writes what is missing of a binding; each step wakes this controller again, which goes on with the next."""
        of, annotations = claim.metadata, claim.metadata.annotations
        reference = volume.spec.claim_ref
        if reference is None or not reference.uid:
            content: dict[str, Any] = {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "namespace": of.namespace,
                "name": of.name,
                "uid": of.uid,
                "resourceVersion": of.resource_version,
            }
            change: dict[str, Any] = {"spec": {"claimRef": content}}
            if reference is None:
                change["metadata"] = {"annotations": {volumeclaims.BOUND_BY_CONTROLLER: _YES}}
            await self._change(Volume, volume, change)
        elif volume.status.phase != bindings.BOUND:
            await self._write_status(Volume, volume, {"phase": bindings.BOUND})
        elif claim.spec.volume_name != volume.metadata.name or volumeclaims.BIND_COMPLETED not in annotations:
            notes = {volumeclaims.BIND_COMPLETED: _YES}
            if not claim.spec.volume_name:
                notes[volumeclaims.BOUND_BY_CONTROLLER] = _YES
            own = {"spec": {"volumeName": volume.metadata.name}, "metadata": {"annotations": notes}}
            await self._change(Claim, claim, own)
        elif claim.status.phase != bindings.BOUND:
            capacity = {name: str(amount) for name, amount in volume.spec.capacity.items()}
            modes = list(volume.spec.access_modes)
            await self._write_status(
                Claim, claim, {"phase": bindings.BOUND, "accessModes": modes, "capacity": capacity}
            )

    async def _ask(self, claim: Claim, provisioner: str) -> None:
        """Has a provisioner make a volume."""
        if any(claim.metadata.annotations.get(name) != provisioner for name in _PROVISIONER):
            notes = dict.fromkeys(_PROVISIONER, provisioner)
            await self._change(Claim, claim, {"metadata": {"annotations": notes}})
            return
        message = (
            f"Waiting for a volume to be created either by the external provisioner '{provisioner}' or manually by the "
            "system administrator. If volume creation is delayed, please verify that the provisioner is running and "
            "correctly registered."
        )
        self._recorder.record(claim, type="Normal", reason="ExternalProvisioning", message=message)

    async def _change(self, kind: type[Any], of: meta.Object, change: dict[str, Any]) -> None:
        """Writes an object whole, which its role lets it update and not patch."""
        document = await self._client.get_document(kind, of.metadata.name, namespace=of.metadata.namespace)
        metadata = {**change.get("metadata", {}), **patches.unchanged(of).metadata}
        await self._client.update_document(kind, statuswrites.merged(document, {**change, "metadata": metadata}))

    async def _write_status(self, kind: type[Any], of: meta.Object, content: dict[str, Any]) -> None:
        await statuswrites.update(self._client, kind, of=of.metadata, content=content, meant=patches.unchanged(of))
