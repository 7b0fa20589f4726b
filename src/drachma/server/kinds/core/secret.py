"""Secrets: data that only few should read."""

import base64
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from drachma.server import objectmeta
from drachma.server.kinds.document import Document, DocumentStrategy
from drachma.server.schema import metatypes, notation
from drachma.server.surface import cells, layout, selectable
from drachma.server.surface.apisurface import Kind
from drachma.server.surface.strategy import Subject
from drachma.validation import configuration, fielderror, metadata, rendering
from drachma.validation.fielderror import Errors
from drachma.validation.path import Path

_TYPES: Final = """\
Secret: apiVersion=str data=<bytes> immutable=bool? kind=str metadata=ObjectMeta! stringData=<str> type=str
"""
_NUMBERS: Final = """\
Secret: metadata data type stringData immutable?
"""
_TEXTS: Final = """\
Secret: Data that only few should read.
Secret.data: Bytes by name.
Secret.stringData: Texts by name; written as data.
Secret.type: What the secret is for.
"""
_PACKAGE: Final = notation.Types("io.k8s.api.core.v1", _TYPES, numbers=_NUMBERS, texts=_TEXTS, uses=(metatypes.META,))


class SecretStrategy(DocumentStrategy):
    rechecks_names = True

    def default(self, content: Document, metadata: objectmeta.Metadata) -> None:
        if not content.get("type"):
            content["type"] = "Opaque"
        plain = content.pop("stringData", None)
        if plain:
            encoded = {key: base64.b64encode(value.encode()).decode() for key, value in plain.items()}
            content["data"] = {**(content.get("data") or {}), **encoded}

    def check(self, content: Document, subject: Subject) -> Errors:
        yield from configuration.check_secret(content, subject.metadata.get("annotations") or {})

    def check_update(self, content: Document, old: Mapping[str, Any], subject: Subject) -> Errors:
        if content["type"] != old.get("type"):
            yield fielderror.invalid(Path("type"), rendering.named(content["type"]), metadata.IMMUTABLE)
        yield from configuration.check_update(content, old, fields=("data",))


def _cells(secret: Document, now: datetime) -> layout.Cells:
    entries = len(secret.get("data") or {})
    return [cells.name(secret), secret.get("type", ""), entries, cells.since_creation(secret, now)]


KIND: Final = Kind(
    group="",
    versions=("v1",),
    plural="secrets",
    kind="Secret",
    namespaced=True,
    schemas={"v1": _PACKAGE.object("Secret")},
    layout=layout.Layout(
        (
            layout.NAME,
            layout.text("Type", "What the secret is for."),
            layout.text("Data", "How many entries there are."),
            layout.AGE,
        ),
        _cells,
    ),
    selectable=selectable.Selectable(
        fields=frozenset({selectable.NAME, selectable.NAMESPACE, "type"}), unknown=selectable.unknown_in_core
    ),
    strategy=SecretStrategy,
)
