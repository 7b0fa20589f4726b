"""Pods that nobody ends any more, and ended ones that are too many."""

import pytest

from drachma.api import node, pod
from drachma.claims import taints
from drachma.controllers import podgc
from drachma.testing import node as build_node
from tests.unit.controllers import builders, worlds


def collector(threshold: int = 0) -> worlds.Make:
    return lambda env: podgc.PodGarbageCollector(env, terminated_threshold=threshold)


async def names(world: worlds.World) -> list[str]:
    return [each.metadata.name for each in await world.all_of(pod.Pod)]


async def a_node(world: worlds.World, *, ready: str = "True", taint: str = "") -> node.Node:
    taints = (node.Taint(key=taint, effect="NoExecute"),) if taint else ()
    created_node = build_node("n", taints=taints).build()
    created = await world.create(created_node)
    return await world.patch_status(created, {"conditions": [{"type": "Ready", "status": ready}]})


async def test_ended_pods_beyond_the_threshold_go_oldest_first() -> None:
    async with worlds.world(collector(2)) as world:
        for name, phase in (("d", "Succeeded"), ("c", "Failed"), ("b", "Succeeded"), ("a", "Running")):
            await world.create(builders.a_pod(name).phase(phase).build())
            await world.advance(1)
        evicted = await world.create(builders.a_pod("e").phase("Failed").build())
        await world.patch_status(evicted, {"phase": "Failed", "reason": "Evicted"})
        await world.advance(20)
        assert await names(world) == ["a", "b", "c"], "the evicted one first, then the oldest"
        labels = {"namespace": "default", "reason": "terminated"}
        assert world.metric("pod_gc_collector_force_delete_pods_total", **labels) == 2


async def test_pods_of_a_node_that_is_gone() -> None:
    async with worlds.world(collector()) as world:
        n = await a_node(world)
        held = builders.a_pod("p").on_node("n").phase("Running").finalizer("example.com/hold")
        orphan = await world.create(held.build())
        await world.create(builders.a_pod("q").on_node("n").phase("Succeeded").build())
        await world.advance(120)
        assert await names(world) == ["p", "q"]
        await world.delete(n)
        await world.advance(50)
        assert await names(world) == ["p", "q"], "it may come back"
        await world.advance(20)
        assert await names(world) == ["p"], "and what has a finalizer is held by it"
        stored_pod = await world.get(orphan)
        assert stored_pod.status.phase == "Failed"
        (condition,) = (each for each in stored_pod.status.conditions if each.type == "DisruptionTarget")
        assert (condition.status, condition.reason, condition.message) == (
            "True",
            "DeletionByPodGC",
            "PodGC: node no longer exists",
        )


async def test_a_node_that_the_informer_does_not_know_is_asked_for() -> None:
    async with worlds.world(collector()) as world:
        world.surroundings.informers.of(node.Node)._handle = lambda event: None  # type: ignore[method-assign]
        await a_node(world)
        await world.create(builders.a_pod("p").on_node("n").phase("Running").build())
        await world.advance(300)
        assert await names(world) == ["p"]


@pytest.mark.parametrize(
    ("ready", "taint", "want"),
    [
        pytest.param("False", taints.OUT_OF_SERVICE, [], id="out-of-service"),
        pytest.param("Unknown", taints.OUT_OF_SERVICE, [], id="out-of-service-and-unknown"),
        pytest.param("True", taints.OUT_OF_SERVICE, ["p"], id="but-ready"),
        pytest.param("False", "example.com/other", ["p"], id="only-not-ready"),
    ],
)
async def test_pods_that_go_on_a_node_out_of_service(ready: str, taint: str, want: list[str]) -> None:
    async with worlds.world(collector()) as world:
        await a_node(world, ready=ready, taint=taint)
        going = await world.create(builders.a_pod("p").on_node("n").phase("Running").build())
        await world.create(builders.a_pod("stays").on_node("n").phase("Running").build())
        await world.delete(going)
        await world.advance(20)
        assert await names(world) == [*want, "stays"]


async def test_pods_that_go_and_never_had_a_node() -> None:
    async with worlds.world(collector()) as world:
        created_pod = await world.create(builders.a_pod("p").finalizer("example.com/hold").build())
        await world.create(builders.a_pod("stays").build())
        await world.delete(created_pod)
        await world.advance(20)
        assert (await world.get(created_pod)).status.phase == "Failed"
        assert await names(world) == ["p", "stays"]
