"""Subsets of the Endpoints of a service. Pure. Addresses with the same ports are together.

Differs from upstream: ports and subsets are sorted. Upstream's order is that of a hash.
"""

from __future__ import annotations

import collections
import math
from collections.abc import Iterable, Mapping
from typing import Any, Final

from drachma.api import pod, service
from drachma.claims import podstate
from drachma.controllers.endpoints import servicepods

Document = dict[str, Any]

MOST: Final = 1000
"""Most addresses of an object."""

_Port = tuple[str, int, str, str]
_Addresses = frozenset[tuple[str, str, bool]]
"""Address and uid of pods, and whether each is ready."""


def service_subsets(service: service.Service, pods: Iterable[pod.Pod]) -> list[Document]:
    """Return the subsets of a service. Those of a service without ports, which is headless, have none."""
    documents: dict[tuple[str, str, bool], Document] = {}
    by_port: dict[_Port | None, set[tuple[str, str, bool]]] = collections.defaultdict(set)
    for each in pods:
        address = _address(service, each)
        if not address or not _belongs(service, each):
            continue
        entry = address, each.metadata.uid, service.spec.publish_not_ready_addresses or servicepods.is_ready(each)
        documents[entry] = _document(service, each, address)
        for port in _ports(service, each):
            by_port[port].add(entry)
    by_addresses: dict[_Addresses, list[_Port]] = collections.defaultdict(list)
    for port, entries in by_port.items():
        ports = by_addresses[frozenset(entries)]
        if port is not None:
            ports.append(port)
    subsets = [_subset(sorted(entries), sorted(ports), documents) for entries, ports in by_addresses.items()]
    return sorted(subsets, key=_order)


def _order(subset: Document) -> list[tuple[str, int]]:
    return [(each.get("name", ""), each["port"]) for each in subset.get("ports", ())]


def truncate(subsets: list[Document]) -> bool:
    """Remove addresses beyond the limit, those that are not ready first. Return True if any was removed.

    The remaining number is shared between subsets in proportion to their addresses.
    """
    ready = sum(len(each.get("addresses", ())) for each in subsets)
    unready = sum(len(each.get("notReadyAddresses", ())) for each in subsets)
    if ready + unready <= MOST:
        return False
    field, total, room = ("notReadyAddresses", unready, MOST - ready) if ready <= MOST else ("addresses", ready, MOST)
    budget = room
    for subset in subsets:
        addresses = subset.pop(field, [])
        share = min(math.ceil(len(addresses) / total * room), budget)
        if retained := addresses[:share]:
            subset[field] = retained
        budget -= len(retained)
        if ready > MOST:
            subset.pop("notReadyAddresses", None)
    return True


def _belongs(service: service.Service, at: pod.Pod) -> bool:
    is_going = at.metadata.deletion_timestamp is not None
    return not podstate.has_ended(at) and (not is_going or service.spec.publish_not_ready_addresses)


def _address(service: service.Service, at: pod.Pod) -> str:
    """Return the pod's address of the first family of the service, or an empty text."""
    addresses = servicepods.addresses(at, _family(service, at))
    return addresses[0] if addresses else ""


def _family(service: service.Service, at: pod.Pod) -> str:
    if service.spec.ip_families:
        return service.spec.ip_families[0]
    own = at.status.pod_ip if servicepods.is_headless(service) else service.spec.cluster_ip
    return "IPv6" if ":" in own else "IPv4"


def _document(service: service.Service, at: pod.Pod, address: str) -> Document:
    own = at.metadata
    reference = {"kind": "Pod", "namespace": own.namespace, "name": own.name, "uid": own.uid}
    document: Document = {"ip": address, "targetRef": reference}
    if name := servicepods.hostname(service, at):
        document["hostname"] = name
    if at.spec.node_name:
        document["nodeName"] = at.spec.node_name
    return document


def _ports(service: service.Service, at: pod.Pod) -> list[_Port | None]:
    if not service.spec.ports:
        return [None] if servicepods.is_headless(service) else []
    numbers = [(each, servicepods.port_number(each, at)) for each in service.spec.ports]
    return [
        (each.name, number, each.protocol or "TCP", each.app_protocol or "")
        for each, number in numbers
        if number is not None
    ]


def _subset(
    entries: list[tuple[str, str, bool]], ports: list[_Port], documents: Mapping[tuple[str, str, bool], Document]
) -> Document:
    subset: Document = {
        "addresses": [documents[each] for each in entries if each[2]],
        "notReadyAddresses": [documents[each] for each in entries if not each[2]],
        "ports": [
            {
                **({"name": name} if name else {}),
                "port": number,
                "protocol": protocol,
                **({"appProtocol": app} if app else {}),
            }
            for name, number, protocol, app in ports
        ],
    }
    return {field: content for field, content in subset.items() if content}
