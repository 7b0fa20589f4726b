"""Limits of a port: the time that clients have, the size of a request's head, and the number of connections."""

import resource

import msgspec

MOST_DESCRIPTORS = 1 << 20


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """Limits that every port of a process shares."""

    handshake_seconds: float = 10.0
    """Time for the TLS handshake."""
    head_seconds: float = 32.0
    """Time for the head of a request, from the connection or from its first byte."""
    head_bytes: int = 1 << 20
    """Size of the head of a request."""
    waiting_bytes: int = 128 << 20
    """Memory of requests of all connections that are incomplete or wait: long heads, requests that were sent before
    the response to another one, and bodies that are not read yet. A connection below 16 KiB does not count."""
    idle_seconds: float = 120.0
    """Time that a connection stays open between two requests."""
    body_seconds: float = 30.0
    """Time for the whole body of a request."""
    unread_seconds: float = 30.0
    """Time that a client may leave sent bytes unread before its connection is aborted."""
    stream_unread_seconds: float = 3600.0
    """The same for logs, commands and forwarded ports, which a user may pause; nothing is buffered for them."""
    connections: int = 10_000
    """Connections of all ports of the process."""
    peer_percent: int = 25
    """Share of the connections that one address may hold."""
    loopback_percent: int = 75
    """Share of the connections that clients on this machine may hold together."""
    reserved_descriptors: int = 64
    """File descriptors that connections leave to the store, logs, outgoing connections and child processes."""


def raise_descriptor_limit(limits: Limits) -> None:
    """Raise the soft limit of file descriptors towards the hard one, as far as connections need it."""
    need = limits.connections + 2 * limits.reserved_descriptors
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if resource.RLIM_INFINITY in (soft, hard):
        return
    if soft < min(need, hard):
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(need, hard), hard))


def descriptor_limit() -> int:
    """Return the number of file descriptors that the process may have."""
    descriptors, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MOST_DESCRIPTORS if descriptors == resource.RLIM_INFINITY else descriptors
