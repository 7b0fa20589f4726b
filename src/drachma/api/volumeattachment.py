"""VolumeAttachment: attachment of a volume to a node. A partial view."""

from drachma.api import meta
from drachma.api.struct import ABSENT_TEXT, Struct


class VolumeAttachmentSource(Struct, frozen=True, kw_only=True):
    """Attached volume."""

    persistent_volume_name: str | None = None


class VolumeAttachmentSpec(Struct, frozen=True, kw_only=True):
    """Attacher, volume and node."""

    attacher: str = ABSENT_TEXT
    node_name: str = ABSENT_TEXT
    source: VolumeAttachmentSource = VolumeAttachmentSource()


class VolumeAttachment(meta.Object, frozen=True, kw_only=True):
    """``storage.k8s.io`` VolumeAttachment, cluster-scoped; a partial view."""

    spec: VolumeAttachmentSpec = VolumeAttachmentSpec()
