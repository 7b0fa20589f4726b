"""Resources that a component gets from its process: the API server, informers, clock, random numbers, metrics.

Controllers and schedulers are made with it. Code that composes a process makes one and runs its informers and
recorders; tests make one with their own clock and random numbers.
"""

import random
from collections.abc import Callable
from typing import Final, NamedTuple, Protocol, TypeAlias

import prometheus_client

from drachma.api import gates as features
from drachma.client import protocol
from drachma.runtime import events, informers, queuemetrics
from drachma.runtime.clock import Clock, SystemClock


class Mint(Protocol):
    """Function that makes a service account token for a secret."""

    def __call__(self, namespace: str, name: str, *, uid: str, secret: str) -> str: ...


class KeyPair(NamedTuple):
    """An authority that signs certificates: its certificate and its key, as PEM."""

    certificate: bytes
    key: bytes

    def __repr__(self) -> str:
        return "KeyPair(...)"


class Credentials(NamedTuple):
    """Credentials that a process can issue: the API server's authority as PEM, tokens, certificates. Empty if it
    cannot.
    """

    authority: str = ""
    mint: Mint | None = None
    signing: KeyPair | None = None


Clients: TypeAlias = Callable[[str], protocol.Client]
"""Function that returns the client of a component by the name of its user."""


class Surroundings:
    """Shared by all components of a process; ``registry`` has their metrics."""

    def __init__(
        self,
        client: protocol.Client,
        *,
        shared_informers: informers.Informers | None = None,
        clock: Clock | None = None,
        rng: random.Random | None = None,
        registry: prometheus_client.CollectorRegistry | None = None,
        gates: features.Gates = features.ALL,
        credentials: Credentials | None = None,
        clients: Clients | None = None,
        queues: queuemetrics.Metrics | None = None,
    ) -> None:
        """``shared_informers`` and ``queues``, the metrics of queues, are given if other components have them."""
        self.client: Final = client
        self.clock: Final = clock or SystemClock()
        self.rng: Final = rng or random.Random()
        self.informers: Final = shared_informers or informers.Informers(client, clock=self.clock, rng=self.rng)
        self.registry: Final = registry or prometheus_client.CollectorRegistry()
        self.gates: Final = gates
        self.credentials: Final = credentials or Credentials()
        self._clients: Final = clients
        self._queues = queues
        self.recorders: Final[dict[str, events.Recorder]] = {}

    def with_registry(self, registry: prometheus_client.CollectorRegistry) -> "Surroundings":
        """Return a copy for a component with metrics and events of its own."""
        return Surroundings(
            self.client,
            shared_informers=self.informers,
            clock=self.clock,
            rng=self.rng,
            registry=registry,
            gates=self.gates,
            credentials=self.credentials,
            clients=self._clients,
        )

    def acting_as(self, user: str) -> "Surroundings":
        """Return a copy for a component with a user of its own, if components have users. Its events are recorded
        separately.
        """
        if self._clients is None:
            return self
        return Surroundings(
            self._clients(user),
            shared_informers=self.informers,
            clock=self.clock,
            rng=self.rng,
            registry=self.registry,
            gates=self.gates,
            credentials=self.credentials,
            queues=self.queues,
        )

    @property
    def queues(self) -> queuemetrics.Metrics:
        """Metrics of work queues."""
        if self._queues is None:
            self._queues = queuemetrics.Metrics(self.registry)
        return self._queues

    def recorder(self, component: str) -> events.Recorder:
        """Return the recorder of a component. The code that runs the components runs it."""
        if component not in self.recorders:
            self.recorders[component] = events.Recorder(
                self.client, component=component, clock=self.clock, rng=self.rng
            )
        return self.recorders[component]
