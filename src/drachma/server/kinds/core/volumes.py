"""Persistent volumes and persistent volume claims."""

from datetime import datetime
from typing import Final

from drachma.api import meta
from drachma.server import objectmeta
from drachma.server.kinds.document import Document, DocumentStrategy
from drachma.server.surface import cells, layout, resources
from drachma.server.surface.apisurface import Kind
from drachma.server.surface.strategy import Write
from drachma.validation import storage


class PersistentVolumeStrategy(DocumentStrategy):
    def default(self, content: Document, metadata: objectmeta.Metadata) -> None:
        status = content["status"] = dict(content.get("status") or {})
        if not status.get("phase"):
            status["phase"] = "Pending"
        spec = content["spec"] = dict(content.get("spec") or {})
        if not spec.get("persistentVolumeReclaimPolicy"):
            spec["persistentVolumeReclaimPolicy"] = "Retain"
        if spec.get("volumeMode") is None:
            spec["volumeMode"] = "Filesystem"
        if spec.get("hostPath") is not None and spec["hostPath"].get("type") is None:
            spec["hostPath"] = {**spec["hostPath"], "type": ""}

    def prepare_create(self, content: Document, metadata: objectmeta.Metadata, write: Write) -> None:
        content["status"] = {"phase": "Pending", "lastPhaseTransitionTime": meta.time_text(write.now)}


def _volume_cells(volume: Document, now: datetime) -> layout.Cells:
    spec, status = cells.part(volume, "spec"), cells.part(volume, "status")
    claim = cells.part(spec, "claimRef")
    phase = "Terminating" if cells.part(volume, "metadata").get("deletionTimestamp") else status.get("phase", "")
    return [
        cells.name(volume),
        str(cells.part(spec, "capacity").get("storage", "")),
        cells.access_modes(spec.get("accessModes")),
        spec.get("persistentVolumeReclaimPolicy", ""),
        phase,
        f"{claim.get('namespace', '')}/{claim.get('name', '')}" if claim else "",
        spec.get("storageClassName", ""),
        spec.get("volumeAttributesClassName") or "<unset>",
        status.get("reason", ""),
        cells.since_creation(volume, now),
        spec.get("volumeMode") or "<unset>",
    ]


PERSISTENT_VOLUME: Final = Kind(
    group="",
    versions=("v1",),
    plural="persistentvolumes",
    kind="PersistentVolume",
    namespaced=False,
    short_names=("pv",),
    subresources=(resources.status(),),
    traits=resources.Traits(returns_deleted=True),
    layout=layout.Layout(
        (
            layout.NAME,
            layout.text("Capacity", "The capacity of the volume."),
            layout.text("Access Modes", "The access modes of the volume."),
            layout.text("Reclaim Policy", "The policy for the released volume."),
            layout.text("Status", "The phase of the volume."),
            layout.text("Claim", "The claim of the volume."),
            layout.text("StorageClass", "The class of the volume."),
            layout.text("VolumeAttributesClass", "The class of the volume's attributes."),
            layout.text("Reason", "The reason of the phase."),
            layout.AGE,
            layout.wide("VolumeMode", "Filesystem or Block."),
        ),
        _volume_cells,
    ),
    rules=storage.KINDS["PersistentVolume"],
    strategy=PersistentVolumeStrategy,
)


def default_claim(claim: Document) -> None:
    """Set the defaults of a claim or a claim template, in place."""
    status = claim["status"] = dict(claim.get("status") or {})
    if not status.get("phase"):
        status["phase"] = "Pending"
    spec = claim["spec"] = dict(claim.get("spec") or {})
    if spec.get("volumeMode") is None:
        spec["volumeMode"] = "Filesystem"


class PersistentVolumeClaimStrategy(DocumentStrategy):
    def default(self, content: Document, metadata: objectmeta.Metadata) -> None:
        default_claim(content)
        spec = content["spec"]
        if spec.get("dataSource") is not None and spec.get("dataSourceRef") is None:
            spec["dataSourceRef"] = dict(spec["dataSource"])
        elif spec.get("dataSource") is None and not (spec.get("dataSourceRef") or {"namespace": "-"}).get("namespace"):
            spec["dataSource"] = dict(spec["dataSourceRef"])

    def prepare_create(self, content: Document, metadata: objectmeta.Metadata, write: Write) -> None:
        content["status"] = {"phase": "Pending"}


def _claim_cells(claim: Document, now: datetime) -> layout.Cells:
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


PERSISTENT_VOLUME_CLAIM: Final = Kind(
    group="",
    versions=("v1",),
    plural="persistentvolumeclaims",
    kind="PersistentVolumeClaim",
    namespaced=True,
    short_names=("pvc",),
    subresources=(resources.status(),),
    traits=resources.Traits(returns_deleted=True),
    layout=layout.Layout(
        (
            layout.NAME,
            layout.text("Status", "The phase of the claim."),
            layout.text("Volume", "The volume."),
            layout.text("Capacity", "The capacity of the volume."),
            layout.text("Access Modes", "The access modes of the volume."),
            layout.text("StorageClass", "The class of the volume."),
            layout.text("VolumeAttributesClass", "The class of the volume's attributes."),
            layout.AGE,
            layout.wide("VolumeMode", "Filesystem or Block."),
        ),
        _claim_cells,
    ),
    rules=storage.KINDS["PersistentVolumeClaim"],
    strategy=PersistentVolumeClaimStrategy,
)
