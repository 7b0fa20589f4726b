"""Volumes: volume claims, volumes and their classes, which volumes are promised to claims, and what drivers take.

A volume that a decision gave to a claim is promised until that is written, or given up; meanwhile nobody else gets it.
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
    """All that is known about persistent volumes."""

    def __init__(self, parent: Volumes | None = None) -> None:
        """``parent`` is what this is a fork of."""
        if parent is None:
            self.claims = forkmap.ForkMap[cache.Key, Claim]()
            self.volumes = forkmap.ForkMap[str, Volume]()
            self.classes = forkmap.ForkMap[str, storageclass.StorageClass]()
            self._promised = forkmap.ForkMap[str, str]()
            self.drivers = forkmap.ForkMap[str, csidriver.CSIDriver]()
            self.driver_nodes = forkmap.ForkMap[str, csinode.CSINode]()
            """What nodes say of storage drivers, by the name of the node."""
            self.attachments = forkmap.ForkMap[str, dict[str, volumeattachment.VolumeAttachment]](copy=dict)
            """What is attached to nodes, by the name of the node and of the attachment."""
        else:
            self.claims = parent.claims.fork()
            self.volumes = parent.volumes.fork()
            self.classes = parent.classes.fork()
            self._promised = parent._promised.fork()
            self.drivers = parent.drivers.fork()
            self.driver_nodes = parent.driver_nodes.fork()
            self.attachments = parent.attachments.fork()

    def fork(self) -> Volumes:
        """The same, to be changed apart."""
        return Volumes(self)

    def put_claim(self, new: Claim) -> None:
        """Take in a volume claim, new or changed."""
        self.claims[cache.key_of(new)] = new

    def remove_claim(self, gone: Claim) -> None:
        """Forget a volume claim."""
        self.claims.pop(cache.key_of(gone), None)

    def put_volume(self, new: Volume) -> None:
        """Take in a volume, new or changed."""
        self.volumes[new.metadata.name] = new

    def remove_volume(self, gone: Volume) -> None:
        """Forget a volume."""
        self.volumes.pop(gone.metadata.name, None)

    def put_class(self, new: storageclass.StorageClass) -> None:
        """Take in a class, new or changed."""
        self.classes[new.metadata.name] = new

    def remove_class(self, gone: storageclass.StorageClass) -> None:
        """Forget a class."""
        self.classes.pop(gone.metadata.name, None)

    def put_driver(self, new: csidriver.CSIDriver) -> None:
        """Take in a storage driver, new or changed."""
        self.drivers[new.metadata.name] = new

    def remove_driver(self, gone: csidriver.CSIDriver) -> None:
        """Forget a storage driver."""
        self.drivers.pop(gone.metadata.name, None)

    def put_driver_node(self, new: csinode.CSINode) -> None:
        """Take in what a node says of storage drivers, new or changed."""
        self.driver_nodes[new.metadata.name] = new

    def remove_driver_node(self, gone: csinode.CSINode) -> None:
        """Forget what a node said of storage drivers."""
        self.driver_nodes.pop(gone.metadata.name, None)

    def put_attachment(self, new: volumeattachment.VolumeAttachment) -> None:
        """Take in that a volume is attached to a node, which never changes."""
        if new.spec.node_name not in self.attachments:
            self.attachments[new.spec.node_name] = {}
        self.attachments.mutable(new.spec.node_name)[new.metadata.name] = new

    def remove_attachment(self, gone: volumeattachment.VolumeAttachment) -> None:
        """Forget that a volume was attached."""
        if gone.spec.node_name in self.attachments:
            self.attachments.mutable(gone.spec.node_name).pop(gone.metadata.name, None)

    def promise(self, volume: str, claim: str) -> None:
        """Keep a volume for a claim, by its uid."""
        self._promised[volume] = claim

    def take_back(self, volume: str) -> None:
        """Keep a volume for nobody any more."""
        self._promised.pop(volume, None)

    def available_to(self, claim: Claim) -> Iterator[Volume]:
        """The volumes, by name, that are not another claim's."""
        for name in sorted(self.volumes):
            volume = self.volumes[name]
            holder = self._promised.get(name)
            if (holder is None or holder == claim.metadata.uid) and (
                volume.spec.claim_ref is None or volumeclaims.is_bound_to(volume, claim)
            ):
                yield volume
