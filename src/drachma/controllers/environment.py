"""What controllers get from the process they run in: the API server, what is known of it, time, chance and metrics."""

import random
from typing import Final

import prometheus_client

from drachma.api import gates as features
from drachma.client import Client
from drachma.runtime import Informers, clock, events, queuemetrics


class Environment:
    """Shared by all controllers of a process."""

    def __init__(
        self,
        client: Client,
        informers: Informers,
        *,
        time: clock.Clock | None = None,
        chance: random.Random | None = None,
        registry: prometheus_client.CollectorRegistry | None = None,
        gates: features.Gates = features.ALL,
    ) -> None:
        self.client: Final = client
        self.informers: Final = informers
        self.clock: Final = time or clock.SystemClock()
        self.chance: Final = chance or random.Random()
        self.registry: Final = registry or prometheus_client.CollectorRegistry()
        self.gates: Final = gates
        self.queues: Final = queuemetrics.Metrics(self.registry)
        self.recorders: Final[dict[str, events.Recorder]] = {}

    def recorder(self, component: str) -> events.Recorder:
        """The recorder of a component; whoever runs the controllers runs it."""
        found = self.recorders.get(component)
        if found is None:
            found = events.Recorder(self.client, component=component, time=self.clock, chance=self.chance)
            self.recorders[component] = found
        return found
