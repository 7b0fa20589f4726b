"""Addresses and node ports of services are booked: a service and what it takes are one commit.

What stands for an address is an IPAddress; what stands for a node port is a record that nobody is served. Two services
that are made in the same instant may be given the same address or port; the second finds it taken when it is stored,
and is decided anew with another one. Who asks for one that is taken is refused.

The services are the truth: a booking counts as long as the service that it names has what is booked. So nothing has to
be repaired, whatever came to be in a store before anything was booked.
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

SERVICES: Final = frozenset({"services"})

_ADDRESSES: Final = "networking.k8s.io/ipaddresses"
_PORTS: Final = "ranges/servicenodeports"
"""Where upstream keeps which ports are taken, too."""

_LABEL: Final = "ipaddress.kubernetes.io/"


def book(proposal: Proposal) -> None:
    """Has the addresses and node ports of a service taken with it.

    A 422 for an address that another has, or that is not to be had; the kind's own rules have looked at the ports.
    """
    service = proposal.document()
    before: Mapping[str, Any] = proposal.stored.value if proposal.stored is not None else {}
    addresses, ports = _addresses(service), _ports(service)
    proposal.companions = (
        *(_booked(proposal, address, addresses) for address in addresses if address not in _addresses(before)),
        *(_booked_port(proposal, port) for port in sorted(ports - _ports(before))),
    )


def released(service: record.Record, get: Get) -> tuple[record.Record, ...]:
    """What was booked for a stored service, and goes with it."""
    keys = [record.Key(_ADDRESSES, "", address) for address in _addresses(service.value)]
    keys += [record.Key(_PORTS, "", str(port)) for port in sorted(_ports(service.value))]
    place = service.key.namespace, service.key.name
    bookings = (get(key) for key in keys)
    return tuple(each for each in bookings if each is not None and _holder(each) == place)


def _booked_port(proposal: Proposal, port: int) -> Companion:
    key = record.Key(_PORTS, "", str(port))
    parent = _parent(proposal)
    metadata = _identity(proposal, str(port))
    # Whoever is named by what is stored there has gone, or has it no more: the kind's own rules have found it free.
    return Companion(key, {"metadata": metadata, "spec": {"parentRef": parent}}, proposal.get(key))


def _booked(proposal: Proposal, address: str, addresses: list[str]) -> Companion:
    if not clusterips.is_assignable(address):
        raise _refusal(proposal, address, addresses, "the provided network does not match the current range")
    key = record.Key(_ADDRESSES, "", address)
    stored = proposal.get(key)
    if stored is not None and _is_held(proposal, stored, address):
        raise _refusal(proposal, address, addresses, "provided IP is already allocated")
    return Companion(key, _document(proposal, address), stored)


def _is_held(proposal: Proposal, stored: record.Record, address: str) -> bool:
    """Whether somebody else still has an address; one that a service gives up is left behind."""
    place, parent = _holder(stored), _parent(proposal)
    if place is None:
        return True
    is_own = place == (parent["namespace"], parent["name"])
    holder = proposal.get(record.Key("services", *place)) if not is_own else None
    return holder is not None and address in _addresses(holder.value)


def _holder(booking: record.Record) -> tuple[str, str] | None:
    """The namespace and name of the service that something is booked for; None where it is for something else."""
    parent = (booking.value.get("spec") or {}).get("parentRef") or {}
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
        # What follows from the service is as unique as it.
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
