"""Settings of a scheduler, with upstream's defaults."""

from __future__ import annotations

from typing import Final

import msgspec

from drachma import allocator
from drachma.api import gates as features
from drachma.scheduler import queue

DEFAULT_NAME: Final = "default-scheduler"
"""Who schedules pods that do not say."""


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """What can be set."""

    name: str = DEFAULT_NAME
    """The ``schedulerName`` of the pods that are scheduled."""
    gates: features.Gates = features.ALL
    filter_seconds: float = 10.0
    """How long allocating on one node may take."""
    binding_seconds: float = 600.0
    """How long devices may take to become ready."""
    binders: int = 64
    """Pods that are written at the same time: enough to keep a server busy, few enough for the first not to wait."""
    pauses: queue.Pauses = queue.Pauses()
    has_volume_controllers: bool = True
    """Whether somebody binds volumes to claims; where nobody does, pods do not wait for it."""
    policy: allocator.Preference = allocator.Policy.FIRST_FIT
    """Which devices, and which nodes for the sake of devices, are preferred."""
    gang_steps: int = 1000
    """How many pods may be placed in thought in looking for nodes for a gang, after a first turn."""
    has_peers: bool = False
    """Whether other schedulers work at the same time: then each announces what it does, and checks what others do."""

    @property
    def has_gangs(self) -> bool:
        """Whether pods of a gang get their nodes together or not at all."""
        return self.gates.on(features.Gate.GENERIC_WORKLOAD)
