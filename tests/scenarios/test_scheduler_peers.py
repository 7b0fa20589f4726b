"""Several schedulers at once: nothing is given away twice, whatever the interleaving, and everything is scheduled."""

import asyncio
import random
from typing import Any

import pytest

from drachma.api import pod, resourceclaim
from drachma.client import Client
from drachma.runtime import Informers
from drachma.testing import claim, device_class, node, resource_slice
from drachma.testing import pod as a_pod
from tests.scenarios import schedulers

DRIVER = "gpu.example.com"


class Slow:
    """A client whose calls take a random number of turns, one at a time, so that schedulers interleave in new ways."""

    def __init__(self, client: Client, chance: random.Random) -> None:
        self._client = client
        self._chance = chance

    def __getattr__(self, name: str) -> Any:
        if name == "commit":
            raise AttributeError(name)
        found = getattr(self._client, name)
        if name not in ("create", "patch", "delete", "get", "bind"):
            return found

        async def slowly(*args: Any, **kwargs: Any) -> Any:
            for _ in range(self._chance.randrange(8)):
                await asyncio.sleep(0)
            return await found(*args, **kwargs)

        return slowly


async def start_peers(world: schedulers.SchedulerWorld, count: int, *, seed: int) -> list[Informers]:
    """Schedulers with informers of their own, as if in processes of their own."""
    made = []
    for number in range(count):
        slow: Any = Slow(world.client, random.Random(seed * 100 + number))
        shared = Informers(slow, time=world.clock, chance=random.Random(number))
        await shared.__aenter__()
        made.append(shared)
        await world.start(f"peer-{number}", seed=seed * 10 + number, client=slow, informers=shared, has_peers=True)
    return made


async def stop_peers(world: schedulers.SchedulerWorld, shared: list[Informers]) -> None:
    for number, each in enumerate(shared):
        await world.kill(f"peer-{number}")
        await each.__aexit__(None, None, None)


@pytest.mark.parametrize("seed", range(6))
async def test_devices_are_given_once(seed: int) -> None:
    async with schedulers.cluster(scheduler=False) as world:
        await world.create(device_class("gpu", f'device.driver == "{DRIVER}"'))
        for number in range(3):
            name = f"n{number}"
            gpus = [f"gpu-{place}" for place in range(4)]
            await world.create(node(name))
            await world.create(resource_slice(name, driver=DRIVER).on_node(name).devices(*gpus))
        peers = await start_peers(world, 3, seed=seed)
        for number in range(14):
            await world.put(claim(f"c{number}").request("gpu", device_class="gpu"))
            await world.put(a_pod(f"p{number}").container("c", claims=("x",)).claim("x", claim=f"c{number}"))
        for _ in range(60):
            await world.advance(2)
        await stop_peers(world, peers)

        found = await world.world.all_of(resourceclaim.ResourceClaim)
        held = [
            (result.pool, result.device)
            for each in found
            if each.status.allocation is not None
            for result in each.status.allocation.devices.results
        ]
        assert len(held) == len(set(held)) == 12
        bound = [each for each in await world.world.all_of(pod.Pod) if each.spec.node_name]
        assert len(bound) == 12
        users = {user.uid for each in found for user in each.status.reserved_for}
        assert users == {each.metadata.uid for each in bound}


@pytest.mark.parametrize("seed", range(6))
async def test_nodes_are_not_overdrawn(seed: int) -> None:
    async with schedulers.cluster(scheduler=False) as world:
        for number in range(3):
            await world.create(node(f"n{number}"))
        peers = await start_peers(world, 3, seed=seed)
        for number in range(14):
            await world.put(a_pod(f"p{number}").container("c", requests={"cpu": "1"}))
        for _ in range(60):
            await world.advance(2)
        await stop_peers(world, peers)

        counts: dict[str, int] = {}
        for each in await world.world.all_of(pod.Pod):
            counts[each.spec.node_name] = counts.get(each.spec.node_name, 0) + 1
        assert counts == {"n0": 4, "n1": 4, "n2": 4, "": 2}


@pytest.mark.parametrize("seed", range(3))
async def test_one_claim_for_pods_of_two_schedulers(seed: int) -> None:
    async with schedulers.cluster(scheduler=False) as world:
        await world.create(node("n1"), node("n2"), device_class("gpu", f'device.driver == "{DRIVER}"'))
        for name in ("n1", "n2"):
            await world.create(resource_slice(name, driver=DRIVER).on_node(name).devices("gpu-0"))
        peers = await start_peers(world, 2, seed=seed)
        await world.put(claim("c").request("gpu", device_class="gpu"))
        for number in range(6):
            await world.put(a_pod(f"p{number}").container("c", claims=("x",)).claim("x", claim="c"))
        for _ in range(40):
            await world.advance(2)
        await stop_peers(world, peers)
        assert len({await world.node_of(f"p{number}") for number in range(6)}) == 1
        assert len(await world.users("c")) == 6
