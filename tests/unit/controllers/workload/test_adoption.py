"""Adoption where the cache is behind: nothing is decided on what it says then."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from drachma import errors
from drachma.api import pod, replicaset
from drachma.client import patches
from drachma.controllers.workload import adoption, expectations
from tests.unit.controllers import worlds

Set = replicaset.ReplicaSet


@pytest.fixture
async def world() -> AsyncIterator[worlds.World]:
    async with worlds.world() as running_world:
        yield running_world


@pytest.fixture
def adopter(world: worlds.World) -> adoption.Adopter[pod.Pod]:
    expected = expectations.Expectations(world.surroundings.informers.of(pod.Pod))
    return adoption.Adopter(world.client, pod.Pod, expected_writes=expected)


async def owner(world: worlds.World) -> Set:
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec = {"replicas": 0, "selector": {"matchLabels": {"app": "web"}}, "template": template}
    await world.client.create_document(Set, {"metadata": {"name": "web", "namespace": "default"}, "spec": spec})
    return await world.client.get(Set, "web", namespace="default")


async def orphan(world: worlds.World) -> pod.Pod:
    spec = {"containers": [{"name": "c", "image": "i"}]}
    document: dict[str, Any] = {"metadata": {"name": "p", "namespace": "default"}, "spec": spec}
    await world.client.create_document(pod.Pod, document)
    return await world.client.get(pod.Pod, "p", namespace="default")


async def test_who_belongs_to_nobody_is_adopted(world: worlds.World, adopter: adoption.Adopter[pod.Pod]) -> None:
    (adopted,) = await adopter.claim(await owner(world), [await orphan(world)], matches=lambda _: True)
    assert [each.name for each in adopted.metadata.owner_references] == ["web"]


async def test_an_owner_that_is_gone_decides_nothing(world: worlds.World, adopter: adoption.Adopter[pod.Pod]) -> None:
    former, orphan_pod = await owner(world), await orphan(world)
    await world.delete(former)
    with pytest.raises(errors.ReconcileError, match="default/web adopts nothing: it is gone"):
        await adopter.claim(former, [orphan_pod], matches=lambda _: True)


async def test_an_owner_that_goes_decides_nothing(world: worlds.World, adopter: adoption.Adopter[pod.Pod]) -> None:
    former, orphan_pod = await owner(world), await orphan(world)
    await world.delete(former, propagation="Foreground")
    with pytest.raises(errors.ReconcileError, match="default/web adopts nothing: it has just been deleted"):
        await adopter.claim(former, [orphan_pod], matches=lambda _: True)


async def test_who_has_changed_since_is_not_taken_for_absent(
    world: worlds.World, adopter: adoption.Adopter[pod.Pod]
) -> None:
    """Otherwise another one would be made in its place."""
    orphan_pod = await orphan(world)
    label = patches.merge({"metadata": {"labels": {"a": "b"}}})
    await world.client.patch(pod.Pod, "p", patch=label, namespace="default")
    with pytest.raises(errors.ObjectConflictError):
        await adopter.claim(await owner(world), [orphan_pod], matches=lambda _: True)


async def test_who_is_gone_is_left_out(world: worlds.World, adopter: adoption.Adopter[pod.Pod]) -> None:
    orphan_pod = await orphan(world)
    await world.client.delete(pod.Pod, "p", namespace="default", grace_period_seconds=0)
    assert await adopter.claim(await owner(world), [orphan_pod], matches=lambda _: True) == []
