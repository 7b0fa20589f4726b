"""Verdicts: what a plugin says about a node, or about a pod on any node. "Does not fit" is data, not an exception.

A :class:`Rejection` is kept for the pod's condition, for preemption (which only helps where a rejection is resolvable)
and for the queue, which wakes the pod by the hints of the plugins that rejected it. :class:`AbortError` is for what
makes scheduling the pod pointless at the moment, such as an expression that fails; the pod is tried again after a
pause.
"""

from __future__ import annotations

from typing import NamedTuple


class Rejection(NamedTuple):
    """Why a node, or a pod as a whole, is out of the question."""

    plugin: str
    reasons: tuple[str, ...]
    is_resolvable: bool = False
    """Whether evicting pods could change it."""


class AbortError(Exception):
    """Scheduling the pod failed for a reason that is not about fit; the text is what people see."""
