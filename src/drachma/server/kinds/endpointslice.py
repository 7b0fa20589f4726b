"""Endpoint slices: addresses and ports of the pods of a service."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from drachma.server import objectmeta
from drachma.server.kinds.document import Document, DocumentStrategy
from drachma.server.surface import cells, layout
from drachma.server.surface.apisurface import Kind
from drachma.validation import endpoints


class EndpointSliceStrategy(DocumentStrategy):
    counts_generations = True

    def default(self, content: Document, metadata: objectmeta.Metadata) -> None:
        ports = content.get("ports")
        if ports:
            content["ports"] = [{"name": "", "protocol": "TCP", **port} for port in ports]

    def _is_changed(self, content: Document, old: Mapping[str, Any]) -> bool:
        return any(content.get(field) != old.get(field) for field in ("endpoints", "ports"))


def _cells(endpoint_slice: Document, now: datetime) -> layout.Cells:
    ports = [str(port.get("port", "*")) for port in endpoint_slice.get("ports") or ()]
    addresses = [each for endpoint in endpoint_slice.get("endpoints") or () for each in endpoint.get("addresses") or ()]
    return [
        cells.name(endpoint_slice),
        endpoint_slice.get("addressType", ""),
        cells.some(ports) if ports else "<unset>",
        cells.some(addresses) if addresses else "<unset>",
        cells.since_creation(endpoint_slice, now),
    ]


KIND: Final = Kind(
    group="discovery.k8s.io",
    versions=("v1",),
    plural="endpointslices",
    kind="EndpointSlice",
    namespaced=True,
    layout=layout.Layout(
        (
            layout.NAME,
            layout.text("AddressType", "The type of the addresses."),
            layout.text("Ports", "The ports."),
            layout.text("Endpoints", "The addresses."),
            layout.AGE,
        ),
        _cells,
    ),
    rules=endpoints.KINDS["EndpointSlice"],
    strategy=EndpointSliceStrategy,
)
