"""Host ports: the ports that a pod requests on its node, and their collisions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from drachma.accounting import aggregate
from drachma.api import pod

_ALL_ADDRESSES: Final = "0.0.0.0"


class HostPort(NamedTuple):
    """Port of the node, on one of its addresses or on all."""

    address: str
    protocol: str
    port: int

    def collides(self, port: HostPort) -> bool:
        """Return True if both cannot be open at once."""
        if self.port != port.port or self.protocol != port.protocol:
            return False
        return self.address == port.address or _ALL_ADDRESSES in (self.address, port.address)


def host_ports(requesting: pod.Pod) -> tuple[HostPort, ...]:
    """Return the host ports of a pod's containers and sidecars."""
    spec = requesting.spec
    host_ports = _ports(spec.containers)
    if spec.init_containers:
        host_ports = _ports(filter(aggregate.is_sidecar, spec.init_containers)) + host_ports
    return host_ports


def are_free(requested: Iterable[HostPort], used: Iterable[HostPort]) -> bool:
    """Return True if none of the requested ports collides with a used one."""
    in_use = tuple(used)
    return not any(port.collides(used_port) for port in requested for used_port in in_use)


def _ports(containers: Iterable[pod.Container]) -> tuple[HostPort, ...]:
    return tuple(
        HostPort(port.host_ip or _ALL_ADDRESSES, port.protocol or "TCP", int(port.host_port))
        for container in containers
        for port in container.ports
        if port.host_port > 0
    )
