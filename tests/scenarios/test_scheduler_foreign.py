"""A scheduler next to one that knows nothing of it and allocates from the same devices, such as kube-scheduler."""

from typing import Any, cast

from drachma.api import pod, resourceclaim
from drachma.client import Client, patches
from drachma.testing import claim, device_class, node, resource_slice
from drachma.testing import pod as a_pod
from tests.scenarios import schedulers

DRIVER = "gpu.example.com"
TWICE = "drachma_scheduler_devices_allocated_twice_total"
Claim = resourceclaim.ResourceClaim


class Foreign:
    """A scheduler that allocates what it likes. It may be a moment faster than the scheduler under test."""

    def __init__(self, world: schedulers.SchedulerWorld) -> None:
        self._world = world
        self.is_faster = False

    async def allocate(self, name: str, device: str, *, is_bound: bool) -> None:
        """Allocate a device of node n0 to a claim for a pod of the same name, and bind the pod."""
        user = await self._world.pod(name)
        result = {"request": "gpu", "driver": DRIVER, "pool": "n0", "device": device}
        consumer = {"resource": "pods", "name": name, "uid": user.metadata.uid}
        status = {"allocation": {"devices": {"results": [result]}}, "reservedFor": [consumer]}
        patch = patches.merge({"status": status})
        await self._world.client.patch(Claim, name, namespace="default", subresource="status", patch=patch)
        if is_bound:
            await self._world.client.bind(user, node="n0")


class Overtaken:
    """A client that lets the foreign scheduler write first, once."""

    def __init__(self, client: Client, foreign: Foreign) -> None:
        self._client = client
        self._foreign = foreign

    def __getattr__(self, name: str) -> Any:
        if name == "commit":
            raise AttributeError(name)
        return getattr(self._client, name)

    async def patch(self, kind: Any, name: str, **options: Any) -> Any:
        if kind is Claim and options.get("subresource") == "status" and self._foreign.is_faster:
            self._foreign.is_faster = False
            await self._foreign.allocate("theirs", "gpu-0", is_bound=True)
        return await self._client.patch(kind, name, **options)


async def _prepare(world: schedulers.SchedulerWorld, *, gpus: int) -> None:
    devices = [f"gpu-{number}" for number in range(gpus)]
    await world.create(
        device_class("gpu", f'device.driver == "{DRIVER}"'),
        node("n0"),
        resource_slice("n0", driver=DRIVER).on_node("n0").devices(*devices),
    )
    await world.create(*_user("theirs", scheduler="kube-scheduler"))


def _user(name: str, *, scheduler: str = "default-scheduler") -> tuple[Any, Any]:
    made = a_pod(name).container("c", claims=("x",)).claim("x", claim=name).spec(scheduler_name=scheduler)
    return claim(name).request("gpu", device_class="gpu"), made


async def test_the_later_pod_of_another_scheduler_is_deleted() -> None:
    async with schedulers.cluster(has_neighbours=True) as world:
        await _prepare(world, gpus=1)
        await world.create(*_user("ours"))
        assert await world.node_of("ours") == "n0"
        await Foreign(world).allocate("theirs", "gpu-0", is_bound=True)
        await world.advance(1)
        assert (await world.pod("theirs")).metadata.deletion_timestamp is None, "its scheduler may notice itself"
        await world.advance(2)
        victim = await world.pod("theirs")
        assert victim.metadata.deletion_timestamp is not None
        assert [each.reason for each in victim.status.conditions if each.type == "DisruptionTarget"] == [
            "DeviceAllocatedTwice"
        ]
        messages = await world.events("DeviceAllocatedTwice")
        assert all(
            f"claim default/theirs: device {DRIVER}/n0/gpu-0 got allocated for claim default/ours first" in each
            for each in messages
        )
        assert len(messages) == 2, "one about the claim, one about the pod"
        assert world.metric(TWICE, action="undone") == 1
        assert await world.node_of("ours") == "n0"


async def test_a_later_claim_without_a_bound_pod_is_cleared() -> None:
    async with schedulers.cluster(has_neighbours=True) as world:
        await _prepare(world, gpus=1)
        await world.create(*_user("ours"))
        await Foreign(world).allocate("theirs", "gpu-0", is_bound=False)
        await world.advance(3)
        assert (await world.claim("theirs")).status.allocation is None
        assert (await world.pod("theirs")).metadata.deletion_timestamp is None
        assert await world.devices("ours") == ["n0/gpu-0"]


async def test_an_own_allocation_that_was_later_is_taken_back_before_the_pod_is_bound() -> None:
    async with schedulers.cluster(scheduler=False) as world:
        await _prepare(world, gpus=2)
        foreign = Foreign(world)
        client = cast(Client, Overtaken(world.world.surroundings.client, foreign))
        await world.start(client=client, has_neighbours=True)
        foreign.is_faster = True
        await world.create(*_user("ours"))
        await world.advance(5)
        assert await world.devices("theirs") == ["n0/gpu-0"]
        assert await world.devices("ours") == ["n0/gpu-1"]
        assert await world.node_of("ours") == "n0"
        assert (await world.pod("theirs")).metadata.deletion_timestamp is None
        assert world.metric(TWICE, action="withdrawn") == 1


async def test_collisions_from_before_the_start_are_left_to_doctor() -> None:
    async with schedulers.cluster(scheduler=False) as world:
        await _prepare(world, gpus=1)
        await world.create(*_user("other", scheduler="kube-scheduler"))
        for name in ("theirs", "other"):
            await Foreign(world).allocate(name, "gpu-0", is_bound=True)
        await world.start(has_neighbours=True)
        await world.advance(5)
        pods = await world.all_of(pod.Pod)
        assert [each.metadata.deletion_timestamp for each in pods] == [None, None]
