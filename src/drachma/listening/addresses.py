"""Addresses of servers: host and port, and the socket that listens there."""

import socket
from typing import Final, NamedTuple

from drachma import errors

_ALL_ADDRESSES: Final = ("0.0.0.0", "::")


class Address(NamedTuple):
    """Host and port that a server listens on."""

    host: str
    port: int

    @classmethod
    def parse(cls, text: str) -> "Address":
        """Return the address of ``host:port``, ``[v6]:port`` or ``:port``. Raises errors.InvalidValueError."""
        host, separator, port = text.rpartition(":")
        if not separator or not port.isascii() or not port.isdigit() or int(port) > 65535:
            raise errors.InvalidValueError(f"address {text!r}: expected host:port with a port up to 65535")
        return cls(host.strip("[]") or "0.0.0.0", int(port))

    @property
    def url(self) -> str:
        """URL for clients on this machine."""
        host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self.host, self.host)
        return f"https://[{host}]:{self.port}" if ":" in host else f"https://{host}:{self.port}"

    @property
    def remote_url(self) -> str:
        """URL for clients on other machines if the server listens on all addresses, else an empty string."""
        return f"https://{socket.gethostname()}:{self.port}" if self.host in _ALL_ADDRESSES else ""

    @property
    def hosts(self) -> tuple[str, ...]:
        """Names and addresses that the server's certificate must cover."""
        own = () if self.host in _ALL_ADDRESSES else (self.host,)
        return (*own, "127.0.0.1", "::1", "localhost", socket.gethostname(), "kubernetes", "kubernetes.default.svc")


def bind(address: Address) -> tuple[socket.socket, Address]:
    """Return a bound socket, and the address with the port that the socket got.

    Raises:
        errors.InvalidValueError: the address cannot be bound.
    """
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((address.host, address.port))
    except OSError as error:
        bound.close()
        raise errors.InvalidValueError(
            f"address {address.host}:{address.port}: cannot listen: {error.strerror}"
        ) from error
    bound.set_inheritable(True)
    return bound, Address(address.host, bound.getsockname()[1])
