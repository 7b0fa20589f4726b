"""Where the nodes of a process are reached: one port, and for each node an address of its own."""

from __future__ import annotations

import ipaddress
import itertools
import socket
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from drachma import errors

_FIRST: Final = int(ipaddress.IPv4Address("127.1.0.1"))
_BACKLOG: Final = 128
_ALL: Final = "0.0.0.0"
_LOCALHOST: Final = "127.0.0.1"


class NodeAddress(NamedTuple):
    """Where one node is reached, and where its pods are that have the network of the machine."""

    host: str
    port: int
    pods: str


_OUTSIDE: Final = "192.0.2.1"
"""An address that nobody has; nothing is sent there."""


class Addresses:
    """An open socket, and who is meant at which address of it."""

    def __init__(
        self, opened: socket.socket, hosts: Mapping[str, str], *, otherwise: str | None = None, pods: str = ""
    ) -> None:
        """``hosts`` are the addresses of nodes by their names; at any other address it is ``otherwise``, if anybody.

        ``pods`` is the address of pods that have the network of the machine, where it is not that of their node.
        """
        self._pods = pods
        self.socket: Final = opened
        self._otherwise = otherwise
        self._hosts = dict(hosts)
        self._names = {host: name for name, host in hosts.items()}

    def of(self, node: str) -> NodeAddress:
        host = self._hosts[node]
        return NodeAddress(host, int(self.socket.getsockname()[1]), self._pods or host)

    def add(self, node: str) -> NodeAddress:
        """The address of a simulated node more: the first that nobody has."""
        numbers = itertools.count(_FIRST)
        host = next(address for number in numbers if (address := _text(number)) not in self._names)
        self._hosts[node] = host
        self._names[host] = node
        return self.of(node)

    def remove(self, node: str) -> None:
        """A node is no longer reached."""
        del self._names[self._hosts.pop(node)]

    def serves(self, node: str, host: str, port: int) -> bool:
        """Return True if a node is reached at an address of this socket."""
        return self._hosts.get(node) == host and self.of(node).port == port

    def node_at(self, address: str) -> str | None:
        return self._names.get(address, self._otherwise)


def of_machine(name: str, host: str, port: int, *, towards: str) -> Addresses:
    """The addresses of this machine: it listens at a host and port, 0 for any that is free.

    What the node says of itself is that host, or, where that is all addresses, the one by which the machine reaches
    ``towards``.

    Raises:
        errors.InvalidValueError: nothing can listen there.
    """
    try:
        opened = socket.create_server((host, port), backlog=_BACKLOG)
    except OSError as error:
        raise errors.InvalidValueError(f"address {host}:{port}: cannot listen: {error.strerror}") from error
    own = _own_address(towards) if host == _ALL else host
    return Addresses(opened, {name: own}, otherwise=name)


def _own_address(towards: str) -> str:
    """The address of this machine that others see who are where a host is; nothing is sent to find out."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect((towards, 9))
        except OSError:
            return _LOCALHOST
        return str(probe.getsockname()[0])


def of_simulated(names: Sequence[str]) -> Addresses:
    """Addresses of the loopback network, which nobody from outside reaches.

    Services cannot have endpoints there, so pods are said to be where the machine would be seen from outside.
    """
    opened = socket.create_server((_ALL, 0), backlog=_BACKLOG)
    hosts = {name: _text(_FIRST + number) for number, name in enumerate(names)}
    return Addresses(opened, hosts, pods=_own_address(_OUTSIDE))


def _text(number: int) -> str:
    return str(ipaddress.IPv4Address(number))
