"""Accounting policies (KEP-5517, future enhancements), which have a gate of their own."""

from typing import Any

import pytest
from msgspec import structs

from drachma import errors
from drachma.api import deviceclass, gates, nodeallocatable, pod
from drachma.driver.devices import amount
from drachma.testing import DeviceBuilder, claim, device, device_class, resource_slice
from drachma.testing import pod as a_pod
from tests.scenarios import schedulers
from tests.scenarios.test_scheduler_allocatable import ROOMY, able, booked

ON = gates.ALL.switched({"DrachmaAccountingPolicies": True})


def cpus(driver: str, quantity: str, *, policy: str | None = None, devices: int = 4) -> Any:
    """Devices that each are so much cpu."""
    mapping = nodeallocatable.NodeAllocatableMapping(device_multiplier=amount(quantity))
    resource = nodeallocatable.NodeAllocatableResource(mapping=mapping, accounting_policy=policy)
    made = [
        DeviceBuilder(structs.replace(device(f"d{number}").build(), node_allocatable_resources={"cpu": resource}))
        for number in range(devices)
    ]
    return resource_slice(driver.replace(".", "-"), driver=driver, pool="n1").on_node("n1").devices(*made)


def a_class(name: str, driver: str, *, policy: str = "", manages: bool = False) -> deviceclass.DeviceClass:
    made = device_class(name, f'device.driver == "{driver}"').build()
    fields: dict[str, Any] = {"manages_native_resources": True} if manages else {}
    if policy:
        fields["node_allocatable_resource_accounting_policies"] = {"cpu": policy}
    return structs.replace(made, spec=structs.replace(made.spec, **fields))


@pytest.mark.parametrize(
    ("policy", "want_cpu"),
    [
        # Two containers that request 1 and 3 CPUs use a claim of 2.
        pytest.param("AddPerClaim", 6000, id="add-per-claim"),
        pytest.param("AddPerReference", 8000, id="add-per-reference"),
        pytest.param("Max", 5000, id="max"),
    ],
)
@pytest.mark.parametrize("where", ["device", "class"])
async def test_amounts(policy: str, want_cpu: int, where: str) -> None:
    async with schedulers.cluster(scheduler=False) as world:
        scheduler = await world.start(gates=ON)
        of_device, of_class = (policy, "") if where == "device" else (None, policy)
        await world.create(able("n1", ROOMY), cpus("x.example.com", "2", policy=of_device))
        await world.create(a_class("x", "x.example.com", policy=of_class))
        await world.create(claim("c").request("r", device_class="x"))
        await world.create(
            a_pod("p")
            .container("a", requests={"cpu": "1"}, claims=("x",))
            .container("b", requests={"cpu": "3"}, claims=("x",))
            .claim("x", claim="c")
        )
        assert await world.node_of("p") == "n1"
        assert await booked(world, scheduler) == {"cpu": want_cpu}


async def test_the_devices_policy_comes_first() -> None:
    async with schedulers.cluster(scheduler=False) as world:
        scheduler = await world.start(gates=ON)
        await world.create(able("n1", ROOMY), cpus("x.example.com", "2", policy="Max"))
        await world.create(a_class("x", "x.example.com", policy="AddPerClaim"))
        await world.create(claim("c").request("r", device_class="x"))
        await world.create(a_pod("p").container("a", requests={"cpu": "3"}, claims=("x",)).claim("x", claim="c"))
        assert await booked(world, scheduler) == {"cpu": 3000}


async def test_no_policy_at_all_is_refused() -> None:
    async with schedulers.cluster(gates=ON) as world:
        await world.create(able("n1", ROOMY), cpus("x.example.com", "2"), a_class("x", "x.example.com"))
        await world.create(claim("c").request("r", device_class="x"))
        await world.create(a_pod("p").container("a", claims=("x",)).claim("x", claim="c"))
        assert (await world.condition("p"))[2].startswith(
            "0/1 nodes are available: 1 claim default/c, device d0, resource cpu: "
            "neither the device nor its class has an accounting policy."
        )


@pytest.mark.parametrize(
    ("first", "second", "want"),
    [
        pytest.param(
            "Max",
            "ConsumeFrom",
            "container a, resource cpu: claims with accounting policies Max and ConsumeFrom cannot be combined",
            id="max-and-consume-from",
        ),
        pytest.param(
            "Max",
            "Max",
            "container a, resource cpu: claims with accounting policy Max must be of one driver, "
            "not of x.example.com and y.example.com",
            id="max-of-two-drivers",
        ),
        pytest.param(
            "ConsumeFrom",
            "ConsumeFrom",
            "container a, resource cpu: claims with accounting policy ConsumeFrom must be of one driver, "
            "not of x.example.com and y.example.com",
            id="consume-from-two-drivers",
        ),
        pytest.param("Max", "AddPerClaim", "", id="max-and-auxiliary"),
        pytest.param("ConsumeFrom", "AddPerReference", "", id="consume-from-and-auxiliary"),
    ],
)
async def test_which_policies_go_together(first: str, second: str, want: str) -> None:
    async with schedulers.cluster(gates=ON) as world:
        await world.create(able("n1", ROOMY))
        for name, policy in (("x", first), ("y", second)):
            await world.create(cpus(f"{name}.example.com", "2", policy=policy), a_class(name, f"{name}.example.com"))
            await world.create(claim(name).request("r", device_class=name))
        await world.create(
            a_pod("p")
            .container("a", requests={"cpu": "1"}, claims=("x", "y"))
            .claim("x", claim="x")
            .claim("y", claim="y")
        )
        message = (await world.condition("p"))[2]
        assert (await world.node_of("p") == "n1") is (not want)
        if want:
            assert message.startswith(f"0/1 nodes are available: 1 {want}.")


