"""Node-allocatable resources behind devices (KEP-5517): the walkthroughs with their numbers, and the rules."""

from typing import Any

import pytest
from msgspec import structs

from drachma import errors
from drachma.api import gates, nodeallocatable, pod
from drachma.api import node as nodes
from drachma.driver.devices import amount
from drachma.testing import (
    DeviceBuilder,
    claim,
    claim_template,
    device,
    device_class,
    node,
    resource_slice,
    subrequest,
)
from drachma.testing import pod as a_pod
from tests.scenarios import schedulers
from tests.unit.controllers import worlds

CPU_DRIVER = "dra.example.com"
GPU_DRIVER = "gpu.example.com"
GIB = 1024**3
MIB = 1024**2
ROOMY = {"cpu": "64", "memory": "128Gi", "pods": "110"}


def meaning(name: str, *, built: Any = None, **resources: nodeallocatable.NodeAllocatableResource) -> Any:
    """A device that means something for a node's own resources."""
    made = (built or device(name)).build()
    return DeviceBuilder(structs.replace(made, node_allocatable_resources=resources))


def by_capacity(key: str, multiplier: str = "1") -> nodeallocatable.NodeAllocatableResource:
    mapping = nodeallocatable.NodeAllocatableMapping(capacity_key=key, capacity_multiplier=amount(multiplier))
    return nodeallocatable.NodeAllocatableResource(mapping=mapping)


def per_device(quantity: str) -> nodeallocatable.NodeAllocatableResource:
    mapping = nodeallocatable.NodeAllocatableMapping(device_multiplier=amount(quantity))
    return nodeallocatable.NodeAllocatableResource(mapping=mapping)


def overhead(per_pod: str | None = None, per_container: str | None = None) -> nodeallocatable.NodeAllocatableResource:
    added = nodeallocatable.NodeAllocatableOverhead(
        per_pod=None if per_pod is None else amount(per_pod),
        per_container=None if per_container is None else amount(per_container),
    )
    return nodeallocatable.NodeAllocatableResource(overhead=added)


def socket(node_name: str = "n1", cpu: str = "128", memory: str = "256Gi") -> Any:
    shared = device("socket0").shared().capacity("cpu", cpu).capacity("memory", memory)
    made = meaning("socket0", built=shared, cpu=by_capacity("cpu"), memory=by_capacity("memory"))
    return resource_slice(f"cpus-{node_name}", driver=CPU_DRIVER, pool=node_name).on_node(node_name).devices(made)


def accelerators(node_name: str = "n1") -> Any:
    made = meaning("gpu0", cpu=per_device("2"), memory=per_device("4Gi"))
    return resource_slice(f"gpus-{node_name}", driver=GPU_DRIVER, pool=node_name).on_node(node_name).devices(made)


def able(name: str, allocatable: dict[str, str]) -> nodes.Node:
    """A node whose kubelet knows about such devices."""
    made = node(name, allocatable=allocatable).build()
    return structs.replace(
        made, status=structs.replace(made.status, declared_features=("DRANodeAllocatableResources",))
    )


def classes() -> tuple[Any, Any]:
    return (
        device_class("cpu", f'device.driver == "{CPU_DRIVER}"'),
        device_class("gpu", f'device.driver == "{GPU_DRIVER}"'),
    )


def cpus(name: str, cpu: str, memory: str = "0") -> Any:
    return claim(name).request("x", device_class="cpu", capacity={"cpu": cpu, "memory": memory})


async def booked(world: schedulers.SchedulerWorld, scheduler: Any, node_name: str = "n1") -> dict[str, int]:
    await world.settle()
    state = scheduler.snapshot.nodes.find(node_name)
    assert state is not None
    return dict(state.ledger.requested)


