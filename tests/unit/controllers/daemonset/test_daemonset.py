"""Daemon sets: which nodes get a pod, how pods are replaced, and the status, with machines that a test plays."""

from collections import Counter
from collections.abc import AsyncIterator
from typing import Any

import pytest

from drachma.api import controllerrevision, daemonset, node, pod
from drachma.client import patches
from drachma.controllers.daemonset import DaemonSetController
from tests.unit.controllers import machines, worlds

DaemonSet = daemonset.DaemonSet
Revision = controllerrevision.ControllerRevision


@pytest.fixture
async def world() -> AsyncIterator[worlds.World]:
    async with worlds.world(DaemonSetController) as running_world:
        for number in range(3):
            await a_node(running_world, f"n{number}", labels={"zone": "a" if number else "b"})
        yield running_world


async def a_node(world: worlds.World, name: str, **parts: Any) -> None:
    labels, spec = parts.get("labels", {}), parts.get("spec", {})
    await world.client.create_document(node.Node, {"metadata": {"name": name, "labels": labels}, "spec": spec})
    await world.settle()


def a_set(*, image: str = "d:1", pod_spec: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": "d", "namespace": "default"},
        "spec": {
            "selector": {"matchLabels": {"app": "d"}},
            "template": {
                "metadata": {"labels": {"app": "d"}},
                "spec": {"containers": [{"name": "c", "image": image}], **(pod_spec or {})},
            },
            **spec,
        },
    }


async def create(world: worlds.World, document: dict[str, Any]) -> None:
    await world.client.create_document(DaemonSet, document)
    await world.settle()


async def roll_to(world: worlds.World, image: str) -> None:
    spec = {"template": {"spec": {"containers": [{"name": "c", "image": image}]}}}
    await world.client.patch(DaemonSet, "d", patch=patches.strategic({"spec": spec}), namespace="default")
    await world.settle()


async def bind_all(world: worlds.World) -> None:
    """Pods are bound to the nodes that they are meant for, and run there."""
    for each in await world.all_of(pod.Pod):
        if not each.spec.node_name:
            await world.client.bind(each, node=await meant_for(each))
    await machines.ready(world)


async def meant_for(of: pod.Pod) -> str:
    affinity = of.spec.affinity
    assert affinity is not None
    assert affinity.node_affinity is not None
    required = affinity.node_affinity.required_during_scheduling_ignored_during_execution
    assert required is not None
    return required.node_selector_terms[0].match_fields[0].values[0]


async def nodes(world: worlds.World) -> list[str]:
    return sorted([await meant_for(each) for each in await world.all_of(pod.Pod)])


async def images(world: worlds.World) -> dict[str, int]:
    pods = await world.all_of(pod.Pod)
    return dict(Counter(each.spec.containers[0].image for each in pods if not each.metadata.deletion_timestamp))


async def status(world: worlds.World) -> dict[str, Any]:
    document = await world.client.get_document(DaemonSet, "d", namespace="default")
    content: dict[str, Any] = document["status"]
    return content


async def test_a_pod_on_every_node(world: worlds.World) -> None:
    await create(world, a_set())
    assert await nodes(world) == ["n0", "n1", "n2"]
    await a_node(world, "n3")
    assert await nodes(world) == ["n0", "n1", "n2", "n3"]
    await bind_all(world)
    assert await status(world) == {
        "currentNumberScheduled": 4,
        "desiredNumberScheduled": 4,
        "numberAvailable": 4,
        "numberMisscheduled": 0,
        "numberReady": 4,
        "observedGeneration": 1,
        "updatedNumberScheduled": 4,
    }


async def test_what_a_pod_is(world: worlds.World) -> None:
    await create(world, a_set(pod_spec={"nodeSelector": {"zone": "b"}, "hostNetwork": True}))
    (created_pod,) = await world.all_of(pod.Pod)
    (revision,) = await world.all_of(Revision)
    mark = revision.metadata.labels["controller-revision-hash"]
    assert created_pod.metadata.labels == {"app": "d", "controller-revision-hash": mark, "pod-template-generation": "1"}
    assert revision.metadata.name == f"d-{mark}"
    assert [(each.key.rpartition("/")[2], each.effect) for each in created_pod.spec.tolerations] == [
        ("not-ready", "NoExecute"),
        ("unreachable", "NoExecute"),
        ("disk-pressure", "NoSchedule"),
        ("memory-pressure", "NoSchedule"),
        ("pid-pressure", "NoSchedule"),
        ("unschedulable", "NoSchedule"),
        ("network-unavailable", "NoSchedule"),
    ]


