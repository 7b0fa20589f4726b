"""Volumes: claims, volumes, classes, promises of volumes to claims, and attachments.

A volume that a decision gave to a claim is promised to it until the binding is written or fails. Meanwhile no other
claim gets it.
"""

from __future__ import annotations

from collections.abc import Iterator

from drachma.api import csidriver, csinode, persistentvolume, persistentvolumeclaim, storageclass, volumeattachment
from drachma.claims import volumeclaims
from drachma.runtime import cache
from drachma.values import forkmap

Claim = persistentvolumeclaim.PersistentVolumeClaim
Volume = persistentvolume.PersistentVolume


class Volumes:
    """Everything known about persistent volumes."""

    def __init__(self, parent: Volumes | None = None) -> None:
        """With a ``parent`` this is a fork of it."""
        if parent is None:
            self.claims = forkmap.ForkMap[cache.Key, Claim]()
            self.volumes = forkmap.ForkMap[str, Volume]()
            self.classes = forkmap.ForkMap[str, storageclass.StorageClass]()
            self._promised = forkmap.ForkMap[str, str]()
            self.drivers = forkmap.ForkMap[str, csidriver.CSIDriver]()
            self.driver_nodes = forkmap.ForkMap[str, csinode.CSINode]()
            """CSINodes by the name of the node."""
            self.attachments = forkmap.ForkMap[str, dict[str, volumeattachment.VolumeAttachment]](copy=dict)
            """Attachments by the names of the node and of the attachment."""
        else:
            self.claims = parent.claims.fork()
            self.volumes = parent.volumes.fork()
            self.classes = parent.classes.fork()
            self._promised = parent._promised.fork()
            self.drivers = parent.drivers.fork()
            self.driver_nodes = parent.driver_nodes.fork()
            self.attachments = parent.attachments.fork()

    def fork(self) -> Volumes:
        """Return a copy that can be changed separately."""
        return Volumes(self)

    def put_claim(self, new: Claim) -> None:
        """Add or update a volume claim."""
        self.claims[cache.key_of(new)] = new

    def remove_claim(self, deleted: Claim) -> None:
        """Remove a volume claim."""
        self.claims.pop(cache.key_of(deleted), None)

    def put_volume(self, new: Volume) -> None:
        """Add or update a volume."""
        self.volumes[new.metadata.name] = new

    def remove_volume(self, deleted: Volume) -> None:
        """Remove a volume."""
        self.volumes.pop(deleted.metadata.name, None)

    def put_class(self, new: storageclass.StorageClass) -> None:
        """Add or update a class."""
        self.classes[new.metadata.name] = new

    def remove_class(self, deleted: storageclass.StorageClass) -> None:
        """Remove a class."""
        self.classes.pop(deleted.metadata.name, None)

    def put_driver(self, new: csidriver.CSIDriver) -> None:
        """Add or update a storage driver."""
        self.drivers[new.metadata.name] = new

    def remove_driver(self, deleted: csidriver.CSIDriver) -> None:
        """Remove a storage driver."""
        self.drivers.pop(deleted.metadata.name, None)

    def put_driver_node(self, new: csinode.CSINode) -> None:
        """Add or update a CSINode."""
        self.driver_nodes[new.metadata.name] = new

    def remove_driver_node(self, deleted: csinode.CSINode) -> None:
        """Remove a CSINode."""
        self.driver_nodes.pop(deleted.metadata.name, None)

    def put_attachment(self, new: volumeattachment.VolumeAttachment) -> None:
        """Add the attachment of a volume to a node, which never changes."""
        if new.spec.node_name not in self.attachments:
            self.attachments[new.spec.node_name] = {}
        self.attachments.mutable(new.spec.node_name)[new.metadata.name] = new

    def remove_attachment(self, deleted: volumeattachment.VolumeAttachment) -> None:
        """Remove an attachment."""
        if deleted.spec.node_name in self.attachments:
            self.attachments.mutable(deleted.spec.node_name).pop(deleted.metadata.name, None)

    def promise(self, volume: str, claim: str) -> None:
        """Promise a volume to a claim, by uid."""
        self._promised[volume] = claim

    def take_back(self, volume: str) -> None:
        """End the promise of a volume."""
        self._promised.pop(volume, None)

    def available_to(self, claim: Claim) -> Iterator[Volume]:
        """Yield the volumes, by name, that belong to no other claim."""
        for name in sorted(self.volumes):
            volume = self.volumes[name]
            holder = self._promised.get(name)
            if (holder is None or holder == claim.metadata.uid) and (
                volume.spec.claim_ref is None or volumeclaims.is_bound_to(volume, claim)
            ):
                yield volume
