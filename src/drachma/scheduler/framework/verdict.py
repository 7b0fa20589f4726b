"""Verdicts: the answer of a plugin about a node, or about a pod on any node. "Does not fit" is data, not an exception.

A :class:`Rejection` serves the pod's condition, preemption (which helps only if the rejection is resolvable) and the
queue, which wakes the pod by the hints of the plugins that rejected it. :class:`AbortError` is for errors such as an
expression that fails. The pod is tried again after a pause.
"""

from __future__ import annotations

from typing import NamedTuple


class Rejection(NamedTuple):
    """Reasons why a node, or a pod as a whole, is rejected."""

    plugin: str
    reasons: tuple[str, ...]
    is_resolvable: bool = False
    """True if evictions could end the rejection."""


class AbortError(Exception):
    """Scheduling failed with an error that is not about fit. The message is what users see."""
