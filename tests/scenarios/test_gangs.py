"""Gangs: pods that get their nodes together or not at all, in a running cluster."""

import random
from typing import Any

import pytest

from drachma import errors
from drachma.api import gates, meta, pod, podgroup, resourceclaim
from drachma.client import Client, patches
from drachma.scheduler import Settings
from drachma.scheduler.snapshot import gangs
from drachma.simulate import NodeGroup, Simulation, livecluster
from drachma.simulate.growth import Plan, Planner
from drachma.testing import PodBuilder, claim, claim_template, device, device_class, node, resource_slice
from drachma.testing import pod as a_pod
from tests.scenarios import schedulers

DRIVER = "gpu.example.com"
GATES = gates.ALL.switched({gates.Gate.GENERIC_WORKLOAD: True})


def machine(name: str, gpus: int, cpu: str = "64") -> list[Any]:
    devices = [f"gpu-{number}" for number in range(gpus)]
    return [
        node(name, allocatable={"cpu": cpu, "memory": "64Gi", "pods": "110"}),
        resource_slice(f"slice-{name}", driver=DRIVER, pool=name).on_node(name).devices(*devices),
    ]


COMMON: list[Any] = [
    device_class("gpu", f'device.driver == "{DRIVER}"'),
    claim_template("one").request("gpu", device_class="gpu"),
]


def worker(name: str, gang: str = "", size: int = 0, *, cpu: str = "1", gpu: bool = True) -> PodBuilder:
    made = a_pod(name).container("c", requests={"cpu": cpu})
    if gpu:
        made = made.claim("gpu", template="one")
    if gang:
        made = made.label(gangs.LABEL, gang).annotation(gangs.SIZE, str(size))
    return made


async def nodes_of(world: schedulers.SchedulerWorld, *names: str) -> list[str]:
    return [await world.node_of(name) for name in names]


async def bound(world: schedulers.SchedulerWorld) -> set[str]:
    listed = await world.client.list(pod.Pod)
    return {each.metadata.name for each in listed.items if each.spec.node_name}


async def test_a_gang_of_eight_on_two_nodes() -> None:
    async with schedulers.cluster(gates=GATES) as world:
        await world.create(*COMMON, *machine("n1", 4), *machine("n2", 4))
        names = [f"w{number}" for number in range(8)]
        await world.create(*(worker(name, "g", 8) for name in names[:7]))
        assert await bound(world) == set()

        await world.create(worker(names[7], "g", 8))
        assert sorted(await nodes_of(world, *names)) == ["n1"] * 4 + ["n2"] * 4


async def test_nobody_is_bound_where_one_finds_no_node() -> None:
    async with schedulers.cluster(gates=GATES) as world:
        await world.create(*COMMON, *machine("n1", 4), *machine("n2", 3))
        names = [f"w{number}" for number in range(8)]
        await world.create(*(worker(name, "g", 8) for name in names))
        assert await bound(world) == set()
        text = (
            "minCount (8) cannot be satisfied: 7 scheduled, 1 missing; gang default/g, pod default/w7: "
            "0/2 nodes are available: 2 cannot allocate all claims. "
            "pod group preemption: No preemption victims found for incoming preemptor"
        )
        for name in names:
            assert await world.condition(name) == ("False", "Unschedulable", text)

        await world.create(*machine("n3", 1))
        await world.advance(20)
        assert await bound(world) == set(names)


async def test_two_gangs_do_not_keep_each_other_waiting() -> None:
    """Pod by pod, each would get three of six places and wait for the fourth for ever."""
    async with schedulers.cluster(gates=GATES) as world:
        await world.create(*COMMON)
        for number in range(4):
            await world.put(worker(f"a{number}", "a", 4))
            await world.put(worker(f"b{number}", "b", 4))
        await world.create(*machine("n1", 3), *machine("n2", 3))
        await world.advance(20)
        first = await bound(world)
        assert len(first) == 4
        assert len({name[0] for name in first}) == 1

        for name in first:
            await world.client.delete(pod.Pod, name, namespace="default", grace_period_seconds=0)
        await world.settle()
        await world.advance(20)
        second = await bound(world)
        assert len(second) == 4
        assert second.isdisjoint(first)


