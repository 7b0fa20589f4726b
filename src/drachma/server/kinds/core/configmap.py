"""ConfigMaps: configuration that pods can read."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from drachma.server.kinds.document import Document, DocumentStrategy
from drachma.server.schema import metatypes, notation
from drachma.server.surface import cells, layout
from drachma.server.surface.apisurface import Kind
from drachma.server.surface.strategy import Subject
from drachma.validation import configuration
from drachma.validation.fielderror import Errors

_TYPES: Final = """\
ConfigMap: apiVersion=str binaryData=<bytes> data=<str> immutable=bool? kind=str metadata=ObjectMeta!
"""
_NUMBERS: Final = """\
ConfigMap: metadata data binaryData immutable?
"""
_TEXTS: Final = """\
ConfigMap.data: Texts by name.
ConfigMap.binaryData: Bytes by name.
ConfigMap: Configuration that pods can read.
"""
_PACKAGE: Final = notation.Types("io.k8s.api.core.v1", _TYPES, numbers=_NUMBERS, texts=_TEXTS, uses=(metatypes.META,))


class ConfigMapStrategy(DocumentStrategy):
    rechecks_names = True

    def check(self, content: Document, subject: Subject) -> Errors:
        yield from configuration.check_config_map(content)

    def check_update(self, content: Document, old: Mapping[str, Any], subject: Subject) -> Errors:
        yield from configuration.check_update(content, old, fields=("data", "binaryData"))


def _cells(config_map: Document, now: datetime) -> layout.Cells:
    entries = len(config_map.get("data") or {}) + len(config_map.get("binaryData") or {})
    return [cells.name(config_map), entries, cells.since_creation(config_map, now)]


KIND: Final = Kind(
    group="",
    versions=("v1",),
    plural="configmaps",
    kind="ConfigMap",
    namespaced=True,
    short_names=("cm",),
    schemas={"v1": _PACKAGE.object("ConfigMap")},
    layout=layout.Layout((layout.NAME, layout.text("Data", "How many entries there are."), layout.AGE), _cells),
    strategy=ConfigMapStrategy,
)
