"""Budget: the limit of an allocation in steps, and in time on a clock that the caller passes.

A step is one device tried for one request, or one evaluation of an expression. The clock is looked at every few
steps, so that a search ends well within 10 ms of its deadline. Running out raises :class:`ExhaustedError`, which the
allocator turns into the answer "gave up": it never means that nothing fits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec

from drachma.bounds import effort

Interrupt = Callable[[], str | None]
"""Function that long evaluations call regularly; it raises to end them."""

DEFAULT_STEPS: Final = 1_000_000
_LOOK_EVERY: Final = 16
_LOOK_EFFORT: Final = 200
"""Effort of what happens between two looks at the clock."""


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """Limits of one allocation; ``deadline`` is a time of ``clock``, which is monotonic and in seconds."""

    steps: int = DEFAULT_STEPS
    deadline: float | None = None
    clock: Callable[[], float] | None = None


class ExhaustedError(Exception):
    """The budget is used up; for the allocator itself, not for its callers."""


class Budget:
    """Remainder of the limits of one allocation."""

    __slots__ = ("_clock", "_deadline", "_limit", "_look_at", "steps")

    def __init__(self, limits: Limits) -> None:
        if limits.deadline is not None and limits.clock is None:
            raise ValueError("a deadline needs a clock")
        self.steps = 0
        """Steps taken so far."""
        self._limit = limits.steps
        self._clock = limits.clock
        self._deadline = limits.deadline
        self._look_at = 0 if limits.deadline is not None else limits.steps

    def step(self) -> None:
        """Take one step; raises ExhaustedError if that is one too many, or too late."""
        if self.steps >= self._look_at:
            self._look()
        self.steps += 1

    def check(self) -> None:
        """Look at the clock, without taking a step; raises ExhaustedError if it is too late."""
        effort.spend(_LOOK_EFFORT)
        if self._clock is not None and self._deadline is not None and self._clock() >= self._deadline:
            raise ExhaustedError(f"the deadline passed after {self.steps} steps")

    @property
    def interrupt(self) -> Interrupt | None:
        """Function that long evaluations call to be ended at the deadline; None without a deadline."""
        return None if self._deadline is None else self.check

    def _look(self) -> None:
        if self.steps >= self._limit:
            raise ExhaustedError(f"{self._limit} steps were not enough")
        self.check()
        if self._deadline is not None:
            self._look_at = min(self.steps + _LOOK_EVERY, self._limit)