async def test_a_gang_that_fits_only_one_way() -> None:
    """The small pods are tried first, and would take the only place of the large one."""
    async with schedulers.cluster(gates=GATES) as world:
        await world.create(*COMMON, *machine("n1", 1, cpu="4"), *machine("n2", 0, cpu="4"))
        small = [worker(f"a{number}", "g", 3, cpu="2", gpu=False) for number in range(2)]
        await world.create(*small, worker("z", "g", 3, cpu="4"))
        assert await nodes_of(world, "a0", "a1", "z") == ["n2", "n2", "n1"]


async def test_a_gang_shares_a_claim() -> None:
    async with schedulers.cluster(gates=GATES) as world:
        await world.create(*COMMON, *machine("n1", 1), *machine("n2", 1), claim("c").request("gpu", device_class="gpu"))
        sharing = [
            a_pod(f"w{number}")
            .container("c", requests={"cpu": "1"}, claims=("x",))
            .claim("x", claim="c")
            .label(gangs.LABEL, "g")
            .annotation(gangs.SIZE, "3")
            for number in range(3)
        ]
        await world.create(*sharing)
        assert len(set(await nodes_of(world, "w0", "w1", "w2"))) == 1
        assert await world.users("c") == ["w0", "w1", "w2"]


async def test_a_shared_claim_keeps_its_device_and_a_pods_own_claim_its_selectors() -> None:
    """The claim that the gang shares has the device that comes first; upstream sometimes exchanges it for another."""
    plain, fast = device("gpu-0").attributes(fast=False), device("gpu-1").attributes(fast=True)
    machine_slice = resource_slice("s", driver=DRIVER, pool="n1").on_node("n1").devices(plain, fast)
    own = claim_template("fast").request("gpu", device_class="gpu", select=f'device.attributes["{DRIVER}"].fast')
    shared = claim("shared").request("gpu", device_class="gpu")
    async with schedulers.cluster(gates=GATES) as world:
        await world.create(COMMON[0], node("n1"), machine_slice, own, shared)
        first = a_pod("first").container("c").claim("x", claim="shared")
        await world.create(first)
        assert await world.devices("shared") == ["n1/gpu-0"]
        members = [
            a_pod("a").container("c").claim("x", claim="shared").claim("y", template="fast"),
            a_pod("b").container("c").claim("x", claim="shared"),
        ]
        await world.create(*(each.label(gangs.LABEL, "g").annotation(gangs.SIZE, "2") for each in members))
        assert await nodes_of(world, "a", "b") == ["n1", "n1"]
        assert await world.devices("shared") == ["n1/gpu-0"]
        (generated,) = [
            each for each in await world.all_of(resourceclaim.ResourceClaim) if each.metadata.name != "shared"
        ]
        assert await world.devices(generated.metadata.name) == ["n1/gpu-1"]


async def test_a_pod_group_says_how_many() -> None:
    async with schedulers.cluster(gates=GATES) as world:
        await world.create(*COMMON, *machine("n1", 2))
        group = pod.PodSchedulingGroup(pod_group_name="g")
        for number in range(3):
            await world.create(worker(f"w{number}").spec(scheduling_group=group))
        assert await bound(world) == set()

        policy = podgroup.PodGroupSchedulingPolicy(gang=podgroup.GangSchedulingPolicy(min_count=2))
        made = podgroup.PodGroup(
            metadata=meta.ObjectMeta(name="g", namespace="default"),
            spec=podgroup.PodGroupSpec(scheduling_policy=policy),
        )
        await world.create(made)
        assert len(await bound(world)) == 2
        (condition,) = (await world.client.get(podgroup.PodGroup, "g", namespace="default")).status.conditions
        assert (condition.type, condition.status, condition.reason) == (
            "PodGroupInitiallyScheduled",
            "True",
            "Scheduled",
        )


async def test_a_pod_group_says_why_it_waits() -> None:
    async with schedulers.cluster(gates=GATES) as world:
        group = pod.PodSchedulingGroup(pod_group_name="g")
        policy = podgroup.PodGroupSchedulingPolicy(gang=podgroup.GangSchedulingPolicy(min_count=2))
        made = podgroup.PodGroup(
            metadata=meta.ObjectMeta(name="g", namespace="default"),
            spec=podgroup.PodGroupSpec(scheduling_policy=policy),
        )
        pods = [worker(f"w{number}").spec(scheduling_group=group) for number in range(2)]
        await world.create(*COMMON, *machine("n1", 1), made, *pods)
        (condition,) = (await world.client.get(podgroup.PodGroup, "g", namespace="default")).status.conditions
        assert (condition.status, condition.reason) == ("False", "Unschedulable")
        count = "minCount (2) cannot be satisfied: 1 scheduled, 0 remaining"
        preemption = "pod group preemption: No preemption victims found for incoming preemptor"
        assert condition.message == f"{count}, {preemption}"
        assert await world.why("w0") == f"pod group is unschedulable, {condition.message}"
        assert await world.why("w1") == "0/1 nodes are available: 1 cannot allocate all claims."


