"""Devices that have to become ready before a pod is bound: binding conditions, their failure and their timeout."""

import asyncio
from typing import Any

from drachma.api import resourceclaim
from drachma.client import patches
from drachma.testing import claim, device, device_class, node, resource_slice
from drachma.testing import pod as a_pod
from tests.scenarios import schedulers
from tests.unit.controllers import worlds

DRIVER = "fabric.example.com"


def attachable(*nodes: str) -> list[Any]:
    return [
        resource_slice(f"slice-{name}", driver=DRIVER, pool=name)
        .on_node(name)
        .devices(device("dev-0").binding("attached", failures=("broken",)))
        for name in nodes
    ]


async def prepared(world: schedulers.SchedulerWorld, *nodes: str) -> None:
    await world.create(*map(node, nodes), *attachable(*nodes), device_class("dev", f'device.driver == "{DRIVER}"'))
    await world.create(claim("c").request("r", device_class="dev"))
    await world.create(a_pod("p").container("c", claims=("x",)).claim("x", claim="c"))


async def report(world: schedulers.SchedulerWorld, kind: str, *, reason: str = "Driver", message: str = "") -> None:
    allocation = (await world.claim("c")).status.allocation
    assert allocation is not None
    result = allocation.devices.results[0]
    condition = {
        "type": kind,
        "status": "True",
        "reason": reason,
        "message": message,
        "lastTransitionTime": world.clock.utc(),
    }
    entry = {"driver": result.driver, "pool": result.pool, "device": result.device, "conditions": [condition]}
    await world.client.patch(
        resourceclaim.ResourceClaim,
        "c",
        namespace="default",
        subresource="status",
        patch=patches.merge({"status": {"devices": [entry]}}),
    )
    await world.settle()


async def test_the_pod_is_bound_once_the_device_is_ready() -> None:
    async with schedulers.cluster() as world:
        await prepared(world, "n1")
        assert await world.users("c") == ["p"]
        await world.advance(30)
        assert await world.node_of("p") == ""
        assert await world.events("BindingConditionsPending") == [
            "Normal BindingConditionsPending: waiting for binding conditions for device on node n1"
        ]
        await report(world, "attached")
        assert await world.node_of("p") == "n1"
        labels = {"profile": "default-scheduler", "driver": DRIVER, "status": "success"}
        assert world.metric("scheduler_dra_bindingconditions_allocations_total", **labels) == 1


async def test_a_device_that_fails_makes_room_for_another_attempt() -> None:
    async with schedulers.cluster() as world:
        await prepared(world, "n1", "n2")
        await report(world, "broken", reason="Cable", message="no link")
        assert (await world.condition("p"))[2] == (
            'running PreBind plugin "DynamicResources": device binding failed: claim=c, reason=Cable, message="no link"'
        )
        assert await world.users("c") == []
        # The claim is in the way until it is deallocated; then it may be allocated anywhere, also there again.
        await world.advance(2)
        assert any("deallocation of ResourceClaim completed" in text for text in await world.events("FailedScheduling"))
        await world.advance(5)
        assert await world.users("c") == ["p"]
        assert (await world.claim("c")).status.devices == ()


async def test_nobody_waits_longer_than_the_timeout() -> None:
    async with schedulers.cluster(binding_seconds=60.0) as world:
        await prepared(world, "n1")
        await world.advance(59)
        assert await world.condition("p") == ("", "", "")
        await world.advance(7)
        texts = await world.events("FailedScheduling")
        assert any('running PreBind plugin "DynamicResources": device binding timeout: ' in text for text in texts)
        labels = {"profile": "default-scheduler", "driver": DRIVER, "status": "timeout"}
        assert world.metric("scheduler_dra_bindingconditions_allocations_total", **labels) == 1
        # Deallocated and allocated again, it is waited for anew.
        await world.advance(5)
        await report(world, "attached")
        assert await world.node_of("p") == "n1"


async def test_a_claim_that_goes_while_it_is_waited_for() -> None:
    async with schedulers.cluster() as world:
        await prepared(world, "n1")
        await world.world.delete(await world.pod("p"), grace_period_seconds=0)
        await world.advance(1)
        assert (await world.claim("c")).status.allocation is None


async def test_a_restart_while_waiting() -> None:
    async with schedulers.cluster(scheduler=False) as world:
        await world.start()
        await prepared(world, "n1")
        await world.kill()
        await world.start("second")
        await world.advance(1)
        await report(world, "attached")
        await world.advance(1)
        assert await world.node_of("p") == "n1"


# The order of writes


class Scribe:
    """Notes the pods that are being written: from the first write for their claims to their binding."""

    def __init__(self) -> None:
        self.most_at_once = 0
        self.first_bound_after = 0
        self._begun: set[str] = set()
        self._bound: set[str] = set()

    async def note(self, verb: str, *arguments: Any, **options: Any) -> None:
        # Every write takes a while, in which others can begin.
        for _ in range(5):
            await asyncio.sleep(0)
        if verb == "patch" and arguments[0] is resourceclaim.ResourceClaim:
            self._begun.add(arguments[1].removeprefix("c"))
        elif verb == "bind":
            self._bound.add(arguments[0].metadata.name.removeprefix("p"))
            self.first_bound_after = self.first_bound_after or len(self._begun)
        self.most_at_once = max(self.most_at_once, len(self._begun - self._bound))


async def test_the_first_pods_of_many_are_bound_before_the_last_are_written() -> None:
    scribe = Scribe()
    async with schedulers.cluster(wrap=worlds.meddling(scribe.note), scheduler=False) as world:
        await world.create(node("n1"), device_class("gpu", f'device.driver == "{DRIVER}"'))
        gpus = [f"gpu-{number}" for number in range(100)]
        await world.create(resource_slice("n1", driver=DRIVER).on_node("n1").devices(*gpus))
        for number in range(60):
            await world.put(claim(f"c{number}").request("gpu", device_class="gpu"))
            await world.put(a_pod(f"p{number}").container("c", claims=("x",)).claim("x", claim=f"c{number}"))
        await world.start(binders=8)
        await world.advance(1)
        assert [await world.node_of(f"p{number}") for number in range(60)] == ["n1"] * 60
        assert scribe.first_bound_after <= 8
        assert scribe.most_at_once <= 8


async def test_pods_that_wait_for_devices_are_in_nobodys_way() -> None:
    async with schedulers.cluster(binders=1) as world:
        await prepared(world, "n1")
        await world.create(a_pod("q").container("c"))
        assert await world.node_of("q") == "n1"
        await report(world, "attached")
        assert await world.node_of("p") == "n1"
