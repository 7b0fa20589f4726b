"""Deployments, StatefulSets and LeaderWorkerSets in queues: their pods are gated, admitted and replaced."""

import contextlib
import random
from collections.abc import AsyncIterator
from typing import Any

import pytest

from drachma import errors
from drachma.api import deployment, pod, statefulset
from drachma.client import Client, patches, target
from drachma.queueing.component import resources
from drachma.testing import manualclock
from tests.scenarios import lateclient, queues
from tests.scenarios.test_queueing_templatejobs import definition

_QUEUE = {"kueue.x-k8s.io/queue-name": "team"}
_CONFIGURATION = {
    **queues.MAPPED,
    "integrations": {
        "frameworks": ["batch/job", "deployment", "statefulset", "leaderworkerset.x-k8s.io/leaderworkerset"]
    },
}


def _template(labels: dict[str, str] | None = None, *, cpu: str = "1") -> dict[str, Any]:
    container = {"name": "c", "image": "serve", "command": ["sleep", "3600"], "resources": {"requests": {"cpu": cpu}}}
    return {"metadata": {"labels": labels or {"app": "web"}}, "spec": {"containers": [container]}}


def _made(kind: str, name: str, spec: dict[str, Any], api_version: str = "apps/v1") -> dict[str, Any]:
    document = queues.made(kind, name, spec, namespace="default", api_version=api_version)
    document["metadata"]["labels"] = dict(_QUEUE)
    return document


def _apps_spec(replicas: int) -> dict[str, Any]:
    return {"replicas": replicas, "selector": {"matchLabels": {"app": "web"}}, "template": _template()}


async def _pods(cluster: queues.Queues) -> list[pod.Pod]:
    return sorted(await cluster.all_of(pod.Pod), key=lambda each: each.metadata.name)


async def test_each_pod_of_a_deployment_is_admitted_on_its_own() -> None:
    async with queues.queues(configuration=_CONFIGURATION) as cluster:
        await cluster.create_queue(cpu=2)
        await cluster.client.create_document(deployment.Deployment, _made("Deployment", "web", _apps_spec(3)))
        await cluster.settle()

        assert await cluster.phases() == {"Running": 2, "Pending": 1}
        assert len(await cluster.all_of(resources.WORKLOADS)) == 3
        stored = await cluster.client.get_document(deployment.Deployment, "web", namespace="default")
        annotations = stored["spec"]["template"]["metadata"]["annotations"]
        assert annotations["kueue.x-k8s.io/pod-suspending-parent"] == "deployment"

        patch = patches.merge({"metadata": {"labels": {"kueue.x-k8s.io/queue-name": "other"}}})
        with pytest.raises(errors.DrachmaError, match="field is immutable"):
            await cluster.client.patch(deployment.Deployment, "web", namespace="default", patch=patch)


async def test_a_stateful_set_is_admitted_as_a_whole_before_its_pods_exist() -> None:
    async with queues.queues(configuration=_CONFIGURATION) as cluster:
        await cluster.create_queue(cpu=2)
        await cluster.client.create_document(statefulset.StatefulSet, _made("StatefulSet", "large", _apps_spec(3)))
        await cluster.settle()
        assert await cluster.phases() == {"Pending": 1}
        assert (await cluster.workload_condition("large", "QuotaReserved"))[:2] == ("False", "ExceedsMaxQuota")
        await cluster.delete(statefulset.StatefulSet, "large", namespace="default")
        await cluster.advance(60)
        assert not await cluster.all_of(resources.WORKLOADS)

        await cluster.client.create_document(statefulset.StatefulSet, _made("StatefulSet", "small", _apps_spec(2)))
        await cluster.advance(10)
        assert await cluster.phases() == {"Running": 2}
        record = await cluster.workload_of("small")
        assert [(each.name, each.count) for each in record.spec.pod_sets] == [("main", 2)]
        assert {each.kind for each in record.metadata.owner_references} == {"StatefulSet", "Pod"}


async def test_a_stateful_set_gives_its_quota_back_while_it_has_no_replicas() -> None:
    async with queues.queues(configuration=_CONFIGURATION) as cluster:
        await cluster.create_queue(cpu=2)
        await cluster.client.create_document(statefulset.StatefulSet, _made("StatefulSet", "web", _apps_spec(2)))
        await cluster.advance(10)
        assert await cluster.phases() == {"Running": 2}

        async def scale(replicas: int) -> None:
            patch = patches.merge({"spec": {"replicas": replicas}})
            await cluster.client.patch(statefulset.StatefulSet, "web", namespace="default", patch=patch)
            await cluster.advance(60)

        with pytest.raises(errors.DrachmaError, match="replicas"):
            await scale(1)
        await scale(0)
        assert await cluster.phases() == {}
        held = await cluster.workload_condition("web", "QuotaReserved")
        assert held == ("False", "OnHold", "StatefulSet scaled to zero; workload on hold")
        await scale(2)
        assert await cluster.phases() == {"Running": 2}