async def test_pods_that_wait_for_something_else_hold_up_the_rest() -> None:
    async with schedulers.cluster(gates=GATES) as world:
        await world.create(*COMMON, *machine("n1", 2))
        gate = pod.PodSchedulingGate(name="example.com/later")
        await world.create(worker("w0", "g", 2), worker("w1", "g", 2).spec(scheduling_gates=(gate,)))
        assert await bound(world) == set()
        assert "1 more pods have to be schedulable" in (await world.condition("w0"))[2]

        patch = patches.merge({"spec": {"schedulingGates": []}})
        await world.client.patch(pod.Pod, "w1", patch=patch, namespace="default")
        await world.settle()
        assert await bound(world) == {"w0", "w1"}


async def test_a_gang_without_a_size_waits() -> None:
    async with schedulers.cluster(gates=GATES) as world:
        await world.create(*COMMON, *machine("n1", 2), worker("w0").label(gangs.LABEL, "g"))
        assert await bound(world) == set()


async def test_without_the_gate_pods_are_bound_one_by_one() -> None:
    async with schedulers.cluster() as world:
        await world.create(*COMMON, *machine("n1", 1), worker("w0", "g", 2))
        assert await bound(world) == {"w0"}


def a_group(name: str, size: int, **spec: Any) -> podgroup.PodGroup:
    policy = podgroup.PodGroupSchedulingPolicy(gang=podgroup.GangSchedulingPolicy(min_count=size))
    return podgroup.PodGroup(
        metadata=meta.ObjectMeta(name=name, namespace="default"),
        spec=podgroup.PodGroupSpec(scheduling_policy=policy, **spec),
    )


def grouped(name: str, group: str, *, cpu: str = "1", **spec: Any) -> PodBuilder:
    return worker(name, cpu=cpu, gpu=False).spec(scheduling_group=pod.PodSchedulingGroup(pod_group_name=group), **spec)


async def leave(world: schedulers.SchedulerWorld) -> set[str]:
    """Pods that are being deleted are gone; there is no node agent to see to it."""
    leaving = {
        each.metadata.name
        for each in (await world.client.list(pod.Pod)).items
        if each.metadata.deletion_timestamp is not None
    }
    for name in leaving:
        await world.client.delete(pod.Pod, name, namespace="default", grace_period_seconds=0)
    await world.settle()
    await world.advance(20)
    return leaving


async def test_a_gang_makes_room_for_all_its_pods() -> None:
    async with schedulers.cluster(gates=GATES) as world:
        await world.priorities(100)
        await world.create(*machine("n1", 0, cpu="4"), *machine("n2", 0, cpu="4"))
        await world.create(*(worker(f"old-{number}", cpu="2", gpu=False) for number in range(4)))
        names = [f"w{number}" for number in range(3)]
        high = [grouped(name, "g", cpu="2", priority_class_name="priority-100") for name in names]
        await world.create(a_group("g", 3, priority_class_name="priority-100"), *high)
        group = await world.client.get(podgroup.PodGroup, "g", namespace="default")
        text = group.status.conditions[0].message
        assert text.endswith("pod group preemption: found a placement for podgroup, preempting 3 victims")
        notes = await world.events("Preempted")
        assert len(notes) == 3
        assert all(f"Preempted by podgroup {group.metadata.uid} on node cluster" in note for note in notes)
        kept = [(await world.pod(name)).status.nominated_node_name for name in names]
        assert sorted(set(kept)) == ["n1", "n2"]

        # While they are on their way out, nobody else has to go.
        await world.create(worker("small", cpu="1", gpu=False))
        await world.advance(20)
        assert world.metric("scheduler_workload_preemption_victims_sum") == 3
        left = await leave(world)
        assert len(left) == 3
        assert await nodes_of(world, *names) == kept
        assert await bound(world) == {*names, *({f"old-{number}" for number in range(4)} - left)}


