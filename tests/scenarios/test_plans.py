"""Plans come true: what a plan promises is scheduled once its nodes are there, and not with one node less."""

import asyncio
import random
from collections.abc import Mapping
from typing import NamedTuple

import pytest

from drachma import testing
from drachma.api import job, meta, pod
from drachma.client import patches
from drachma.offline import clusterfiles
from drachma.simulate import ClusterState, NodeGroup, Simulation, livecluster
from drachma.simulate.growth import Objective, Plan, Planner
from tests.scenarios import schedulers

DRIVER = "gpu.example.com"


class World(NamedTuple):
    """A cluster, pods that want to run there, and nodes that can be had."""

    objects: list[meta.Object]
    pods: list[meta.Object]
    groups: list[NodeGroup]


def machine(name: str, *, cpu: int, gpus: int) -> list[meta.Object]:
    made: list[meta.Object] = [
        testing.node(name, allocatable={"cpu": str(cpu), "memory": "64Gi", "pods": "110"}).build()
    ]
    if gpus:
        names = [f"gpu-{number}" for number in range(gpus)]
        slices = testing.resource_slice(f"{name}-gpus", driver=DRIVER, pool=name).on_node(name).devices(*names)
        made.append(slices.build())
    return made


def group(name: str, *, cpu: int, gpus: int, price: int) -> NodeGroup:
    node, *slices = machine("template", cpu=cpu, gpus=gpus)
    return NodeGroup(name=name, node=node, slices=tuple(slices), price=price, max=6)  # type: ignore[arg-type]


def world_of(chance: random.Random) -> World:
    objects: list[meta.Object] = [testing.device_class(DRIVER, f'device.driver == "{DRIVER}"').build()]
    objects += (
        testing.claim_template(f"gpus-{number}").request("r", device_class=DRIVER, count=number).build()
        for number in range(1, 4)
    )
    for number in range(chance.randint(0, 2)):
        objects += machine(f"node-{number}", cpu=chance.choice([2, 4, 8]), gpus=chance.randint(0, 3))
    pods: list[meta.Object] = []
    for number in range(chance.randint(1, 7)):
        made = testing.pod(f"pod-{number}").container("c", requests={"cpu": str(chance.randint(1, 4))})
        gpus = chance.randint(0, 3)
        pods.append((made.claim("gpu", template=f"gpus-{gpus}") if gpus else made).build())
    groups = [
        group(f"group-{number}", cpu=chance.choice([2, 4, 16]), gpus=chance.randint(0, 4), price=chance.randint(1, 9))
        for number in range(chance.randint(1, 3))
    ]
    return World(objects, pods, groups)


async def bound(
    world: World, grow: Mapping[str, int] | None, *, nominated: Mapping[str, str] | None = None, seed: int
) -> tuple[ClusterState, set[str]]:
    """The cluster before its scheduler starts, and the pods that have a node once it has grown."""
    async with schedulers.cluster(scheduler=False) as running:
        await running.create(*world.objects, *world.pods)
        state = await livecluster.read(running.client)
        if grow is None:
            return state, set()
        await running.start(seed=seed)
        await running.kill()
        for each in world.groups:
            names = each.new_names(grow.get(each.name, 0), ())
            await running.create(*(made for name in names for made in each.make(name)))
        for name, node in (nominated or {}).items():
            if "-new-" in node:
                patch = patches.merge({"status": {"nominatedNodeName": node}})
                short = name.partition("/")[2]
                await running.client.patch(pod.Pod, short, patch=patch, namespace="default", subresource="status")
        await running.start("again", seed=seed + 1)
        pods = (await livecluster.read(running.client)).all(pod.Pod)
        return state, {f"default/{each.metadata.name}" for each in pods if each.spec.node_name}


def planned(state: ClusterState, world: World, objective: Objective) -> Plan:
    return Planner(Simulation(state), world.groups, objective=objective).plan()


@pytest.mark.parametrize("seed", range(40))
async def test_a_plan_is_right(seed: int) -> None:
    chance = random.Random(seed)
    world = world_of(chance)
    objective = chance.choice(list(Objective))
    state, _ = await bound(world, None, seed=seed)
    plan = planned(state, world, objective)
    assert len(plan.placed) + len(plan.pending) == len(world.pods)
    _, running = await bound(world, plan.grow, nominated=plan.placed, seed=seed)
    assert set(plan.placed) <= running
    for name, count in plan.grow.items():
        _, fewer = await bound(world, {**plan.grow, name: count - 1}, seed=seed)
        assert not set(plan.placed) <= fewer, f"{name} need not grow by {count}"


async def test_pods_that_would_come_on_a_server_count_as_in_files() -> None:
    async with schedulers.cluster(scheduler=False) as world:
        await world.priorities(7)
        spec = {"containers": [{"name": "c", "image": "x", "env": [{"name": "PASSWORD", "value": "hidden"}]}]}
        template = {"spec": {**spec, "restartPolicy": "Never", "priorityClassName": "priority-7"}}
        for name, suspend in (("waits", True), ("runs", False)):
            document = {"metadata": {"name": name, "namespace": "default"}, "apiVersion": "batch/v1", "kind": "Job"}
            await world.client.create_document(
                job.Job, {**document, "spec": {"suspend": suspend, "parallelism": 2, "template": template}}
            )
        state = await livecluster.read(world.client)
        awaited = await livecluster.read_workloads(world.client)
        assert "hidden" not in str(awaited)
        # It runs a server of its own, in thought.
        whole = await asyncio.to_thread(clusterfiles.expect, state, awaited)
        assert whole.problems == ()
        coming = [each for each in whole.state.all(pod.Pod) if each not in state.all(pod.Pod)]
        assert [(each.metadata.name, each.spec.priority) for each in coming] == [("waits-0", 7), ("waits-1", 7)]
