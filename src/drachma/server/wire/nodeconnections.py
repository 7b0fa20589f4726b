"""Connections to nodes: every address is checked after it is resolved, and the checked address is the one dialled.

A node writes its own addresses, and this server shows its credentials to whatever listens there. So the addresses that
stand for the server's own machine or link are refused, as upstream refuses them (``address not allowed``), and so is
the API server itself at any address. Two things are exempt: endpoints that this program serves
(:class:`LocalEndpoints`), and loopback addresses where the operator has allowed them.
"""

import asyncio
import contextlib
import ipaddress
import os
import re
import socket
import ssl
from collections.abc import Sequence
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

from drachma.server import status
from drachma.server.pipeline.answer import NodeEndpoint
from drachma.server.wire import nodetls

_SECONDS: Final = 30.0
_HEAD_BYTES: Final = 64 * 1024
_HOST: Final = re.compile(r"(?!.{254})[A-Za-z0-9_-]{1,63}(\.[A-Za-z0-9_-]{1,63})*\.?")
_THIS_NETWORK: Final = ipaddress.ip_network("0.0.0.0/8")
_BROADCAST: Final = ipaddress.ip_address("255.255.255.255")

_Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address
_Streams: TypeAlias = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Endpoint(Protocol):
    """Node endpoint that a process of this program serves."""

    def serves(self, node: str, host: str, port: int) -> bool:
        """Return True if the endpoint answers for this node at this address."""


class LocalEndpoints:
    """Node endpoints of this program, each with the TLS settings that accept its certificate alone."""

    def __init__(self, tls: nodetls.NodeTls) -> None:
        self._tls = tls
        self._endpoints: list[tuple[Endpoint, ssl.SSLContext]] = []

    def add(self, endpoint: Endpoint, *, certificate: bytes) -> None:
        """Register an endpoint that serves with this certificate (PEM)."""
        self._endpoints.append((endpoint, self._tls.pin(certificate)))

    def remove(self, endpoint: Endpoint) -> None:
        """Forget an endpoint whose process has ended, if it is known."""
        self._endpoints = [each for each in self._endpoints if each[0] is not endpoint]

    def context(self, node: str, address: _Address, port: int) -> ssl.SSLContext | None:
        """Return how to connect to the endpoint that serves a node there, or None if this process serves none."""
        for endpoint, context in self._endpoints:
            if endpoint.serves(node, str(address), port):
                return context
        return None


class _Peer(NamedTuple):
    """Resolved address of a node."""

    family: int
    sockaddr: Any
    address: _Address


