"""Stateful sets: order, names, volumes, revisions and status, on a server with machines that a test plays."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from drachma.api import controllerrevision, persistentvolumeclaim, pod, statefulset
from drachma.client import patches
from drachma.controllers.statefulset import StatefulSetController
from tests.unit.controllers import machines, worlds

Set = statefulset.StatefulSet
Revision = controllerrevision.ControllerRevision
Claim = persistentvolumeclaim.PersistentVolumeClaim

DATA = {
    "metadata": {"name": "data"},
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
}


@pytest.fixture
async def world() -> AsyncIterator[worlds.World]:
    async with worlds.world(StatefulSetController) as running_world:
        yield running_world


def a_set(replicas: int = 3, *, image: str = "web:1", **spec: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {
            "replicas": replicas,
            "serviceName": "web",
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "c", "image": image}]},
            },
            **spec,
        },
    }


async def create(world: worlds.World, document: dict[str, Any]) -> None:
    await world.client.create_document(Set, document)
    await world.settle()


async def patch(world: worlds.World, spec: dict[str, Any]) -> None:
    await world.client.patch(Set, "web", patch=patches.strategic({"spec": spec}), namespace="default")
    await world.settle()


async def roll_to(world: worlds.World, image: str) -> None:
    await patch(world, {"template": {"spec": {"containers": [{"name": "c", "image": image}]}}})


async def status(world: worlds.World) -> dict[str, Any]:
    document = await world.client.get_document(Set, "web", namespace="default")
    content: dict[str, Any] = document["status"]
    return content


async def images(world: worlds.World) -> dict[str, str]:
    pods = await world.all_of(pod.Pod)
    return {each.metadata.name: each.spec.containers[0].image for each in pods}


async def all_ready(world: worlds.World, replicas: int) -> None:
    for _ in range(replicas):
        await machines.ready(world)


async def test_pods_come_one_after_the_other(world: worlds.World) -> None:
    await create(world, a_set())
    assert await machines.names(world) == ["web-0"]
    await machines.ready(world)
    assert await machines.names(world) == ["web-0", "web-1"]
    await machines.ready(world)
    await machines.ready(world)
    assert await machines.names(world) == ["web-0", "web-1", "web-2"]
    current = await status(world)
    (revision,) = await world.all_of(Revision)
    name = revision.metadata.name
    assert current == {
        "observedGeneration": 1,
        "replicas": 3,
        "readyReplicas": 3,
        "currentReplicas": 3,
        "updatedReplicas": 3,
        "availableReplicas": 3,
        "currentRevision": name,
        "updateRevision": name,
        "collisionCount": 0,
    }
    assert "Normal SuccessfulCreate: Create Pod web-0 in StatefulSet web successful" in await world.events()


async def test_pods_side_by_side(world: worlds.World) -> None:
    await create(world, a_set(podManagementPolicy="Parallel"))
    assert await machines.names(world) == ["web-0", "web-1", "web-2"]
    await patch(world, {"replicas": 0})
    assert await machines.going(world) == []
    assert await machines.names(world) == []


async def test_what_a_pod_is(world: worlds.World) -> None:
    await create(world, a_set(1, volumeClaimTemplates=[DATA], ordinals={"start": 5}))
    document = await world.client.get_document(pod.Pod, "web-5", namespace="default")
    (revision,) = await world.all_of(Revision)
    assert document["metadata"]["labels"] == {
        "app": "web",
        "apps.kubernetes.io/pod-index": "5",
        "controller-revision-hash": revision.metadata.name,
        "statefulset.kubernetes.io/pod-name": "web-5",
    }
    assert (document["spec"]["hostname"], document["spec"]["subdomain"]) == ("web-5", "web")
    assert document["spec"]["volumes"] == [{"name": "data", "persistentVolumeClaim": {"claimName": "data-web-5"}}]
    claim = await world.client.get(Claim, "data-web-5", namespace="default")
    assert claim.metadata.labels == {"app": "web"}
    assert not claim.metadata.owner_references
    assert "Normal SuccessfulCreate: Create Claim data-web-5 Pod web-5 in StatefulSet web success" in (
        await world.events()
    )


async def test_the_last_goes_first(world: worlds.World) -> None:
    await create(world, a_set())
    await all_ready(world, 3)
    await world.client.patch(
        pod.Pod, "web-2", patch=patches.merge({"metadata": {"finalizers": ["test/hold"]}}), namespace="default"
    )
    await patch(world, {"replicas": 1})
    assert await machines.going(world) == ["web-2"]
    assert await machines.names(world) == ["web-0", "web-1"]
    await world.client.patch(
        pod.Pod, "web-2", patch=patches.merge({"metadata": {"finalizers": None}}), namespace="default"
    )
    await world.settle()
    await machines.sweep(world)
    await machines.sweep(world)
    assert await machines.names(world) == ["web-0"]


async def test_an_update_goes_down_from_the_last(world: worlds.World) -> None:
    await create(world, a_set())
    await all_ready(world, 3)
    await roll_to(world, "web:2")
    await machines.sweep(world)
    assert await images(world) == {"web-0": "web:1", "web-1": "web:1", "web-2": "web:2"}
    halfway = await status(world)
    assert (halfway["currentReplicas"], halfway["updatedReplicas"]) == (2, 1)
    assert halfway["currentRevision"] != halfway["updateRevision"]
    for _ in range(3):
        await machines.ready(world)
        await machines.sweep(world)
    assert set((await images(world)).values()) == {"web:2"}
    done = await status(world)
    assert done["currentRevision"] == done["updateRevision"] == halfway["updateRevision"]


async def test_a_partition_holds_an_update_back(world: worlds.World) -> None:
    await create(world, a_set(updateStrategy={"type": "RollingUpdate", "rollingUpdate": {"partition": 2}}))
    await all_ready(world, 3)
    await roll_to(world, "web:2")
    await machines.sweep(world)
    await all_ready(world, 3)
    assert await images(world) == {"web-0": "web:1", "web-1": "web:1", "web-2": "web:2"}
    await world.client.delete(pod.Pod, "web-0", namespace="default", grace_period_seconds=0)
    await world.settle()
    assert (await images(world))["web-0"] == "web:1"


async def test_more_may_be_missing(world: worlds.World) -> None:
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 2}}
    await create(world, a_set(4, updateStrategy=strategy, podManagementPolicy="Parallel"))
    await machines.ready(world)
    await roll_to(world, "web:2")
    await machines.sweep(world)
    assert sorted((await images(world)).values()) == ["web:1", "web:1", "web:2", "web:2"]


async def test_nothing_is_replaced_but_what_is_deleted(world: worlds.World) -> None:
    await create(world, a_set(2, updateStrategy={"type": "OnDelete"}))
    await all_ready(world, 2)
    await roll_to(world, "web:2")
    assert set((await images(world)).values()) == {"web:1"}
    await world.client.delete(pod.Pod, "web-0", namespace="default", grace_period_seconds=0)
    await world.settle()
    assert await images(world) == {"web-0": "web:2", "web-1": "web:1"}


async def test_going_back_gives_an_old_revision_a_new_number(world: worlds.World) -> None:
    await create(world, a_set(1))
    await machines.ready(world)
    for image in ("web:2", "web:1"):
        await roll_to(world, image)
        await machines.sweep(world)
        await machines.ready(world)
    revisions = await world.all_of(Revision)
    assert sorted(each.revision for each in revisions) == [2, 3]
    (newest,) = [each for each in revisions if each.revision == 3]
    held = newest.data["spec"]["template"]
    assert (held["$patch"], held["spec"]["containers"][0]["image"]) == ("replace", "web:1")


async def test_history_is_limited(world: worlds.World) -> None:
    await create(world, a_set(1, revisionHistoryLimit=1))
    await machines.ready(world)
    for image in ("web:2", "web:3", "web:4"):
        await roll_to(world, image)
        await machines.sweep(world)
        await machines.ready(world)
    assert sorted(each.revision for each in await world.all_of(Revision)) == [3, 4]


async def test_a_pod_that_ended_is_made_anew(world: worlds.World) -> None:
    await create(world, a_set(1))
    before = await world.client.get(pod.Pod, "web-0", namespace="default")
    await machines.end(world, "web-0", "Failed")
    await machines.sweep(world)
    after = await world.client.get(pod.Pod, "web-0", namespace="default")
    assert after.metadata.uid != before.metadata.uid


async def test_pods_wait_until_those_before_are_available(world: worlds.World) -> None:
    await create(world, a_set(2, minReadySeconds=10))
    await machines.ready(world)
    assert await machines.names(world) == ["web-0"]
    assert (await status(world))["availableReplicas"] == 0
    await world.advance(10)
    assert await machines.names(world) == ["web-0", "web-1"]
    assert (await status(world))["availableReplicas"] == 1


@pytest.mark.parametrize(
    ("policy", "want_small", "want_large"),
    [
        pytest.param({}, [], [], id="kept"),
        pytest.param({"whenDeleted": "Delete"}, ["StatefulSet"], ["StatefulSet"], id="with-the-set"),
        pytest.param({"whenScaled": "Delete"}, [], ["Pod"], id="with-the-pod"),
        pytest.param({"whenDeleted": "Delete", "whenScaled": "Delete"}, ["StatefulSet"], ["Pod"], id="with-either"),
    ],
)
async def test_who_owns_volumes(
    world: worlds.World, policy: dict[str, str], want_small: list[str], want_large: list[str]
) -> None:
    await create(world, a_set(2, volumeClaimTemplates=[DATA], persistentVolumeClaimRetentionPolicy=policy))
    await all_ready(world, 2)
    await world.client.patch(
        pod.Pod, "web-1", patch=patches.merge({"metadata": {"finalizers": ["test/hold"]}}), namespace="default"
    )
    await patch(world, {"replicas": 1})

    async def owners(name: str) -> list[str]:
        claim = await world.client.get(Claim, name, namespace="default")
        return [each.kind for each in claim.metadata.owner_references]

    assert await owners("data-web-0") == want_small
    assert await owners("data-web-1") == want_large


async def test_a_pod_of_the_right_name_is_adopted(world: worlds.World) -> None:
    document = {
        "metadata": {"name": "web-0", "namespace": "default", "labels": {"app": "web"}},
        "spec": {"containers": [{"name": "c", "image": "mine"}]},
    }
    await world.client.create_document(pod.Pod, document)
    volume = {
        "metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }
    await create(world, a_set(1, updateStrategy={"type": "OnDelete"}, volumeClaimTemplates=[volume]))
    await machines.ready(world)
    adopted = await world.client.get(pod.Pod, "web-0", namespace="default")
    assert [each.name for each in adopted.metadata.owner_references] == ["web"]
    stored = await world.client.get_document(pod.Pod, "web-0", namespace="default")
    assert not [each for each in stored["spec"].get("volumes", ()) if "persistentVolumeClaim" in each]
    assert not [each for each in await world.events() if each.startswith("Warning")]
    assert adopted.metadata.labels["statefulset.kubernetes.io/pod-name"] == "web-0"


async def test_a_refused_pod_is_told_of(world: worlds.World) -> None:
    # The name is good for a set, and one that is longer by an ordinal too long for a pod.
    name = "w" * 62
    await create(world, {**a_set(1), "metadata": {"name": name, "namespace": "default"}})
    (failure,) = [each for each in await world.events() if "FailedCreate: Create Pod" in each]
    assert failure.startswith(f"Warning FailedCreate: Create Pod {name}-0 in StatefulSet {name} failed error: ")
