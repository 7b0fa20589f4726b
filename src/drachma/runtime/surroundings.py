"""What a component gets from the process that it runs in: the API server, what is known of it, time, chance, metrics.

Controllers and schedulers are made with it. Who composes a process makes one and runs its informers and recorders;
tests make one on a clock and a chance of their own.
"""

import random
from collections.abc import Callable
from typing import Final, NamedTuple, Protocol, TypeAlias

import prometheus_client

from drachma.api import gates as features
from drachma.client import protocol
from drachma.runtime import clock, events, informers, queuemetrics


class Mint(Protocol):
    """Makes a token of a service account for a secret to hold."""

    def __call__(self, namespace: str, name: str, *, uid: str, secret: str) -> str: ...


class KeyPair(NamedTuple):
    """An authority that signs certificates: its own certificate and its key, as PEM."""

    certificate: bytes
    key: bytes

    def __repr__(self) -> str:
        return "KeyPair(...)"


class Credentials(NamedTuple):
    """What a process has to give: the API server's authority as PEM, tokens, certificates; empty where it has not."""

    authority: str = ""
    mint: Mint | None = None
    signing: KeyPair | None = None


Clients: TypeAlias = Callable[[str], protocol.Client]
"""The client of a component, by the name of the user that it is."""


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
        clients: Clients | None = None,
        queues: queuemetrics.Metrics | None = None,
    ) -> None:
        """``shared`` are the informers, and ``queues`` the metrics, where components beside these have them already."""
        self.client: Final = client
        self.clock: Final = time or clock.SystemClock()
        self.chance: Final = chance or random.Random()
        self.informers: Final = shared or informers.Informers(client, time=self.clock, chance=self.chance)
        self.registry: Final = registry or prometheus_client.CollectorRegistry()
        self.gates: Final = gates
        self.credentials: Final = credentials or Credentials()
        self._clients: Final = clients
        self._queues = queues
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
            clients=self._clients,
        )

    def acting_as(self, user: str) -> "Surroundings":
        """The same for a component that is somebody, where components are; its events are recorded apart."""
        if self._clients is None:
            return self
        return Surroundings(
            self._clients(user),
            shared=self.informers,
            time=self.clock,
            chance=self.chance,
            registry=self.registry,
            gates=self.gates,
            credentials=self.credentials,
            queues=self.queues,
        )

    @property
    def queues(self) -> queuemetrics.Metrics:
        """The metrics of work queues."""
        if self._queues is None:
            self._queues = queuemetrics.Metrics(self.registry)
        return self._queues

    def recorder(self, component: str) -> events.Recorder:
        """The recorder of a component; whoever runs the components runs it."""
        if component not in self.recorders:
            self.recorders[component] = events.Recorder(
                self.client, component=component, time=self.clock, chance=self.chance
            )
        return self.recorders[component]
