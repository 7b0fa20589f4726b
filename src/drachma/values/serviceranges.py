"""Address ranges of services: one for each IP family of a cluster, the primary family first."""

import ipaddress
from typing import Final, NamedTuple, TypeAlias

from drachma import errors

Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network

_MOST: Final = 2
_LARGEST_BITS: Final = 64


class ServiceRanges(NamedTuple):
    """Ranges of a cluster. A cluster with two is dual-stack."""

    networks: tuple[Network, ...]

    @classmethod
    def parse(cls, text: str) -> "ServiceRanges":
        """Parse comma-separated CIDRs. Raises InvalidValueError for more than one of a family."""
        name = f"service range {text!r}"
        try:
            networks = tuple(ipaddress.ip_network(each.strip()) for each in text.split(","))
        except ValueError as error:
            raise errors.InvalidValueError(f"{name}: {error}") from None
        if len(networks) > _MOST or len({each.version for each in networks}) < len(networks):
            raise errors.InvalidValueError(f"{name}: must have at most one range of each IP family")
        for network in networks:
            bits = network.max_prefixlen - network.prefixlen
            if not 3 <= bits <= _LARGEST_BITS:
                raise errors.InvalidValueError(f"{name}: {network} must leave 3 to {_LARGEST_BITS} bits for services")
        return cls(networks)

    @property
    def families(self) -> tuple[str, ...]:
        """Names of the families, the primary one first."""
        return tuple(f"IPv{each.version}" for each in self.networks)

    @property
    def first(self) -> str:
        """Address of the service ``kubernetes``."""
        return str(self.networks[0][1])

    def network(self, family: str) -> Network:
        """Return the range of a family. Raises KeyError for one that the cluster does not have."""
        return dict(zip(self.families, self.networks, strict=True))[family]

    def is_assignable(self, address: str) -> bool:
        """Return True if a service can have the address."""
        parsed = ipaddress.ip_address(address)
        return any(
            parsed in each and parsed not in (each.network_address, each.broadcast_address)
            for each in self.networks
            if each.version == parsed.version
        )


DEFAULT: Final = ServiceRanges.parse("10.96.0.0/12")
"""Range that kubeadm configures by default."""
