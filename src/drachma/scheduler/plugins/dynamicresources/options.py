"""What DynamicResources goes by beside the cluster; passed in, so that tests can hold it fast."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import datetime
from typing import NamedTuple

from drachma import allocator
from drachma.allocator import budget
from drachma.api import gates


class Patience(NamedTuple):
    """How long one node may take; no time at all stands for as long as it takes."""

    seconds: float | None
    clock: Callable[[], float]

    def limits(self) -> budget.Limits:
        """The same for the allocator, from now on."""
        if self.seconds is None:
            return budget.Limits(steps=2**62)
        return budget.Limits(deadline=self.clock() + self.seconds, clock=self.clock)


class Options(NamedTuple):
    """Gates, times and chance."""

    enabled: gates.Gates
    patience: Patience
    binding_seconds: float
    """How long devices may take to become ready."""
    now: Callable[[], datetime]
    new_uid: Callable[[], str]
    chance: random.Random
    policy: allocator.Preference = allocator.Policy.FIRST_FIT
    """In which order devices are tried."""

    @property
    def has_binding_conditions(self) -> bool:
        """Whether binding conditions are looked at."""
        return self.enabled.binding_conditions

    @property
    def has_node_allocatable(self) -> bool:
        """Whether devices can mean something for a node's own resources."""
        return self.enabled.on(gates.Gate.NODE_ALLOCATABLE_RESOURCES)
