"""Addresses of services are booked: the service and the object for its address (IPAddress) are one commit.

Two services that are made in the same instant may be given the same address; the second finds it taken when it is
stored, and is decided anew with another one. Who asks for an address that is taken is refused.
"""

import uuid
from collections.abc import Mapping
from typing import Any, Final

from drachma.api import meta
from drachma.server import status
from drachma.server.admission.proposal import Companion, Proposal
from drachma.server.kinds.core import clusterips
from drachma.store import record
from drachma.validation import fielderror, rendering, serviceaddresses
from drachma.validation.path import SPEC

SERVICES: Final = frozenset({"services"})

_ADDRESSES: Final = "networking.k8s.io/ipaddresses"
_LABEL: Final = "ipaddress.kubernetes.io/"


def book(proposal: Proposal) -> None:
    """Has the addresses of a service taken with it; a 422 for one that another has, or that is not to be had."""
    spec = proposal.document().get("spec") or {}
    before = _addresses(proposal.stored.value) if proposal.stored is not None else []
    addresses = _addresses({"spec": spec})
    proposal.companions = tuple(_booked(proposal, address, addresses) for address in addresses if address not in before)


def _booked(proposal: Proposal, address: str, addresses: list[str]) -> Companion:
    if not clusterips.is_assignable(address):
        raise _refusal(proposal, address, addresses, "the provided network does not match the current range")
    key = record.Key(_ADDRESSES, "", address)
    stored = proposal.get(key)
    metadata = proposal.subject.metadata
    place = (metadata.get("namespace", ""), metadata.get("name", ""))
    if stored is not None and _is_held(proposal, stored, address, but=place):
        raise _refusal(proposal, address, addresses, "provided IP is already allocated")
    return Companion(key, _document(proposal, address, place), stored)


def _is_held(proposal: Proposal, stored: record.Record, address: str, *, but: tuple[str, str]) -> bool:
    """Whether somebody else still has an address; services that have gone leave theirs behind."""
    parent = (stored.value.get("spec") or {}).get("parentRef") or {}
    if parent.get("resource") != "services" or parent.get("group"):
        return True
    place = parent.get("namespace", ""), parent.get("name", "")
    holder = proposal.get(record.Key("services", *place)) if place != but else None
    return holder is not None and address in _addresses(holder.value)


def _addresses(service: Mapping[str, Any]) -> list[str]:
    every = (service.get("spec") or {}).get("clusterIPs") or ()
    return [each for each in every if each != serviceaddresses.HEADLESS]


def _document(proposal: Proposal, address: str, place: tuple[str, str]) -> dict[str, Any]:
    labels = {
        f"{_LABEL}ip-family": serviceaddresses.family(address),
        f"{_LABEL}managed-by": "ipallocator.k8s.io",
    }
    metadata = {
        "name": address,
        # What follows from the service is as unique as it.
        "uid": str(uuid.uuid5(uuid.UUID(proposal.subject.metadata["uid"]), address)),
        "creationTimestamp": meta.time_text(proposal.write.now),
        "labels": labels,
    }
    parent = {"resource": "services", "namespace": place[0], "name": place[1]}
    return {
        "kind": "IPAddress",
        "apiVersion": "networking.k8s.io/v1",
        "metadata": metadata,
        "spec": {"parentRef": parent},
    }


def _refusal(proposal: Proposal, address: str, addresses: list[str], detail: str) -> status.StatusError:
    problem = fielderror.invalid(
        SPEC.child("clusterIPs"), rendering.wire(tuple(addresses)), f"failed to allocate IP {address}: {detail}"
    )
    return status.invalid("Service", proposal.subject.metadata.get("name", ""), group="", causes=[problem])
