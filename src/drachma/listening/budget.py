"""The budget of connections: one for all ports of a process, because they share its file descriptors.

A listener asks the budget for a slot before it serves a connection. A slot waits while the server waits for the
client (handshake, head, body, unread answer, idle) and works while the server prepares an answer. Where there is no
room left, the connection that has waited longest makes room; a connection that works is never ended for another.

One address may hold only a share of all slots. A client at its share makes room from its own connections, so that it
cannot displace those of other clients. The budget decides and calls back; it opens and closes nothing itself.
"""

import ipaddress
from collections.abc import Callable
from typing import Final

from drachma.listening import limits as limiting

_FEWEST_CONNECTIONS: Final = 8
_LOOPBACK: Final = "loopback"
_USUAL_BYTES: Final = 16 * 1024
"""Memory of a connection's requests for which there is always room."""
_V6_PREFIX: Final = 64
"""Bits of an IPv6 address that tell clients apart: one client commonly has all addresses of such a network."""


class Slot:
    """The place of one connection in the budget. ``give_up`` ends the connection at once, whatever serves it now."""

    __slots__ = ("_budget", "give_up", "held_bytes", "is_released", "peer")

    def __init__(self, budget: "Budget", peer: "Peer") -> None:
        self._budget: Final = budget
        self.peer: Final = peer
        self.give_up: Callable[[], object] = _do_nothing
        self.is_released = False
        self.held_bytes = 0
        """Memory that requests of the connection take while they arrive or wait."""

    def hold(self, size: int) -> bool:
        """Record the memory of requests that arrive or wait; return False if those of all connections take too much."""
        return self._budget.hold(self, size)

    def wait(self) -> None:
        """Record that the server begins to wait for the client."""
        if not self.is_released:
            queue = self.peer.waiting
            queue.pop(self, None)
            queue[self] = None

    def work(self) -> None:
        """Record that the server works for the client."""
        self.peer.waiting.pop(self, None)

    def release(self) -> None:
        """Give the slot back; a second call does nothing."""
        self._budget.release(self)


class Peer:
    """The connections of one address; those that wait are in the order in which they began to."""

    __slots__ = ("count", "key", "waiting")

    def __init__(self, key: str) -> None:
        self.key: Final = key
        self.count = 0
        self.waiting: Final[dict[Slot, None]] = {}


class Budget:
    """The slots of a process."""

    def __init__(self, limits: limiting.Limits | None = None) -> None:
        self._peers: Final[dict[str, Peer]] = {}
        self._count = 0
        self._held_bytes = 0
        self.refused = 0
        """Connections refused so far because all slots work."""
        self.given_up = 0
        """Connections ended so far to make room."""
        self.limits = limits or limiting.Limits()
        self._most = self._first_reserved = 0
        self.limit(self.limits)

    def __len__(self) -> int:
        return self._count

    def limit(self, limits: limiting.Limits) -> None:
        """Change the limits; connections that are open stay open."""
        self.limits = limits
        descriptors = limiting.descriptor_limit()
        self._first_reserved = max(descriptors - limits.reserved_descriptors, _FEWEST_CONNECTIONS)
        self._most = min(self._first_reserved, limits.connections)

    @property
    def most(self) -> int:
        """Connections that may be open at once."""
        return self._most

    def admit(self, address: str, *, descriptor: int) -> Slot | None:
        """Return a slot that waits, or None if the connection has to be refused.

        ``descriptor`` is the number of the connection's file descriptor. The system hands out the lowest free number,
        so a number in the reserve shows that the process has used up the rest, for whatever purpose.
        """
        key = peer_key(address)
        peer = self._peers.get(key) or Peer(key)
        percent = self.limits.loopback_percent if key == _LOOPBACK else self.limits.peer_percent
        if peer.count >= max(self._most * percent // 100, 1):
            has_room = self._make_room(peer)
        else:
            has_room = self.has_room(descriptor) or self.make_room()
        if not has_room:
            self.refused += 1
            return None
        slot = Slot(self, peer)
        self._peers[key] = peer
        peer.count += 1
        self._count += 1
        slot.wait()
        return slot

    def has_room(self, descriptor: int) -> bool:
        """Return True if another connection fits without ending one."""
        return self._count < self._most and descriptor < self._first_reserved

    def make_room(self) -> bool:
        """End the longest-waiting connection of the address with most of them; return False if none waits."""
        peer = max(self._peers.values(), key=lambda each: len(each.waiting), default=None)
        return peer is not None and self._make_room(peer)

    def _make_room(self, peer: Peer) -> bool:
        oldest = next(iter(peer.waiting), None)
        if oldest is None:
            return False
        give_up = oldest.give_up
        self.release(oldest)
        self.given_up += 1
        give_up()
        return True

    def hold(self, slot: Slot, size: int) -> bool:
        """Record the memory of a slot's requests; return False if it is unusual and there is no room for it."""
        if slot.is_released:
            return False
        self._held_bytes += size - slot.held_bytes
        slot.held_bytes = size
        return size <= _USUAL_BYTES or self._held_bytes <= self.limits.waiting_bytes

    def release(self, slot: Slot) -> None:
        """Take a slot back; a second call does nothing."""
        if slot.is_released:
            return
        self.hold(slot, 0)
        slot.is_released = True
        slot.give_up = _do_nothing
        peer = slot.peer
        peer.count -= 1
        peer.waiting.pop(slot, None)
        self._count -= 1
        if not peer.count:
            self._peers.pop(peer.key, None)


def _do_nothing() -> None:
    """End nothing: the connection is not served yet."""


def peer_key(address: str) -> str:
    """Return the name under which connections of an address are counted together."""
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(parsed, ipaddress.IPv6Address):
        if parsed.ipv4_mapped is None:
            return _LOOPBACK if parsed.is_loopback else str(ipaddress.ip_network((parsed, _V6_PREFIX), strict=False))
        parsed = parsed.ipv4_mapped
    return _LOOPBACK if parsed.is_loopback else str(parsed)


PROCESS: Final = Budget()
"""The budget of this process, which all its ports share unless they are given another one."""
