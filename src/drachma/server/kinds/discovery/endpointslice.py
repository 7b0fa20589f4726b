"""Where the pods of a service are reached, in slices."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from drachma.server import objectmeta
from drachma.server.kinds.core import references
from drachma.server.kinds.document import Document, DocumentStrategy
from drachma.server.schema import metatypes, notation
from drachma.server.surface import cells, layout
from drachma.server.surface.apisurface import Kind
from drachma.server.surface.strategy import Subject
from drachma.validation import endpointslice
from drachma.validation.fielderror import Errors

_TYPES: Final = """\
Endpoint: addresses={str}!* conditions=EndpointConditions! deprecatedTopology=<str> hints=EndpointHints hostname=str?
    nodeName=str? targetRef=ObjectReference zone=str?
EndpointConditions: ready=bool? serving=bool? terminating=bool?
EndpointHints: forNodes=[ForNode] forZones=[ForZone]
EndpointPort!: appProtocol=str? name=str? port=int32? protocol=str?
EndpointSlice: addressType=str* apiVersion=str endpoints=[Endpoint]! kind=str metadata=ObjectMeta!
    ports=[EndpointPort]!
ForNode: name=str*
ForZone: name=str*
"""
_NUMBERS: Final = """\
Endpoint: addresses conditions hostname? targetRef deprecatedTopology nodeName? zone? hints
EndpointConditions: ready? serving? terminating?
EndpointHints: forZones forNodes
EndpointPort: name? protocol? port? appProtocol?
EndpointSlice: metadata endpoints ports addressType
ForNode: name
ForZone: name
"""
_TEXTS: Final = """\
EndpointSlice: Where some of the pods of a service are reached.
"""
_PACKAGE: Final = notation.Types(
    "io.k8s.api.discovery.v1", _TYPES, numbers=_NUMBERS, texts=_TEXTS, uses=(metatypes.META, references.REFERENCES)
)


class EndpointSliceStrategy(DocumentStrategy):
    counts_generations = True

    def default(self, content: Document, metadata: objectmeta.Metadata) -> None:
        ports = content.get("ports")
        if ports:
            named = ({"name": "", "protocol": "TCP", **port} for port in ports)
            content["ports"] = list(named)

    def check(self, content: Document, subject: Subject) -> Errors:
        yield from endpointslice.check(content)

    def check_update(self, content: Document, old: Mapping[str, Any], subject: Subject) -> Errors:
        yield from endpointslice.check_update(content, old)

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
    schemas={"v1": _PACKAGE.object("EndpointSlice")},
    layout=layout.Layout(
        (
            layout.NAME,
            layout.text("AddressType", "What kind of addresses they are."),
            layout.text("Ports", "The ports."),
            layout.text("Endpoints", "The addresses."),
            layout.AGE,
        ),
        _cells,
    ),
    strategy=EndpointSliceStrategy,
)
