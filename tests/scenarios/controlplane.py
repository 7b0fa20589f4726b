"""The embedded control plane in a test: server, controllers and schedulers in one process, on a clock that tests move.

Every scheduler has informers of its own, as if it were a process: killing it loses all that it knew.
"""

import asyncio
import contextlib
import functools
import random
from collections.abc import AsyncIterator, Callable
from typing import Any, TypeVar

from drachma import errors
from drachma.api import event, manifest, meta, pod, resourceclaim
from drachma.client import Client, Selection, patches, target
from drachma.process import embedded
from drachma.scheduler import Settings
from drachma.store import memory
from drachma.testing import manualclock

ObjectT = TypeVar("ObjectT", bound=meta.Object)

Claim = resourceclaim.ResourceClaim
Document = dict[str, Any]


class ControlPlane:
    """A cluster, what a test does to it, and what it sees of it."""

    def __init__(self, client: Client, components: Client, *, clock: manualclock.ManualClock, seed: int) -> None:
        self.client = client
        self.clock = clock
        self._components = components
        self._chance = random.Random(seed)
        self._running: dict[str, asyncio.Task[None]] = {}

    # Components

    async def start_scheduler(self, label: str = "scheduler", **settings: Any) -> None:
        """Runs one more scheduler, and lets it look around."""
        self.launch_scheduler(label, **settings)
        await self.settle()

    async def start_controllers(self) -> None:
        self.launch_controllers()
        await self.settle()

    def launch_scheduler(self, label: str, **settings: Any) -> None:
        """Runs one more scheduler from now on."""
        self._launch(label, functools.partial(embedded.scheduler, settings=Settings(**settings)))

    def launch_controllers(self) -> None:
        self._launch("controllers", embedded.controllers)

    def _launch(self, label: str, part: embedded.Part) -> None:
        given = embedded.Surroundings(clock=self.clock, chance=random.Random(self._chance.getrandbits(32)))
        self._running[label] = asyncio.create_task(embedded.run(self._components, given, parts=(part,)), name=label)

    async def kill(self, label: str = "scheduler") -> None:
        """Ends a component wherever it is; what it was about to write may or may not have been written."""
        task = self._running.pop(label)
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task

    @property
    def running(self) -> list[str]:
        return list(self._running)

    # Time

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
        wanted = made.build() if hasattr(made, "build") else made
        created = await self.client.create(wanted)
        status = getattr(wanted, "status", None)
        if status is not None and status != type(status)():
            return await self.patch_status(created, status)
        return created

    async def apply(self, *manifests: str) -> None:
        """Creates what manifests say, in the namespace "default" where they name none, with its status."""
        resources = {each.kind: each for each in await self.client.resources()}
        for document in [each.content for text in manifests for each in manifest.read(text)]:
            kind = resources[document["kind"]]
            place = "default" if kind.namespaced else ""
            metadata = {"namespace": place, **document["metadata"]} if place else document["metadata"]
            made = await self.client.create_document(kind, {**document, "metadata": metadata})
            if "status" in document:
                patch = patches.merge({"status": document["status"]})
                name = made["metadata"]["name"]
                await self.client.patch(kind, name, patch=patch, namespace=place, subresource="status")
        await self.settle()

    async def patch_status(self, known: ObjectT, content: Any) -> ObjectT:
        return await self.client.patch(
            type(known),
            known.metadata.name,
            patch=patches.merge({"status": content}),
            namespace=known.metadata.namespace,
            subresource="status",
        )

    async def delete(self, kind: target.Of[Any], name: str, *, namespace: str = "") -> None:
        """Deletes an object at once, and lets everything come to rest."""
        place = namespace or ("default" if target.of(kind).namespaced else "")
        await self.client.delete(kind, name, namespace=place, grace_period_seconds=0)
        await self.settle()

    # What a test sees

    async def all_of(self, kind: target.Of[ObjectT]) -> tuple[ObjectT, ...]:
        return (await self.client.list(kind)).items

    async def pod(self, name: str) -> pod.Pod:
        return await self.client.get(pod.Pod, name, namespace="default")

    async def claim(self, name: str) -> Claim:
        return await self.client.get(Claim, name, namespace="default")

    async def find(self, kind: target.Of[ObjectT], name: str) -> ObjectT | None:
        place = "default" if target.of(kind).namespaced else ""
        try:
            return await self.client.get(kind, name, namespace=place)
        except errors.ObjectNotFoundError:
            return None

    async def node_of(self, name: str) -> str:
        """The node that a pod is bound to, or an empty text."""
        return str((await self.pod(name)).spec.node_name)

    async def devices(self, name: str) -> list[str]:
        """The devices of a claim as pool/device."""
        allocation = (await self.claim(name)).status.allocation
        return [] if allocation is None else [f"{each.pool}/{each.device}" for each in allocation.devices.results]

    async def users(self, name: str) -> list[str]:
        """The pods that a claim is reserved for, by name."""
        return sorted(each.name for each in (await self.claim(name)).status.reserved_for)

    async def claims_of(self, name: str) -> list[Claim]:
        """The claims that were made for a pod."""
        statuses = (await self.pod(name)).status.resource_claim_statuses
        return [await self.claim(each.resource_claim_name) for each in statuses if each.resource_claim_name]

    async def why(self, name: str) -> str:
        """What a pod's PodScheduled condition says; empty for a pod that is scheduled or was not tried."""
        for condition in (await self.pod(name)).status.conditions:
            if condition.type == "PodScheduled" and condition.status != "True":
                return condition.message
        return ""

    async def events(self, reason: str) -> list[str]:
        found = (await self.client.list(event.Event, Selection())).items
        return sorted(each.message for each in found if each.reason == reason)


@contextlib.asynccontextmanager
async def control_plane(
    *,
    schedulers: int = 1,
    seed: int = 1,
    wrap: Callable[[Client], Client] = lambda client: client,
    **settings: Any,
) -> AsyncIterator[ControlPlane]:
    """A control plane with all controllers and so many schedulers; ``wrap`` stands between components and server."""
    clock = manualclock.ManualClock()
    given = embedded.Surroundings(clock=clock, chance=random.Random(seed))
    async with embedded.server(memory.MemoryStore(), given) as server:
        plane = ControlPlane(server.client, wrap(server.client), clock=clock, seed=seed)
        try:
            await plane.start_controllers()
            for number in range(schedulers):
                label = f"scheduler-{number}" if schedulers > 1 else "scheduler"
                await plane.start_scheduler(label, has_peers=schedulers > 1, **settings)
            yield plane
        finally:
            for label in plane.running:
                await plane.kill(label)