class Dialer:
    """Opens connections to nodes."""

    def __init__(
        self,
        tls: nodetls.NodeTls,
        *,
        local: LocalEndpoints | None = None,
        own_port: int = 0,
        allows_loopback: bool = False,
    ) -> None:
        """``own_port`` is the port of this API server; 0 if it does not listen."""
        self._tls = tls
        self._local = local or LocalEndpoints(tls)
        self._own_port = own_port
        self._allows_loopback = allows_loopback

    async def dial(self, where: NodeEndpoint) -> _Streams:
        """Connect to a node.

        Raises:
            status.StatusError: the address is not allowed (400), or the node cannot be reached (500).
        """
        try:
            async with asyncio.timeout(_SECONDS):
                opened, address = await self._connect(where, await self._resolve(where))
                context = self._context(where, address)
                try:
                    return await asyncio.open_connection(
                        sock=opened,
                        ssl=context,
                        server_hostname=_server_name(where) if context is not None else None,
                        limit=_HEAD_BYTES,
                    )
                except BaseException:
                    opened.close()
                    raise
        except (OSError, TimeoutError) as error:
            raise status.unclassified(
                f"error dialing backend: dial tcp {where.host}:{where.port}: {_problem(error)}"
            ) from error

    async def _resolve(self, where: NodeEndpoint) -> Sequence[_Peer]:
        """Return the addresses of a host; all of them are allowed."""
        if not _is_address(where.host) and not _HOST.fullmatch(where.host):
            raise _not_allowed(f"node {where.node}: {where.host[:300]!r} is neither an IP address nor a host name")
        if not 0 < where.port < 2**16:
            raise _not_allowed(f"node {where.node}: {where.port} is no port")
        loop = asyncio.get_running_loop()
        infos = await loop.getaddrinfo(where.host, where.port, type=socket.SOCK_STREAM)
        peers = [_Peer(info[0], info[4], _plain(str(info[4][0]))) for info in infos]
        for peer in peers:
            problem = self._problem(where, peer.address)
            if problem:
                raise _not_allowed(f"node {where.node}: {peer.address} is {problem}")
        return peers

    def _problem(self, where: NodeEndpoint, address: _Address) -> str:
        """Return why an address is not allowed, or nothing if it is."""
        if self._local.context(where.node, address, where.port) is not None:
            return ""
        if address.is_loopback:
            # Pods that a node of this process runs on this machine have the node's own loopback address.
            is_own_pod = self._local.context(where.node, address, where.agent_port) is not None
            # Administrators register extension API servers, as they do webhooks, and may run them on this machine.
            is_extension = where.authority is not None
            return (
                ""
                if self._allows_loopback or is_own_pod or is_extension
                else "a loopback address (see --allow-loopback-nodes)"
            )
        if address.is_link_local:
            return "a link-local address"
        if address.is_multicast:
            return "a multicast address"
        if address.is_unspecified or address in _THIS_NETWORK or address == _BROADCAST:
            return "no address of one machine"
        return ""

    async def _connect(self, where: NodeEndpoint, peers: Sequence[_Peer]) -> tuple[socket.socket, _Address]:
        """Return a socket that is connected to the first address that answers, and that address."""
        problem: OSError = OSError("no such host")
        for peer in peers:
            opened = socket.socket(peer.family, socket.SOCK_STREAM)
            opened.settimeout(0)
            try:
                with contextlib.suppress(OSError):
                    opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                await asyncio.get_running_loop().sock_connect(opened, peer.sockaddr)
                if where.port == self._own_port and self._is_own_machine(where, peer.address, opened):
                    raise _not_allowed(f"node {where.node}: {peer.address}:{where.port} is this API server")
                return opened, peer.address
            except OSError as error:
                opened.close()
                problem = error
            except BaseException:
                opened.close()
                raise
        raise problem

    def _is_own_machine(self, where: NodeEndpoint, address: _Address, opened: socket.socket) -> bool:
        """Return True if a connection stays on this machine and this process serves no node there."""
        if self._local.context(where.node, address, where.port) is not None:
            return False
        # The system connects to an address of its own machine from that same address.
        return address.is_loopback or opened.getsockname()[0] == opened.getpeername()[0]

    def _context(self, where: NodeEndpoint, address: _Address) -> ssl.SSLContext | None:
        if not where.is_secure:
            return None
        if where.authority is not None:
            return self._tls.extension(where.authority)
        if where.is_foreign:
            return self._tls.anonymous
        return self._local.context(where.node, address, where.port) or self._tls.node


def _server_name(where: NodeEndpoint) -> str:
    return where.host if where.authority is None else where.authority.server_name


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _plain(text: str) -> _Address:
    """Return an address, without the IPv6 form of an IPv4 address."""
    address = ipaddress.ip_address(text)
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        return address.ipv4_mapped
    return address


def _not_allowed(detail: str) -> status.StatusError:
    return status.bad_request(f"address not allowed: {detail}")


def _problem(error: OSError | TimeoutError) -> str:
    """Return the reason of a failed connection, as Go words it."""
    if isinstance(error, TimeoutError):
        return "i/o timeout"
    if isinstance(error, ssl.SSLError):
        return f"tls: {error.reason or error}"
    if isinstance(error, socket.gaierror):
        return f"lookup: {error.strerror}"
    return f"connect: {os.strerror(error.errno).lower()}" if error.errno else str(error)
