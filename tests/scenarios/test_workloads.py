"""Deployments and ReplicaSets on simulated machines: pods come, move to another template, and go."""

import contextlib
import functools
from collections import Counter
from collections.abc import AsyncIterator
from typing import Any

from drachma.api import deployment, pod, replicaset
from drachma.client import patches
from drachma.node.simulation import hardware
from drachma.process import nodeagents
from tests.scenarios import controlplane

UNREADY = {"simulation.drachma.dev/run-seconds": "soon"}
"""An annotation that cannot be read: the container never starts."""


@contextlib.asynccontextmanager
async def _cluster() -> AsyncIterator[controlplane.ControlPlane]:
    async with controlplane.control_plane() as cluster:
        cluster.launch("agents", functools.partial(nodeagents.simulated_machines, machines=hardware.build("cpu", 2)))
        await cluster.settle()
        yield cluster


def _deployment(replicas: int = 4, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "c", "image": "web:1"}]},
            },
            **spec,
        },
    }


async def _create(cluster: controlplane.ControlPlane, document: dict[str, Any]) -> None:
    await cluster.client.create_document(deployment.Deployment, document)
    await cluster.advance(5)


async def _patch(cluster: controlplane.ControlPlane, spec: dict[str, Any]) -> None:
    await cluster.client.patch(
        deployment.Deployment, "web", patch=patches.strategic({"spec": spec}), namespace="default"
    )


def _image(image: str, **annotations: str) -> dict[str, Any]:
    containers = {"containers": [{"name": "c", "image": image}]}
    return {"template": {"metadata": {"annotations": annotations}, "spec": containers}}


async def _images(cluster: controlplane.ControlPlane) -> dict[str, int]:
    """How many pods there are of each image."""
    return dict(Counter(each.spec.containers[0].image for each in await cluster.all_of(pod.Pod)))


async def _status(cluster: controlplane.ControlPlane) -> dict[str, Any]:
    document = await cluster.client.get_document(deployment.Deployment, "web", namespace="default")
    status: dict[str, Any] = document["status"]
    return status


def _conditions(status: dict[str, Any]) -> dict[str, tuple[str, str]]:
    return {each["type"]: (each["status"], each["reason"]) for each in status["conditions"]}


async def test_a_deployment_makes_pods_that_run() -> None:
    async with _cluster() as cluster:
        await _create(cluster, _deployment())
        status = await _status(cluster)
        counts = ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas")
        assert [status[each] for each in counts] == [4, 4, 4, 4]
        assert status["observedGeneration"] == 1
        assert _conditions(status) == {
            "Available": ("True", "MinimumReplicasAvailable"),
            "Progressing": ("True", "NewReplicaSetAvailable"),
        }
        (made,) = await cluster.all_of(replicaset.ReplicaSet)
        name = made.metadata.labels["pod-template-hash"]
        assert made.metadata.name == f"web-{name}"
        for each in await cluster.all_of(pod.Pod):
            assert each.metadata.name.startswith(f"web-{name}-")
            assert each.metadata.generate_name == f"web-{name}-"
            assert each.metadata.labels == {"app": "web", "pod-template-hash": name}
        assert await cluster.events("ScalingReplicaSet") == [f"Scaled up replica set web-{name} from 0 to 4"]


async def test_it_is_scaled_up_and_down() -> None:
    async with _cluster() as cluster:
        await _create(cluster, _deployment(2))
        await _patch(cluster, {"replicas": 7})
        await cluster.advance(5)
        assert await _images(cluster) == {"web:1": 7}
        await _patch(cluster, {"replicas": 1})
        await cluster.advance(5)
        assert await _images(cluster) == {"web:1": 1}
        assert (await _status(cluster))["availableReplicas"] == 1