async def test_nobody_is_evicted_for_a_part_of_a_gang() -> None:
    async with schedulers.cluster(gates=GATES) as world:
        await world.priorities(100)
        await world.create(*machine("n1", 0, cpu="4"))
        await world.create(*(worker(f"old-{number}", cpu="2", gpu=False) for number in range(2)))
        high = [grouped(f"w{number}", "g", cpu="2", priority_class_name="priority-100") for number in range(3)]
        await world.create(a_group("g", 3, priority_class_name="priority-100"), *high)
        await world.advance(20)
        assert await bound(world) == {"old-0", "old-1"}
        group = await world.client.get(podgroup.PodGroup, "g", namespace="default")
        text = group.status.conditions[0].message
        assert text.startswith("minCount (3) cannot be satisfied: 0 scheduled, 2 remaining, ")
        assert text.endswith("pod group preemption: minCount (3) cannot be satisfied: 2 scheduled, 0 remaining")
        assert await world.why("w2") == "minCount (3) cannot be satisfied: 0 scheduled, 2 remaining"


async def test_a_gang_that_does_not_preempt_waits() -> None:
    async with schedulers.cluster(gates=GATES) as world:
        await world.priorities(100, preemption_policy="Never")
        await world.create(*machine("n1", 0, cpu="2"), worker("old", cpu="2", gpu=False))
        pods = [grouped(f"w{number}", "g", priority_class_name="priority-100") for number in range(2)]
        await world.create(a_group("g", 2, priority_class_name="priority-100"), *pods)
        assert await bound(world) == {"old"}
        group = await world.client.get(podgroup.PodGroup, "g", namespace="default")
        text = group.status.conditions[0].message
        assert text.endswith("pod group preemption: not eligible due to preemptionPolicy=Never.")


@pytest.mark.parametrize("together", [pytest.param(True, id="all"), pytest.param(False, id="single")])
async def test_a_group_says_whether_its_pods_go_together(together: bool) -> None:
    async with schedulers.cluster(gates=GATES) as world:
        await world.priorities(100)
        await world.create(*machine("n1", 0, cpu="1"), *machine("n2", 0, cpu="1"))
        mode = podgroup.DisruptionMode(all=podgroup.AllDisruptionMode()) if together else None
        await world.create(a_group("old", 2, disruption_mode=mode), *(grouped(f"old-{each}", "old") for each in "ab"))
        assert await bound(world) == {"old-a", "old-b"}
        await world.create(worker("urgent", gpu=False).spec(priority_class_name="priority-100"))
        assert len(await leave(world)) == (2 if together else 1)
        assert "urgent" in await bound(world)


async def test_pods_of_other_priority_than_their_group_are_not_tried() -> None:
    async with schedulers.cluster(gates=GATES) as world:
        await world.priorities(100)
        await world.create(*machine("n1", 0))
        pods = [grouped(f"w{number}", "g", priority_class_name="priority-100") for number in range(2)]
        await world.create(a_group("g", 2), *pods)
        assert await bound(world) == set()
        text = "all pods in a single pod group should have the same priority as the pod group's priority, got 100 and 0"
        assert await world.condition("w0") == ("False", "SchedulerError", text)


class Refusing:
    """A client that makes changes one after the other, and refuses those to some claims and bindings."""

    def __init__(self, client: Client, *, claims: str = "", pods: str = "") -> None:
        self._client = client
        self.claims = claims
        self.pods = pods

    def __getattr__(self, name: str) -> Any:
        if name == "commit":
            raise AttributeError(name)
        return getattr(self._client, name)

    async def patch(self, kind: Any, name: str, **options: Any) -> Any:
        if kind is not pod.Pod and self.claims and self.claims in name:
            raise errors.UnreachableError("no")
        return await self._client.patch(kind, name, **options)

    async def bind(self, bound: pod.Pod, *, node: str) -> None:
        if bound.metadata.name == self.pods:
            raise errors.UnreachableError("no")
        await self._client.bind(bound, node=node)


