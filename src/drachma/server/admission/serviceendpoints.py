"""Where the pods of a service are reached: by its EndpointSlices, because nothing routes to its own address.

Simulated pods have addresses, as if there were a network. Nothing answers there, and in the network of the machine the
address may belong to another one, so it is never dialled.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple, TypeAlias

from drachma.api import node
from drachma.server.reads.reader import Reader
from drachma.store import record

_SLICES: Final = "discovery.k8s.io/endpointslices"
_SERVICE: Final = "kubernetes.io/service-name"
_NODES: Final = "nodes"
_PODS: Final = "pods"


class Simulated(NamedTuple):
    """An endpoint that is a simulated pod."""

    address: str


Place: TypeAlias = tuple[str, int] | Simulated | None


def place(service: record.Record, port: int, store: Reader) -> Place:
    """Return the first address and port of a ready endpoint for a port of a service.

    Return Simulated if all its endpoints are simulated pods, and None if there is none.
    """
    ports = (service.value.get("spec") or {}).get("ports") or ()
    names = {each.get("name", "") for each in ports if each.get("port") == port}
    simulated: Simulated | None = None
    for each in _slices(service, store):
        for endpoint, address, number in _places(each, names):
            if not _is_simulated(endpoint, store):
                return address, number
            simulated = simulated or Simulated(address)
    return simulated


def _is_simulated(endpoint: Mapping[str, Any], store: Reader) -> bool:
    """Return True if the node of an endpoint, which it names itself or by its pod, runs simulated containers."""
    name = endpoint.get("nodeName") or ""
    target = endpoint.get("targetRef") or {}
    if not name and target.get("kind") == "Pod":
        pod = store.get(record.Key(_PODS, target.get("namespace", ""), target.get("name", "")))
        name = "" if pod is None else (pod.value.get("spec") or {}).get("nodeName") or ""
    stored = store.get(record.Key(_NODES, "", name)) if name else None
    if stored is None:
        return False
    info = (stored.value.get("status") or {}).get("nodeInfo") or {}
    return str(info.get("containerRuntimeVersion") or "").startswith(node.SIMULATED_RUNTIME)


def _slices(service: record.Record, store: Reader) -> Iterator[Mapping[str, Any]]:
    for each in store.list(_SLICES, service.key.namespace).records:
        if (each.value["metadata"].get("labels") or {}).get(_SERVICE) == service.key.name:
            yield each.value


def _places(endpoint_slice: Mapping[str, Any], names: set[str]) -> Iterator[tuple[Mapping[str, Any], str, int]]:
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
                yield endpoint, address, number
