"""Limits on requests and their bodies."""

from typing import Final

import msgspec

_LONGEST_WAIT_SECONDS: Final = 60.0


class BodyLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Limits on reading bodies."""

    seconds: float = 30.0
    """Time for a whole body."""
    grace_seconds: float = 5.0
    """Time after which a body must have come at the least rate."""
    bytes_per_second: int = 1024
    """The least rate."""
    user_bytes: int = 64 << 20
    """Bytes of bodies that one user may have in the server at once."""
    total_bytes: int = 256 << 20
    """Bytes of bodies that the server holds at once."""


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """Limits on requests."""

    request_seconds: float = 60.0
    """Time for a request that is no watch."""
    seats: int = 600
    """Requests that run at once, apart from exempt ones; priority levels share them."""
    bodies: BodyLimits = BodyLimits()
    watches: int = 10_000
    """Watches open at once."""
    user_watches: int = 2_500
    """Watches of one user, apart from exempt ones."""
    unread_seconds: float = 30.0
    """Time that a client may leave a piece of an answer or of a watch unread."""

    @property
    def wait_seconds(self) -> float:
        """Time that a request waits for a seat: a quarter of its timeout, as in upstream."""
        return min(self.request_seconds / 4, _LONGEST_WAIT_SECONDS)