async def test_use_case_1_standard_and_device_requests() -> None:
    async with schedulers.cluster(scheduler=False) as world:
        scheduler = await world.start()
        both = (
            a_pod("dra-pod")
            .container("my-app1", requests={"cpu": "100m", "memory": "100Mi"}, claims=("my-cpu-mem-claim",))
            .container("my-app2", claims=("my-cpu-mem-claim",))
            .claim("my-cpu-mem-claim", claim="cpu-mem-claim")
        )
        await world.create(able("n1", ROOMY), socket(), *classes(), cpus("cpu-mem-claim", "4", "8Gi"), both)

        assert await world.node_of("dra-pod") == "n1"
        assert await booked(world, scheduler) == {"cpu": 4100, "memory": 8 * GIB + 100 * MIB}
        (status,) = (await world.pod("dra-pod")).status.node_allocatable_resource_claim_statuses
        assert (status.resource_claim_name, status.containers) == ("cpu-mem-claim", ("my-app1", "my-app2"))
        assert [(entry.name, str(entry.amount)) for entry in status.mapping] == [("cpu", "4"), ("memory", "8Gi")]


@pytest.mark.parametrize(
    ("has_gpu", "want_cpu"),
    [pytest.param(True, 1000, id="gpu-selected"), pytest.param(False, 31_000, id="cpu-selected")],
)
async def test_use_case_2_fungible(has_gpu: bool, want_cpu: int) -> None:
    async with schedulers.cluster(scheduler=False) as world:
        scheduler = await world.start()
        template = claim_template("gpu-or-cpu-template").first_available(
            "gpu-or-cpu-req",
            subrequest("gpu", "gpu", count=1),
            subrequest("cpu", "cpu", capacity={"cpu": "30"}),
        )
        one_socket = meaning("socket0", built=device("socket0").shared().capacity("cpu", "128"), cpu=by_capacity("cpu"))
        sockets = resource_slice("cpus", driver=CPU_DRIVER, pool="n1").on_node("n1").devices(one_socket)
        plain = resource_slice("gpus", driver=GPU_DRIVER, pool="n1").on_node("n1")
        await world.create(able("n1", ROOMY), sockets, *classes(), template)
        if has_gpu:
            await world.create(plain.devices("gpu0"))
        await world.create(
            a_pod("fungible-pod")
            .container("my-app", requests={"cpu": "1", "memory": "1Gi"}, claims=("gpu-or-cpu",))
            .claim("gpu-or-cpu", template="gpu-or-cpu-template")
        )
        assert await booked(world, scheduler) == {"cpu": want_cpu, "memory": GIB}
        statuses = (await world.pod("fungible-pod")).status.node_allocatable_resource_claim_statuses
        assert len(statuses) == (0 if has_gpu else 1)


async def test_use_case_3_own_and_auxiliary_resources() -> None:
    async with schedulers.cluster(scheduler=False) as world:
        scheduler = await world.start()
        used = ("my-cpu-claim", "my-gpu-claim")
        await world.create(
            able("n1", ROOMY),
            socket(),
            accelerators(),
            *classes(),
            cpus("cpu-claim", "10"),
            claim("gpu-claim").request("gpu", device_class="gpu"),
            a_pod("combined-dra-pod")
            .container("my-app1", requests={"cpu": "100m", "memory": "1Gi"}, claims=used)
            .container("my-app2", requests={"cpu": "200m", "memory": "2Gi"}, claims=used)
            .claim("my-cpu-claim", claim="cpu-claim")
            .claim("my-gpu-claim", claim="gpu-claim"),
        )
        assert await booked(world, scheduler) == {"cpu": 12_300, "memory": 7 * GIB}


async def test_use_case_4_pod_level_budget() -> None:
    async with schedulers.cluster(scheduler=False) as world:
        scheduler = await world.start()
        whole = {"cpu": amount("11"), "memory": amount("10Gi")}
        made = a_pod("dra-pod-with-plr").spec(resources=pod.ResourceRequirements(requests=whole, limits=whole))
        for name in ("my-app1", "my-app2"):
            made = made.container(name, claims=("cpu-req-10-cpus",))
        made = made.container("sidecar-container-1").container("sidecar-container-2")
        made = made.claim("cpu-req-10-cpus", claim="cpu-req-10-cpus")
        await world.create(able("n1", ROOMY), socket(), *classes(), cpus("cpu-req-10-cpus", "10"), made)

        assert await world.node_of("dra-pod-with-plr") == "n1"
        assert await booked(world, scheduler) == {"cpu": 11_000, "memory": 10 * GIB}


