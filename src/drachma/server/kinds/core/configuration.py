"""Config maps and secrets."""

import base64
from datetime import datetime
from typing import Final

from drachma.server import objectmeta
from drachma.server.kinds.document import Document, DocumentStrategy
from drachma.server.surface import cells, layout, selectable
from drachma.server.surface.apisurface import Kind
from drachma.validation import configuration


class ConfigMapStrategy(DocumentStrategy):
    rechecks_names = True


def _config_map_cells(config_map: Document, now: datetime) -> layout.Cells:
    entries = len(config_map.get("data") or {}) + len(config_map.get("binaryData") or {})
    return [cells.name(config_map), entries, cells.since_creation(config_map, now)]


CONFIG_MAP: Final = Kind(
    group="",
    versions=("v1",),
    plural="configmaps",
    kind="ConfigMap",
    namespaced=True,
    short_names=("cm",),
    layout=layout.Layout((layout.NAME, layout.text("Data", "The number of entries."), layout.AGE), _config_map_cells),
    rules=configuration.KINDS["ConfigMap"],
    strategy=ConfigMapStrategy,
)


class SecretStrategy(DocumentStrategy):
    rechecks_names = True

    def default(self, content: Document, metadata: objectmeta.Metadata) -> None:
        if not content.get("type"):
            content["type"] = "Opaque"
        plain = content.pop("stringData", None)
        if plain:
            encoded = {key: base64.b64encode(value.encode()).decode() for key, value in plain.items()}
            content["data"] = {**(content.get("data") or {}), **encoded}


def _secret_cells(secret: Document, now: datetime) -> layout.Cells:
    entries = len(secret.get("data") or {})
    return [cells.name(secret), secret.get("type", ""), entries, cells.since_creation(secret, now)]


SECRET: Final = Kind(
    group="",
    versions=("v1",),
    plural="secrets",
    kind="Secret",
    namespaced=True,
    layout=layout.Layout(
        (
            layout.NAME,
            layout.text("Type", "The type of the secret."),
            layout.text("Data", "The number of entries."),
            layout.AGE,
        ),
        _secret_cells,
    ),
    selectable=selectable.Selectable(
        fields=frozenset({selectable.NAME, selectable.NAMESPACE, "type"}), unknown=selectable.unknown_in_core
    ),
    rules=configuration.KINDS["Secret"],
    strategy=SecretStrategy,
)
