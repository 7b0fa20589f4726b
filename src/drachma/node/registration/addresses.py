"""Addresses of the nodes of a process: one port, and an address for each node.

No socket listens on all addresses unless the user asks for it: each simulated node has its own socket on loopback.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import ipaddress
import itertools
import resource
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from drachma import errors

_FIRST: Final = int(ipaddress.IPv4Address("127.1.0.1"))
_SIMULATED: Final = ipaddress.IPv4Network("127.1.0.0/16")
_BACKLOG: Final = 128
_ALL: Final = "0.0.0.0"
_LOCALHOST: Final = "127.0.0.1"


class NodeAddress(NamedTuple):
    """Address and port of a node, and the address of its pods that use the network of the machine."""

    host: str
    port: int
    pods: str
    families: tuple[str, ...] = ("IPv4",)
    """IP families of simulated pods, the primary one first."""


_OUTSIDE: Final = "192.0.2.1"
"""An address for documentation (RFC 5737); nothing is sent there."""


class Addresses:
    """Listening sockets of nodes, and the node behind each address."""

    def __init__(
        self,
        sockets: Mapping[str, socket.socket],
        *,
        default: str | None = None,
        pods: str = "",
        families: tuple[str, ...] = ("IPv4",),
    ) -> None:
        """``sockets`` are by the names of nodes. ``default`` is the node at any other address, if any.

        ``pods`` is the address of pods that use the network of the machine, unless it is the address of their node.
        """
        self._pods = pods
        self._families = families
        self._default = default
        self._sockets = dict(sockets)
        self._hosts: dict[str, str] = {}
        self._names: dict[str, str] = {}
        self.changed: Final = asyncio.Event()
        """Set when a node is added or removed."""
        self._listeners: list[Callable[[str, NodeAddress | None], None]] = []
        for name, each in sockets.items():
            self.publish(name, str(each.getsockname()[0]))

    @property
    def sockets(self) -> frozenset[socket.socket]:
        """All listening sockets."""
        return frozenset(self._sockets.values())

    def of(self, node: str) -> NodeAddress:
        host = self._hosts[node]
        return NodeAddress(host, int(self._sockets[node].getsockname()[1]), self._pods or host, self._families)

    def publish(self, node: str, host: str) -> None:
        """Set the host that a node reports as its address. Its socket must listen there."""
        self._hosts[node] = host
        self._names[host] = node
        self._tell(node, self.of(node))

    def follow(self, listener: Callable[[str, NodeAddress | None], None]) -> None:
        """Call a function with the address of every node, and then for every change; None for a removed node."""
        self._listeners.append(listener)
        for node in self._hosts:
            listener(node, self.of(node))

    def _tell(self, node: str, address: NodeAddress | None) -> None:
        for listener in self._listeners:
            listener(node, address)

    def add(self, node: str, *, previous: str = "") -> NodeAddress:
        """Add a simulated node, at its previous address if that is free, and return its address."""
        numbers = itertools.chain(_number(previous), itertools.count(_FIRST))
        host = next(address for number in numbers if (address := _text(number)) not in self._names)
        neighbours = iter(self._sockets.values())
        self._sockets[node] = _listen(host, int(next(neighbours).getsockname()[1]) if self._sockets else 0)
        self.publish(node, host)
        self.changed.set()
        return self.of(node)

    def remove(self, node: str) -> None:
        """Remove a node. The server that listens on its socket closes it."""
        del self._names[self._hosts.pop(node)]
        del self._sockets[node]
        self.changed.set()
        self._tell(node, None)

    def serves(self, node: str, host: str, port: int) -> bool:
        """Return True if a node has this address and port."""
        return self._hosts.get(node) == host and self.of(node).port == port

    def node_at(self, address: str) -> str | None:
        return self._names.get(address, self._default)


def machine_addresses(name: str, host: str, port: int, *, towards: str) -> Addresses:
    """Return the addresses of this machine, which listens at a host and port; port 0 takes any free port.

    Without a host it listens only on the address by which the machine reaches ``towards``. The node reports the host,
    or that address if it listens on all addresses.

    Raises:
        errors.InvalidValueError: the address cannot be listened on.
    """
    own = _own_address(towards) if host in ("", _ALL) else host
    try:
        listener = socket.create_server((host or own, port), backlog=_BACKLOG)
    except OSError as error:
        raise errors.InvalidValueError(f"address {host or own}:{port}: cannot listen: {error.strerror}") from error
    addresses = Addresses({name: listener}, default=name)
    addresses.publish(name, own)
    return addresses


def _own_address(towards: str) -> str:
    """Return the address of this machine on the route to a host. Nothing is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect((towards, 9))
        except OSError:
            return _LOCALHOST
        return str(probe.getsockname()[0])


def simulated_addresses(names: Sequence[str], *, families: tuple[str, ...] = ("IPv4",)) -> Addresses:
    """Return loopback addresses, one for each node, which cannot be reached from outside; pods have these families.

    Services cannot have endpoints there, so pods report the address of the machine on its route to the outside.
    """
    addresses = Addresses({}, pods=_own_address(_OUTSIDE), families=families)
    for name in names:
        addresses.add(name)
    return addresses


def _listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens at a host, at the given port if that is free.

    The limit of file descriptors grows by the one that the socket takes, so that clients keep theirs.

    Raises:
        errors.InvalidValueError: the address cannot be listened on.
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