async def test_another_template_is_rolled_out_and_back() -> None:
    async with _cluster() as cluster:
        await _create(cluster, _deployment(10))
        await _patch(cluster, _image("web:2"))
        await cluster.advance(10)
        assert await _images(cluster) == {"web:2": 10}
        assert _conditions(await _status(cluster))["Progressing"] == ("True", "NewReplicaSetAvailable")
        revisions = {
            each.spec.template["spec"]["containers"][0]["image"]: (
                each.metadata.annotations["deployment.kubernetes.io/revision"],
                each.spec.replicas,
            )
            for each in await cluster.all_of(replicaset.ReplicaSet)
        }
        assert revisions == {"web:1": ("1", 0), "web:2": ("2", 10)}
        await _patch(cluster, _image("web:1"))
        await cluster.advance(10)
        assert await _images(cluster) == {"web:1": 10}
        (again,) = [each for each in await cluster.all_of(replicaset.ReplicaSet) if each.spec.replicas]
        assert again.metadata.annotations["deployment.kubernetes.io/revision"] == "3"
        assert again.metadata.annotations["deployment.kubernetes.io/revision-history"] == "1"


async def test_a_rollout_that_gets_stuck_keeps_enough_pods_and_says_so() -> None:
    async with _cluster() as cluster:
        await _create(cluster, _deployment(10, progressDeadlineSeconds=60))
        await _patch(cluster, _image("web:2", **UNREADY))
        await cluster.advance(20)
        # A quarter more, rounded up, and at most a quarter missing, rounded down.
        assert await _images(cluster) == {"web:1": 8, "web:2": 5}
        status = await _status(cluster)
        assert status["availableReplicas"] == 8
        assert _conditions(status)["Progressing"] == ("True", "ReplicaSetUpdated")
        await cluster.advance(70)
        assert _conditions(await _status(cluster))["Progressing"] == ("False", "ProgressDeadlineExceeded")
        assert _conditions(await _status(cluster))["Available"] == ("True", "MinimumReplicasAvailable")


async def test_a_stuck_rollout_shares_out_what_is_added() -> None:
    async with _cluster() as cluster:
        await _create(cluster, _deployment(8, strategy={"rollingUpdate": {"maxSurge": 2, "maxUnavailable": 2}}))
        await _patch(cluster, _image("web:2", **UNREADY))
        await cluster.advance(10)
        assert await _images(cluster) == {"web:1": 6, "web:2": 4}
        await _patch(cluster, {"replicas": 13})
        await cluster.advance(10)
        images = await _images(cluster)
        assert sum(images.values()) == 15
        assert images["web:1"] > 6
        assert images["web:2"] > 4


async def test_pods_are_recreated_all_at_once_where_that_is_wanted() -> None:
    async with _cluster() as cluster:
        slow = {"simulation.drachma.dev/stop-seconds": "20"}
        document = _deployment(3, strategy={"type": "Recreate"})
        document["spec"]["template"]["metadata"]["annotations"] = slow
        await _create(cluster, document)
        await _patch(cluster, _image("web:2"))
        await cluster.advance(10)
        assert await _images(cluster) == {"web:1": 3}
        await cluster.advance(20)
        assert await _images(cluster) == {"web:2": 3}


async def test_a_paused_deployment_is_scaled_and_not_rolled_out() -> None:
    async with _cluster() as cluster:
        await _create(cluster, _deployment(2))
        await _patch(cluster, {"paused": True, **_image("web:2")})
        await cluster.advance(10)
        await _patch(cluster, {"replicas": 3})
        await cluster.advance(10)
        assert await _images(cluster) == {"web:1": 3}
        assert _conditions(await _status(cluster))["Progressing"] == ("Unknown", "DeploymentPaused")
        await _patch(cluster, {"paused": False})
        await cluster.advance(10)
        assert await _images(cluster) == {"web:2": 3}


async def test_only_so_many_old_sets_are_kept() -> None:
    async with _cluster() as cluster:
        await _create(cluster, _deployment(1, revisionHistoryLimit=2))
        for number in range(2, 7):
            await _patch(cluster, _image(f"web:{number}"))
            await cluster.advance(10)
        images = {
            each.spec.template["spec"]["containers"][0]["image"] for each in await cluster.all_of(replicaset.ReplicaSet)
        }
        assert images == {"web:4", "web:5", "web:6"}


async def test_a_pod_that_is_lost_is_replaced() -> None:
    async with _cluster() as cluster:
        await _create(cluster, _deployment(3))
        first = (await cluster.all_of(pod.Pod))[0]
        await cluster.delete(pod.Pod, first.metadata.name)
        await cluster.advance(5)
        names = {each.metadata.name for each in await cluster.all_of(pod.Pod)}
        assert len(names) == 3
        assert first.metadata.name not in names


