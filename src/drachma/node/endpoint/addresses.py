"""Where the nodes of a process are reached: one port, and for each node an address of its own.

No socket listens on all addresses unless that is asked for: each simulated node has a socket of its own on loopback.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import ipaddress
import itertools
import resource
import socket
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from drachma import errors

_FIRST: Final = int(ipaddress.IPv4Address("127.1.0.1"))
_SIMULATED: Final = ipaddress.IPv4Network("127.1.0.0/16")
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
    """Open sockets of nodes, and the node that is meant at each address."""

    def __init__(self, opened: Mapping[str, socket.socket], *, otherwise: str | None = None, pods: str = "") -> None:
        """``opened`` are sockets of nodes by their names; at any other address it is ``otherwise``, if anybody.

        ``pods`` is the address of pods that have the network of the machine, where it is not that of their node.
        """
        self._pods = pods
        self._otherwise = otherwise
        self._sockets = dict(opened)
        self._hosts: dict[str, str] = {}
        self._names: dict[str, str] = {}
        self.changed: Final = asyncio.Event()
        """Set whenever a node has come or gone."""
        for name, each in opened.items():
            self.publish(name, str(each.getsockname()[0]))

    @property
    def sockets(self) -> frozenset[socket.socket]:
        """All of them."""
        return frozenset(self._sockets.values())

    def of(self, node: str) -> NodeAddress:
        host = self._hosts[node]
        return NodeAddress(host, int(self._sockets[node].getsockname()[1]), self._pods or host)

    def publish(self, node: str, host: str) -> None:
        """Have a node say that it is reached at a host, which its socket listens on."""
        self._hosts[node] = host
        self._names[host] = node

    def add(self, node: str, *, before: str = "") -> NodeAddress:
        """Return the address of one more simulated node: the one that it had before if that is free, or the next."""
        numbers = itertools.chain(_number(before), itertools.count(_FIRST))
        host = next(address for number in numbers if (address := _text(number)) not in self._names)
        others = iter(self._sockets.values())
        self._sockets[node] = _listen(host, int(next(others).getsockname()[1]) if self._sockets else 0)
        self.publish(node, host)
        self.changed.set()
        return self.of(node)

    def remove(self, node: str) -> None:
        """Forget a node that is no longer reached; the server that listens on its socket closes that."""
        del self._names[self._hosts.pop(node)]
        del self._sockets[node]
        self.changed.set()

    def serves(self, node: str, host: str, port: int) -> bool:
        """Return True if a node is reached at an address of this socket."""
        return self._hosts.get(node) == host and self.of(node).port == port

    def node_at(self, address: str) -> str | None:
        return self._names.get(address, self._otherwise)


def of_machine(name: str, host: str, port: int, *, towards: str) -> Addresses:
    """The addresses of this machine: it listens at a host and port, 0 for any that is free.

    Without a host it listens on the address by which the machine reaches ``towards``, and on no other. What the node
    says of itself is the host, or that address where it listens on all of them.

    Raises:
        errors.InvalidValueError: nothing can listen there.
    """
    own = _own_address(towards) if host in ("", _ALL) else host
    try:
        opened = socket.create_server((host or own, port), backlog=_BACKLOG)
    except OSError as error:
        raise errors.InvalidValueError(f"address {host or own}:{port}: cannot listen: {error.strerror}") from error
    made = Addresses({name: opened}, otherwise=name)
    made.publish(name, own)
    return made


def _own_address(towards: str) -> str:
    """The address of this machine that others see who are where a host is; nothing is sent to find out."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect((towards, 9))
        except OSError:
            return _LOCALHOST
        return str(probe.getsockname()[0])


def of_simulated(names: Sequence[str]) -> Addresses:
    """Addresses of the loopback network, one for each node: what listens there is not reached from outside.

    Services cannot have endpoints there, so pods are said to be where the machine would be seen from outside.
    """
    made = Addresses({}, pods=_own_address(_OUTSIDE))
    for name in names:
        made.add(name)
    return made


def _listen(host: str, port: int) -> socket.socket:
    """Return a socket at a host, and at a port if that is free there.

    It takes a file descriptor, so the process may have one more: clients are to have as many as without it.

    Raises:
        errors.InvalidValueError: nothing can listen there.
    """
    now, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if now != resource.RLIM_INFINITY and (most == resource.RLIM_INFINITY or now < most):
        resource.setrlimit(resource.RLIMIT_NOFILE, (now + 1, most))
    try:
        try:
            return socket.create_server((host, port), backlog=_BACKLOG)
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
            return socket.create_server((host, 0), backlog=_BACKLOG)
    except OSError as error:
        raise errors.InvalidValueError(f"address {host}:{port}: cannot listen: {error.strerror}") from error


def _number(address: str) -> Iterator[int]:
    """Yield the number of an address, if it is one of a simulated node."""
    with contextlib.suppress(ValueError):
        parsed = ipaddress.IPv4Address(address)
        if parsed in _SIMULATED:
            yield int(parsed)


def _text(number: int) -> str:
    return str(ipaddress.IPv4Address(number))
