"""Classes of storage: who provides volumes of a kind, and how."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from drachma.server import objectmeta
from drachma.server.kinds.core import persistentvolume
from drachma.server.kinds.document import Document, DocumentStrategy
from drachma.server.schema import metatypes, notation
from drachma.server.surface import cells, layout
from drachma.server.surface.apisurface import Kind
from drachma.server.surface.strategy import Subject
from drachma.validation import storageclass
from drachma.validation.fielderror import Errors

_TYPES: Final = """\
StorageClass: allowVolumeExpansion=bool? allowedTopologies=[TopologySelectorTerm] apiVersion=str kind=str
    metadata=ObjectMeta! mountOptions=[str] parameters=<str> provisioner=str* reclaimPolicy=str?
    volumeBindingMode=str?
"""
_NUMBERS: Final = """\
StorageClass: metadata provisioner parameters reclaimPolicy? mountOptions allowVolumeExpansion? volumeBindingMode?
    allowedTopologies
"""
_TEXTS: Final = """\
StorageClass: Who provides volumes of a kind, and how.
StorageClass.provisioner: Who provides the volumes.
"""
_PACKAGE: Final = notation.Types(
    "io.k8s.api.storage.v1", _TYPES, numbers=_NUMBERS, texts=_TEXTS, uses=(metatypes.META, persistentvolume.VOLUMES)
)


class StorageClassStrategy(DocumentStrategy):
    def default(self, content: Document, metadata: objectmeta.Metadata) -> None:
        content.setdefault("reclaimPolicy", "Delete")
        content.setdefault("volumeBindingMode", "Immediate")

    def check(self, content: Document, subject: Subject) -> Errors:
        yield from storageclass.check(content)

    def check_update(self, content: Document, old: Mapping[str, Any], subject: Subject) -> Errors:
        yield from storageclass.check_update(content, old)


def _cells(storage_class: Document, now: datetime) -> layout.Cells:
    own = cells.part(storage_class, "metadata").get("annotations") or {}
    is_default = any(own.get(key) == "true" for key in storageclass.DEFAULT_ANNOTATIONS)
    return [
        cells.name(storage_class) + (" (default)" if is_default else ""),
        storage_class.get("provisioner", ""),
        storage_class.get("reclaimPolicy") or "Delete",
        storage_class.get("volumeBindingMode") or "<unset>",
        storage_class.get("allowVolumeExpansion") or False,
        cells.since_creation(storage_class, now),
    ]


KIND: Final = Kind(
    group="storage.k8s.io",
    versions=("v1",),
    plural="storageclasses",
    kind="StorageClass",
    namespaced=False,
    short_names=("sc",),
    schemas={"v1": _PACKAGE.object("StorageClass")},
    layout=layout.Layout(
        (
            layout.NAME,
            layout.text("Provisioner", "Who provides the volumes."),
            layout.text("ReclaimPolicy", "What becomes of a volume once nobody claims it."),
            layout.text("VolumeBindingMode", "When volumes are provided."),
            layout.Column("AllowVolumeExpansion", description="Whether volumes may grow."),
            layout.AGE,
        ),
        _cells,
    ),
    strategy=StorageClassStrategy,
)