async def test_all_goes_with_the_deployment() -> None:
    async with _cluster() as cluster:
        await _create(cluster, _deployment(3))
        await cluster.client.delete(deployment.Deployment, "web", namespace="default", propagation="Foreground")
        await cluster.advance(60)
        assert not await cluster.all_of(pod.Pod)
        assert not await cluster.all_of(replicaset.ReplicaSet)
        assert not await cluster.all_of(deployment.Deployment)


async def test_a_set_adopts_what_matches_and_lets_go_what_does_not() -> None:
    async with _cluster() as cluster:
        document = {
            **_deployment(2),
            "kind": "ReplicaSet",
        }
        orphan = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "orphan", "namespace": "default", "labels": {"app": "web"}},
            "spec": {"containers": [{"name": "c", "image": "other"}]},
        }
        await cluster.client.create_document(pod.Pod, orphan)
        await cluster.client.create_document(replicaset.ReplicaSet, document)
        await cluster.advance(5)
        assert await _images(cluster) == {"other": 1, "web:1": 1}
        relabel = patches.merge({"metadata": {"labels": {"app": "mine"}}})
        await cluster.client.patch(pod.Pod, "orphan", patch=relabel, namespace="default")
        await cluster.advance(5)
        assert await _images(cluster) == {"other": 1, "web:1": 2}
        released = await cluster.client.get(pod.Pod, "orphan", namespace="default")
        assert not released.metadata.owner_references


async def test_a_deployment_adopts_a_set_with_the_hash_of_another_controller() -> None:
    """As upstream's controller names it: the template decides, not the hash."""
    async with _cluster() as cluster:
        document = _deployment(2)
        foreign = {"app": "web", "pod-template-hash": "5d9c7b8f6d"}
        template = document["spec"]["template"]
        made = {
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "metadata": {"name": "web-5d9c7b8f6d", "namespace": "default", "labels": foreign},
            "spec": {
                "replicas": 2,
                "selector": {"matchLabels": foreign},
                "template": {**template, "metadata": {"labels": foreign}},
            },
        }
        await cluster.client.create_document(replicaset.ReplicaSet, made)
        await cluster.advance(5)
        await _create(cluster, document)
        (adopted,) = await cluster.all_of(replicaset.ReplicaSet)
        assert adopted.metadata.name == "web-5d9c7b8f6d"
        assert [each.name for each in adopted.metadata.owner_references] == ["web"]
        await _patch(cluster, _image("web:2"))
        await cluster.advance(60)
        names = {each.metadata.name for each in await cluster.all_of(replicaset.ReplicaSet)}
        (own,) = names - {"web-5d9c7b8f6d"}
        assert own.startswith("web-")


async def test_a_deployment_made_anew_adopts_the_sets_that_it_left() -> None:
    async with _cluster() as cluster:
        await _create(cluster, _deployment(2))
        (before,) = await cluster.all_of(replicaset.ReplicaSet)
        pods = {each.metadata.uid for each in await cluster.all_of(pod.Pod)}
        await cluster.client.delete(deployment.Deployment, "web", namespace="default", propagation="Orphan")
        await cluster.advance(5)
        (left,) = await cluster.all_of(replicaset.ReplicaSet)
        assert not left.metadata.owner_references
        await _create(cluster, _deployment(2))
        (adopted,) = await cluster.all_of(replicaset.ReplicaSet)
        (owner,) = adopted.metadata.owner_references
        assert adopted.metadata.uid == before.metadata.uid
        assert (owner.kind, owner.name, owner.controller) == ("Deployment", "web", True)
        assert {each.metadata.uid for each in await cluster.all_of(pod.Pod)} == pods
        assert (await _status(cluster))["availableReplicas"] == 2


async def test_refused_pods_are_said() -> None:
    async with _cluster() as cluster:
        document = _deployment(2)
        document["spec"]["template"]["spec"]["priorityClassName"] = "absent"
        await _create(cluster, document)
        status = await _status(cluster)
        assert _conditions(status)["ReplicaFailure"] == ("True", "FailedCreate")
        assert "no PriorityClass with name absent was found" in status["conditions"][-1]["message"]
