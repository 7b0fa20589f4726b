"""JobSets with their own controller and webhooks (kubernetes-sigs/jobset), in queues of a control plane of drachma."""

import pathlib
from collections.abc import Iterator
from typing import Any

import pytest

from drachma.api import pod
from drachma.client import patches
from drachma.queueing import conditions
from drachma.queueing.component import resources
from tests.peers import projectcontrollers
from tests.scenarios import nodecluster, processes
from tests.scenarios.nodecluster import NodeCluster

CONFIGURATION = """
apiVersion: config.kueue.x-k8s.io/v1beta2
kind: Configuration
integrations: {frameworks: [batch/job, jobset.x-k8s.io/jobset]}
"""
QUEUES = """
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: default}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: team}
spec:
  namespaceSelector: {}
  resourceGroups:
  - coveredResources: [cpu]
    flavors: [{name: default, resources: [{name: cpu, nominalQuota: 4}]}]
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: jobs}
spec: {clusterQueue: team}
"""
PROJECT = projectcontrollers.Project(
    configuration="config.jobset.x-k8s.io/v1alpha1",
    definition="config/components/crd/bases/jobset.x-k8s.io_jobsets.yaml",
    webhooks="config/components/webhook/manifests.yaml",
)


@pytest.fixture
def server(tmp_path: pathlib.Path) -> Iterator[processes.Process]:
    with projectcontrollers.queueing_server("jobset", CONFIGURATION, tmp_path) as started:
        yield started


def _job_set(name: str, *, replicas: int) -> dict[str, Any]:
    """A leader and some workers, each a pod that runs for a second."""

    def replicated(of: str, count: int) -> dict[str, Any]:
        container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}
        template = {
            "metadata": {"annotations": {"simulation.drachma.dev/run-seconds": "1"}},
            "spec": {"containers": [container], "restartPolicy": "Never"},
        }
        spec = {"parallelism": 1, "completions": 1, "template": template}
        return {"name": of, "replicas": count, "template": {"spec": spec}}

    labels = {"kueue.x-k8s.io/queue-name": "jobs"}
    return {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": name, "namespace": "default", "labels": labels},
        "spec": {"replicatedJobs": [replicated("leader", 1), replicated("workers", replicas)]},
    }


async def _state(cluster: NodeCluster, name: str) -> tuple[bool, str]:
    """Whether a JobSet is suspended, and how it has ended."""
    document = await cluster.client.get_document(resources.JOB_SETS, name, namespace="default")
    return document["spec"].get("suspend", False), (document.get("status") or {}).get("terminalState", "")


async def _condition(cluster: NodeCluster, name: str, kind: str) -> str:
    """The status of a condition of a JobSet's workload, if it has one."""
    for each in await cluster.all_of(resources.WORKLOADS):
        if any((owner.kind, owner.name) == ("JobSet", name) for owner in each.metadata.owner_references):
            condition = conditions.find(each.status.conditions, kind)
            return condition.status if condition is not None else ""
    return ""


async def _phases(cluster: NodeCluster, name: str) -> list[str]:
    """Those of the pods of a JobSet."""
    return [each.status.phase for each in await cluster.all_of(pod.Pod) if each.metadata.name.startswith(f"{name}-")]


async def test_job_sets_wait_for_quota_run_and_end(server: processes.Process) -> None:
    async with nodecluster.connected(server) as cluster:
        await cluster.apply(QUEUES)
        await projectcontrollers.start(cluster, "jobset", PROJECT)

        async def ends(name: str) -> None:
            async def holds() -> bool:
                return await _state(cluster, name) == (False, "Completed")

            await cluster.until(holds)

        async def comes(name: str, kind: str, status: str) -> None:
            async def holds() -> bool:
                return await _condition(cluster, name, kind) == status

            await cluster.until(holds)

        # JobSet's own webhook has set defaults, and queueing holds it back.
        first = await cluster.client.create_document(resources.JOB_SETS, _job_set("first", replicas=2))
        assert (first["spec"]["suspend"], first["spec"]["successPolicy"]["operator"]) == (True, "All")
        await ends("first")
        assert await _phases(cluster, "first") == ["Succeeded"] * 3
        await comes("first", conditions.FINISHED, "True")

        # Five pods are more than there is quota for, until there is more.
        await cluster.client.create_document(resources.JOB_SETS, _job_set("wide", replicas=4))
        await comes("wide", conditions.QUOTA_RESERVED, "False")
        assert (await _state(cluster, "wide"), await _phases(cluster, "wide")) == ((True, ""), [])
        quota = {"name": "default", "resources": [{"name": "cpu", "nominalQuota": "5"}]}
        groups = [{"coveredResources": ["cpu"], "flavors": [quota]}]
        patch = patches.merge({"spec": {"resourceGroups": groups}})
        await cluster.client.patch(resources.CLUSTER_QUEUES, "team", patch=patch)
        await ends("wide")
        assert await _phases(cluster, "wide") == ["Succeeded"] * 5
        await comes("wide", conditions.FINISHED, "True")
