"""Nodes that are silent, not ready or under pressure: their conditions, their taints, and how fast those come."""

import datetime as dt
from collections.abc import AsyncIterator
from typing import Any

import pytest

from drachma.api import lease, node, pod
from drachma.client import patches
from drachma.controllers.nodelifecycle import NodeLifecycle, zones
from drachma.testing import node as build_node
from tests.unit.controllers import builders, worlds

ALL_CONDITIONS = ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure")


@pytest.fixture
async def world() -> AsyncIterator[worlds.World]:
    async with worlds.world(NodeLifecycle) as running_world:
        yield running_world


async def a_node(world: worlds.World, name: str = "n", *, ready: str = "True", **fields: Any) -> node.Node:
    created = await world.client.create(build_node(name, **fields).build())
    return await world.patch_status(created, {"conditions": [{"type": "Ready", "status": ready}]})


async def renew(world: worlds.World, *names: str) -> None:
    """A sign of life of nodes."""
    moment = world.clock.utc().strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    for name in names:
        document = {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": name, "namespace": "kube-node-lease"},
            "spec": {"holderIdentity": name, "leaseDurationSeconds": 40, "renewTime": moment},
        }
        stored_lease = await world.find(lease.Lease, name, "kube-node-lease")
        if stored_lease is None:
            await world.client.create_document(lease.Lease, document)
        else:
            patch = patches.merge({"spec": {"renewTime": moment}})
            await world.client.patch(lease.Lease, name, patch=patch, namespace="kube-node-lease")


