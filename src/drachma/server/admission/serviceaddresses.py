"""Reservations of service addresses and node ports, committed together with the service.

An IPAddress reserves an address; an internal record, which is not served, reserves a node port. Two concurrent services
may draw the same address or port. The second commit then fails, and the service is decided again with another one. A
service that asks for a reserved one is refused.

The services are authoritative: a reservation counts only as long as its service has the address or port. So stores from
before reservations need no repair.
"""

import uuid
from collections.abc import Mapping
from typing import Any, Final

from drachma.api import meta
from drachma.server import status
from drachma.server.admission.proposal import Companion, Get, Proposal
from drachma.server.kinds.core import clusterips
from drachma.store import record
from drachma.validation import fielderror, rendering, serviceaddresses
from drachma.validation.path import SPEC
from drachma.values.serviceranges import ServiceRanges

SERVICES: Final = frozenset({"services"})

_ADDRESSES: Final = "networking.k8s.io/ipaddresses"
_PORTS: Final = "ranges/servicenodeports"
"""Key under which upstream keeps its reserved ports, too."""

_LABEL: Final = "ipaddress.kubernetes.io/"


def reserve(proposal: Proposal, *, ranges: ServiceRanges) -> None:
    """Reserve the addresses and node ports of a service, which must be in the ranges of the cluster.

    A 422 for an address that another service has or that is out of range. The kind's rules have checked the ports.
    """
    service = proposal.document()
    before: Mapping[str, Any] = proposal.stored.value if proposal.stored is not None else {}
    addresses, ports = _addresses(service), _ports(service)
    proposal.companions = (
        *(
            _reserve_address(proposal, address, addresses, ranges=ranges)
            for address in addresses
            if address not in _addresses(before)
        ),
        *(_reserve_port(proposal, port) for port in sorted(ports - _ports(before))),
    )


def find_reservations(service: record.Record, get: Get) -> tuple[record.Record, ...]:
    """Return the reservations of a service, which are removed with it."""
    keys = [record.Key(_ADDRESSES, "", address) for address in _addresses(service.value)]
    keys += [record.Key(_PORTS, "", str(port)) for port in sorted(_ports(service.value))]
    place = service.key.namespace, service.key.name
    reservations = (get(key) for key in keys)
    return tuple(each for each in reservations if each is not None and _holder(each) == place)


def _reserve_port(proposal: Proposal, port: int) -> Companion:
    key = record.Key(_PORTS, "", str(port))
    parent = _parent(proposal)
    metadata = _identity(proposal, str(port))
    # The stored reservation is void: the kind's rules have found the port free.
    return Companion(key, {"metadata": metadata, "spec": {"parentRef": parent}}, proposal.get(key))


def _reserve_address(proposal: Proposal, address: str, addresses: list[str], *, ranges: ServiceRanges) -> Companion:
    if not ranges.is_assignable(address):
        raise _refusal(proposal, address, addresses, "the provided network does not match the current range")
    key = record.Key(_ADDRESSES, "", address)
    existing = proposal.get(key)
    if existing is not None and _is_held(proposal, existing, address):
        raise _refusal(proposal, address, addresses, "provided IP is already allocated")
    return Companion(key, _document(proposal, address), existing)


def _is_held(proposal: Proposal, existing: record.Record, address: str) -> bool:
    """Return True if another service still has an address; a service leaves behind addresses that it gives up."""
    place, parent = _holder(existing), _parent(proposal)
    if place is None:
        return True
    is_own = place == (parent["namespace"], parent["name"])
    holder = proposal.get(record.Key("services", *place)) if not is_own else None
    return holder is not None and address in _addresses(holder.value)


def _holder(reservation: record.Record) -> tuple[str, str] | None:
    """Return namespace and name of the service with a reservation; None if it belongs to another object."""
    parent = (reservation.value.get("spec") or {}).get("parentRef") or {}
    if parent.get("resource") != "services" or parent.get("group"):
        return None
    return parent.get("namespace", ""), parent.get("name", "")


def _addresses(service: Mapping[str, Any]) -> list[str]:
    every = (service.get("spec") or {}).get("clusterIPs") or ()
    return [each for each in every if each != serviceaddresses.HEADLESS]


def _ports(service: Mapping[str, Any]) -> set[int]:
    return set(clusterips.node_ports(service.get("spec") or {}))


def _parent(proposal: Proposal) -> dict[str, str]:
    metadata = proposal.subject.metadata
    return {"resource": "services", "namespace": metadata.get("namespace", ""), "name": metadata.get("name", "")}


def _identity(proposal: Proposal, name: str) -> dict[str, Any]:
    return {
        "name": name,
        # Values that follow from the service are as unique as the service.
        "uid": str(uuid.uuid5(uuid.UUID(proposal.subject.metadata["uid"]), name)),
        "creationTimestamp": meta.time_text(proposal.write.now),
    }


def _document(proposal: Proposal, address: str) -> dict[str, Any]:
    labels = {
        f"{_LABEL}ip-family": serviceaddresses.family(address),
        f"{_LABEL}managed-by": "ipallocator.k8s.io",
    }
    return {
        "kind": "IPAddress",
        "apiVersion": "networking.k8s.io/v1",
        "metadata": {**_identity(proposal, address), "labels": labels},
        "spec": {"parentRef": _parent(proposal)},
    }


def _refusal(proposal: Proposal, address: str, addresses: list[str], detail: str) -> status.StatusError:
    problem = fielderror.invalid(
        SPEC.child("clusterIPs"), rendering.wire(tuple(addresses)), f"failed to allocate IP {address}: {detail}"
    )
    return status.invalid("Service", proposal.subject.metadata.get("name", ""), group="", causes=[problem])
