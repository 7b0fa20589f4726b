"""How much storage of a class there is in some part of a cluster."""

from collections.abc import Mapping
from typing import Any, Final

from drachma.server.kinds.document import Document, DocumentStrategy
from drachma.server.schema import metatypes, notation
from drachma.server.surface import layout
from drachma.server.surface.apisurface import Kind
from drachma.server.surface.strategy import Subject
from drachma.validation import csi
from drachma.validation.fielderror import Errors

_TYPES: Final = """\
CSIStorageCapacity: apiVersion=str capacity=Quantity kind=str maximumVolumeSize=Quantity metadata=ObjectMeta!
    nodeTopology=LabelSelector storageClassName=str*
"""
_NUMBERS: Final = """\
CSIStorageCapacity: metadata nodeTopology storageClassName capacity maximumVolumeSize
"""
_TEXTS: Final = """\
CSIStorageCapacity: How much storage of a class there is in some part of a cluster.
"""
_PACKAGE: Final = notation.Types(
    "io.k8s.api.storage.v1", _TYPES, numbers=_NUMBERS, texts=_TEXTS, uses=(metatypes.META,)
)


class CSIStorageCapacityStrategy(DocumentStrategy):
    def check(self, content: Document, subject: Subject) -> Errors:
        yield from csi.check_capacity(content)

    def check_update(self, content: Document, old: Mapping[str, Any], subject: Subject) -> Errors:
        yield from csi.check_capacity_update(content, old)


KIND: Final = Kind(
    group="storage.k8s.io",
    versions=("v1",),
    plural="csistoragecapacities",
    kind="CSIStorageCapacity",
    namespaced=True,
    schemas={"v1": _PACKAGE.object("CSIStorageCapacity")},
    layout=layout.CREATED,
    strategy=CSIStorageCapacityStrategy,
)
