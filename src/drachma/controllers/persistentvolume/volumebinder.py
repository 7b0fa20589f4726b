"""The controller: binds volumes to claims, writes the phases of both, and requests volumes from provisioners."""

from __future__ import annotations

from typing import Any, Final, NamedTuple, assert_never

from drachma import errors
from drachma.api import event, persistentvolume, persistentvolumeclaim, storageclass
from drachma.claims import volumeclaims
from drachma.controllers import objectwrites
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
    """Binds volumes to claims."""

    name: Final = "persistentvolume-binder"

    def __init__(self, surroundings: Surroundings) -> None:
        self._client: Final = surroundings.client
        self._recorder: Final = surroundings.recorder("persistentvolume-controller")
        claims, volumes = surroundings.informers.of(Claim), surroundings.informers.of(Volume)
        classes = surroundings.informers.of(StorageClass)
        self._claims: Final = claims.cache
        self._volumes: Final = volumes.cache
        self._claim_writer: Final = objectwrites.Writer(surroundings.client, claims)
        self._volume_writer: Final = objectwrites.Writer(surroundings.client, volumes)
        self._classes: Final = classes.cache
        # One worker, so that two claims never compete for a volume.
        self._queue: Final[workqueue.Queue[_Key]] = workqueue.Queue(
            self.name, clock=surroundings.clock, metrics=surroundings.queues
        )
        claims.add_handler(informer.Handler.on_write(self._handle_claim, deleted=self._handle_claim_deletion))
        volumes.add_handler(informer.Handler.on_change(self._handle_volume))
        classes.add_handler(
            informer.Handler(added=lambda _: self._enqueue_unbound(), updated=lambda *_: self._enqueue_unbound())
        )

    async def run(self) -> None:
        await controller.work(self._queue, self._reconcile, workers=1)

    # Handlers

    def _handle_claim(self, claim: Claim) -> None:
        self._queue.add(_Key(claim.metadata.namespace, claim.metadata.name, is_claim=True))
        if claim.spec.volume_name:
            self._queue.add(_Key("", claim.spec.volume_name, is_claim=False))

    def _handle_claim_deletion(self, claim: Claim) -> None:
        if claim.spec.volume_name:
            self._queue.add(_Key("", claim.spec.volume_name, is_claim=False))

    def _handle_volume(self, volume: Volume) -> None:
        self._queue.add(_Key("", volume.metadata.name, is_claim=False))
        reference = volume.spec.claim_ref
        if reference is not None:
            self._queue.add(_Key(reference.namespace, reference.name, is_claim=True))
        else:
            self._enqueue_unbound()

    def _enqueue_unbound(self) -> None:
        """Queue all unbound claims, because there may be a volume for them."""
        for each in self._claims:
            if volumeclaims.BIND_COMPLETED not in each.metadata.annotations:
                self._queue.add(_Key(each.metadata.namespace, each.metadata.name, is_claim=True))

    # Reconciling

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
        fate = bindings.decide_claim(claim, volumes, classes)
        match fate:
            case bindings.Bind(volume):
                await self._bind(volume, claim)
            case bindings.Classify(name):
                await self._update_claim(claim, {"spec": {"storageClassName": name}})
            case bindings.Provision(provisioner):
                await self._ask(claim, provisioner)
            case bindings.Wait(phase, reason, message, is_warning):
                if reason:
                    self._recorder.record(
                        claim, type="Warning" if is_warning else "Normal", reason=reason, message=message
                    )
                if claim.status.phase != phase:
                    await self._update_claim_status(claim, {"phase": phase})
            case _:
                assert_never(fate)

    async def _settle_volume(self, volume: Volume) -> None:
        reference = volume.spec.claim_ref
        claim = None
        if reference is not None and reference.uid:
            claim = await self._referenced_claim(reference)
        fate = bindings.decide_volume(volume, claim)
        if fate is None:
            return
        if fate.is_let_go:
            by_controller = volumeclaims.BOUND_BY_CONTROLLER in volume.metadata.annotations
            reference_left = {"claimRef": None} if by_controller else {"claimRef": {"uid": None}}
            change = {"spec": reference_left, "metadata": {"annotations": {volumeclaims.BOUND_BY_CONTROLLER: None}}}
            await self._update_volume(volume, change)
        elif volume.status.phase != fate.phase:
            await self._update_volume_phase(volume, fate.phase)

    async def _referenced_claim(self, reference: event.ObjectReference) -> Claim | None:
        """Return the claim that a volume is bound to.

        The server is asked before a claim is taken for gone, because data may be deleted then.
        """
        claim = self._claims.get(reference.name, namespace=reference.namespace)
        if claim is not None and claim.metadata.uid == reference.uid:
            return claim
        try:
            return await self._client.get(Claim, reference.name, namespace=reference.namespace)
        except errors.ObjectNotFoundError:
            return None

    async def _bind(self, volume: Volume, claim: Claim) -> None:
        """Write the next step of a binding. Each step triggers the next reconcile."""
        metadata, annotations = claim.metadata, claim.metadata.annotations
        reference = volume.spec.claim_ref
        if reference is None or not reference.uid:
            content: dict[str, Any] = {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "namespace": metadata.namespace,
                "name": metadata.name,
                "uid": metadata.uid,
                "resourceVersion": metadata.resource_version,
            }
            change: dict[str, Any] = {"spec": {"claimRef": content}}
            if reference is None:
                change["metadata"] = {"annotations": {volumeclaims.BOUND_BY_CONTROLLER: _YES}}
            await self._update_volume(volume, change)
        elif volume.status.phase != bindings.BOUND:
            await self._update_volume_phase(volume, bindings.BOUND)
        elif claim.spec.volume_name != volume.metadata.name or volumeclaims.BIND_COMPLETED not in annotations:
            notes = {volumeclaims.BIND_COMPLETED: _YES}
            if not claim.spec.volume_name:
                notes[volumeclaims.BOUND_BY_CONTROLLER] = _YES
            own = {"spec": {"volumeName": volume.metadata.name}, "metadata": {"annotations": notes}}
            await self._update_claim(claim, own)
        elif claim.status.phase != bindings.BOUND:
            capacity = {name: str(amount) for name, amount in volume.spec.capacity.items()}
            modes = list(volume.spec.access_modes)
            await self._update_claim_status(
                claim, {"phase": bindings.BOUND, "accessModes": modes, "capacity": capacity}
            )

    async def _ask(self, claim: Claim, provisioner: str) -> None:
        """Request a volume from a provisioner."""
        if any(claim.metadata.annotations.get(name) != provisioner for name in _PROVISIONER):
            notes = dict.fromkeys(_PROVISIONER, provisioner)
            await self._update_claim(claim, {"metadata": {"annotations": notes}})
            return
        message = (
            f"Waiting for a volume to be created either by the external provisioner '{provisioner}' or manually by the "
            "system administrator. If volume creation is delayed, please verify that the provisioner is running and "
            "correctly registered."
        )
        self._recorder.record(claim, type="Normal", reason="ExternalProvisioning", message=message)

    async def _update_claim(self, claim: Claim, change: dict[str, Any]) -> None:
        await self._claim_writer.update(claim, change, only_if_unchanged=True)

    async def _update_claim_status(self, claim: Claim, change: dict[str, Any]) -> None:
        await self._claim_writer.update_status(claim, change, only_if_unchanged=True)

    async def _update_volume(self, volume: Volume, change: dict[str, Any]) -> None:
        await self._volume_writer.update(volume, change, only_if_unchanged=True)

    async def _update_volume_phase(self, volume: Volume, phase: str) -> None:
        await self._volume_writer.update_status(volume, {"phase": phase}, only_if_unchanged=True)
