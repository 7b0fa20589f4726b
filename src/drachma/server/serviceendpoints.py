"""Endpoints of services: the pods behind a port of a service.

Nothing routes to the address of a service, so the server itself reads EndpointSlices and connects to a pod. Simulated
pods have addresses, as if there were a network. Nothing answers there, and in the network of the machine the address
may belong to another server, so they are never dialled.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from drachma.api import node
from drachma.server.reads.reader import Reader
from drachma.store import record

SERVICES: Final = "services"
_SLICES: Final = "discovery.k8s.io/endpointslices"
_SERVICE: Final = "kubernetes.io/service-name"
_NODES: Final = "nodes"
_PODS: Final = "pods"


class Endpoint(NamedTuple):
    """Address and port of a pod, and its node if that is known."""

    address: str
    port: int
    node: str = ""


class Simulated(NamedTuple):
    """Endpoint that is a simulated pod."""

    address: str


def find(service: record.Record, port: int, store: Reader) -> Endpoint | Simulated | None:
    """Return the first ready endpoint for a port of a service.

    Return Simulated if all endpoints are simulated pods, and None if there is none.
    """
    ports = (service.value.get("spec") or {}).get("ports") or ()
    names = {each.get("name", "") for each in ports if each.get("port") == port}
    return find_named(service.key.namespace, service.key.name, names, store=store)


def find_named(
    namespace: str, service: str, names: set[str], *, store: Reader, are_pods: bool = False
) -> Endpoint | Simulated | None:
    """Return the first ready endpoint for a service's ports of some names, like find().

    With ``are_pods``, only addresses that a pod of the namespace has count.
    """
    simulated: Simulated | None = None
    for each in slices(namespace, service, store=store):
        for endpoint, address, number in _endpoints(each, names):
            if are_pods and not _is_pod(endpoint, address, namespace, store=store):
                continue
            node_name = _node_name(endpoint, store)
            if not is_simulated(node_name, store):
                return Endpoint(address, number, node_name)
            simulated = simulated or Simulated(address)
    return simulated


def is_simulated(node_name: str, store: Reader) -> bool:
    """Return True if a node runs simulated containers."""
    existing = store.get(record.Key(_NODES, "", node_name)) if node_name else None
    if existing is None:
        return False
    info = (existing.value.get("status") or {}).get("nodeInfo") or {}
    return str(info.get("containerRuntimeVersion") or "").startswith(node.SIMULATED_RUNTIME)


def slices(namespace: str, service: str, *, store: Reader) -> Iterator[Mapping[str, Any]]:
    """Yield the EndpointSlices of a service."""
    for each in store.list(_SLICES, namespace).records:
        if (each.value["metadata"].get("labels") or {}).get(_SERVICE) == service:
            yield each.value


def _is_pod(endpoint: Mapping[str, Any], address: str, namespace: str, *, store: Reader) -> bool:
    """Return True if an endpoint names a pod of the namespace, and the pod has the address."""
    target = endpoint.get("targetRef") or {}
    if target.get("namespace", "") != namespace:
        return False
    pod = store.get(record.Key(_PODS, namespace, target.get("name", "")))
    addresses = ((pod.value.get("status") or {}).get("podIPs") or ()) if pod is not None else ()
    return any(each.get("ip") == address for each in addresses)


def _node_name(endpoint: Mapping[str, Any], store: Reader) -> str:
    """Return the node of an endpoint, which it names itself or by its pod."""
    name = endpoint.get("nodeName") or ""
    target = endpoint.get("targetRef") or {}
    if not name and target.get("kind") == "Pod":
        pod = store.get(record.Key(_PODS, target.get("namespace", ""), target.get("name", "")))
        name = "" if pod is None else (pod.value.get("spec") or {}).get("nodeName") or ""
    return str(name)


def _endpoints(endpoint_slice: Mapping[str, Any], names: set[str]) -> Iterator[tuple[Mapping[str, Any], str, int]]:
    if endpoint_slice.get("addressType") == "FQDN":
        return
    numbers = [
        each["port"]
        for each in endpoint_slice.get("ports") or ()
        if each.get("port") and (each.get("name") or "") in names
    ]
    for endpoint in endpoint_slice.get("endpoints") or ():
        # As in upstream, an endpoint without this condition is ready.
        is_ready = (endpoint.get("conditions") or {}).get("ready") is not False
        for address in (endpoint.get("addresses") or ())[:1] if is_ready else ():
            for number in numbers:
                yield endpoint, address, number