async def test_pods_that_consume_from_a_shared_pool() -> None:
    """The KEP's use case: a claim holds 100 CPUs of the node, and two pods take 10 and 20 of them."""
    async with schedulers.cluster(scheduler=False) as world:
        scheduler = await world.start(gates=ON)
        room = {"cpu": "128", "memory": "1Ti", "pods": "110"}
        await world.create(able("n1", room), cpus("x.example.com", "100", policy="ConsumeFrom", devices=1))
        await world.create(a_class("x", "x.example.com", manages=True))
        await world.create(claim("shared-cpu-claim").request("pool", device_class="x"))

        def pod_of(name: str, cpu: str) -> Any:
            made = a_pod(name).container("c", requests={"cpu": cpu}, claims=("my-pool",))
            return made.claim("my-pool", claim="shared-cpu-claim")

        await world.create(pod_of("pod1", "10"))
        assert await booked(world, scheduler) == {"cpu": 100_000}
        await world.create(pod_of("pod2", "20"))
        assert await booked(world, scheduler) == {"cpu": 100_000}
        state = scheduler.snapshot.nodes.find("n1")
        assert state is not None
        assert state.ledger.pools["default/shared-cpu-claim"].left() == {"cpu": 70_000}
        # There are 28 CPUs left on the node, but the pool has to do for its users.
        await world.create(pod_of("pod3", "71"), a_pod("other").container("c", requests={"cpu": "28"}))
        assert (await world.condition("pod3"))[2].startswith(
            "0/1 nodes are available: 1 Insufficient cpu in the pool of claim default/shared-cpu-claim."
        )
        assert await world.node_of("other") == "n1"

        # All of it is found again after a restart.
        await world.kill()
        scheduler = await world.start("second", gates=ON)
        assert await booked(world, scheduler) == {"cpu": 128_000}
        await world.world.delete(await world.pod("pod1"), grace_period_seconds=0)
        assert await booked(world, scheduler) == {"cpu": 128_000}
        await world.advance(3)
        assert await world.node_of("pod3") == "n1"
        for name in ("pod2", "pod3", "other"):
            await world.world.delete(await world.pod(name), grace_period_seconds=0)
        assert await booked(world, scheduler) == {}


async def test_without_the_gate_policies_mean_nothing() -> None:
    async with schedulers.cluster(scheduler=False) as world:
        scheduler = await world.start()
        await world.create(able("n1", ROOMY), cpus("x.example.com", "2", policy="Max"))
        await world.create(a_class("x", "x.example.com"), claim("c").request("r", device_class="x"))
        await world.create(a_pod("p").container("a", requests={"cpu": "3"}, claims=("x",)).claim("x", claim="c"))
        assert await booked(world, scheduler) == {"cpu": 5000}


@pytest.mark.parametrize(
    ("policy", "want_cpu"),
    [
        # Two pods with a container of 1 CPU each use a claim of 2.
        pytest.param("AddPerClaim", 4000, id="once-for-both-pods"),
        pytest.param("AddPerReference", 6000, id="for-each-pod"),
    ],
)
async def test_pods_that_share_a_claim(policy: str, want_cpu: int) -> None:
    async with schedulers.cluster(scheduler=False) as world:
        scheduler = await world.start(gates=ON)
        await world.create(able("n1", ROOMY), cpus("x.example.com", "2", policy=policy), a_class("x", "x.example.com"))
        await world.create(claim("c").request("r", device_class="x"))
        for name in ("p", "q"):
            user = a_pod(name).container("a", requests={"cpu": "1"}, claims=("x",)).claim("x", claim="c")
            await world.create(user)
        assert [await world.node_of(name) for name in ("p", "q")] == ["n1", "n1"]
        assert await booked(world, scheduler) == {"cpu": want_cpu}
        await world.client.delete(pod.Pod, "p", namespace="default", grace_period_seconds=0)
        assert await booked(world, scheduler) == {"cpu": 3000}


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param(deviceclass.DeviceClassSpec(manages_native_resources=True), id="types"),
        pytest.param(deviceclass.DeviceClassSpec(manages_node_allocatable_resources=True), id="examples"),
    ],
)
async def test_both_spellings_of_classes_that_manage_node_resources(spec: deviceclass.DeviceClassSpec) -> None:
    """The KEP's types and its examples spell the field differently. Fields that are served come back."""
    assert spec.manages_node_resources
    async with schedulers.cluster(gates=ON) as world:
        made = structs.replace(device_class("x").build(), spec=spec)
        await world.create(made)
        stored = await world.client.get(deviceclass.DeviceClass, "x")
        assert stored.spec.manages_node_resources


async def test_unknown_policies_are_refused() -> None:
    async with schedulers.cluster(gates=ON) as world:
        supported = '"AddPerClaim", "AddPerReference", "ConsumeFrom", "Max"'
        with pytest.raises(errors.InvalidObjectError) as of_class:
            await world.create(a_class("x", "x.example.com", policy="Sum"))
        assert "spec.nodeAllocatableResourceAccountingPolicies[cpu]: Unsupported value" in str(of_class.value)
        assert supported in str(of_class.value)
        await world.create(able("n1", ROOMY))
        with pytest.raises(errors.InvalidObjectError) as of_device:
            await world.create(cpus("x.example.com", "2", policy="Sum"))
        assert "nodeAllocatableResources[cpu].accountingPolicy: Unsupported value" in str(of_device.value)
