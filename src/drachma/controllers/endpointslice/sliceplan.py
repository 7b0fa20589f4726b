"""Which endpoint slices a service is to have: pure, with upstream's labels, conditions and sizes.

Endpoints with the same ports and kind of address are together, a hundred in a slice. Those that are in a slice stay
there, so that few slices change when few pods do; a service without endpoints has one empty slice.
"""

from __future__ import annotations

import collections
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from drachma.api import meta, pod, service
from drachma.claims import podstate
from drachma.client import target
from drachma.controllers import servicepods

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
    """What is to be written: new slices as documents, changes with the slices that they are about, and what goes."""

    made: list[Document]
    changed: list[tuple[EndpointSlice, Document]]
    deleted: list[EndpointSlice]


def plan(
    of: service.Service, pods: Iterable[pod.Pod], slices: Sequence[EndpointSlice], *, zones: Mapping[str, str]
) -> Plan:
    """How the slices of a service become what they are to be; ``zones`` are those of nodes by their names."""
    result = Plan([], [], [])
    residents = sorted(pods, key=lambda each: each.metadata.name)
    families = [each for each in of.spec.ip_families if each in _FAMILIES] or ["IPv4"]
    result.deleted.extend(each for each in slices if each.address_type not in families)
    for family in families:
        own = sorted((each for each in slices if each.address_type == family), key=lambda each: each.metadata.name)
        _plan_family(of, _groups(of, residents, family, zones=zones), own, family=family, result=result)
    return result


_Ports = tuple[tuple[str, int, str, str | None], ...]
_Groups = dict[_Ports, dict[str, Document]]


def _groups(of: service.Service, pods: Iterable[pod.Pod], family: str, *, zones: Mapping[str, str]) -> _Groups:
    """Endpoints by their ports, and then by the uids of their pods."""
    groups: _Groups = collections.defaultdict(dict)
    for each in pods:
        addresses = servicepods.addresses(each, family)
        if addresses and not podstate.has_ended(each):
            groups[_ports(of, each)][each.metadata.uid] = _endpoint(of, each, addresses, zones=zones)
    return groups or {(): {}}


def _plan_family(
    of: service.Service, groups: _Groups, slices: Sequence[EndpointSlice], *, family: str, result: Plan
) -> None:
    left = {ports: dict(endpoints) for ports, endpoints in groups.items()}
    kept: list[tuple[EndpointSlice, _Ports, list[Document]]] = []
    for each in slices:
        ports = _read_ports(each.ports)
        wanted = left.get(ports)
        if wanted is None:
            result.deleted.append(each)
            continue
        uids = [(endpoint.get("targetRef") or {}).get("uid", "") for endpoint in each.endpoints]
        kept.append((each, ports, [wanted.pop(uid) for uid in uids if uid in wanted]))
    for each, ports, endpoints in kept:
        while left[ports] and len(endpoints) < _MOST:
            endpoints.append(left[ports].pop(next(iter(left[ports]))))
        is_placeholder = not endpoints and sum(ports == other for _, other, _ in kept) == 1 and not groups[ports]
        if not endpoints and not is_placeholder:
            result.deleted.append(each)
            continue
        document = _document(of, family, ports, endpoints)
        if _differs(each, document):
            result.changed.append((each, document))
    has_slices = {ports for _, ports, _ in kept}
    for ports, waiting in left.items():
        rest = list(waiting.values())
        parts = [rest[begin : begin + _MOST] for begin in range(0, len(rest), _MOST)]
        if not parts and ports not in has_slices:
            parts = [[]]
        result.made.extend(_document(of, family, ports, part) for part in parts)


def _document(of: service.Service, family: str, ports: _Ports, endpoints: list[Document]) -> Document:
    labels = {key: value for key, value in of.metadata.labels.items() if key not in (SERVICE_LABEL, MANAGER_LABEL)}
    labels.pop(servicepods.HEADLESS_LABEL, None)
    if servicepods.is_headless(of):
        labels[servicepods.HEADLESS_LABEL] = ""
    owner = {
        "apiVersion": "v1",
        "kind": "Service",
        "name": of.metadata.name,
        "uid": of.metadata.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }
    return {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {
            "generateName": f"{of.metadata.name}-",
            "namespace": of.metadata.namespace,
            "labels": {**labels, SERVICE_LABEL: of.metadata.name, MANAGER_LABEL: MANAGER},
            "ownerReferences": [owner],
        },
        "addressType": family,
        "endpoints": endpoints,
        "ports": [
            {"name": name, "port": number, "protocol": protocol, **({} if app is None else {"appProtocol": app})}
            for name, number, protocol, app in ports
        ],
    }


def _differs(known: EndpointSlice, document: Document) -> bool:
    labels: Mapping[str, str] = document["metadata"]["labels"]
    return list(known.endpoints) != document["endpoints"] or dict(known.metadata.labels) != dict(labels)


def _endpoint(of: service.Service, at: pod.Pod, addresses: list[str], *, zones: Mapping[str, str]) -> Document:
    serving = servicepods.is_ready(at)
    terminating = at.metadata.deletion_timestamp is not None
    endpoint: Document = {
        "addresses": addresses,
        "conditions": {
            "ready": of.spec.publish_not_ready_addresses or (serving and not terminating),
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
    if name := servicepods.hostname(of, at):
        endpoint["hostname"] = name
    return endpoint


def _ports(of: service.Service, at: pod.Pod) -> _Ports:
    """The ports of a service on a pod; those that the pod does not have are left out."""
    ports = []
    for each in of.spec.ports:
        number = servicepods.port_number(each, at)
        if number is not None:
            ports.append((each.name or "", number, each.protocol or "TCP", each.app_protocol))
    return tuple(ports)


def _read_ports(ports: Iterable[Document]) -> _Ports:
    return tuple(
        (each.get("name") or "", int(each.get("port") or 0), each.get("protocol") or "TCP", each.get("appProtocol"))
        for each in ports
    )
