"""Errors of evaluation, raised by the runtime and turned into outcomes by programs.

A :class:`Fault` is an error in the sense of CEL: ``&&``, ``||`` and the quantifiers may absorb it. An :class:`Abort`
ends the evaluation whatever surrounds it.
"""

from __future__ import annotations

from drachma import errors

OVERLOAD = "no such overload"
INTERRUPTED = "operation interrupted"


class Fault(errors.CelError):
    """An error value of CEL. Functions raise it; the stepwise machine also carries it around as a value."""


class Abort(errors.CelError):
    """The evaluation cannot go on: the cost limit, an interruption, or a failure of the engine itself."""


def no_such_overload() -> Fault:
    """Return the arguments have types that the operation is not defined for."""
    return Fault(OVERLOAD)


def internal(detail: str) -> Abort:
    """Upstream recovers from a panic here; the evaluation ends with its text."""
    return Abort(f"internal error: {detail}")


def cost_limit() -> Abort:
    """Return the evaluation has used up its budget."""
    return Abort("operation cancelled: actual cost limit exceeded")
