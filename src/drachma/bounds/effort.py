"""Effort: an allowance for work on an event loop, so that long work is noticed while it is done.

The event loop grants an :class:`Allowance` before it decides something, for example whether a claim is valid. Code that
can take long says so with :func:`spend`: compiling an expression, matching a long text, searching for devices. Once the
allowance is used up, ``spend`` raises :class:`OverrunError`, and the caller runs the same decision again in a thread,
with a larger allowance. Decisions change nothing before they end, so running one twice is safe.

A unit of effort is about one microsecond of work. Without an allowance ``spend`` does nothing.
"""

from __future__ import annotations

import threading
from typing import Final

LOOP_UNITS: Final = 10_000
"""Effort that one decision may take on an event loop."""

THREAD_UNITS: Final = 10_000_000
"""Effort that one request may take in a thread, so that those behind it have their turn."""

NO_LIMIT: Final = 2**62


class OverrunError(BaseException):
    """A decision takes longer than its allowance.

    Not an ``Exception``: code that turns failures of expressions into results must not take it for one of them.
    """


class Allowance:
    """Effort that is left to a decision."""

    __slots__ = ("left",)

    def __init__(self, units: int) -> None:
        self.left = units

    def cancel(self) -> None:
        """End the decision at its next step, from whatever thread."""
        self.left = -1


class _Here(threading.local):
    allowance: Allowance | None = None


_here: Final = _Here()


def spend(units: int) -> None:
    """Take effort from the allowance of this thread. Raises OverrunError once the allowance is used up."""
    allowance = _here.allowance
    if allowance is not None:
        allowance.left -= units
        if allowance.left < 0:
            raise OverrunError


class limit:  # noqa: N801 - used like a function, and entered thousands of times a second
    """Limit the effort of ``with`` blocks, on this thread; several blocks one after the other share the allowance.

    An inner allowance replaces an outer one until it ends.
    """

    __slots__ = ("_allowance", "_outer")

    def __init__(self, allowance: Allowance) -> None:
        self._allowance = allowance
        self._outer: Allowance | None = None

    def __enter__(self) -> None:
        self._outer = _here.allowance
        _here.allowance = self._allowance

    def __exit__(self, *_: object) -> None:
        _here.allowance = self._outer