async def test_several_claims_count_once_each() -> None:
    """The KEP's example of multiple claims per container: 1 + 4 + 2 + 2 = 9 CPUs."""
    async with schedulers.cluster(scheduler=False) as world:
        scheduler = await world.start()
        await world.create(
            able("n1", ROOMY),
            socket(),
            *classes(),
            cpus("claim-a", "4"),
            cpus("claim-b", "2"),
            a_pod("p")
            .container("c1", requests={"cpu": "1"}, claims=("a", "b"))
            .container("c2", requests={"cpu": "2"}, claims=("a",))
            .claim("a", claim="claim-a")
            .claim("b", claim="claim-b"),
        )
        assert await booked(world, scheduler) == {"cpu": 9000}


async def test_claims_that_no_container_uses_count_too() -> None:
    async with schedulers.cluster(scheduler=False) as world:
        scheduler = await world.start()
        await world.create(
            able("n1", ROOMY),
            socket(),
            *classes(),
            cpus("unused", "4"),
            a_pod("p").container("c", requests={"cpu": "1"}).claim("a", claim="unused"),
        )
        assert await booked(world, scheduler) == {"cpu": 5000}
        (status,) = (await world.pod("p")).status.node_allocatable_resource_claim_statuses
        assert status.containers == ()


async def test_overhead_per_pod_and_per_container() -> None:
    async with schedulers.cluster(scheduler=False) as world:
        scheduler = await world.start()
        made = meaning("gpu0", memory=overhead("1Gi", "256Mi"))
        gpus = resource_slice("gpus", driver=GPU_DRIVER, pool="n1").on_node("n1").devices(made)
        await world.create(
            able("n1", ROOMY),
            gpus,
            *classes(),
            claim("g").request("gpu", device_class="gpu"),
            a_pod("p").container("a", claims=("x",)).container("b", claims=("x",)).container("c").claim("x", claim="g"),
        )
        assert await booked(world, scheduler) == {"memory": GIB + 512 * MIB}
        # Devices that only need something may be shared; so is their overhead counted, pod by pod.
        await world.create(a_pod("q").container("a", claims=("x",)).claim("x", claim="g"))
        assert await booked(world, scheduler) == {"memory": 2 * GIB + 768 * MIB}


async def test_multiplied_capacity() -> None:
    async with schedulers.cluster(scheduler=False) as world:
        scheduler = await world.start()
        cores = device("socket0").shared().capacity("cores", "16")
        made = meaning("socket0", built=cores, cpu=by_capacity("cores", "2"))
        sockets = resource_slice("cpus", driver=CPU_DRIVER, pool="n1").on_node("n1").devices(made)
        wanted = claim("c").request("x", device_class="cpu", capacity={"cores": "8"})
        await world.create(able("n1", ROOMY), sockets, *classes(), wanted)
        await world.create(a_pod("p").container("c", claims=("x",)).claim("x", claim="c"))
        assert await booked(world, scheduler) == {"cpu": 16_000}


async def test_the_keps_own_spelling_is_understood() -> None:
    async with schedulers.cluster(scheduler=False) as world:
        scheduler = await world.start()
        mapping = nodeallocatable.NodeAllocatableResourceMapping(allocation_multiplier=amount("2"))
        core = structs.replace(device("core0").build(), node_allocatable_resource_mappings={"cpu": mapping})
        cores = resource_slice("cores", driver=CPU_DRIVER, pool="n1").on_node("n1").devices(DeviceBuilder(core))
        await world.create(able("n1", ROOMY), cores, *classes())
        await world.create(claim("c").request("x", device_class="cpu"))
        await world.create(a_pod("p").container("c", claims=("x",)).claim("x", claim="c"))
        assert await booked(world, scheduler) == {"cpu": 2000}


