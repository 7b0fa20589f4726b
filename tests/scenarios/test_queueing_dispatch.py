"""MultiKueue between control planes: a manager dispatches jobs to workers, and follows them there."""

import base64
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest

from drachma import errors
from drachma.api import job, pod, resourceclaimtemplate, secret
from drachma.client import Client, patches
from drachma.queueing.component import resources
from drachma.queueing.configuration import configuration
from drachma.testing import manualclock
from tests.scenarios import queues

_IMPATIENT = {**queues.MAPPED, "multiKueue": {"workerLostTimeout": "60s"}}


class _Network:
    """Clusters by the content of their kubeconfig; those that are down cannot be reached."""

    def __init__(self) -> None:
        self.clients: dict[bytes, Client] = {}

    @contextlib.asynccontextmanager
    async def connect(self, content: bytes, name: str) -> AsyncIterator[Client]:
        if content not in self.clients:
            raise errors.UnreachableError(f"{name}: no answer")
        yield self.clients[content]


@contextlib.asynccontextmanager
async def _clusters(*quotas: int) -> AsyncIterator[tuple[queues.Queues, list[queues.Queues]]]:
    """Run a manager, and a worker for each quota of cpu."""
    network = _Network()
    clock = manualclock.ManualClock()
    async with contextlib.AsyncExitStack() as stack:
        workers = []
        for number, cpu in enumerate(quotas):
            worker = await stack.enter_async_context(queues.queues(configuration=queues.MAPPED, clock=clock))
            await worker.create_queue(cpu=cpu, gpus=8)
            network.clients[f"worker-{number}".encode()] = worker.client
            workers.append(worker)
        manager = await stack.enter_async_context(
            queues.queues(configuration=_IMPATIENT, clock=clock, connect=network.connect)
        )
        await _dispatch(manager, [f"worker-{number}" for number in range(len(quotas))])
        yield manager, workers


async def _dispatch(manager: queues.Queues, names: list[str]) -> None:
    """Create a queue whose workloads are dispatched to clusters."""
    for name in names:
        document = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": name, "namespace": configuration.DEFAULT_NAMESPACE},
            "data": {"kubeconfig": base64.b64encode(name.encode()).decode()},
        }
        await manager.client.create_document(secret.Secret, document)
        source = {"clusterSource": {"kubeConfig": {"location": name}}}
        cluster = queues.made("MultiKueueCluster", name, source)
        await manager.client.create_document(resources.MULTI_KUEUE_CLUSTERS, cluster)
    config = queues.made("MultiKueueConfig", "workers", {"clusters": names})
    await manager.client.create_document(resources.MULTI_KUEUE_CONFIGS, config)
    reference = {"apiGroup": "kueue.x-k8s.io", "kind": "MultiKueueConfig", "name": "workers"}
    check = {"controllerName": "kueue.x-k8s.io/multikueue", "parameters": reference}
    await manager.client.create_document(resources.CHECKS, queues.made("AdmissionCheck", "workers", check))
    await manager.create_queue(cpu=100, gpus=100)
    strategy = {"admissionChecksStrategy": {"admissionChecks": [{"name": "workers"}]}}
    await manager.client.patch(resources.CLUSTER_QUEUES, "team", patch=patches.merge({"spec": strategy}))
    await manager.settle()


async def _state(manager: queues.Queues, name: str) -> tuple[str, str]:
    (state,) = (await manager.workload_of(name)).status.admission_checks
    return state.state, state.message


async def _job(cluster: queues.Queues, name: str) -> Any:
    return await cluster.client.get_document(job.Job, name, namespace="default")


async def test_a_job_runs_where_there_is_quota_and_its_status_comes_back() -> None:
    async with _clusters(1, 4) as (manager, (small, large)):
        check = await manager.client.get(resources.CHECKS, "workers")
        assert [(each.status, each.reason) for each in check.status.conditions] == [("True", "Active")]
        await manager.create_job("train", pods=2, cpu="1", template="one-gpu", seconds=30)
        await manager.advance(2)

        assert await _state(manager, "train") == ("Ready", 'The workload was admitted on "worker-1"')
        assert not await manager.all_of(pod.Pod)
        assert len(await large.all_of(pod.Pod)) == 2
        assert not await small.all_of(resources.WORKLOADS)
        local = await _job(manager, "train")
        assert (local["spec"]["managedBy"], local["status"]["active"]) == ("kueue.x-k8s.io/multikueue", 2)
        assert "managedBy" not in (await _job(large, "train"))["spec"]

        await manager.advance(60)
        assert (await manager.workload_condition("train", "Finished"))[:2] == ("True", "Succeeded")
        done = await _job(manager, "train")
        assert done["status"]["succeeded"] == 2
        assert not await large.all_of(resources.WORKLOADS)
        with pytest.raises(errors.ObjectNotFoundError):
            await _job(large, "train")


