"""Bindings: placed pods on their way to a node, and what is to be done for them; and why one does not get there.

Made by the scheduler for every placed pod, filled in by the binder, which knows from it what to take back.
"""

from __future__ import annotations

from typing import Final

from drachma.scheduler import decision, peers
from drachma.scheduler.framework import bindingwork, collision


class BindingError(Exception):
    """A pod could not be bound; the text is what people see."""


class CollidedError(BindingError):
    """Another scheduler announced first what was decided; nothing was written, and nobody needs to know."""

    def __init__(self, problem: collision.CollisionError) -> None:
        super().__init__(str(problem))
        self.is_held: Final = isinstance(problem, collision.HeldError)
        """Whether the other one has the very pod."""


class Binding:
    """A placed pod on its way."""

    __slots__ = ("hold", "is_bound", "is_told", "placed", "pod", "work")

    def __init__(self, placed: decision.Placed) -> None:
        self.placed = placed
        self.pod = placed.info.pod
        self.work: list[tuple[str, bindingwork.BindingWork]] = []
        """What plugins, by name, do before it is bound."""
        self.is_bound = False
        self.is_told = False
        """Whether the event that it was scheduled is written already."""
        self.hold: peers.Hold | None = None
        """Where other schedulers work: that the pod is in hand."""