async def _create_replica(cluster: queues.Queues, owner: dict[str, Any], index: int, size: int) -> None:
    """Create the StatefulSet and pods of one replica, as LeaderWorkerSet's controller does."""
    template = owner["spec"]["leaderWorkerTemplate"]["workerTemplate"]
    name = owner["metadata"]["name"]
    for worker in range(size):
        labels = {
            **(template["metadata"].get("labels") or {}),
            "leaderworkerset.sigs.k8s.io/name": name,
            "leaderworkerset.sigs.k8s.io/group-index": str(index),
            "leaderworkerset.sigs.k8s.io/worker-index": str(worker),
        }
        metadata = {
            "name": f"{name}-{index}-{worker}",
            "namespace": "default",
            "labels": labels,
            "annotations": dict(template["metadata"].get("annotations") or {}),
        }
        document = {"apiVersion": "v1", "kind": "Pod", "spec": template["spec"]}
        await cluster.client.create_document(pod.Pod, {**document, "metadata": metadata})


async def test_each_replica_of_a_leader_worker_set_is_a_group() -> None:
    async with queues.queues(configuration=_CONFIGURATION) as cluster:
        await cluster.apply(definition(resources.LEADER_WORKER_SETS))
        await cluster.advance(120)
        await cluster.create_queue(cpu=3)
        spec = {"replicas": 2, "leaderWorkerTemplate": {"size": 2, "workerTemplate": _template()}}
        document = _made("LeaderWorkerSet", "serve", spec, "leaderworkerset.x-k8s.io/v1")
        stored = await cluster.client.create_document(resources.LEADER_WORKER_SETS, document)
        annotations = stored["spec"]["leaderWorkerTemplate"]["workerTemplate"]["metadata"]["annotations"]
        framework = "leaderworkerset.x-k8s.io/leaderworkerset"
        assert annotations["kueue.x-k8s.io/pod-suspending-parent"] == framework
        await cluster.settle()
        assert len(await cluster.all_of(resources.WORKLOADS)) == 2

        for index in range(2):
            await _create_replica(cluster, stored, index, 2)
        await cluster.advance(5)

        assert await cluster.phases() == {"Running": 2, "Pending": 2}
        running = {each.metadata.name[:-2] for each in await _pods(cluster) if each.status.phase == "Running"}
        assert len(running) == 1

        patch = patches.merge({"spec": {"leaderWorkerTemplate": {"size": 3}}})
        with pytest.raises(errors.DrachmaError, match="size"):
            await cluster.client.patch(resources.LEADER_WORKER_SETS, "serve", namespace="default", patch=patch)
        patch = patches.merge({"spec": {"replicas": 1}})
        await cluster.client.patch(resources.LEADER_WORKER_SETS, "serve", namespace="default", patch=patch)
        await cluster.advance(5)
        assert len(await cluster.all_of(resources.WORKLOADS)) == 1


class _LateParents(lateclient.LateClient):
    """A client that hears of LeaderWorkerSets late, and of all else at once."""

    @contextlib.asynccontextmanager
    async def watch(self, kind: Any, *arguments: Any, **options: Any) -> AsyncIterator[Any]:
        late = super().watch if target.of(kind).plural == "leaderworkersets" else self._client.watch
        async with late(kind, *arguments, **options) as watch:
            yield watch


async def test_pods_that_are_seen_before_their_parent_wait_for_quota() -> None:
    """Their parent counted as gone, so they were released from the queue and ran without quota."""
    clock = manualclock.ManualClock()

    def wrap(client: Client) -> Client:
        return _LateParents(client, random.Random(1), clock=clock, seconds=60).client

    async with queues.queues(configuration=_CONFIGURATION, wrap=wrap, clock=clock) as cluster:
        await cluster.apply(definition(resources.LEADER_WORKER_SETS))
        await cluster.advance(120)
        await cluster.create_queue(cpu=3)
        spec = {"replicas": 2, "leaderWorkerTemplate": {"size": 2, "workerTemplate": _template()}}
        document = _made("LeaderWorkerSet", "serve", spec, "leaderworkerset.x-k8s.io/v1")
        stored = await cluster.client.create_document(resources.LEADER_WORKER_SETS, document)
        for index in range(2):
            await _create_replica(cluster, stored, index, 2)
        await cluster.settle()
        assert await cluster.phases() == {"Pending": 4}
        await cluster.advance(120)
        assert await cluster.phases() == {"Running": 2, "Pending": 2}
