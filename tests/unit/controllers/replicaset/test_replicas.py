"""Replica sets and replication controllers: how many pods there are, whose they are, and what the status says."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from drachma.api import meta, pod, replicaset, replicationcontroller
from drachma.client import patches
from drachma.controllers.replicaset import ReplicaSetController, ReplicationManager
from tests.unit.controllers import machines, worlds

LABELS = {"app": "web"}
SELECTORS: dict[type[meta.Object], dict[str, Any]] = {
    replicaset.ReplicaSet: {"matchLabels": LABELS},
    replicationcontroller.ReplicationController: LABELS,
}


@pytest.fixture
async def world() -> AsyncIterator[worlds.World]:
    async with worlds.world(ReplicaSetController, ReplicationManager) as running_world:
        yield running_world


@pytest.fixture(params=SELECTORS, ids=lambda kind: kind.__name__)
def kind(request: pytest.FixtureRequest) -> type[meta.Object]:
    chosen: type[meta.Object] = request.param
    return chosen


async def create(world: worlds.World, kind: type[meta.Object], replicas: int, **pod_spec: Any) -> None:
    template = {
        "metadata": {"labels": LABELS},
        "spec": {"containers": [{"name": "c", "image": "i"}], **pod_spec},
    }
    spec = {"replicas": replicas, "selector": SELECTORS[kind], "template": template}
    await world.client.create_document(kind, {"metadata": {"name": "web", "namespace": "default"}, "spec": spec})
    await world.settle()


async def scale(world: worlds.World, kind: type[meta.Object], replicas: int) -> None:
    content = {"spec": {"replicas": replicas}}
    await world.client.patch(kind, "web", patch=patches.merge(content), namespace="default")
    await world.settle()


async def status(world: worlds.World, kind: type[meta.Object]) -> dict[str, Any]:
    document = await world.client.get_document(kind, "web", namespace="default")
    content: dict[str, Any] = document["status"]
    return content


async def test_as_many_pods_as_are_wanted(world: worlds.World, kind: type[meta.Object]) -> None:
    await create(world, kind, 3)
    await machines.ready(world)
    counts = await status(world, kind)
    assert (counts["replicas"], counts["readyReplicas"], counts["fullyLabeledReplicas"]) == (3, 3, 3)
    await scale(world, kind, 1)
    assert len(await machines.names(world)) == 1
    name = (await machines.names(world))[0]
    await world.client.delete(pod.Pod, name, namespace="default", grace_period_seconds=0)
    await world.settle()
    assert len(await machines.names(world)) == 1


async def test_pods_that_match_are_adopted(world: worlds.World, kind: type[meta.Object]) -> None:
    document = {
        "metadata": {"name": "stray", "namespace": "default", "labels": LABELS},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    }
    await world.client.create_document(pod.Pod, document)
    await create(world, kind, 1)
    assert await machines.names(world) == ["stray"]
    (stray,) = await world.all_of(pod.Pod)
    assert [(each.kind, each.controller) for each in stray.metadata.owner_references] == [(kind.__name__, True)]
    await world.patch(stray, {"metadata": {"labels": {"app": "other"}}})
    await world.settle()
    former = await world.get(stray)
    assert former.metadata.owner_references == ()
    assert len(await machines.names(world)) == 2


async def test_pods_that_are_refused(world: worlds.World, kind: type[meta.Object]) -> None:
    await create(world, kind, 1, priorityClassName="none-of-that-name")
    (condition,) = (await status(world, kind))["conditions"]
    assert (condition["type"], condition["reason"]) == ("ReplicaFailure", "FailedCreate")
    assert any(each.startswith("Warning FailedCreate: Error creating: ") for each in await world.events())
