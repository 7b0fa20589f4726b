"""Where the scheduler differs from upstream on purpose (docs/differences.md)."""

from msgspec import structs

from drachma.api import meta, namespace, pod, resourceclaim
from drachma.testing import claim, device_class, node, resource_slice
from drachma.testing import pod as a_pod
from tests.scenarios import schedulers
from tests.scenarios.test_scheduler_neighbours import HOST, a_labelled, required, term


async def test_all_nodes_are_considered() -> None:
    """Upstream looks at half of 120 nodes, so that it may not see the only one that is empty."""
    async with schedulers.cluster() as world:
        room = {"cpu": "4", "memory": "8Gi", "pods": "10"}
        large = {"cpu": "400", "memory": "800Gi", "pods": "10"}
        names = [f"n{number:03}" for number in range(120)]
        await world.create(*(node(name, allocatable=large if name == "n119" else room) for name in names))
        for name in ("p", "q", "r"):
            await world.create(a_pod(name).container("c", requests={"cpu": "1", "memory": "1Gi"}))
        assert {await world.node_of(name) for name in ("p", "q", "r")} == {"n119"}


async def test_a_pod_is_retried_when_a_pod_of_a_labelled_namespace_changes() -> None:
    async with schedulers.cluster() as world:
        await world.client.create(namespace.Namespace(metadata=meta.ObjectMeta(name="far", labels={"team": "b"})))
        await world.create(node("a0", labels={HOST: "a0"}))
        chosen = term("web", HOST, namespace_selector=meta.LabelSelector(match_labels={"team": "b"}))
        await world.create(a_labelled("p", "x", affinity=pod.Affinity(pod_affinity=required(chosen))))
        assert await world.node_of("p") == ""
        await world.create(a_pod("web", namespace="far").label("app", "web").container("c"))
        await world.advance(15)
        assert await world.node_of("p") == "a0"


async def test_a_pod_that_lacks_devices_and_room_is_retried_when_a_pod_goes() -> None:
    async with schedulers.cluster() as world:
        small = {"cpu": "1", "memory": "8Gi", "pods": "10"}
        await world.create(node("full", allocatable=small), node("bare", allocatable=small), device_class("gpu"))
        await world.create(resource_slice("s", driver="gpu.example.com").on_node("full").devices("d"))
        await world.create(a_pod("resident").container("c", requests={"cpu": "1"}).spec(node_name="full"))
        await world.create(claim("c").request("r", device_class="gpu"))
        await world.create(a_pod("p").container("c", requests={"cpu": "1"}, claims=("x",)).claim("x", claim="c"))
        assert await world.node_of("p") == ""
        await world.client.delete(pod.Pod, "resident", namespace="default", grace_period_seconds=0)
        await world.advance(15)
        assert await world.node_of("p") == "full"


async def test_the_time_of_an_allocation_is_not_added_later() -> None:
    async with schedulers.cluster() as world:
        await world.create(node("n1"), device_class("gpu"))
        await world.create(resource_slice("s", driver="gpu.example.com", pool="n1").on_node("n1").devices("d"))
        created = await world.client.create(claim("c").request("r", device_class="gpu").build())
        result = resourceclaim.DeviceRequestAllocationResult(
            request="r", driver="gpu.example.com", pool="n1", device="d"
        )
        allocation = resourceclaim.AllocationResult(devices=resourceclaim.DeviceAllocationResult(results=(result,)))
        status = structs.replace(created.status, allocation=allocation)
        await world.client.update(structs.replace(created, status=status), subresource="status")
        await world.create(a_pod("p").container("c", claims=("x",)).claim("x", claim="c"))
        assert await world.node_of("p") == "n1"
        stored = (await world.client.get(resourceclaim.ResourceClaim, "c", namespace="default")).status.allocation
        assert stored is not None
        assert stored.allocation_timestamp is None