async def live(world: worlds.World, *names: str, seconds: int) -> None:
    """Lets time pass in which these nodes, and no others, renew their leases."""
    for _ in range(seconds // 10):
        await renew(world, *names)
        await world.advance(10)


async def shown(world: worlds.World, name: str = "n") -> list[str]:
    """The taints of a node, without the prefix they all have."""
    stored_node = await world.find(node.Node, name)
    assert stored_node is not None
    return sorted(
        f"{taint.key.removeprefix('node.kubernetes.io/')}:{taint.effect}" for taint in stored_node.spec.taints
    )


async def status_of(world: worlds.World, name: str = "n") -> dict[str, str]:
    stored_node = await world.find(node.Node, name)
    assert stored_node is not None
    return {each.type: f"{each.status} {each.reason}" for each in stored_node.status.conditions}


# Conditions become taints


@pytest.mark.parametrize(
    ("condition", "status", "want"),
    [
        pytest.param("Ready", "False", ["not-ready:NoSchedule"], id="not-ready"),
        pytest.param("Ready", "Unknown", ["unreachable:NoSchedule"], id="unreachable"),
        pytest.param("Ready", "True", [], id="ready"),
        pytest.param("MemoryPressure", "True", ["memory-pressure:NoSchedule"], id="memory"),
        pytest.param("DiskPressure", "True", ["disk-pressure:NoSchedule"], id="disk"),
        pytest.param("PIDPressure", "True", ["pid-pressure:NoSchedule"], id="pids"),
        pytest.param("NetworkUnavailable", "True", ["network-unavailable:NoSchedule"], id="network"),
        pytest.param("MemoryPressure", "False", [], id="no-pressure"),
    ],
)
async def test_conditions_keep_pods_away(world: worlds.World, condition: str, status: str, want: list[str]) -> None:
    created_node = await a_node(world)
    await a_node(world, "other")
    await world.settle()
    await world.patch_status(created_node, {"conditions": [{"type": condition, "status": status}]})
    await world.settle()
    assert await shown(world) == want
    await world.patch_status(created_node, {"conditions": [{"type": "Ready", "status": "True"}]})
    await world.settle()
    assert await shown(world) == []


async def test_taints_of_others_stay(world: worlds.World) -> None:
    mine = node.Taint(key="example.com/mine", value="v", effect="NoSchedule")
    created_node = await a_node(world, taints=(mine,))
    await world.patch(created_node, {"spec": {"unschedulable": True}})
    await world.settle()
    assert await shown(world) == ["example.com/mine:NoSchedule", "unschedulable:NoSchedule"]
    await world.patch(created_node, {"spec": {"unschedulable": None}})
    await world.settle()
    stored_node = await world.get(created_node)
    assert stored_node.spec.taints == (mine,)


# Silence


async def test_a_node_that_renews_its_lease_is_left_alone(world: worlds.World) -> None:
    await a_node(world)
    await live(world, "n", seconds=300)
    assert await status_of(world) == {"Ready": "True "}
    assert await shown(world) == []


async def test_a_silent_node_becomes_unknown_and_comes_back(world: worlds.World) -> None:
    created_node = await a_node(world)
    await a_node(world, "other")
    await live(world, "n", "other", seconds=20)
    await live(world, "other", seconds=40)
    assert await shown(world) == []
    await live(world, "other", seconds=20)
    assert await status_of(world) == {
        "Ready": "Unknown NodeStatusUnknown",
        **dict.fromkeys(ALL_CONDITIONS[1:], "Unknown NodeStatusNeverUpdated"),
    }
    assert await shown(world) == ["unreachable:NoExecute", "unreachable:NoSchedule"]
    assert "Normal NodeNotReady: Node n status is now: NodeNotReady" in await world.events()
    await world.patch_status(created_node, {"conditions": [{"type": "Ready", "status": "True"}]})
    await live(world, "n", "other", seconds=20)
    assert await shown(world) == []


async def test_a_renewal_counts_though_the_clock_of_the_node_went_back(world: worlds.World) -> None:
    await a_node(world)
    await live(world, "n", seconds=30)
    for second in range(0, 300, 10):
        moment = (world.clock.utc() - dt.timedelta(hours=2)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        patch = patches.merge({"spec": {"renewTime": moment}})
        await world.client.patch(lease.Lease, "n", patch=patch, namespace="kube-node-lease")
        await world.advance(10)
        assert (await status_of(world))["Ready"].startswith("True"), f"after {second} s"


async def test_heartbeats_in_the_status_count_too(world: worlds.World) -> None:
    created_node = await a_node(world)
    for _ in range(10):
        beat = {"type": "Ready", "status": "True", "lastHeartbeatTime": world.clock.utc()}
        await world.patch_status(created_node, {"conditions": [beat]})
        await world.advance(40)
    assert (await status_of(world))["Ready"].startswith("True")
    await world.advance(60)
    assert (await status_of(world))["Ready"].startswith("Unknown")


async def test_a_node_made_anew_between_two_looks_has_all_its_time(world: worlds.World) -> None:
    beat = {"type": "Ready", "status": "True", "lastHeartbeatTime": world.clock.utc()}

    for _ in range(4):
        created_node = await world.client.create(build_node("n").build())
        await world.patch_status(created_node, {"conditions": [beat]})
        await world.advance(30)
        assert await shown(world) == []
        await world.client.delete(node.Node, "n")


async def test_a_node_that_was_made_by_hand_is_left_alone(world: worlds.World) -> None:
    await a_node(world)
    await world.advance(3600)
    assert await status_of(world) == {"Ready": "True "}


async def test_a_new_node_has_more_time(world: worlds.World) -> None:
    created = await world.client.create(build_node("n").build())
    await world.patch_status(created, {"conditions": None})
    await renew(world, "n")
    await world.advance(60)
    assert await status_of(world) == {}
    await world.advance(10)
    assert await status_of(world) == dict.fromkeys(ALL_CONDITIONS, "Unknown NodeStatusNeverUpdated")


async def test_a_lease_that_this_process_missed() -> None:
    async with worlds.world(NodeLifecycle) as world:
        await a_node(world)
        await renew(world, "n")
        await world.advance(10)
        world.surroundings.informers.of(lease.Lease)._handle = lambda event: None  # type: ignore[method-assign]
        await live(world, "n", seconds=300)
        assert await status_of(world) == {"Ready": "True "}


async def test_pods_of_a_silent_node_are_not_ready(world: worlds.World) -> None:
    await a_node(world)
    await a_node(world, "other")
    running = await world.create(builders.a_pod("p").on_node("n").phase("Running").build())
    elsewhere = await world.create(builders.a_pod("q").on_node("other").phase("Running").build())
    for each in (running, elsewhere):
        await world.patch_status(each, {"conditions": [{"type": "Ready", "status": "True"}]})
    await renew(world, "n")
    await live(world, "other", seconds=70)
    assert {each.metadata.name: _ready(each) for each in await world.all_of(pod.Pod)} == {"p": "False", "q": "True"}
    assert "Warning NodeNotReady: Node is not ready" in await world.events()


def _ready(of: pod.Pod) -> str:
    return next(each.status for each in of.status.conditions if each.type == "Ready")


# How fast


async def test_nodes_are_emptied_one_after_another(world: worlds.World) -> None:
    for number in range(6):
        await a_node(world, f"n{number}", ready="False" if number < 2 else "True")
    await world.advance(6)
    emptied = [name for name in ("n0", "n1") if "not-ready:NoExecute" in await shown(world, name)]
    assert len(emptied) == 1
    await world.advance(10)
    emptied = [name for name in ("n0", "n1") if "not-ready:NoExecute" in await shown(world, name)]
    assert len(emptied) == 2
    assert world.metric("node_collector_evictions_total", zone="") == 2
    assert world.metric("node_collector_unhealthy_nodes_in_zone", zone="") == 2


async def test_when_no_node_is_ready_nobody_has_to_go(world: worlds.World) -> None:
    created_node = [await a_node(world, name) for name in ("a", "b", "c")]
    await world.advance(5)
    await world.patch_status(created_node[0], {"conditions": [{"type": "Ready", "status": "False"}]})
    await world.advance(10)
    assert await shown(world, "a") == ["not-ready:NoExecute", "not-ready:NoSchedule"]
    for each in created_node[1:]:
        await world.patch_status(each, {"conditions": [{"type": "Ready", "status": "False"}]})
    await world.advance(60)
    for name in ("a", "b", "c"):
        assert await shown(world, name) == ["not-ready:NoSchedule"]
    await world.patch_status(created_node[1], {"conditions": [{"type": "Ready", "status": "True"}]})
    await world.advance(30)
    assert await shown(world, "a") == ["not-ready:NoExecute", "not-ready:NoSchedule"]


async def test_one_reason_replaces_the_other(world: worlds.World) -> None:
    created_node = await a_node(world, ready="False")
    await a_node(world, "other")
    await world.advance(10)
    assert await shown(world) == ["not-ready:NoExecute", "not-ready:NoSchedule"]
    await world.patch_status(created_node, {"conditions": [{"type": "Ready", "status": "Unknown"}]})
    await world.advance(10)
    assert await shown(world) == ["unreachable:NoExecute", "unreachable:NoSchedule"]


async def test_nodes_come_and_go_with_events(world: worlds.World) -> None:
    created_node = await a_node(world)
    await world.advance(5)
    await world.delete(created_node)
    await world.advance(5)
    assert await world.events() == [
        "Normal RegisteredNode: Node n event: Registered Node n in Controller",
        "Normal RemovingNode: Node n event: Removing Node n from Controller",
    ]


@pytest.mark.parametrize(
    ("ready", "unready", "want"),
    [
        pytest.param(5, 0, zones.State.NORMAL, id="all-ready"),
        pytest.param(0, 1, zones.State.FULL, id="none-ready"),
        pytest.param(1, 2, zones.State.NORMAL, id="two-are-few"),
        pytest.param(2, 3, zones.State.PARTIAL, id="most-unready"),
        pytest.param(6, 5, zones.State.NORMAL, id="less-than-the-threshold"),
        pytest.param(0, 0, zones.State.NORMAL, id="empty"),
    ],
)
def test_states_of_zones(ready: int, unready: int, want: zones.State) -> None:
    assert zones.state_of(zones.Health(ready, unready), zones.Settings()) is want


@pytest.mark.parametrize(
    ("ready", "unready", "want"),
    [
        pytest.param(99, 1, 10, id="normal-ten-in-100-seconds"),
        pytest.param(10, 40, 0, id="small-and-disrupted-stops"),
        pytest.param(20, 80, 1, id="large-and-disrupted-goes-on-slowly"),
    ],
)
def test_pace_of_zones(ready: int, unready: int, want: int) -> None:
    pace = zones.Zones(zones.Settings())
    pace.update({"z": zones.Health(ready, unready), "other": zones.Health(1, 0)}, now=0)
    assert sum(pace.take("z", now=float(second)) for second in range(100)) == want
