"""Addresses and node ports of services: which are free.

Nothing routes to them, so ranges of their own choice are as good as any. An address is looked for from a place that
follows from the service's name, so that services that are made at the same time hardly ever find the same one; that
they never keep it is seen to by :mod:`drachma.server.admission.serviceaddresses`.
"""

import hashlib
import ipaddress
from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

from drachma.server.surface.strategy import Lookup

RANGE: Final = ipaddress.ip_network("10.96.0.0/12")
"""What kubeadm gives to clusters."""

FIRST: Final = str(RANGE[1])
"""The address of the service ``kubernetes``."""

NODE_PORTS: Final = range(30000, 32768)

_FIRST_OFFSET: Final = 2


class Addresses:
    """The addresses and ports of the services in a store."""

    def __init__(self, store: Lookup) -> None:
        self._store = store

    def free(self, name: str) -> str:
        """An address that no stored service has. Looks at all services."""
        taken = {each.get("clusterIP") for each in self._specs()}
        count = RANGE.num_addresses - _FIRST_OFFSET - 1
        start = int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest())
        offsets = ((start + step) % count + _FIRST_OFFSET for step in range(len(taken) + 1))
        return next(address for offset in offsets if (address := str(RANGE[offset])) not in taken)

    def free_ports(self, name: str, *, but: Collection[int]) -> Iterator[int]:
        """Node ports that no stored service has, and that are not among others. Looks at all services."""
        taken = {*self.ports(), *but}
        start = int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest())
        for step in range(len(NODE_PORTS)):
            port = NODE_PORTS[(start + step) % len(NODE_PORTS)]
            if port not in taken:
                yield port

    def ports(self) -> Iterator[int]:
        """The node ports of all stored services."""
        for spec in self._specs():
            yield from node_ports(spec)

    def _specs(self) -> Iterator[Mapping[str, Any]]:
        return (record.value.get("spec") or {} for record in self._store.list("services", None).records)


def is_assignable(address: str) -> bool:
    """Whether an address is one that services can have here."""
    found = ipaddress.ip_address(address)
    return found in RANGE and found not in (RANGE.network_address, RANGE.broadcast_address)


def node_ports(spec: Mapping[str, Any]) -> Iterator[int]:
    """The ports on nodes that a service has."""
    for port in spec.get("ports") or ():
        if port.get("nodePort"):
            yield port["nodePort"]
    if spec.get("healthCheckNodePort"):
        yield spec["healthCheckNodePort"]
