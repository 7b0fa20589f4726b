"""Options of DynamicResources, passed in so that tests can fix time and chance."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import datetime
from typing import NamedTuple

from drachma import allocator
from drachma.allocator import budget
from drachma.api import gates


class Patience(NamedTuple):
    """Time limit for one node; None for no limit."""

    seconds: float | None
    clock: Callable[[], float]

    def limits(self) -> budget.Limits:
        """Return the limits for the allocator, starting now."""
        if self.seconds is None:
            return budget.Limits(steps=2**62)
        return budget.Limits(deadline=self.clock() + self.seconds, clock=self.clock)


class Options(NamedTuple):
    """Gates, times and randomness."""

    enabled: gates.Gates
    patience: Patience
    binding_seconds: float
    """Time limit for devices to become ready."""
    now: Callable[[], datetime]
    new_uid: Callable[[], str]
    chance: random.Random
    policy: allocator.Preference = allocator.Policy.FIRST_FIT
    """Order in which devices are tried."""

    @property
    def has_binding_conditions(self) -> bool:
        """True if binding conditions are respected."""
        return self.enabled.binding_conditions

    @property
    def has_node_allocatable(self) -> bool:
        """True if devices can be mapped to a node's own resources."""
        return self.enabled.on(gates.Gate.NODE_ALLOCATABLE_RESOURCES)
