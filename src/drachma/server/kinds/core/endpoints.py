"""Where the pods of a service are reached, all of them in one object: older than slices, and deprecated."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from drachma.server import documents, objectmeta
from drachma.server.kinds.core import references
from drachma.server.kinds.document import Document, DocumentStrategy
from drachma.server.schema import metatypes, notation
from drachma.server.surface import cells, layout, resources
from drachma.server.surface.apisurface import Kind
from drachma.server.surface.strategy import Subject
from drachma.validation import endpoints as rules
from drachma.validation.fielderror import Errors

_TYPES: Final = """\
EndpointAddress!: hostname=str ip=str* nodeName=str? targetRef=ObjectReference
EndpointPort!: appProtocol=str? name=str port=int32* protocol=str
EndpointSubset: addresses=[EndpointAddress] notReadyAddresses=[EndpointAddress] ports=[EndpointPort]
Endpoints: apiVersion=str kind=str metadata=ObjectMeta! subsets=[EndpointSubset]
"""
_NUMBERS: Final = """\
EndpointAddress: ip targetRef hostname nodeName?
EndpointPort: name port protocol appProtocol?
EndpointSubset: addresses notReadyAddresses ports
Endpoints: metadata subsets
"""
_TEXTS: Final = """\
Endpoints: Where the pods of a service are reached. Deprecated: use EndpointSlices.
EndpointSubset: Addresses that have ports in common.
"""
_PACKAGE: Final = notation.Types(
    "io.k8s.api.core.v1", _TYPES, numbers=_NUMBERS, texts=_TEXTS, uses=(metatypes.META, references.REFERENCES)
)


class EndpointsStrategy(DocumentStrategy):
    rechecks_names = True

    def default(self, content: Document, metadata: objectmeta.Metadata) -> None:
        if content.get("subsets"):
            content["subsets"] = [_with_protocols(subset) for subset in content["subsets"]]

    def check_new(self, content: Document, subject: Subject) -> Errors:
        yield from rules.check(content.get("subsets") or ())

    def check_update(self, content: Document, old: Mapping[str, Any], subject: Subject) -> Errors:
        # What older versions took for good may stay.
        if not documents.same(content.get("subsets"), old.get("subsets")):
            yield from rules.check(content.get("subsets") or ())


def _with_protocols(subset: Document) -> Document:
    if not subset.get("ports"):
        return subset
    return {**subset, "ports": [{**port, "protocol": port.get("protocol") or "TCP"} for port in subset["ports"]]}


def _cells(endpoints: Document, now: datetime) -> layout.Cells:
    shown = [
        each
        for subset in endpoints.get("subsets") or ()
        for port in subset.get("ports") or (None,)
        for each in _places(subset, port)
    ]
    text = cells.some(shown) if endpoints.get("subsets") else "<none>"
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
    schemas={"v1": _PACKAGE.object("Endpoints")},
    deprecation_texts={"v1": "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"},
    traits=resources.Traits(creates_on_update=True),
    layout=layout.Layout((layout.NAME, layout.text("Endpoints", "The addresses."), layout.AGE), _cells),
    strategy=EndpointsStrategy,
)
