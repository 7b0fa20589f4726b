"""Provisioner of volumes on the disk of this machine, for claims whose pods have a node.

It serves the class ``local``, which is the default class. A volume is a directory below a folder. The directory is
removed with its content when its claim is gone.
"""

from __future__ import annotations

import asyncio
import contextlib
import pathlib
from typing import Any, Final

from drachma import errors
from drachma.api import persistentvolume, persistentvolumeclaim, storageclass
from drachma.claims import volumeclaims
from drachma.client import patches
from drachma.node.setup.volumes import removal
from drachma.runtime import Surroundings, controller, informer, workqueue

Claim = persistentvolumeclaim.PersistentVolumeClaim
Volume = persistentvolume.PersistentVolume

PROVISIONER: Final = "drachma.dev/local"
CLASS: Final = "local"

_PROVISIONED_BY: Final = "pv.kubernetes.io/provisioned-by"
_RELEASED: Final = "Released"
_ACCOUNT: Final = "system:serviceaccount:kube-system:persistent-volume-binder"
_ADMIN: Final = "kubernetes-admin"
_CLASS: Final[dict[str, Any]] = {
    "apiVersion": "storage.k8s.io/v1",
    "kind": "StorageClass",
    "metadata": {"name": CLASS, "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
    "provisioner": PROVISIONER,
    "reclaimPolicy": "Delete",
    "volumeBindingMode": storageclass.WAIT_FOR_FIRST_CONSUMER,
}


class LocalProvisioner:
    """Creates and removes the volumes of its class."""

    name: Final = "local-provisioner"

    def __init__(self, surroundings: Surroundings, folder: pathlib.Path) -> None:
        self._admin: Final = surroundings.acting_as(_ADMIN).client
        own = surroundings.acting_as(_ACCOUNT)
        self._client: Final = own.client
        self._folder: Final = folder
        claims, volumes = surroundings.informers.of(Claim), surroundings.informers.of(Volume)
        self._claims: Final = claims.cache
        self._volumes: Final = volumes.cache
        self._queue: Final[workqueue.Queue[tuple[str, str]]] = workqueue.Queue(
            self.name, clock=surroundings.clock, metrics=surroundings.queues
        )
        claims.add_handler(informer.Handler.on_write(self._queue_claim))
        volumes.add_handler(informer.Handler.on_write(self._queue_volume))

    async def run(self) -> None:
        with contextlib.suppress(errors.ObjectExistsError):
            await self._admin.create_document(storageclass.StorageClass, _CLASS)
        await controller.work(self._queue, self._reconcile, workers=1)

    def _queue_claim(self, claim: Claim) -> None:
        if persistentvolumeclaim.class_of(claim) == CLASS and volumeclaims.SELECTED_NODE in claim.metadata.annotations:
            self._queue.add((claim.metadata.namespace, claim.metadata.name))

    def _queue_volume(self, volume: Volume) -> None:
        if volume.status.phase == _RELEASED and volume.metadata.annotations.get(_PROVISIONED_BY) == PROVISIONER:
            self._queue.add(("", volume.metadata.name))

    async def _reconcile(self, key: tuple[str, str]) -> None:
        namespace, name = key
        if namespace:
            claim = self._claims.get(name, namespace=namespace)
            if claim is not None and not claim.spec.volume_name and claim.metadata.deletion_timestamp is None:
                await self._create(claim)
        else:
            volume = self._volumes.get(name)
            if volume is not None and volume.spec.persistent_volume_reclaim_policy == "Delete":
                await self._remove(volume)

    async def _create(self, claim: Claim) -> None:
        name = f"pvc-{claim.metadata.uid}"
        path = self._folder / name
        path.mkdir(parents=True, exist_ok=True)
        node = claim.metadata.annotations[volumeclaims.SELECTED_NODE]
        on_node = {"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}
        document = {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": name, "annotations": {_PROVISIONED_BY: PROVISIONER}},
            "spec": {
                "capacity": {each: str(amount) for each, amount in claim.spec.resources.requests.items()},
                "accessModes": list(claim.spec.access_modes),
                "persistentVolumeReclaimPolicy": "Delete",
                "storageClassName": CLASS,
                "volumeMode": claim.spec.volume_mode or "Filesystem",
                "local": {"path": str(path)},
                "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [on_node]}]}},
                "claimRef": {
                    "apiVersion": "v1",
                    "kind": "PersistentVolumeClaim",
                    "namespace": claim.metadata.namespace,
                    "name": claim.metadata.name,
                    "uid": claim.metadata.uid,
                },
            },
        }
        with contextlib.suppress(errors.ObjectExistsError):
            await self._client.create_document(Volume, document)

    async def _remove(self, volume: Volume) -> None:
        await asyncio.to_thread(removal.remove_tree, self._folder / volume.metadata.name)
        with contextlib.suppress(errors.ObjectNotFoundError):
            await self._client.delete(Volume, volume.metadata.name, preconditions=patches.same(volume))
