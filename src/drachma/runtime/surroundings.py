"""What a component gets from the process that it runs in: the API server, what is known of it, time, chance, metrics.

Controllers and schedulers are made with it. Who composes a process makes one and runs its informers and recorders;
tests make one on a clock and a chance of their own.
"""

import functools
import random
from typing import Final, NamedTuple, Protocol

import prometheus_client

from drachma.api import gates as features
from drachma.client import protocol
from drachma.runtime import clock, events, informers, queuemetrics


class Mint(Protocol):
    """Makes a token of a service account for a secret to hold."""

    def __call__(self, namespace: str, name: str, *, uid: str, secret: str) -> str: ...


class Credentials(NamedTuple):
    """What a process has to give to pods: the API server's authority as PEM, and tokens; empty where it has not."""

    authority: str = ""
    mint: Mint | None = None


class Surroundings:
    """Shared by all components of a process; ``registry`` is where they count."""

    def __init__(
        self,
        client: protocol.Client,
        *,
        shared: informers.Informers | None = None,
        time: clock.Clock | None = None,
        chance: random.Random | None = None,
        registry: prometheus_client.CollectorRegistry | None = None,
        gates: features.Gates = features.ALL,
        credentials: Credentials | None = None,
    ) -> None:
        """``shared`` are the informers, where components beside these have them already."""
        self.client: Final = client
        self.clock: Final = time or clock.SystemClock()
        self.chance: Final = chance or random.Random()
        self.informers: Final = shared or informers.Informers(client, time=self.clock, chance=self.chance)
        self.registry: Final = registry or prometheus_client.CollectorRegistry()
        self.gates: Final = gates
        self.credentials: Final = credentials or Credentials()
        self.recorders: Final[dict[str, events.Recorder]] = {}

    def with_registry(self, registry: prometheus_client.CollectorRegistry) -> "Surroundings":
        """The same for a component that counts elsewhere and records events of its own."""
        return Surroundings(
            self.client,
            shared=self.informers,
            time=self.clock,
            chance=self.chance,
            registry=registry,
            gates=self.gates,
            credentials=self.credentials,
        )

    @functools.cached_property
    def queues(self) -> queuemetrics.Metrics:
        """The metrics of work queues."""
        return queuemetrics.Metrics(self.registry)

    def recorder(self, component: str) -> events.Recorder:
        """The recorder of a component; whoever runs the components runs it."""
        if component not in self.recorders:
            self.recorders[component] = events.Recorder(
                self.client, component=component, time=self.clock, chance=self.chance
            )
        return self.recorders[component]