async def test_what_was_written_for_a_gang_is_taken_back() -> None:
    """The claims of one pod cannot be written: reservations of the others go, and none is bound."""
    refusing: list[Refusing] = []

    def wrap(client: Client) -> Any:
        refusing.append(Refusing(client, claims="w1-gpu"))
        return refusing[0]

    async with schedulers.cluster(wrap=wrap, gates=GATES) as world:
        await world.create(*COMMON, *machine("n1", 2), worker("w0", "g", 2), worker("w1", "g", 2))
        assert await bound(world) == set()
        status, reason, _ = await world.condition("w0")
        assert (status, reason) == ("False", "SchedulerError")
        claims = await world.client.list(resourceclaim.ResourceClaim)
        assert [each.status.reserved_for for each in claims.items] == [(), ()]

        refusing[0].claims = ""
        await world.advance(30)
        assert await bound(world) == {"w0", "w1"}


async def test_a_pod_whose_binding_fails_when_others_are_bound_is_tried_again() -> None:
    refusing: list[Refusing] = []

    def wrap(client: Client) -> Any:
        refusing.append(Refusing(client, pods="w1"))
        return refusing[0]

    async with schedulers.cluster(wrap=wrap, gates=GATES) as world:
        await world.create(*COMMON, *machine("n1", 3), *(worker(f"w{number}", "g", 3) for number in range(3)))
        assert await bound(world) == {"w0"}
        claims = await world.client.list(resourceclaim.ResourceClaim)
        assert sorted(len(each.status.reserved_for) for each in claims.items) == [0, 0, 1]

        refusing[0].pods = ""
        await world.advance(30)
        assert await bound(world) == {"w0", "w1", "w2"}


@pytest.mark.parametrize("seed", range(6))
async def test_no_gang_is_ever_half_bound_at_rest(seed: int) -> None:
    chance = random.Random(seed)
    async with schedulers.cluster(gates=GATES, seed=seed) as world:
        await world.create(*COMMON, *machine("n0", 2), *machine("n1", 3))
        sizes: dict[str, int] = {}
        for number in range(14):
            match chance.randrange(4):
                case 0 | 1:
                    gang, size = f"g{number}", chance.randint(1, 4)
                    sizes[gang] = size
                    for each in range(size):
                        await world.put(worker(f"{gang}-{each}", gang, size, gpu=chance.random() < 0.8))
                case 2:
                    await world.create(*machine(f"m{number}", chance.randint(1, 2)))
                case _ if sizes:
                    gang = chance.choice(sorted(sizes))
                    for each in range(sizes.pop(gang)):
                        await world.client.delete(
                            pod.Pod, f"{gang}-{each}", namespace="default", grace_period_seconds=0
                        )
            await world.settle()
            await world.advance(15)
            names = await bound(world)
            for gang, size in sizes.items():
                assert sum(name.startswith(f"{gang}-") for name in names) in (0, size)


@pytest.mark.parametrize("seed", range(8))
async def test_a_plan_for_gangs_comes_true(seed: int) -> None:
    """What a plan promises is whole gangs, and a scheduler binds them once the nodes are there; none with one less."""
    chance = random.Random(seed)
    sizes = {f"g{number}": chance.randint(2, 4) for number in range(chance.randint(1, 3))}
    pods = [worker(f"{gang}-{each}", gang, size) for gang, size in sizes.items() for each in range(size)]
    there = machine("n0", chance.randint(0, 3))
    template, *slices = (each.build() for each in machine("template", chance.randint(1, 4)))
    group = NodeGroup(name="gpus", node=template, slices=tuple(slices), max=chance.randint(1, 4))
    plan: Plan | None = None
    for fewer in (0, 1):
        async with schedulers.cluster(scheduler=False) as world:
            await world.create(*COMMON, *there, *pods)
            if plan is None:
                simulation = Simulation(await livecluster.read(world.client), settings=Settings(gates=GATES))
                plan = Planner(simulation, [group]).plan()
                whole = {name.partition("/")[2].partition("-")[0] for name in plan.placed}
                assert len(plan.placed) == sum(sizes[gang] for gang in whole)
            count = plan.grow.get("gpus", 0) - fewer
            if count < 0:
                return
            names = group.new_names(count, ())
            await world.create(*(made for name in names for made in group.make(name)))
            for name, node_name in plan.placed.items():
                if node_name in names:
                    patch = patches.merge({"status": {"nominatedNodeName": node_name}})
                    short = name.partition("/")[2]
                    await world.client.patch(pod.Pod, short, patch=patch, namespace="default", subresource="status")
            await world.start(gates=GATES, seed=seed)
            promised = {name.partition("/")[2] for name in plan.placed}
            assert (promised <= await bound(world)) is not bool(fewer)