async def test_claim_templates_go_with_the_workload_and_end_with_it() -> None:
    async with _clusters(4) as (manager, (worker,)):
        claim = {"devices": {"requests": [{"name": "g", "exactly": {"deviceClassName": queues.GPU_CLASS}}]}}
        document = queues.made(
            "ResourceClaimTemplate", "own", {"spec": claim}, namespace="default", api_version="resource.k8s.io/v1"
        )
        await manager.client.create_document(resourceclaimtemplate.ResourceClaimTemplate, document)
        await manager.create_job("train", template="own", seconds=600)
        await manager.advance(2)
        assert await worker.phases() == {"Running": 1}
        copy = await worker.client.get_document(resourceclaimtemplate.ResourceClaimTemplate, "own", namespace="default")
        assert copy["spec"]["spec"]["devices"]["requests"][0]["exactly"]["deviceClassName"] == queues.GPU_CLASS

        await manager.delete(job.Job, "train")
        await manager.advance(60)
        assert not await worker.all_of(resources.WORKLOADS)
        names = {each.metadata.name for each in await worker.all_of(resourceclaimtemplate.ResourceClaimTemplate)}
        assert names == {"one-gpu"}


async def test_a_copy_that_is_evicted_is_dispatched_again() -> None:
    async with _clusters(4, 4) as (manager, (first, second)):
        await manager.create_job("train", seconds=600)
        await manager.advance(2)
        name = (await manager.workload_of("train")).status.cluster_name
        running, other = (first, second) if name == "worker-0" else (second, first)
        patch = patches.merge({"spec": {"stopPolicy": "HoldAndDrain"}})
        await running.client.patch(resources.CLUSTER_QUEUES, "team", patch=patch)
        await manager.advance(30)
        assert await running.phases() == {}
        assert await other.phases() == {"Running": 1}
        assert (await manager.workload_of("train")).status.cluster_name != name


async def test_a_cluster_without_a_connection_is_not_active() -> None:
    async with queues.queues(connect=_Network().connect) as manager:
        await _dispatch(manager, ["absent"])
        cluster = await manager.client.get(resources.MULTI_KUEUE_CLUSTERS, "absent")
        (condition,) = cluster.status.conditions
        assert (condition.status, condition.reason) == ("False", "ClientConnectionFailed")
        check = await manager.client.get(resources.CHECKS, "workers")
        assert [each.message for each in check.status.conditions] == ["Inactive clusters: [absent]"]


async def _set_kubeconfig(manager: queues.Queues, name: str, content: str) -> None:
    patch = patches.merge({"data": {"kubeconfig": base64.b64encode(content.encode()).decode()}})
    namespace = configuration.DEFAULT_NAMESPACE
    await manager.client.patch(secret.Secret, name, namespace=namespace, patch=patch)


async def test_a_job_goes_on_in_a_cluster_that_is_back_in_time() -> None:
    async with _clusters(4) as (manager, (worker,)):
        await manager.create_job("train", seconds=60)
        await manager.advance(2)
        await _set_kubeconfig(manager, "worker-0", "gone")
        await manager.advance(30)
        assert (await _state(manager, "train"))[0] == "Ready"
        cluster = await manager.client.get(resources.MULTI_KUEUE_CLUSTERS, "worker-0")
        assert [(each.status, each.reason) for each in cluster.status.conditions] == [
            ("False", "ClientConnectionFailed")
        ]

        await _set_kubeconfig(manager, "worker-0", "worker-0")
        await manager.advance(60)
        cluster = await manager.client.get(resources.MULTI_KUEUE_CLUSTERS, "worker-0")
        assert [(each.status, each.reason) for each in cluster.status.conditions] == [("True", "Active")]
        assert (await manager.workload_condition("train", "Finished"))[:2] == ("True", "Succeeded")
        assert not await worker.all_of(resources.WORKLOADS)


async def test_a_job_of_a_cluster_that_stays_away_moves_and_leaves_no_copy() -> None:
    async with _clusters(4, 4) as (manager, workers):
        await manager.create_job("train", seconds=600)
        await manager.advance(2)
        name = (await manager.workload_of("train")).status.cluster_name or ""
        lost, other = workers if name == "worker-0" else workers[::-1]
        await _set_kubeconfig(manager, name, "gone")
        await manager.advance(90)
        assert await other.phases() == {"Running": 1}
        assert (await manager.workload_of("train")).status.cluster_name not in (None, name)
        assert await lost.phases() == {"Running": 1}

        await _set_kubeconfig(manager, name, name)
        await manager.advance(90)
        assert await lost.phases() == {}
        assert not await lost.all_of(resources.WORKLOADS)
        assert await other.phases() == {"Running": 1}


async def test_a_pod_is_not_dispatched() -> None:
    """Kueue dispatches pods, StatefulSets and LeaderWorkerSets too."""
    async with _clusters(8) as (manager, (worker,)):
        container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}
        template: dict[str, Any] = {"spec": {"containers": [container]}}
        spec = {"queueName": "team", "podSets": [{"name": "main", "count": 1, "template": template}]}
        document = queues.made("Workload", "pod-p", spec, namespace="default")
        held = queues.made(
            "Pod", "p", {**template["spec"], "schedulerName": "none"}, namespace="default", api_version="v1"
        )
        stored = await manager.client.create_document(pod.Pod, held)
        uid = stored["metadata"]["uid"]
        owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": uid, "controller": True}
        document["metadata"]["ownerReferences"] = [owner]
        await manager.client.create_document(resources.WORKLOADS, document)
        await manager.settle()
        (record,) = await manager.all_of(resources.WORKLOADS)
        (state,) = record.status.admission_checks
        assert state.state == "Rejected"
        assert state.message.startswith('No multikueue adapter found for owner kind "v1, Kind=Pod"')
        assert not await worker.all_of(resources.WORKLOADS)
