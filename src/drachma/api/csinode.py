"""CSINode: storage drivers of a node, and their limits on volumes. A partial view."""

from drachma.api import meta
from drachma.api.struct import ABSENT_TUPLE, ZERO_TEXT, Int32, Struct


class VolumeNodeResources(Struct, frozen=True, kw_only=True):
    """Maximum number of a driver's volumes on a node."""

    count: Int32 | None = None


class CSINodeDriver(Struct, frozen=True, kw_only=True):
    """A driver on a node."""

    name: str = ZERO_TEXT
    allocatable: VolumeNodeResources | None = None


class CSINodeSpec(Struct, frozen=True, kw_only=True):
    """The drivers of a node."""

    drivers: tuple[CSINodeDriver, ...] = ABSENT_TUPLE


class CSINode(meta.Object, frozen=True, kw_only=True):
    """``storage.k8s.io`` CSINode, cluster-scoped, named as its node; a partial view."""

    spec: CSINodeSpec = CSINodeSpec()
