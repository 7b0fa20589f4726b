"""Allocation of cluster IPs and node ports of services.

Nothing routes to them, so any range will do, one for each IP family. The search starts at an offset derived from the
service's name, so that services created at the same time rarely find the same address;
:mod:`drachma.server.admission.serviceaddresses` makes sure that two services never keep one.
"""

import hashlib
from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

from drachma.server.surface.strategy import Lookup
from drachma.values.serviceranges import ServiceRanges

NODE_PORTS: Final = range(30000, 32768)

_FIRST_OFFSET: Final = 2


class Addresses:
    """Addresses and node ports of the services in a store."""

    def __init__(self, store: Lookup, ranges: ServiceRanges) -> None:
        self.ranges: Final = ranges
        self._store = store

    def free(self, name: str, family: str) -> str:
        """Return an address of a family that no stored service has. Linear in the number of services."""
        used = {address for each in self._specs() for address in each.get("clusterIPs") or (each.get("clusterIP"),)}
        network = self.ranges.network(family)
        count = network.num_addresses - _FIRST_OFFSET - 1
        start = int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest())
        offsets = ((start + step) % count + _FIRST_OFFSET for step in range(len(used) + 1))
        return next(address for offset in offsets if (address := str(network[offset])) not in used)

    def free_ports(self, name: str, *, excluded: Collection[int]) -> Iterator[int]:
        """Yield node ports that no stored service has, except some. Linear in the number of services."""
        used = {*self.ports(), *excluded}
        start = int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest())
        for step in range(len(NODE_PORTS)):
            port = NODE_PORTS[(start + step) % len(NODE_PORTS)]
            if port not in used:
                yield port

    def ports(self) -> Iterator[int]:
        """Yield the node ports of all stored services."""
        for spec in self._specs():
            yield from node_ports(spec)

    def _specs(self) -> Iterator[Mapping[str, Any]]:
        return (record.value.get("spec") or {} for record in self._store.list("services", None).records)


def node_ports(spec: Mapping[str, Any]) -> Iterator[int]:
    """Yield the node ports of a service."""
    for port in spec.get("ports") or ():
        if port.get("nodePort"):
            yield port["nodePort"]
    if spec.get("healthCheckNodePort"):
        yield spec["healthCheckNodePort"]
