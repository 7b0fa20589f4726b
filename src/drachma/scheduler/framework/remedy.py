"""Remedies: actions that may help a pod that fits nowhere. PostFilter plugins propose them, and each applies itself.

Proposing a remedy changes nothing, so a dry run or an explanation can ask for remedies too. The scheduler applies them
in the background without knowing what they do.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from drachma.api import pod
from drachma.scheduler.framework import handle


class Remedy(Protocol):
    """Action that may help a pod."""

    @property
    def title(self) -> str:
        """Name of the action in logs, and of the remedy while it is under way."""
        ...

    @property
    def victims(self) -> Sequence[pod.Pod]:
        """Pods that the remedy evicts."""
        ...

    async def apply(self, handle: handle.Handle) -> bool:
        """Carry the remedy out. Return False if the pods that it is for should be tried again at once.

        Raises AbortError, CollisionError or DrachmaError, which the scheduler logs.
        """
        ...
