"""A cluster for tests of the scheduler: server, claim controller, garbage collector and schedulers in one process."""

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator, Callable
from typing import Any

import prometheus_client
from msgspec import structs

from drachma.api import pod, struct
from drachma.client import Client, target
from drachma.controllers import garbagecollector
from drachma.controllers import resourceclaim as claimcontroller
from drachma.runtime import Informers, Surroundings
from drachma.scheduler import Settings
from drachma.scheduler.framework.profile import Profile
from drachma.scheduler.scheduler import Scheduler
from tests import clusterview
from tests.scenarios import lifeline
from tests.unit.controllers import worlds


class SchedulerWorld(clusterview.ClusterView):
    """The cluster, and the schedulers that run in it."""

    def __init__(self, world: worlds.World) -> None:
        super().__init__(world.client)
        self.world = world
        self.clock = world.clock
        self.registries: dict[str, prometheus_client.CollectorRegistry] = {}
        self._running: dict[str, tuple[Scheduler, asyncio.Task[None]]] = {}
        self._lines: dict[str, lifeline.Lifeline] = {}

    async def start(
        self,
        label: str = "first",
        *,
        seed: int = 3,
        client: Client | None = None,
        informers: Informers | None = None,
        plugins: Profile | None = None,
        **settings: Any,
    ) -> Scheduler:
        """Runs one more scheduler, on a client of its own if there is one, with other plugins if there are any."""
        registry = prometheus_client.CollectorRegistry()
        self.registries[label] = registry
        line = self._lines[label] = lifeline.Lifeline(client or self.world.surroundings.client)
        surroundings = Surroundings(
            line.client,
            shared_informers=informers or self.world.surroundings.informers,
            clock=self.clock,
            rng=random.Random(seed),
            registry=registry,
        )
        scheduler = Scheduler(surroundings, settings=Settings(**settings), profile=plugins)
        self._running[label] = (scheduler, asyncio.create_task(scheduler.run()))
        await self.settle()
        return scheduler

    async def kill(self, label: str = "first") -> None:
        """Ends a scheduler wherever it is, as a power cut would."""
        self._lines[label].cut()
        await self.stop(label)

    async def stop(self, label: str = "first") -> None:
        """Asks a scheduler to end, and waits until it has."""
        del self._lines[label]
        _, task = self._running.pop(label)
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task

    async def settle(self) -> None:
        """Lets everything come to rest, without letting time pass."""
        await self.world.settle()
        for _, task in self._running.values():
            if task.done():
                await task

    async def advance(self, seconds: float) -> None:
        """Lets time pass, and everything happen that happens meanwhile."""
        await self.world.advance(seconds)

    async def create(self, *made: Any) -> None:
        """Creates objects one after the other, and lets everything come to rest."""
        for each in made:
            await self.put(each)
        await self.settle()

    async def put(self, made: Any) -> None:
        """Creates one object, and lets nothing come to rest."""
        built = made.build() if hasattr(made, "build") else made
        await self.world.create(completed(built) if isinstance(built, pod.Pod) else built)

    async def priorities(self, *values: int, preemption_policy: str = "PreemptLowerPriority") -> None:
        """Makes priority classes that are named after their values, such as ``priority-7``."""
        kind = target.metadata_of(
            "scheduling.k8s.io", "v1", plural="priorityclasses", kind="PriorityClass", namespaced=False
        )
        for value in values:
            await self.client.create_document(
                kind,
                {
                    "apiVersion": "scheduling.k8s.io/v1",
                    "kind": "PriorityClass",
                    "metadata": {"name": f"priority-{value}"},
                    "value": value,
                    "preemptionPolicy": preemption_policy,
                },
            )

    async def events(self, reason: str) -> list[str]:
        return [text for text in await self.world.events() if f" {reason}: " in text]

    def metric(self, name: str, /, **labels: str) -> float | None:
        """What the first scheduler counted."""
        return self.registries["first"].get_sample_value(name, labels)


def completed(made: pod.Pod) -> pod.Pod:
    """With what a server insists on and tests do not care for: images, and limits for extended resources."""
    spec = made.spec
    return structs.replace(
        made,
        spec=structs.replace(
            spec,
            containers=tuple(map(_completed, spec.containers)) or (pod.Container(name="c", image="pause"),),
            init_containers=tuple(map(_completed, spec.init_containers)) or struct.ABSENT_TUPLE,
        ),
    )


def _completed(container: pod.Container) -> pod.Container:
    resources = container.resources
    extended = {name: amount for name, amount in resources.requests.items() if "/" in name}
    if extended:
        resources = structs.replace(resources, limits={**resources.limits, **extended})
    return structs.replace(container, image=container.image or "pause", resources=resources)


@contextlib.asynccontextmanager
async def cluster(
    *, wrap: Callable[[Client], Client] = lambda client: client, scheduler: bool = True, **settings: Any
) -> AsyncIterator[SchedulerWorld]:
    """A cluster with one scheduler; ``wrap`` puts something between all components and the server."""
    async with worlds.world(
        claimcontroller.ResourceClaimController, garbagecollector.GarbageCollector, wrap=wrap
    ) as world:
        made = SchedulerWorld(world)
        try:
            if scheduler:
                await made.start(**settings)
            yield made
        finally:
            for label in list(made._running):
                await made.kill(label)
