"""A cluster without an API: a snapshot, the default profile, and decisions."""

from __future__ import annotations

import datetime as dt
import random
from typing import Any

from drachma.api import gates, resourceclaim
from drachma.scheduler import cycle, profiles, settings
from drachma.scheduler.cycle.decision import Decision
from drachma.scheduler.snapshot import Snapshot, podinfo
from drachma.testing import device_class

DRIVER = "gpu.example.com"


class _Clock:
    """Clock that advances by a step with every reading."""

    def __init__(self) -> None:
        self.now = 0.0
        self.step = 0.0

    def monotonic(self) -> float:
        self.now += self.step
        return self.now

    def utc(self) -> dt.datetime:
        return dt.datetime(2026, 1, 1, tzinfo=dt.UTC)

    async def sleep(self, seconds: float) -> None:
        raise AssertionError("decisions do not wait")


class World:
    """Cluster in which pods can be decided."""

    def __init__(self, seed: int = 1, enabled: gates.Gates = gates.ALL) -> None:
        self.snapshot = Snapshot(enabled)
        self.clock = _Clock()
        chance = random.Random(seed)
        self.profile = profiles.default(settings.Settings(gates=enabled), clock=self.clock, rng=chance)
        self.cycle = cycle.Cycle(self.profile, rng=chance, monotonic=self.clock.monotonic)

    def decide(self, info: podinfo.PodInfo) -> Decision:
        return self.cycle.decide(info, self.snapshot)

    def put_node(self, made: Any) -> None:
        self.snapshot.add_node(made.build())

    def put_slice(self, made: Any) -> None:
        self.snapshot.devices.put_slice(made.build())

    def put_class(self, *expressions: str, name: str = "gpu") -> None:
        self.snapshot.devices.put_class(device_class(name, *expressions).build())

    def claim(self, made: Any) -> resourceclaim.ResourceClaim:
        built: resourceclaim.ResourceClaim = made.build()
        self.snapshot.claims.observe(built)
        return built
