"""The embedded control plane in a test: server, controllers and schedulers in one process, on a clock that tests move.

Every scheduler has informers of its own, as if it were a process: killing it loses all that it knew.
"""

import asyncio
import contextlib
import datetime as dt
import functools
import pathlib
import random
from collections.abc import AsyncIterator, Callable
from typing import Any, Protocol, TypeVar

import prometheus_client

from drachma.api import event, resourceclaim
from drachma.api import gates as features
from drachma.client import Client, target
from drachma.process import components, embedded
from drachma.runtime import Surroundings
from drachma.scheduler import Settings
from drachma.server.wire import app
from drachma.store import memory, protocol
from drachma.testing import manualclock
from tests import clusterview
from tests.scenarios import lifeline

Claim = resourceclaim.ResourceClaim
Document = dict[str, Any]


class ControlPlane(clusterview.ClusterView):
    """A cluster on which components are started and killed."""

    def __init__(
        self,
        client: Client,
        components: Client,
        *,
        clock: manualclock.ManualClock,
        seed: int,
        gates: features.Gates = features.ALL,
    ) -> None:
        super().__init__(client)
        self._gates = gates
        self.clock = clock
        self._components = components
        self._chance = random.Random(seed)
        self._running: dict[str, asyncio.Task[None]] = {}
        self._lines: dict[str, lifeline.Lifeline] = {}
        self._registries: dict[str, prometheus_client.CollectorRegistry] = {}

    # Components

    async def start_scheduler(self, label: str = "scheduler", **settings: Any) -> None:
        """Runs one more scheduler, and lets it look around."""
        self.launch_scheduler(label, **settings)
        await self.settle()

    async def start_controllers(self) -> None:
        self.launch_controllers()
        await self.settle()

    def launch_scheduler(self, label: str, *, record: pathlib.Path | None = None, **settings: Any) -> None:
        """Runs one more scheduler from now on, which may record its decisions."""
        chosen = Settings(**{"gates": self._gates, **settings})
        recording_to = None if record is None else components.RecordingTo(record)
        self.launch(label, functools.partial(components.scheduler, settings=chosen, recording_to=recording_to))

    def launch_controllers(self) -> None:
        self.launch("controllers", components.controllers)

    def launch(self, label: str, component: components.Component) -> None:
        self.launch_on(label, component, self._components)

    def launch_on(self, label: str, component: components.Component, client: Client) -> None:
        """Like launch(), with a client of the component's own."""
        chance = random.Random(self._chance.getrandbits(32))
        line = self._lines[label] = lifeline.Lifeline(client)
        surroundings = Surroundings(line.client, clock=self.clock, rng=chance, gates=self._gates)
        self._registries[label] = surroundings.registry
        self._running[label] = asyncio.create_task(embedded.run(surroundings, parts=(component,)), name=label)

    async def kill(self, label: str = "scheduler") -> None:
        """Ends a component wherever it is; what it was about to write may or may not have been written."""
        self._lines[label].cut()
        await self.stop(label)

    async def stop(self, label: str = "scheduler") -> None:
        """Asks a component to end, and waits until it has."""
        del self._lines[label]
        task = self._running.pop(label)
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task

    @property
    def running(self) -> list[str]:
        return list(self._running)

    # Time

    def now(self) -> dt.datetime:
        """Return the time on the clock of the control plane."""
        return self.clock.utc()

    async def settle(self) -> None:
        """Lets everything come to rest, without letting time pass."""
        await manualclock.settle()
        for task in self._running.values():
            if task.done():
                await task

    async def advance(self, seconds: float) -> None:
        """Lets time pass, and everything happen that happens meanwhile."""
        await self.clock.advance(seconds)
        await self.settle()

    # What a test does

    async def create(self, *made: Any) -> None:
        """Creates objects, from builders or built, one after the other; then lets everything come to rest."""
        for each in made:
            await self.put(each)
        await self.settle()

    async def put(self, made: Any) -> Any:
        """Creates an object, with its status where that is written apart, and goes on at once."""
        return await self.create_with_status(made.build() if hasattr(made, "build") else made)

    async def apply(self, *manifests: str) -> None:
        """Creates what manifests say, and lets everything come to rest."""
        await super().apply(*manifests)
        await self.settle()

    async def delete(self, kind: target.Of[Any], name: str, *, namespace: str = "") -> None:
        """Deletes an object at once, and lets everything come to rest."""
        place = namespace or ("default" if target.of(kind).namespaced else "")
        await self.client.delete(kind, name, namespace=place, grace_period_seconds=0)
        await self.settle()

    # What a test sees

    def metric(self, name: str, /, component: str = "controllers", **labels: str) -> float | None:
        """Return the value of a component's metric, or None if it has none with these labels."""
        return self._registries[component].get_sample_value(name, labels)

    async def events(self, reason: str) -> list[str]:
        """The messages of all events of a reason."""
        return sorted(each.message for each in await self.all_of(event.Event) if each.reason == reason)


PlaneT = TypeVar("PlaneT", bound=ControlPlane, covariant=True)


class MakePlane(Protocol[PlaneT]):
    """Makes the control plane of a test."""

    def __call__(
        self, client: Client, components: Client, *, clock: manualclock.ManualClock, seed: int, gates: features.Gates
    ) -> PlaneT: ...


@contextlib.asynccontextmanager
async def plane_of(
    make: MakePlane[PlaneT],
    *,
    schedulers: int = 1,
    seed: int = 1,
    wrap: Callable[[Client], Client] = lambda client: client,
    clock: manualclock.ManualClock | None = None,
    additions: app.Additions | None = None,
    gates: features.Gates = features.ALL,
    store: protocol.Store | None = None,
    **settings: Any,
) -> AsyncIterator[PlaneT]:
    """Run a control plane with all controllers and so many schedulers; ``wrap`` stands between components and server.

    With the ``store`` of an earlier control plane it starts with that one's objects, like a server that restarts.
    """
    clock = clock or manualclock.ManualClock()
    store = store or memory.MemoryStore()
    async with embedded.server(store, time=clock, rng=random.Random(seed), gates=gates, additions=additions) as server:
        plane = make(server.client, wrap(server.client), clock=clock, seed=seed, gates=gates)
        try:
            await plane.start_controllers()
            for number in range(schedulers):
                label = f"scheduler-{number}" if schedulers > 1 else "scheduler"
                await plane.start_scheduler(label, has_peers=schedulers > 1, **settings)
            yield plane
        finally:
            for label in plane.running:
                await plane.kill(label)


def control_plane(**options: Any) -> contextlib.AbstractAsyncContextManager[ControlPlane]:
    """Like plane_of(), for tests that need nothing but the control plane."""
    return plane_of(ControlPlane, **options)