async def test_devices_and_requests_share_one_ledger() -> None:
    async with schedulers.cluster() as world:
        tight = {"cpu": "4", "memory": "32Gi", "pods": "110"}
        await world.create(able("n1", tight), socket(), *classes(), cpus("c", "3"))
        await world.create(a_pod("p").container("c", requests={"cpu": "2"}, claims=("x",)).claim("x", claim="c"))
        # Two for the pod and three for the claim are more than the node has, though each would fit.
        assert (await world.condition("p"))[2] == (
            "0/1 nodes are available: 1 Insufficient cpu. "
            "preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling."
        )
        await world.create(cpus("d", "3"))
        await world.create(a_pod("q").container("c", requests={"cpu": "1"}, claims=("x",)).claim("x", claim="d"))
        await world.create(a_pod("r").container("c", requests={"cpu": "1"}))
        assert [await world.node_of(name) for name in ("q", "r")] == ["n1", ""]


@pytest.mark.parametrize(
    ("requests", "limits", "want"),
    [
        pytest.param(
            "10",
            None,
            "pod level request for cpu is insufficient to cover the aggregated container "
            "and node-allocatable DRA requests",
            id="request",
        ),
        pytest.param(
            "11",
            "11",
            "pod level limit for cpu is insufficient to cover the limit and DRA overhead for container c",
            id="limit-of-a-container",
        ),
    ],
)
async def test_budgets_that_do_not_cover_devices(requests: str, limits: str | None, want: str) -> None:
    async with schedulers.cluster() as world:
        whole = pod.ResourceRequirements(
            requests={"cpu": amount(requests)}, limits={} if limits is None else {"cpu": amount(limits)}
        )
        container = pod.Container(
            name="c",
            resources=pod.ResourceRequirements(
                requests={"cpu": amount("1")},
                limits={"cpu": amount("2")} if limits else {},
                claims=(pod.ContainerClaim(name="x"),),
            ),
        )
        made = a_pod("p").spec(containers=(container,), resources=whole).claim("x", claim="c")
        await world.create(able("n1", ROOMY), socket(), *classes(), cpus("c", "10"), made)
        assert (await world.condition("p"))[2] == (
            f"0/1 nodes are available: 1 {want}. "
            "preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling."
        )


async def test_the_ledger_is_rebuilt_after_a_restart() -> None:
    async with schedulers.cluster(scheduler=False) as world:
        await world.start()
        await world.create(able("n1", ROOMY), socket(), *classes(), cpus("c", "10"))
        await world.create(a_pod("p").container("c", requests={"cpu": "1"}, claims=("x",)).claim("x", claim="c"))
        await world.kill()
        scheduler = await world.start("second")
        assert await booked(world, scheduler) == {"cpu": 11_000}
        await world.world.delete(await world.pod("p"), grace_period_seconds=0)
        assert await booked(world, scheduler) == {}


async def test_statuses_are_cleared_when_binding_fails() -> None:
    failing = True

    async with schedulers.cluster(scheduler=False) as world:

        async def refuse(verb: str, *_: Any, **__: Any) -> None:
            if verb == "bind" and failing:
                raise errors.ObjectConflictError({"code": 409, "message": "not now"})

        scheduler = await world.start(client=worlds.meddling(refuse)(world.client))
        await world.create(able("n1", ROOMY), socket(), *classes(), cpus("c", "10"))
        await world.create(a_pod("p").container("c", claims=("x",)).claim("x", claim="c"))

        assert (await world.condition("p"))[1:] == ("SchedulerError", 'running Bind plugin "DefaultBinder": not now')
        assert (await world.pod("p")).status.node_allocatable_resource_claim_statuses == ()
        assert await world.users("c") == []
        assert await booked(world, scheduler) == {}
        failing = False
        await world.advance(2)
        assert await booked(world, scheduler) == {"cpu": 10_000}