async def test_taints_keep_pods_away_or_drive_them_out(world: worlds.World) -> None:
    await create(world, a_set())
    await bind_all(world)

    async def taint(name: str, effect: str) -> None:
        spec = {"taints": [{"key": "k", "effect": effect}]}
        await world.client.patch(node.Node, name, patch=patches.merge({"spec": spec}))
        await world.settle()

    await taint("n0", "NoSchedule")
    assert len(await machines.names(world)) == 3
    counts = await status(world)
    assert (counts["desiredNumberScheduled"], counts["numberMisscheduled"]) == (2, 1)
    await taint("n1", "NoExecute")
    assert len(await machines.names(world)) == 2
    await a_node(world, "n3", spec={"taints": [{"key": "k", "effect": "NoSchedule"}]})
    assert "n3" not in await nodes(world)


async def test_pods_are_replaced_one_by_one(world: worlds.World) -> None:
    await create(world, a_set())
    await bind_all(world)
    await roll_to(world, "d:2")
    assert len(await machines.going(world)) == 1
    for want in (1, 2, 3):
        await machines.sweep(world)
        await bind_all(world)
        assert (await images(world))["d:2"] == want
    counts = await status(world)
    assert (counts["updatedNumberScheduled"], counts["numberAvailable"]) == (3, 3)


async def test_new_pods_run_beside_old_ones(world: worlds.World) -> None:
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
    await create(world, a_set(updateStrategy=strategy))
    await bind_all(world)
    await roll_to(world, "d:2")
    assert await images(world) == {"d:1": 3, "d:2": 1}
    await bind_all(world)
    # The old pod goes, and the next node has its turn.
    assert await images(world) == {"d:1": 2, "d:2": 2}
    for _ in range(4):
        await machines.sweep(world)
        await bind_all(world)
    assert await images(world) == {"d:2": 3}


async def test_nothing_is_replaced_but_what_is_deleted(world: worlds.World) -> None:
    await create(world, a_set(updateStrategy={"type": "OnDelete"}))
    await bind_all(world)
    await roll_to(world, "d:2")
    assert await images(world) == {"d:1": 3}
    name = (await machines.names(world))[0]
    await world.client.delete(pod.Pod, name, namespace="default", grace_period_seconds=0)
    await world.settle()
    assert await images(world) == {"d:1": 2, "d:2": 1}


async def test_history(world: worlds.World) -> None:
    await create(world, a_set(revisionHistoryLimit=1, updateStrategy={"type": "RollingUpdate"}))
    await bind_all(world)
    for image in ("d:2", "d:3", "d:2"):
        await roll_to(world, image)
        for _ in range(4):
            await machines.sweep(world)
            await bind_all(world)
    revisions = sorted(await world.all_of(Revision), key=lambda each: each.revision)
    assert [each.revision for each in revisions] == [3, 4]
    held = [each.data["spec"]["template"]["spec"]["containers"][0]["image"] for each in revisions]
    assert held == ["d:3", "d:2"]


async def test_a_pod_that_failed_is_made_anew_after_longer_and_longer_pauses(world: worlds.World) -> None:
    await create(world, a_set(pod_spec={"nodeSelector": {"zone": "b"}}))
    for pause in (0, 1, 2):
        await bind_all(world)
        (name,) = await machines.names(world)
        await machines.end(world, name, "Failed")
        if pause:
            assert await machines.names(world) == [name]
            await world.advance(pause)
        await machines.sweep(world)
        assert await machines.names(world) != [name]
    failures = [each for each in await world.events() if "FailedDaemonPod" in each]
    assert failures
    assert failures[0].endswith("on node n0, will try to kill it")


async def test_pods_for_a_node_that_is_gone(world: worlds.World) -> None:
    await create(world, a_set())
    await world.client.delete(node.Node, "n0")
    await world.settle()
    assert await nodes(world) == ["n1", "n2"]


async def test_pods_are_replaced_in_the_order_of_their_nodes(world: worlds.World) -> None:
    await create(world, a_set())
    await bind_all(world)
    await roll_to(world, "d:2")
    order = []
    for _ in range(3):
        (name,) = await machines.going(world)
        order += [each.spec.node_name for each in await world.all_of(pod.Pod) if each.metadata.name == name]
        await machines.sweep(world)
        await bind_all(world)
    assert order == sorted(order)
