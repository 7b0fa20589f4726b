"""That a volume is to be attached to a node, and whether it is."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from drachma.server.kinds.core import persistentvolume, references, volumetypes
from drachma.server.kinds.document import Document, DocumentStrategy
from drachma.server.schema import metatypes, notation
from drachma.server.surface import cells, layout, resources
from drachma.server.surface.apisurface import Kind
from drachma.server.surface.strategy import Subject
from drachma.validation import csi
from drachma.validation.fielderror import Errors

_TYPES: Final = """\
VolumeAttachment: apiVersion=str kind=str metadata=ObjectMeta! spec=VolumeAttachmentSpec!*
    status=VolumeAttachmentStatus!
VolumeAttachmentSource: inlineVolumeSpec=PersistentVolumeSpec persistentVolumeName=str?
VolumeAttachmentSpec: attacher=str* nodeName=str* source=VolumeAttachmentSource!*
VolumeAttachmentStatus: attachError=VolumeError attached=bool* attachmentMetadata=<str> detachError=VolumeError
VolumeError: errorCode=int32? message=str time=Time!
"""
_NUMBERS: Final = """\
VolumeAttachment: metadata spec status
VolumeAttachmentSource: persistentVolumeName? inlineVolumeSpec
VolumeAttachmentSpec: attacher source nodeName
VolumeAttachmentStatus: attached attachmentMetadata attachError detachError
VolumeError: time message errorCode?
"""
_TEXTS: Final = """\
VolumeAttachment: That a volume is to be attached to a node, and whether it is.
"""
_PACKAGE: Final = notation.Types(
    "io.k8s.api.storage.v1",
    _TYPES,
    numbers=_NUMBERS,
    texts=_TEXTS,
    uses=(metatypes.META, references.REFERENCES, volumetypes.VOLUMES, persistentvolume.VOLUMES),
)


class VolumeAttachmentStrategy(DocumentStrategy):
    def check(self, content: Document, subject: Subject) -> Errors:
        yield from csi.check_attachment(content.get("spec") or {})

    def check_update(self, content: Document, old: Mapping[str, Any], subject: Subject) -> Errors:
        yield from csi.check_attachment_update(content.get("spec") or {}, old.get("spec") or {})


def _cells(attachment: Document, now: datetime) -> layout.Cells:
    spec = cells.part(attachment, "spec")
    return [
        cells.name(attachment),
        spec.get("attacher", ""),
        cells.part(spec, "source").get("persistentVolumeName") or "",
        spec.get("nodeName", ""),
        cells.part(attachment, "status").get("attached", False),
        cells.since_creation(attachment, now),
    ]


KIND: Final = Kind(
    group="storage.k8s.io",
    versions=("v1",),
    plural="volumeattachments",
    kind="VolumeAttachment",
    namespaced=False,
    subresources=(resources.status(),),
    schemas={"v1": _PACKAGE.object("VolumeAttachment")},
    layout=layout.Layout(
        (
            layout.NAME,
            layout.text("Attacher", "The driver that attaches it."),
            layout.text("PV", "The volume."),
            layout.text("Node", "The node."),
            layout.Column("Attached", "boolean", description="Whether it is attached."),
            layout.AGE,
        ),
        _cells,
    ),
    strategy=VolumeAttachmentStrategy,
)