async def test_a_pod_with_devices_preempts_by_its_whole_footprint() -> None:
    async with schedulers.cluster() as world:
        await world.priorities(1, 9)
        tight = {"cpu": "4", "memory": "32Gi", "pods": "110"}
        await world.create(able("n1", tight), socket(), *classes(), cpus("c", "2"))
        await world.create(a_pod("low").container("c", requests={"cpu": "2"}).spec(priority_class_name="priority-1"))
        urgent = a_pod("urgent").container("c", requests={"cpu": "1"}, claims=("x",)).claim("x", claim="c")
        await world.create(urgent.spec(priority_class_name="priority-9"))
        assert (await world.condition("urgent"))[2] == (
            "0/1 nodes are available: 1 Insufficient cpu. "
            "preemption: found a potential placement for pod on node n1, preempting 1 victims"
        )
        await world.world.delete(await world.pod("low"), grace_period_seconds=0)
        await world.advance(2)
        assert await world.node_of("urgent") == "n1"


async def test_a_claim_in_use_is_not_shared_when_its_devices_are_withdrawn() -> None:
    async with schedulers.cluster() as world:
        await world.create(able("n1", ROOMY), socket(), *classes(), cpus("c", "10"))
        await world.create(a_pod("user").container("c", claims=("x",)).claim("x", claim="c"))
        await world.world.delete(socket().build())
        await world.create(a_pod("late").container("c", claims=("x",)).claim("x", claim="c"))

        assert await world.node_of("user") == "n1"
        assert (await world.condition("late"))[2].startswith(
            "0/1 nodes are available: 1 node allocatable resource claim c has a mapped device and cannot be shared "
        )


SEARCHING = gates.ALL.switched({gates.Gate.NODE_RESOURCE_SEARCH: True})


def two_ways(name: str = "c") -> Any:
    """A claim that prefers many cores and takes few."""
    return claim(name).first_available(
        "x",
        subrequest("many", "cpu", capacity={"cpu": "16", "memory": "0"}),
        subrequest("few", "cpu", capacity={"cpu": "4", "memory": "0"}),
    )


def one_claim_user(name: str = "p", cpu: str = "1", of: str = "c") -> Any:
    return a_pod(name).container("app", requests={"cpu": cpu}, claims=("x",)).claim("x", claim=of)


async def alternative(world: schedulers.SchedulerWorld, name: str = "c") -> list[str]:
    allocation = (await world.claim(name)).status.allocation
    return [] if allocation is None else [f"{each.request} {each.device}" for each in allocation.devices.results]


async def test_story_4_an_alternative_that_the_node_has_cpu_for() -> None:
    small = {"cpu": "8", "memory": "128Gi", "pods": "110"}
    async with schedulers.cluster() as world:
        await world.create(able("n1", small), socket(), *classes(), two_ways(), one_claim_user())
        assert await world.node_of("p") == "", "Kubernetes 1.37 takes the first alternative that has devices"
    async with schedulers.cluster(gates=SEARCHING) as world:
        await world.create(able("n1", small), socket(), *classes(), two_ways(), one_claim_user())
        assert await world.node_of("p") == "n1"
        assert await alternative(world) == ["x/few socket0"]


async def test_story_4_the_first_alternative_is_still_preferred() -> None:
    async with schedulers.cluster(gates=SEARCHING) as world:
        await world.create(able("n1", ROOMY), socket(), *classes(), two_ways(), one_claim_user())
        assert await alternative(world) == ["x/many socket0"]


async def test_story_4_another_device_that_the_node_has_cpu_for() -> None:
    devices = [meaning(f"gpu{number}", cpu=per_device(cpu)) for number, cpu in enumerate(("30", "20", "2", "2"))]
    many = resource_slice("gpus-n1", driver=GPU_DRIVER, pool="n1").on_node("n1").devices(*devices)
    wanted = claim("c").request("x", device_class="gpu", count=2)
    room = {"cpu": "23", "memory": "128Gi", "pods": "110"}
    async with schedulers.cluster(gates=SEARCHING) as world:
        await world.create(able("n1", room), many, *classes(), wanted, one_claim_user())
        assert await alternative(world) == ["x gpu1", "x gpu2"], "the first two devices for which the node has cpu"
        second = claim("d").request("x", device_class="gpu", count=1)
        await world.create(second, one_claim_user("q", of="d"))
        _, reason, message = await world.condition("q")
        assert reason == "Unschedulable"
        assert "Insufficient cpu" in message


