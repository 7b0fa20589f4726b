"""LeaderWorkerSets with their own controller and webhooks (kubernetes-sigs/lws), in queues of a control plane."""

import pathlib
from collections.abc import Iterator
from typing import Any

import pytest

from drachma.api import pod
from drachma.client import patches
from drachma.queueing.component import resources
from tests.peers import projectcontrollers
from tests.peers.test_jobset import QUEUES
from tests.scenarios import nodecluster, processes

CONFIGURATION = """
apiVersion: config.kueue.x-k8s.io/v1beta2
kind: Configuration
integrations: {frameworks: [batch/job, leaderworkerset.x-k8s.io/leaderworkerset]}
"""
PROJECT = projectcontrollers.Project(
    configuration="config.lws.x-k8s.io/v1alpha1",
    definition="config/crd/bases/leaderworkerset.x-k8s.io_leaderworkersets.yaml",
    webhooks="config/webhook/manifests.yaml",
)


@pytest.fixture
def server(tmp_path: pathlib.Path) -> Iterator[processes.Process]:
    with projectcontrollers.queueing_server("lws", CONFIGURATION, tmp_path) as started:
        yield started


def _leader_worker_set(name: str, *, replicas: int) -> dict[str, Any]:
    """Replicas of a leader and a worker, each a pod of one cpu that runs for long."""
    container = {"name": "c", "image": "i", "command": ["sleep", "3600"], "resources": {"requests": {"cpu": "1"}}}
    template = {"spec": {"containers": [container]}}
    return {
        "apiVersion": "leaderworkerset.x-k8s.io/v1",
        "kind": "LeaderWorkerSet",
        "metadata": {"name": name, "namespace": "default", "labels": {"kueue.x-k8s.io/queue-name": "jobs"}},
        "spec": {
            "replicas": replicas,
            "leaderWorkerTemplate": {"size": 2, "leaderTemplate": template, "workerTemplate": template},
        },
    }


async def test_replicas_wait_for_quota_as_a_whole_and_run(server: processes.Process) -> None:
    async with nodecluster.connected(server) as cluster:
        await cluster.apply(QUEUES)
        await projectcontrollers.start(cluster, "lws", PROJECT)

        async def running() -> int:
            return sum(each.status.phase == "Running" for each in await cluster.all_of(pod.Pod))

        async def runs(count: int) -> None:
            async def holds() -> bool:
                return await running() == count

            await cluster.until(holds)

        # Quota for four pods: two of the three replicas run, each with its leader and its worker.
        await cluster.client.create_document(resources.LEADER_WORKER_SETS, _leader_worker_set("serve", replicas=3))
        await runs(4)
        groups: dict[str, int] = {}
        for each in await cluster.all_of(pod.Pod):
            if each.status.phase == "Running":
                index = each.metadata.labels["leaderworkerset.sigs.k8s.io/group-index"]
                groups[index] = groups.get(index, 0) + 1
        assert list(groups.values()) == [2, 2]

        quota = {"name": "default", "resources": [{"name": "cpu", "nominalQuota": "6"}]}
        patch = patches.merge({"spec": {"resourceGroups": [{"coveredResources": ["cpu"], "flavors": [quota]}]}})
        await cluster.client.patch(resources.CLUSTER_QUEUES, "team", patch=patch)
        await runs(6)

        patch = patches.merge({"spec": {"replicas": 1}})
        await cluster.client.patch(resources.LEADER_WORKER_SETS, "serve", namespace="default", patch=patch)
        await runs(2)

        async def has_one_workload() -> bool:
            return len(await cluster.all_of(resources.WORKLOADS)) == 1

        await cluster.until(has_one_workload)
