"""Endpoint slices of a service. Pure, with upstream's labels, conditions and sizes.

Endpoints with the same ports and address family are together, a hundred in a slice. Endpoints stay in their slice, so
that few slices change when few pods do. A service without endpoints has one empty slice.
"""

from __future__ import annotations

import collections
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from drachma.api import meta, pod, service
from drachma.claims import podstate
from drachma.client import target
from drachma.controllers.endpoints import servicepods

SERVICE_LABEL: Final = "kubernetes.io/service-name"
MANAGER_LABEL: Final = "endpointslice.kubernetes.io/managed-by"
MANAGER: Final = "endpointslice-controller.k8s.io"
ZONE_LABEL: Final = "topology.kubernetes.io/zone"

_MOST: Final = 100
_FAMILIES: Final = ("IPv4", "IPv6")

Document = dict[str, Any]


class EndpointSlice(meta.Object, frozen=True, kw_only=True):
    """``discovery.k8s.io`` EndpointSlice, namespaced, with endpoints and ports as they are on the wire."""

    address_type: str = ""
    endpoints: tuple[Document, ...] = ()
    ports: tuple[Document, ...] = ()


SLICES: Final = target.view_of(
    target.metadata_of("discovery.k8s.io", "v1", plural="endpointslices", kind="EndpointSlice", namespaced=True),
    EndpointSlice,
)


class Plan(NamedTuple):
    """Slices to create as documents, slices to change with their new documents, and slices to delete."""

    made: list[Document]
    changed: list[tuple[EndpointSlice, Document]]
    deleted: list[EndpointSlice]


def plan(
    service: service.Service, pods: Iterable[pod.Pod], slices: Sequence[EndpointSlice], *, zones: Mapping[str, str]
) -> Plan:
    """Return the changes of the slices of a service; ``zones`` are those of nodes by their names."""
    result = Plan([], [], [])
    residents = sorted(pods, key=lambda each: each.metadata.name)
    families = [each for each in service.spec.ip_families if each in _FAMILIES] or ["IPv4"]
    result.deleted.extend(each for each in slices if each.address_type not in families)
    for family in families:
        own = sorted((each for each in slices if each.address_type == family), key=lambda each: each.metadata.name)
        _plan_family(service, _groups(service, residents, family, zones=zones), own, family=family, result=result)
    return result


_Ports = tuple[tuple[str, int, str, str | None], ...]
_Groups = dict[_Ports, dict[str, Document]]


def _groups(service: service.Service, pods: Iterable[pod.Pod], family: str, *, zones: Mapping[str, str]) -> _Groups:
    """Return endpoints by their ports, and then by the uids of their pods."""
    groups: _Groups = collections.defaultdict(dict)
    for each in pods:
        addresses = servicepods.addresses(each, family)
        if addresses and not podstate.has_ended(each):
            groups[_ports(service, each)][each.metadata.uid] = _endpoint(service, each, addresses, zones=zones)
    return groups or {(): {}}


def _plan_family(
    service: service.Service, groups: _Groups, slices: Sequence[EndpointSlice], *, family: str, result: Plan
) -> None:
    unplaced = {ports: dict(endpoints) for ports, endpoints in groups.items()}
    retained: list[tuple[EndpointSlice, _Ports, list[Document]]] = []
    for each in slices:
        ports = _read_ports(each.ports)
        matching = unplaced.get(ports)
        if matching is None:
            result.deleted.append(each)
            continue
        uids = [(endpoint.get("targetRef") or {}).get("uid", "") for endpoint in each.endpoints]
        retained.append((each, ports, [matching.pop(uid) for uid in uids if uid in matching]))
    for each, ports, endpoints in retained:
        while unplaced[ports] and len(endpoints) < _MOST:
            endpoints.append(unplaced[ports].pop(next(iter(unplaced[ports]))))
        is_placeholder = (
            not endpoints and sum(ports == other_ports for _, other_ports, _ in retained) == 1 and not groups[ports]
        )
        if not endpoints and not is_placeholder:
            result.deleted.append(each)
            continue
        document = _document(service, family, ports, endpoints)
        if _differs(each, document):
            result.changed.append((each, document))
    has_slices = {ports for _, ports, _ in retained}
    for ports, endpoints_left in unplaced.items():
        remainder = list(endpoints_left.values())
        parts = [remainder[begin : begin + _MOST] for begin in range(0, len(remainder), _MOST)]
        if not parts and ports not in has_slices:
            parts = [[]]
        result.made.extend(_document(service, family, ports, part) for part in parts)


def _document(service: service.Service, family: str, ports: _Ports, endpoints: list[Document]) -> Document:
    labels = {key: value for key, value in service.metadata.labels.items() if key not in (SERVICE_LABEL, MANAGER_LABEL)}
    labels.pop(servicepods.HEADLESS_LABEL, None)
    if servicepods.is_headless(service):
        labels[servicepods.HEADLESS_LABEL] = ""
    owner = {
        "apiVersion": "v1",
        "kind": "Service",
        "name": service.metadata.name,
        "uid": service.metadata.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }
    return {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {
            "generateName": f"{service.metadata.name}-",
            "namespace": service.metadata.namespace,
            "labels": {**labels, SERVICE_LABEL: service.metadata.name, MANAGER_LABEL: MANAGER},
            "ownerReferences": [owner],
        },
        "addressType": family,
        "endpoints": endpoints,
        "ports": [
            {"name": name, "port": number, "protocol": protocol, **({} if app is None else {"appProtocol": app})}
            for name, number, protocol, app in ports
        ],
    }


def _differs(endpoint_slice: EndpointSlice, document: Document) -> bool:
    labels: Mapping[str, str] = document["metadata"]["labels"]
    return list(endpoint_slice.endpoints) != document["endpoints"] or dict(endpoint_slice.metadata.labels) != dict(
        labels
    )


def _endpoint(service: service.Service, at: pod.Pod, addresses: list[str], *, zones: Mapping[str, str]) -> Document:
    serving = servicepods.is_ready(at)
    terminating = at.metadata.deletion_timestamp is not None
    endpoint: Document = {
        "addresses": addresses,
        "conditions": {
            "ready": service.spec.publish_not_ready_addresses or (serving and not terminating),
            "serving": serving,
            "terminating": terminating,
        },
        "targetRef": {
            "kind": "Pod",
            "namespace": at.metadata.namespace,
            "name": at.metadata.name,
            "uid": at.metadata.uid,
        },
    }
    if at.spec.node_name:
        endpoint["nodeName"] = at.spec.node_name
    if zones.get(at.spec.node_name):
        endpoint["zone"] = zones[at.spec.node_name]
    if name := servicepods.hostname(service, at):
        endpoint["hostname"] = name
    return endpoint


def _ports(service: service.Service, at: pod.Pod) -> _Ports:
    """Return the ports of a service on a pod, without those that the pod does not have."""
    ports = []
    for each in service.spec.ports:
        number = servicepods.port_number(each, at)
        if number is not None:
            ports.append((each.name or "", number, each.protocol or "TCP", each.app_protocol))
    return tuple(ports)


def _read_ports(ports: Iterable[Document]) -> _Ports:
    return tuple(
        (each.get("name") or "", int(each.get("port") or 0), each.get("protocol") or "TCP", each.get("appProtocol"))
        for each in ports
    )
