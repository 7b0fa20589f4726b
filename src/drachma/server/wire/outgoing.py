"""Answers on their way: bytes that wait for clients to read them, bounded in all.

A large answer is sent piece by piece, each when the client has taken the one before. While it is sent, it is held in
memory and counts here. Where all answers together exceed the limit, those whose clients have taken nothing for longest
are given up.
"""

from collections.abc import Callable
from typing import Final

LIMIT_BYTES: Final = 128 << 20
STALL_SECONDS: Final = 2.0
"""Time without progress after which an answer may be given up to make room."""


class Shipment:
    """One answer that is being sent."""

    __slots__ = ("_outgoing", "give_up", "is_given_up", "moved_at", "size")

    def __init__(self, outgoing: "Outgoing", size: int, give_up: Callable[[], object]) -> None:
        self._outgoing: Final = outgoing
        self.size: Final = size
        self.give_up: Final = give_up
        self.moved_at = 0.0
        self.is_given_up = False

    def move(self) -> None:
        """Record that the client has taken a piece."""
        self._outgoing.move(self)

    def release(self) -> None:
        """Record that the answer is sent, or is not sent any more."""
        self._outgoing.release(self)


class Outgoing:
    """All answers that are being sent."""

    def __init__(self, *, clock: Callable[[], float], limit: int = LIMIT_BYTES) -> None:
        self._clock: Final = clock
        self._limit: Final = limit
        # In the order of their last progress.
        self._shipments: Final[dict[Shipment, None]] = {}
        self.total = 0
        """Bytes held now."""
        self.given_up = 0
        """Answers given up so far to make room."""

    def hold(self, size: int, give_up: Callable[[], object]) -> Shipment:
        """Count an answer; ``give_up`` ends its connection."""
        shipment = Shipment(self, size, give_up)
        self.total += size
        shipment.moved_at = self._clock()
        self._shipments[shipment] = None
        self._make_room()
        return shipment

    def move(self, shipment: Shipment) -> None:
        """Put an answer behind all others that wait."""
        if shipment in self._shipments:
            del self._shipments[shipment]
            shipment.moved_at = self._clock()
            self._shipments[shipment] = None

    def release(self, shipment: Shipment) -> None:
        """Forget an answer; a second call does nothing."""
        if shipment in self._shipments:
            del self._shipments[shipment]
            self.total -= shipment.size

    def _make_room(self) -> None:
        now = self._clock()
        while self.total > self._limit:
            oldest = next(iter(self._shipments))
            if now - oldest.moved_at < STALL_SECONDS:
                return
            self.release(oldest)
            self.given_up += 1
            oldest.is_given_up = True
            oldest.give_up()
