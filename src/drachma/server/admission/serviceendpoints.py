"""Where the pods of a service are reached: by its EndpointSlices, because nothing routes to its own address."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from drachma.server.reads.reader import Reader
from drachma.store import record

_SLICES: Final = "discovery.k8s.io/endpointslices"
_SERVICE: Final = "kubernetes.io/service-name"


def place(service: record.Record, port: int, store: Reader) -> tuple[str, int] | None:
    """The first address and port of a ready endpoint for a port of a service; None where there is none."""
    ports = (service.value.get("spec") or {}).get("ports") or ()
    names = {each.get("name", "") for each in ports if each.get("port") == port}
    return next((found for each in _slices(service, store) for found in _places(each, names)), None)


def _slices(service: record.Record, store: Reader) -> Iterator[Mapping[str, Any]]:
    for each in store.list(_SLICES, service.key.namespace).records:
        if (each.value["metadata"].get("labels") or {}).get(_SERVICE) == service.key.name:
            yield each.value


def _places(endpoint_slice: Mapping[str, Any], names: set[str]) -> Iterator[tuple[str, int]]:
    if endpoint_slice.get("addressType") == "FQDN":
        return
    numbers = [
        each["port"]
        for each in endpoint_slice.get("ports") or ()
        if each.get("port") and (each.get("name") or "") in names
    ]
    for endpoint in endpoint_slice.get("endpoints") or ():
        # As upstream: who says nothing of it is ready.
        is_ready = (endpoint.get("conditions") or {}).get("ready") is not False
        for address in (endpoint.get("addresses") or ())[:1] if is_ready else ():
            for number in numbers:
                yield address, number
