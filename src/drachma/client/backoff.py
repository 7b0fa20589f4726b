"""How long to wait before trying again: growing pauses with jitter, so that clients do not come back in step.

Retries of requests and informers share it. The state of one series of failures is in :class:`Pauses`; who succeeds
calls ``reset``.
"""

import random
from typing import Final

import msgspec


class Backoff(msgspec.Struct, frozen=True, kw_only=True):
    """The first pause, the factor from one to the next, the longest, and by which share each is stretched at most."""

    initial: float = 0.1
    factor: float = 2.0
    maximum: float = 30.0
    jitter: float = 0.5


class Retries(msgspec.Struct, frozen=True, kw_only=True):
    """How often a request is sent at most, and the pauses in between unless the server names one.

    A server that asks for more than ``longest_wait`` seconds is not waited for: its refusal goes to the caller.
    """

    attempts: int = 5
    backoff: Backoff = Backoff(maximum=5.0)
    longest_wait: float = 60.0


class Pauses:
    """The pauses of one series of failures."""

    def __init__(self, backoff: Backoff, chance: random.Random) -> None:
        self._backoff: Final = backoff
        self._chance: Final = chance
        self._next = backoff.initial

    def reset(self) -> None:
        """Begins a new series."""
        self._next = self._backoff.initial

    def next(self) -> float:
        """Seconds to wait before the next try."""
        pause = self._next * (1 + self._chance.random() * self._backoff.jitter)
        self._next = min(self._next * self._backoff.factor, self._backoff.maximum)
        return pause
