"""A driver is updated again and again while pods start all the time: nobody notices."""

import asyncio
import contextlib
from collections.abc import Iterable, Mapping
from typing import Any

import prometheus_client

from drachma import driver, errors
from drachma.api import resourceslice
from drachma.client import Change, Selection
from drachma.driver.instance import NodeInstance
from drachma.node import agentmetrics
from drachma.node.drivers.instances import DriverInstances
from drachma.nodewire.rpc import services
from drachma.runtime import Surroundings, clock
from tests.scenarios import drivers

RESTARTS = 200
NAME = "gpu.example.com"


class Gpus(driver.Driver):
    name = NAME

    async def pools(self) -> Iterable[driver.Pool]:
        return [driver.pool(self.node, [driver.device(f"gpu-{number}") for number in range(4)])]

    async def prepare(self, claim: driver.Claim) -> Mapping[driver.AllocatedDevice, driver.Edits]:
        await asyncio.sleep(0)
        return {device: driver.edits(env={"GPU": device.name}) for device in claim.devices}

    async def unprepare(self, reference: driver.ClaimReference) -> None:
        pass


class _Watcher:
    """Sees every event of slices, and whether there was a moment without a complete pool."""

    def __init__(self) -> None:
        self.slices: dict[str, resourceslice.ResourceSlice] = {}
        self.gaps = 0

    async def follow(self, machine: drivers.Machine) -> None:
        listing = await machine.client.list(resourceslice.ResourceSlice)
        self.slices = {each.metadata.name: each for each in listing.items}
        async with machine.client.watch(
            resourceslice.ResourceSlice, Selection(), resource_version=listing.resource_version
        ) as watch:
            while events := await watch.batch():
                for event in events:
                    name = event.object.metadata.name
                    if event.change is Change.DELETED:
                        self.slices.pop(name, None)
                    elif event.change is not Change.BOOKMARK:
                        self.slices[name] = event.object
                    self.gaps += len(self.slices) != 1


class _Agent:
    """The part of a node agent that chooses which instance is asked."""

    def __init__(self) -> None:
        metrics = agentmetrics.AgentMetrics(prometheus_client.CollectorRegistry()).node_metrics("worker")
        self.drivers = DriverInstances(metrics=metrics, clock=clock.SystemClock(), on_gone=self._gone)
        self.prepared = 0
        self.failure: Exception | None = None

    async def _gone(self, name: str) -> None:
        raise AssertionError(f"driver {name} was away for half a minute")

    async def keep_preparing(self, claims: list[Any], over: asyncio.Event) -> None:
        """Prepares and undoes one claim after the other, as pods come and go."""
        try:
            while not over.is_set():
                for claim in claims:
                    await self._use(claim)
                    self.prepared += 1
        except errors.NodeError as failure:
            self.failure = failure
            raise

    async def _use(self, claim: Any) -> None:
        for method in ("NodePrepareResources", "NodeUnprepareResources"):
            instance = self.drivers.get(NAME)
            response = await instance.call(method, instance.request(method, claims=[drivers.reference(claim)]))
            assert response.claims[claim.metadata.uid].error == ""


async def test_two_hundred_updates() -> None:
    async with drivers.machine() as machine:
        claims = [
            await drivers.allocated(machine.client, f"c-{number}", of=NAME, devices=[f"gpu-{number}"])
            for number in range(3)
        ]
        agent, watcher, over = _Agent(), _Watcher(), asyncio.Event()
        old: tuple[asyncio.Task[None], str] | None = None
        tasks: list[asyncio.Task[None]] = []
        for number in range(RESTARTS):
            new = await _started(machine, f"uid-{number}")
            agent.drivers.register(NAME, new[1], [service.advertised for service in services.DRA])
            await _connected(agent, new[1])
            if old is None:
                tasks = [
                    asyncio.create_task(watcher.follow(machine)),
                    asyncio.create_task(agent.keep_preparing(claims, over)),
                ]
            else:
                await _one_more(agent)
                await _stopped(old[0])
                await agent.drivers.deregister(NAME, old[1])
            old = new
        over.set()
        await tasks[1]
        tasks[0].cancel()
        await agent.drivers.close()
        assert old is not None
        await _stopped(old[0])
        assert watcher.gaps == 0
        assert agent.prepared > RESTARTS
        assert not list((machine.folder / "r").glob("*.sock"))


async def _started(machine: drivers.Machine, uid: str) -> tuple[asyncio.Task[None], str]:
    """The next instance, from the moment at which it is ready: then the old one is told to stop."""
    around = Surroundings(machine.client)
    place = machine.place(Gpus, pod_uid=uid)
    instance = NodeInstance(Gpus(), around, place=place)

    async def run() -> None:
        async with around.informers:
            await instance.run()

    task = asyncio.create_task(run())
    async with asyncio.timeout(drivers.WAIT_SECONDS):
        await instance.wait_visible()
        while not place.endpoints.registration.exists():
            await asyncio.sleep(0.001)
    return task, str(place.endpoints.dra)


async def _connected(agent: _Agent, endpoint: str) -> None:
    """Until the new instance is the one that is asked: only then it says that it is ready, and the old one stops."""
    async with asyncio.timeout(drivers.WAIT_SECONDS):
        while agent.drivers.get(NAME).endpoint != endpoint:
            await asyncio.sleep(0.001)


async def _one_more(agent: _Agent) -> None:
    """A kubelet tells the old instance to stop some time after the new one is ready: what began before has ended."""
    before = agent.prepared
    async with asyncio.timeout(drivers.WAIT_SECONDS):
        while agent.prepared == before:
            if agent.failure is not None:
                raise agent.failure
            await asyncio.sleep(0.001)


async def _stopped(task: asyncio.Task[None]) -> None:
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
