"""Node taints with effect NoExecute: who leaves, when, and who may stay."""

from collections.abc import AsyncIterator

import pytest

from drachma.api import node, pod
from drachma.controllers.tainteviction import NodeTaintEviction
from drachma.testing import node as build_node
from tests.unit.controllers import builders, worlds

TAINT = {"key": "broken", "value": "v", "effect": "NoExecute"}


@pytest.fixture
async def world() -> AsyncIterator[worlds.World]:
    async with worlds.world(NodeTaintEviction) as running_world:
        yield running_world


async def on_node(world: worlds.World, name: str = "p", *tolerations: pod.Toleration) -> pod.Pod:
    return await world.create(builders.a_pod(name).on_node("n").phase("Running").spec(tolerations=tolerations).build())


async def tainted(world: worlds.World) -> node.Node:
    created_node = await world.client.create(build_node("n").build())
    return await world.patch(created_node, {"spec": {"taints": [TAINT]}})


async def going(world: worlds.World) -> list[str]:
    return [each.metadata.name for each in await world.all_of(pod.Pod) if each.metadata.deletion_timestamp is not None]


def tolerating(seconds: int | None = None, **fields: str) -> pod.Toleration:
    return pod.Toleration(**{"operator": "Exists", **fields}, toleration_seconds=seconds)


@pytest.mark.parametrize(
    ("tolerations", "want"),
    [
        pytest.param((), ["p"], id="nothing-tolerated"),
        pytest.param((tolerating(key="broken"),), [], id="key"),
        pytest.param((tolerating(),), [], id="everything"),
        pytest.param((tolerating(key="broken", operator="Equal", value="v"),), [], id="value"),
        pytest.param((tolerating(key="broken", operator="Equal", value="w"),), ["p"], id="another-value"),
        pytest.param((tolerating(key="other"),), ["p"], id="another-key"),
        pytest.param((tolerating(key="broken", effect="NoSchedule"),), ["p"], id="another-effect"),
        pytest.param((tolerating(0, key="broken", effect="NoExecute"),), ["p"], id="no-seconds"),
    ],
)
async def test_who_leaves_at_once(
    world: worlds.World, tolerations: tuple[pod.Toleration, ...], want: list[str]
) -> None:
    await on_node(world, "p", *tolerations)
    await world.create(builders.a_pod("elsewhere").on_node("other").phase("Running").build())
    await tainted(world)
    await world.settle()
    assert await going(world) == want


async def test_a_pod_that_comes_later_leaves_too(world: worlds.World) -> None:
    await tainted(world)
    await on_node(world)
    await world.settle()
    assert await going(world) == ["p"]
    assert await world.events() == ["Normal TaintManagerEviction: Marking for deletion Pod default/p"]
    (matching_pods,) = await world.all_of(pod.Pod)
    (why,) = (each for each in matching_pods.status.conditions if each.type == "DisruptionTarget")
    assert (why.reason, why.message) == (
        "DeletionByTaintManager",
        "Taint manager: deleting due to NoExecute taint",
    )
    assert world.metric("taint_eviction_controller_pod_deletions_total") == 1


async def test_tolerated_for_a_while(world: worlds.World) -> None:
    await on_node(world, "p", tolerating(30, key="broken", effect="NoExecute"))
    await tainted(world)
    await world.advance(29)
    assert await going(world) == []
    await world.advance(1)
    assert await going(world) == ["p"]


async def test_the_taint_goes_in_time(world: worlds.World) -> None:
    await on_node(world, "p", tolerating(30, key="broken", effect="NoExecute"))
    tainted_node = await tainted(world)
    await world.advance(20)
    await world.patch(tainted_node, {"spec": {"taints": None}})
    await world.advance(100)
    assert await going(world) == []
    assert await world.events() == ["Normal TaintManagerEviction: Cancelling deletion of Pod default/p"]


async def test_more_taints_do_not_give_more_time(world: worlds.World) -> None:
    await on_node(world, "p", tolerating(30, effect="NoExecute"))
    tainted_node = await tainted(world)
    await world.advance(20)
    await world.patch(tainted_node, {"spec": {"taints": [TAINT, {"key": "too", "effect": "NoExecute"}]}})
    await world.advance(10)
    assert await going(world) == ["p"]
