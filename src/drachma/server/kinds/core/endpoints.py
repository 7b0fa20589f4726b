"""Endpoints: addresses and ports of the pods of a service in one object; deprecated in favour of slices."""

from datetime import datetime
from typing import Final

from drachma.server import objectmeta
from drachma.server.kinds.document import Document, DocumentStrategy
from drachma.server.surface import cells, layout, resources
from drachma.server.surface.apisurface import Kind
from drachma.validation import endpoints as rules


class EndpointsStrategy(DocumentStrategy):
    rechecks_names = True

    def default(self, content: Document, metadata: objectmeta.Metadata) -> None:
        if content.get("subsets"):
            content["subsets"] = [_default_protocols(subset) for subset in content["subsets"]]


def _default_protocols(subset: Document) -> Document:
    if not subset.get("ports"):
        return subset
    return {**subset, "ports": [{**port, "protocol": port.get("protocol") or "TCP"} for port in subset["ports"]]}


def _cells(endpoints: Document, now: datetime) -> layout.Cells:
    addresses = [
        each
        for subset in endpoints.get("subsets") or ()
        for port in subset.get("ports") or (None,)
        for each in _places(subset, port)
    ]
    text = cells.some(addresses) if endpoints.get("subsets") else "<none>"
    return [cells.name(endpoints), text, cells.since_creation(endpoints, now)]


def _places(subset: Document, port: Document | None) -> list[str]:
    addresses = [each.get("ip", "") for each in subset.get("addresses") or ()]
    if port is None:
        return addresses
    return [f"[{each}]:{port.get('port', 0)}" if ":" in each else f"{each}:{port.get('port', 0)}" for each in addresses]


KIND: Final = Kind(
    group="",
    versions=("v1",),
    plural="endpoints",
    kind="Endpoints",
    singular_name="endpoints",
    namespaced=True,
    short_names=("ep",),
    deprecation_texts={"v1": "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"},
    traits=resources.Traits(creates_on_update=True),
    layout=layout.Layout((layout.NAME, layout.text("Endpoints", "The addresses."), layout.AGE), _cells),
    rules=rules.KINDS["Endpoints"],
    strategy=EndpointsStrategy,
)
