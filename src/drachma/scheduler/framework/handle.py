"""Handle that plugins write with: their binding work and their remedies get it from the scheduler."""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import Any, NamedTuple, Protocol

from drachma.api import pod, resourceclaim
from drachma.client import protocol
from drachma.runtime import clock, events


class CollisionError(Exception):
    """Another scheduler was faster; the message says with what."""


class HeldError(CollisionError):
    """Another scheduler holds this very pod, or the pod is bound or gone."""


class AllocationOrder(Protocol):
    """Order of allocations, which decides if several schedulers allocate the same devices."""

    async def check_claims(self, claims: Iterable[resourceclaim.ResourceClaim]) -> None:
        """Return once no other scheduler can own the devices of these claims. Raises CollisionError if one does."""
        ...


class Peers(Protocol):
    """Other schedulers that write at the same time."""

    async def hold_back(self, waiting_pod: pod.Pod) -> Any:
        """Return a hold on a pod that gets no node for now. Raises CollisionError if another scheduler holds it."""
        ...

    def let_go(self, hold: Any) -> None:
        """Release a hold, so that other schedulers may take the pod."""
        ...


class Measures(Protocol):
    """Metrics of the work of plugins."""

    def claim_created(self, status: str) -> None: ...

    def binding_conditions(self, drivers: Iterable[str], seconds: float, *, profile: str, status: str) -> None: ...

    def preempted(self, preemptor: str, victims: int) -> None: ...

    def allocated_twice(self, action: str) -> None: ...


class Handle(NamedTuple):
    """Client, clock and everything else that a plugin needs to write."""

    scheduler: str
    """Name of the scheduler; a scheduler with several profiles has the name of the pod's."""
    client: protocol.Client
    clock: clock.Clock
    rng: random.Random
    recorder: events.Recorder
    measures: Measures
    peers: Peers | None = None
    order: AllocationOrder | None = None
    """Check of allocations after they are written; None if no other scheduler allocates."""
