"""Which storage drivers a node has."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from drachma.server.kinds.document import Document, DocumentStrategy
from drachma.server.schema import metatypes, notation
from drachma.server.surface import cells, layout, resources
from drachma.server.surface.apisurface import Kind
from drachma.server.surface.strategy import Subject
from drachma.validation import csi
from drachma.validation.fielderror import Errors

_TYPES: Final = """\
CSINode: apiVersion=str kind=str metadata=ObjectMeta! spec=CSINodeSpec!* status=CSINodeStatus!
CSINodeDriver: allocatable=VolumeNodeResources name=str* nodeID=str* topologyKeys=[str]!
CSINodeSpec: drivers={CSINodeDriver:name}!*~
CSINodeStatus: storageHealth={StorageHealth:name}~
StorageHealth: healthConditions=[StorageHealthCondition] name=str*
StorageHealthCondition: accessMode=str? lastTransitionTime=Time! message=str reason=str* status=str* volumeMode=str?
VolumeNodeResources: count=int32?
"""
_NUMBERS: Final = """\
CSINode: metadata spec status
CSINodeDriver: name nodeID topologyKeys allocatable
CSINodeSpec: drivers
CSINodeStatus: storageHealth
StorageHealth: name healthConditions
StorageHealthCondition: status reason message accessMode? volumeMode? lastTransitionTime
VolumeNodeResources: count?
"""
_TEXTS: Final = """\
CSINode: Which storage drivers a node has.
CSINodeSpec.drivers: The drivers, each with the node's name in its system.
"""
_PACKAGE: Final = notation.Types(
    "io.k8s.api.storage.v1", _TYPES, numbers=_NUMBERS, texts=_TEXTS, uses=(metatypes.META,)
)


class CSINodeStrategy(DocumentStrategy):
    def check(self, content: Document, subject: Subject) -> Errors:
        yield from csi.check_node(content.get("spec") or {})

    def check_update(self, content: Document, old: Mapping[str, Any], subject: Subject) -> Errors:
        yield from csi.check_node_update(content.get("spec") or {}, old.get("spec") or {})


def _cells(node: Document, now: datetime) -> layout.Cells:
    return [cells.name(node), len(cells.part(node, "spec").get("drivers") or ()), cells.since_creation(node, now)]


KIND: Final = Kind(
    group="storage.k8s.io",
    versions=("v1",),
    plural="csinodes",
    kind="CSINode",
    namespaced=False,
    subresources=(resources.status(),),
    schemas={"v1": _PACKAGE.object("CSINode")},
    layout=layout.Layout(
        (layout.NAME, layout.integer("Drivers", "How many drivers the node has."), layout.AGE), _cells
    ),
    strategy=CSINodeStrategy,
)
