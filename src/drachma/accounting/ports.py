"""Host ports: which ones a pod wants of its node, and whether pods get into each other's way with them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from drachma.accounting import aggregate
from drachma.api import pod

_ALL_ADDRESSES: Final = "0.0.0.0"


class HostPort(NamedTuple):
    """A port of the node, on one of its addresses or on all."""

    address: str
    protocol: str
    port: int

    def collides(self, other: HostPort) -> bool:
        """Whether both cannot be open at once."""
        if self.port != other.port or self.protocol != other.protocol:
            return False
        return self.address == other.address or _ALL_ADDRESSES in (self.address, other.address)


def wanted(requesting: pod.Pod) -> tuple[HostPort, ...]:
    """The host ports of a pod's containers and sidecars."""
    spec = requesting.spec
    host_ports = _ports(spec.containers)
    if spec.init_containers:
        host_ports = _ports(filter(aggregate.is_sidecar, spec.init_containers)) + host_ports
    return host_ports


def are_free(wanted: Iterable[HostPort], used: Iterable[HostPort]) -> bool:
    """Whether none of the wanted ports collides with a used one."""
    in_use = tuple(used)
    return not any(port.collides(other) for port in wanted for other in in_use)


def _ports(of: Iterable[pod.Container]) -> tuple[HostPort, ...]:
    return tuple(
        HostPort(port.host_ip or _ALL_ADDRESSES, port.protocol or "TCP", int(port.host_port))
        for container in of
        for port in container.ports
        if port.host_port > 0
    )
