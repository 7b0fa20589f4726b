"""Pauses before retries, growing and with jitter, so that clients do not come back in step.

Retries of requests and informers share it. :class:`Pauses` has the state of one series of failures; call ``reset``
after a success.
"""

import random
from typing import Final

import msgspec


class Backoff(msgspec.Struct, frozen=True, kw_only=True):
    """First pause, factor between pauses, longest pause, and largest share by which jitter extends each."""

    initial: float = 0.1
    factor: float = 2.0
    maximum: float = 30.0
    jitter: float = 0.5


class Retries(msgspec.Struct, frozen=True, kw_only=True):
    """Number of attempts of a request, and the pauses between them if the server names none.

    A server that asks for more than ``longest_wait`` seconds is not waited for: its refusal is raised.
    """

    attempts: int = 5
    backoff: Backoff = Backoff(maximum=5.0)
    longest_wait: float = 60.0


class Pauses:
    """The pauses of one series of failures."""

    def __init__(self, backoff: Backoff, rng: random.Random) -> None:
        self._backoff: Final = backoff
        self._rng: Final = rng
        self._next = backoff.initial

    def reset(self) -> None:
        """Begin a new series."""
        self._next = self._backoff.initial

    def next(self) -> float:
        """Return the seconds to wait before the next attempt."""
        pause = self._next * (1 + self._rng.random() * self._backoff.jitter)
        self._next = min(self._next * self._backoff.factor, self._backoff.maximum)
        return pause
