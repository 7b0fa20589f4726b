"""Where the nodes of a process are reached: one port, and for each node an address of its own."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

_FIRST: Final = int(ipaddress.IPv4Address("127.1.0.1"))
_BACKLOG: Final = 128


class NodeAddress(NamedTuple):
    """Where one node is reached."""

    host: str
    port: int


class Addresses:
    """An open socket, and who is meant at which address of it."""

    def __init__(self, opened: socket.socket, hosts: Mapping[str, str]) -> None:
        """``hosts`` are the addresses of nodes by their names."""
        self.socket: Final = opened
        self._hosts = hosts
        self._names = {host: name for name, host in hosts.items()}

    def of(self, node: str) -> NodeAddress:
        return NodeAddress(self._hosts[node], int(self.socket.getsockname()[1]))

    def node_at(self, address: str) -> str | None:
        return self._names.get(address)


def of_simulated(names: Sequence[str]) -> Addresses:
    """Addresses of the loopback network, which nobody from outside reaches."""
    opened = socket.create_server(("0.0.0.0", 0), backlog=_BACKLOG)
    return Addresses(opened, {name: str(ipaddress.IPv4Address(_FIRST + number)) for number, name in enumerate(names)})
