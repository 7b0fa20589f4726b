"""Kinds of ``storage.k8s.io``: storage classes, volume attachments, and what CSI drivers publish."""

from collections.abc import Iterable
from datetime import datetime
from typing import Final

from drachma.server import objectmeta
from drachma.server.kinds.document import Document, DocumentStrategy
from drachma.server.surface import cells, layout, resources
from drachma.server.surface.apisurface import Kind
from drachma.server.surface.strategy import Subject
from drachma.validation import storage as rules


class StorageClassStrategy(DocumentStrategy):
    def default(self, content: Document, metadata: objectmeta.Metadata) -> None:
        content.setdefault("reclaimPolicy", "Delete")
        content.setdefault("volumeBindingMode", "Immediate")


def _class_cells(storage_class: Document, now: datetime) -> layout.Cells:
    own = cells.part(storage_class, "metadata").get("annotations") or {}
    is_default = any(own.get(key) == "true" for key in rules.DEFAULT_ANNOTATIONS)
    return [
        cells.name(storage_class) + (" (default)" if is_default else ""),
        storage_class.get("provisioner", ""),
        storage_class.get("reclaimPolicy") or "Delete",
        storage_class.get("volumeBindingMode") or "<unset>",
        storage_class.get("allowVolumeExpansion") or False,
        cells.since_creation(storage_class, now),
    ]


STORAGE_CLASS: Final = Kind(
    group="storage.k8s.io",
    versions=("v1",),
    plural="storageclasses",
    kind="StorageClass",
    namespaced=False,
    short_names=("sc",),
    layout=layout.Layout(
        (
            layout.NAME,
            layout.text("Provisioner", "The provisioner of the volumes."),
            layout.text("ReclaimPolicy", "The policy for released volumes."),
            layout.text("VolumeBindingMode", "The time of binding and provisioning."),
            layout.Column("AllowVolumeExpansion", description="True if volumes can be expanded."),
            layout.AGE,
        ),
        _class_cells,
    ),
    rules=rules.KINDS["StorageClass"],
    strategy=StorageClassStrategy,
)


def _attachment_cells(attachment: Document, now: datetime) -> layout.Cells:
    spec = cells.part(attachment, "spec")
    return [
        cells.name(attachment),
        spec.get("attacher", ""),
        cells.part(spec, "source").get("persistentVolumeName") or "",
        spec.get("nodeName", ""),
        cells.part(attachment, "status").get("attached", False),
        cells.since_creation(attachment, now),
    ]


VOLUME_ATTACHMENT: Final = Kind(
    group="storage.k8s.io",
    versions=("v1",),
    plural="volumeattachments",
    kind="VolumeAttachment",
    namespaced=False,
    subresources=(resources.status(),),
    layout=layout.Layout(
        (
            layout.NAME,
            layout.text("Attacher", "The driver that attaches it."),
            layout.text("PV", "The volume."),
            layout.text("Node", "The node."),
            layout.Column("Attached", "boolean", description="True if the volume is attached."),
            layout.AGE,
        ),
        _attachment_cells,
    ),
    rules=rules.KINDS["VolumeAttachment"],
    strategy=DocumentStrategy,
)


_DEFAULTS: Final = {
    "attachRequired": True,
    "fsGroupPolicy": "ReadWriteOnceWithFSType",
    "podInfoOnMount": False,
    "preventPodSchedulingIfMissing": False,
    "requiresRepublish": False,
    "seLinuxMount": False,
    "storageCapacity": False,
}


_TOKENS: Final = (
    "spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, set to true to prevent possible "
    "logging of tokens in volume attributes"
)


class CSIDriverStrategy(DocumentStrategy):
    def default(self, content: Document, metadata: objectmeta.Metadata) -> None:
        spec = content["spec"] = {**_DEFAULTS, **(content.get("spec") or {})}
        if not spec.get("volumeLifecycleModes"):
            spec["volumeLifecycleModes"] = ["Persistent"]

    def warnings(self, content: Document, subject: Subject) -> Iterable[str]:
        if content["spec"].get("tokenRequests") and content["spec"].get("serviceAccountTokenInSecrets") is None:
            yield _TOKENS


def _driver_cells(driver: Document, now: datetime) -> layout.Cells:
    spec = cells.part(driver, "spec")
    audiences = ",".join(each.get("audience", "") for each in spec.get("tokenRequests") or ()) or "<unset>"
    return [
        cells.name(driver),
        spec.get("attachRequired", True),
        spec.get("podInfoOnMount", False),
        spec.get("storageCapacity", False),
        audiences,
        spec.get("requiresRepublish", False),
        ",".join(spec.get("volumeLifecycleModes") or ()) or "<none>",
        cells.since_creation(driver, now),
    ]


def _flag(name: str, description: str) -> layout.Column:
    return layout.Column(name, "boolean", description=description)


CSI_DRIVER: Final = Kind(
    group="storage.k8s.io",
    versions=("v1",),
    plural="csidrivers",
    kind="CSIDriver",
    namespaced=False,
    layout=layout.Layout(
        (
            layout.NAME,
            _flag("AttachRequired", "Whether volumes must be attached to nodes."),
            _flag("PodInfoOnMount", "Whether the driver is told about pods."),
            _flag("StorageCapacity", "Whether the scheduler looks at the capacity that the driver publishes."),
            layout.text("TokenRequests", "The audiences of the service account tokens that the driver gets."),
            _flag("RequiresRepublish", "Whether volumes are published again and again."),
            layout.text("Modes", "The lifecycle modes of volumes."),
            layout.AGE,
        ),
        _driver_cells,
    ),
    rules=rules.KINDS["CSIDriver"],
    strategy=CSIDriverStrategy,
)


def _node_cells(node: Document, now: datetime) -> layout.Cells:
    return [cells.name(node), len(cells.part(node, "spec").get("drivers") or ()), cells.since_creation(node, now)]


CSI_NODE: Final = Kind(
    group="storage.k8s.io",
    versions=("v1",),
    plural="csinodes",
    kind="CSINode",
    namespaced=False,
    subresources=(resources.status(),),
    layout=layout.Layout(
        (layout.NAME, layout.integer("Drivers", "The number of drivers of the node."), layout.AGE), _node_cells
    ),
    rules=rules.KINDS["CSINode"],
    strategy=DocumentStrategy,
)


CSI_STORAGE_CAPACITY: Final = Kind(
    group="storage.k8s.io",
    versions=("v1",),
    plural="csistoragecapacities",
    kind="CSIStorageCapacity",
    namespaced=True,
    layout=layout.CREATED,
    rules=rules.KINDS["CSIStorageCapacity"],
    strategy=DocumentStrategy,
)