async def test_story_4_resources_that_the_node_does_not_have() -> None:
    devices = [meaning("huge", **{"hugepages-2Mi": per_device("4Mi")}), meaning("plain", cpu=per_device("1"))]
    both = resource_slice("gpus-n1", driver=GPU_DRIVER, pool="n1").on_node("n1").devices(*devices)
    async with schedulers.cluster(gates=SEARCHING) as world:
        wanted = claim("c").request("x", device_class="gpu")
        await world.create(able("n1", ROOMY), both, *classes(), wanted, one_claim_user())
        assert await alternative(world) == ["x plain"]


async def test_story_4_overhead_and_the_budget_of_a_pod_limit_the_search() -> None:
    devices = [meaning("dear", cpu=overhead("1", "3")), meaning("cheap", cpu=overhead("1"))]
    both = resource_slice("gpus-n1", driver=GPU_DRIVER, pool="n1").on_node("n1").devices(*devices)
    budget = pod.ResourceRequirements(requests={"cpu": amount("3")})
    async with schedulers.cluster(gates=SEARCHING) as world:
        wanted = claim("c").request("x", device_class="gpu")
        await world.create(able("n1", ROOMY), both, *classes(), wanted, one_claim_user().spec(resources=budget))
        assert await alternative(world) == ["x cheap"]


async def test_partitions_with_a_capacity_key_count_with_their_own_capacity() -> None:
    """KEP-5517's example of partitions, which are exclusive: their whole capacity is consumed."""
    core = device("core0").capacity("cpu", "4").consumes("set", cpu="4")
    made = meaning("core0", built=core, cpu=by_capacity("cpu"))
    sets = resource_slice("sets-n1", driver=CPU_DRIVER, pool="n1", slices=2).on_node("n1").counters("set", cpu="8")
    devices = resource_slice("cpus-n1", driver=CPU_DRIVER, pool="n1", slices=2).on_node("n1").devices(made)
    wanted = claim("c").request("x", device_class="cpu")
    async with schedulers.cluster() as world:
        await world.create(able("n1", ROOMY), sets, devices, *classes(), wanted, one_claim_user())
        assert "ConsumedCapacity is nil" in (await world.condition("p"))[2], "as Kubernetes 1.37"
    async with schedulers.cluster(gates=SEARCHING, scheduler=False) as world:
        scheduler = await world.start(gates=SEARCHING)
        await world.create(able("n1", ROOMY), sets, devices, *classes(), wanted, one_claim_user())
        assert await world.node_of("p") == "n1"
        assert (await booked(world, scheduler))["cpu"] == 5000


async def test_ephemeral_storage_in_the_keps_spelling() -> None:
    async with schedulers.cluster(scheduler=False) as world:
        scheduler = await world.start()
        mapping = nodeallocatable.NodeAllocatableResourceMapping(allocation_multiplier=amount("6Gi"))
        disks = [
            DeviceBuilder(
                structs.replace(device(name).build(), node_allocatable_resource_mappings={"ephemeral-storage": mapping})
            )
            for name in ("scratch0", "scratch1")
        ]
        slices = resource_slice("scratch", driver=CPU_DRIVER, pool="n1").on_node("n1").devices(*disks)
        await world.create(able("n1", {**ROOMY, "ephemeral-storage": "10Gi"}), slices, *classes())
        for name in ("first", "second"):
            await world.create(claim(name).request("x", device_class="cpu"))
            await world.create(a_pod(name).container("c", claims=("x",)).claim("x", claim=name))
        assert await booked(world, scheduler) == {"ephemeral-storage": 6 * GIB}
        (status,) = (await world.pod("first")).status.node_allocatable_resource_claim_statuses
        assert ({name: str(each) for name, each in status.resources.items()}, status.mapping) == (
            {"ephemeral-storage": "6Gi"},
            (),
        ), "the KEP's own form"
        assert "1 Insufficient ephemeral-storage" in (await world.condition("second"))[2]
