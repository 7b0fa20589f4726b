"""Claims of volumes, as objects: nothing provides volumes here."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from drachma.server import objectmeta
from drachma.server.kinds.core import podstatustypes, references, volumetypes
from drachma.server.kinds.document import Document, DocumentStrategy
from drachma.server.schema import metatypes, notation
from drachma.server.surface import cells, layout, resources
from drachma.server.surface.apisurface import Kind
from drachma.server.surface.strategy import Subject, Write
from drachma.validation import persistentvolumeclaim
from drachma.validation.fielderror import Errors

_TYPES: Final = """\
ModifyVolumeStatus: status=str* targetVolumeAttributesClassName=str
PersistentVolumeClaim: apiVersion=str kind=str metadata=ObjectMeta! spec=PersistentVolumeClaimSpec!
    status=PersistentVolumeClaimStatus!
PersistentVolumeClaimCondition: lastProbeTime=Time! lastTransitionTime=Time! message=str reason=str status=str*
    type=str*
PersistentVolumeClaimStatus: accessModes=[str] allocatedResourceStatuses=<str> allocatedResources=<Quantity>
    capacity=<Quantity> conditions={PersistentVolumeClaimCondition:type}~ currentVolumeAttributesClassName=str?
    healthStatus=VolumeHealthStatus modifyVolumeStatus=ModifyVolumeStatus phase=str
VolumeHealthStatus: healthConditions={VolumeHealthCondition:status,reason}~ lastTransitionTime=Time!
"""
_NUMBERS: Final = """\
ModifyVolumeStatus: targetVolumeAttributesClassName status
PersistentVolumeClaim: metadata spec status
PersistentVolumeClaimCondition: type status lastProbeTime lastTransitionTime reason message
PersistentVolumeClaimStatus: phase accessModes capacity conditions allocatedResources 7:allocatedResourceStatuses
    currentVolumeAttributesClassName? modifyVolumeStatus healthStatus
VolumeHealthStatus: healthConditions lastTransitionTime
"""
_TEXTS: Final = """\
PersistentVolumeClaim: A wish for a volume.
"""
CLAIMS: Final = notation.Types(
    "io.k8s.api.core.v1",
    _TYPES,
    numbers=_NUMBERS,
    texts=_TEXTS,
    uses=(metatypes.META, references.REFERENCES, volumetypes.VOLUMES, podstatustypes.POD_STATUS),
)
"""The types of claims, of which stateful sets have templates."""


def default(claim: Document) -> None:
    """Fills in the defaults of a claim or a template of one, in place."""
    status = claim["status"] = dict(claim.get("status") or {})
    if not status.get("phase"):
        status["phase"] = "Pending"
    spec = claim["spec"] = dict(claim.get("spec") or {})
    if spec.get("volumeMode") is None:
        spec["volumeMode"] = "Filesystem"


class PersistentVolumeClaimStrategy(DocumentStrategy):
    def default(self, content: Document, metadata: objectmeta.Metadata) -> None:
        default(content)
        spec = content["spec"]
        if spec.get("dataSource") is not None and spec.get("dataSourceRef") is None:
            spec["dataSourceRef"] = dict(spec["dataSource"])
        elif spec.get("dataSource") is None and not (spec.get("dataSourceRef") or {"namespace": "-"}).get("namespace"):
            spec["dataSource"] = dict(spec["dataSourceRef"])

    def prepare_create(self, content: Document, metadata: objectmeta.Metadata, write: Write) -> None:
        content["status"] = {"phase": "Pending"}

    def check(self, content: Document, subject: Subject) -> Errors:
        yield from persistentvolumeclaim.check(content["spec"])

    def check_update(self, content: Document, old: Mapping[str, Any], subject: Subject) -> Errors:
        yield from persistentvolumeclaim.check_update(content["spec"], old["spec"])


def _cells(claim: Document, now: datetime) -> layout.Cells:
    spec, status = cells.part(claim, "spec"), cells.part(claim, "status")
    is_bound = bool(spec.get("volumeName"))
    phase = "Terminating" if cells.part(claim, "metadata").get("deletionTimestamp") else status.get("phase", "")
    return [
        cells.name(claim),
        phase,
        spec.get("volumeName", ""),
        str(cells.part(status, "capacity").get("storage", "")) if is_bound else "",
        cells.access_modes(status.get("accessModes")) if is_bound else "",
        spec.get("storageClassName") or "",
        spec.get("volumeAttributesClassName") or "<unset>",
        cells.since_creation(claim, now),
        spec.get("volumeMode") or "<unset>",
    ]


KIND: Final = Kind(
    group="",
    versions=("v1",),
    plural="persistentvolumeclaims",
    kind="PersistentVolumeClaim",
    namespaced=True,
    short_names=("pvc",),
    subresources=(resources.status(),),
    schemas={"v1": CLAIMS.object("PersistentVolumeClaim")},
    traits=resources.Traits(returns_deleted=True),
    layout=layout.Layout(
        (
            layout.NAME,
            layout.text("Status", "Whether there is a volume for it."),
            layout.text("Volume", "The volume."),
            layout.text("Capacity", "How large the volume is."),
            layout.text("Access Modes", "How the volume may be used."),
            layout.text("StorageClass", "The class of the volume."),
            layout.text("VolumeAttributesClass", "The class of the volume's attributes."),
            layout.AGE,
            layout.wide("VolumeMode", "Whether the volume has a file system."),
        ),
        _cells,
    ),
    strategy=PersistentVolumeClaimStrategy,
)
