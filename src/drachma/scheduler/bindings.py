"""Bindings: placed pods on their way to a node, with what was written for them; and why one does not get there.

Made by the scheduler for every placed pod, filled in by the binder, which knows from it what to take back.
"""

from __future__ import annotations

from typing import Any, Final

from drachma.api import resourceclaim
from drachma.scheduler import decision, peers
from drachma.scheduler.peering import collision
from drachma.scheduler.plugins.dynamicresources import claimassignment


class BindingError(Exception):
    """A pod could not be bound; the text is what people see."""


class CollidedError(BindingError):
    """Another scheduler announced first what was decided; nothing was written, and nobody needs to know."""

    def __init__(self, problem: collision.CollisionError) -> None:
        super().__init__(str(problem))
        self.is_held: Final = isinstance(problem, collision.HeldError)
        """Whether the other one has the very pod."""


class Binding:
    """A placed pod on its way, and what has been written for it."""

    __slots__ = (
        "claims", "created", "hold", "is_told", "is_void", "placed", "pod", "reserved", "status", "wrote_statuses",
    )  # fmt: skip

    def __init__(self, placed: decision.Placed) -> None:
        self.placed = placed
        self.pod = placed.info.pod
        self.claims = claimassignment.of(placed.cycle)
        self.reserved: list[resourceclaim.ResourceClaim] = []
        """Claims that have the pod among their consumers because of this attempt, as they were written."""
        self.created: resourceclaim.ResourceClaim | None = None
        """The claim that was made for extended resources."""
        self.status: dict[str, Any] = {}
        """What the pod's status says about its claims."""
        self.wrote_statuses = False
        self.is_told = False
        """Whether the event that it was scheduled is written already."""
        self.hold: peers.Hold | None = None
        """Where other schedulers work: that the pod is in hand."""
        self.is_void = False
        """Whether its allocations collide with those of another scheduler, and must not stay."""

    def all_claims(self) -> list[resourceclaim.ResourceClaim]:
        """The pod's claims, those that were written as they were written."""
        plan = self.claims.plan
        claims = {entry.claim.metadata.uid: entry.claim for entry in plan.claims} if plan is not None else {}
        return list((claims | {claim.metadata.uid: claim for claim in self.reserved}).values())
