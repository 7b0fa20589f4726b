"""APIServices: groups and versions that extension API servers serve behind this one."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from drachma.claims import conditions
from drachma.server import objectmeta
from drachma.server.kinds.document import Document, DocumentStrategy
from drachma.server.surface import cells, layout, resources
from drachma.server.surface.apisurface import Kind
from drachma.server.surface.strategy import Write
from drachma.validation import apiregistration as rules
from drachma.validation import metadata

KEY: Final = "apiregistration.k8s.io/apiservices"
AVAILABLE: Final = "Available"
_HTTPS: Final = 443


class APIServiceStrategy(DocumentStrategy):
    name_rule: metadata.NameRule = staticmethod(metadata.path_segment)

    def default(self, content: Document, metadata: objectmeta.Metadata) -> None:
        content["spec"] = spec = dict(content.get("spec") or {})
        if spec.get("service") is not None and spec["service"].get("port") is None:
            spec["service"] = {**spec["service"], "port": _HTTPS}

    def prepare_create(self, content: Document, metadata: objectmeta.Metadata, write: Write) -> None:
        content["status"] = {}
        if content["spec"].get("service") is None:
            message = "Local APIServices are always available"
            local = conditions.document(AVAILABLE, "True", reason="Local", message=message, now=write.now)
            content["status"] = {"conditions": [local]}

    def updates_unconditionally(self, write: Write) -> bool:
        return False


def condition(service: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the condition that tells whether an APIService is available; empty if it was not checked yet."""
    return conditions.find_document((service.get("status") or {}).get("conditions") or (), AVAILABLE) or {}


def _cells(service: Document, now: datetime) -> layout.Cells:
    reference = cells.part(service, "spec").get("service")
    name = "Local" if reference is None else f"{reference.get('namespace', '')}/{reference.get('name', '')}"
    current = condition(service)
    available = str(current.get("status", "Unknown"))
    if available != "True" and current.get("reason"):
        available = f"{available} ({current['reason']})"
    return [cells.name(service), name, available, cells.since_creation(service, now)]


KIND: Final = Kind(
    group="apiregistration.k8s.io",
    versions=("v1",),
    plural="apiservices",
    kind="APIService",
    namespaced=False,
    categories=("api-extensions",),
    subresources=(resources.status(),),
    layout=layout.Layout(
        (
            layout.NAME,
            layout.text("Service", "The service of the extension API server."),
            layout.text("Available", "Whether the extension API server answers."),
            layout.AGE,
        ),
        _cells,
    ),
    rules=rules.KINDS["APIService"],
    strategy=APIServiceStrategy,
)
