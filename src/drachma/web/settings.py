"""Settings of the dashboard: the API server behind it, the ways to sign in, and the limits."""

from __future__ import annotations

import ipaddress
from urllib import parse

import msgspec

from drachma import errors
from drachma.client.access import Access
from drachma.listening import addresses
from drachma.server.access import certificates


class ProxyTrust(msgspec.Struct, frozen=True, kw_only=True):
    """An authenticating proxy in front of the dashboard, which names the user in a header.

    The dashboard then impersonates that user with its own credentials, so it believes the header only from these
    networks, and the API server must let its account impersonate.
    """

    user_header: str
    groups_header: str = ""
    networks: tuple[ipaddress.IPv4Network | ipaddress.IPv6Network, ...]

    def trusts(self, peer: str) -> bool:
        """Return True if a connection from this address may name its user."""
        try:
            address = ipaddress.ip_address(peer)
        except ValueError:
            return False
        return any(address in network for network in self.networks)


def parse_networks(texts: list[str]) -> tuple[ipaddress.IPv4Network | ipaddress.IPv6Network, ...]:
    """Return networks in CIDR notation. Raises errors.InvalidValueError."""
    try:
        return tuple(ipaddress.ip_network(text) for text in texts)
    except ValueError as error:
        raise errors.InvalidValueError(f"--trusted-proxy: {error}") from None


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of one dashboard."""

    access: Access
    """API server, and the account of the dashboard: the user of the start key, and of impersonation for a proxy."""
    address: addresses.Address = addresses.Address("127.0.0.1", 0)
    public_url: str = ""
    """URL in the browser's address bar, if a proxy is in front."""
    certificate: certificates.Files | None = None
    """Certificate to serve HTTPS with; None for HTTP."""
    start_key: str = ""
    """Secret in the printed address that signs a browser in as the account of ``access``; without one, tokens only."""
    proxy: ProxyTrust | None = None
    cluster_name: str = ""
    most_sessions: int = 64
    """Users that may be signed in at once; the one that has been idle longest makes room."""
    idle_seconds: float = 900.0
    """Time without a request or an open page after which the data of a user is dropped."""
    session_seconds: float = 12 * 3600.0
    """Time after which a user must sign in again."""
    check_seconds: float = 15.0
    """Time between two checks of what a user may read."""

    @property
    def is_secure(self) -> bool:
        """True if browsers reach the dashboard over HTTPS, so that cookies may be limited to it."""
        return self.public_url.startswith("https://") if self.public_url else self.certificate is not None

    @property
    def hosts(self) -> frozenset[str]:
        """Host names that requests may be addressed to. Others are refused, because a site could rebind its name."""
        own = () if self.address.host in ("0.0.0.0", "::") else (self.address.host.lower(),)
        public = parse.urlsplit(self.public_url).hostname
        return frozenset({"localhost", "127.0.0.1", "::1", *own, *((public,) if public else ())})
