"""RayClusters and RayJobs with their own controller (ray-project/kuberay), in queues of a control plane of drachma.

Ray itself does not run. KubeRay asks the head of a cluster about its job over HTTP, by the name of the head's service,
and gets the answer from a proxy of the test.
"""

import contextlib
import pathlib
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from aiohttp import web

from drachma.api import job, pod
from drachma.client import patches
from drachma.queueing import conditions
from drachma.queueing.component import resources
from tests.peers import agents, programs, projectcontrollers
from tests.peers.test_jobset import QUEUES
from tests.scenarios import nodecluster, processes
from tests.scenarios.nodecluster import NodeCluster

CONFIGURATION = """
apiVersion: config.kueue.x-k8s.io/v1beta2
kind: Configuration
integrations: {frameworks: [batch/job, ray.io/raycluster, ray.io/rayjob]}
"""
RAY_CLUSTERS = resources.INSTALLED_JOBS["ray.io/raycluster"]
RAY_JOBS = resources.INSTALLED_JOBS["ray.io/rayjob"]


@pytest.fixture
def server(tmp_path: pathlib.Path) -> Iterator[processes.Process]:
    with projectcontrollers.queueing_server("kuberay", CONFIGURATION, tmp_path) as started:
        yield started


class Heads:
    """Answers about jobs of Ray, as the heads of clusters would give them."""

    def __init__(self) -> None:
        self.status = "RUNNING"

    async def answer(self, request: web.Request) -> web.Response:
        name = request.path.rsplit("/", 1)[-1]
        return web.json_response({"submission_id": name, "status": self.status, "message": "from the head"})


@contextlib.asynccontextmanager
async def _listening(heads: Heads, port: int) -> AsyncIterator[None]:
    server = web.Server(heads.answer)  # type: ignore[arg-type]
    runner = web.ServerRunner(server)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    try:
        yield
    finally:
        await runner.cleanup()


async def _start_kuberay(cluster: NodeCluster, proxy: int) -> None:
    for kind in ("rayclusters", "rayjobs", "rayservices"):
        file = programs.files_of("kuberay") / f"config/crd/bases/ray.io_{kind}.yaml"
        await cluster.apply(file.read_text())
    health = agents.free_port()
    await projectcontrollers.run(
        cluster,
        "kuberay",
        f"--health-probe-bind-address=127.0.0.1:{health}",
        "--metrics-addr=0",
        "--enable-leader-election=false",
        health=health,
        environment={"HTTP_PROXY": f"http://127.0.0.1:{proxy}"},
    )


def _template(cpu: str) -> dict[str, Any]:
    resources_of_pod = {"requests": {"cpu": cpu}, "limits": {"cpu": cpu}}
    return {"spec": {"containers": [{"name": "ray", "image": "ray", "resources": resources_of_pod}]}}


def _cluster_spec(workers: int) -> dict[str, Any]:
    group = {"groupName": "workers", "replicas": workers, "minReplicas": workers, "maxReplicas": workers}
    return {
        "headGroupSpec": {"rayStartParams": {}, "template": _template("1")},
        "workerGroupSpecs": [{**group, "rayStartParams": {}, "template": _template("1")}],
    }


def _document(kind: str, name: str, spec: dict[str, Any]) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "default", "labels": {"kueue.x-k8s.io/queue-name": "jobs"}}
    return {"apiVersion": "ray.io/v1", "kind": kind, "metadata": metadata, "spec": spec}


async def _is_true(cluster: NodeCluster, name: str, condition: str) -> bool:
    """Return True if the workload of a job has a condition that is true."""
    return any(
        conditions.is_true(each.status.conditions, condition)
        for each in await cluster.all_of(resources.WORKLOADS)
        if any(owner.name == name for owner in each.metadata.owner_references)
    )


async def test_clusters_and_jobs_of_ray_wait_for_quota_run_and_end(server: processes.Process) -> None:
    heads, port = Heads(), agents.free_port()
    async with nodecluster.connected(server) as cluster, _listening(heads, port):
        await cluster.apply(QUEUES)
        await _start_kuberay(cluster, port)

        async def running(count: int) -> None:
            async def holds() -> bool:
                pods = [each for each in await cluster.all_of(pod.Pod) if not each.metadata.deletion_timestamp]
                return [each.status.phase for each in pods] == ["Running"] * count

            await cluster.until(holds)

        async def reaches(name: str, condition: str) -> None:
            async def holds() -> bool:
                return await _is_true(cluster, name, condition)

            await cluster.until(holds)

        async def deploys(name: str, status: str) -> None:
            async def holds() -> bool:
                document = await cluster.client.get_document(RAY_JOBS, name, namespace="default")
                return (document.get("status") or {}).get("jobDeploymentStatus") == status

            await cluster.until(holds)

        # Quota for four CPUs: a head and two workers run, and the job with a head and a worker waits.
        serving = await cluster.client.create_document(
            RAY_CLUSTERS, _document("RayCluster", "serving", _cluster_spec(2))
        )
        assert serving["spec"]["suspend"]
        await running(3)
        await reaches("serving", conditions.PODS_READY)
        spec = {
            "entrypoint": "python tune.py",
            "submissionMode": "HTTPMode",
            "shutdownAfterJobFinishes": True,
            "rayClusterSpec": _cluster_spec(1),
        }
        tune = await cluster.client.create_document(RAY_JOBS, _document("RayJob", "tune", spec))
        assert tune["spec"]["suspend"]
        await deploys("tune", "Suspended")
        assert not await _is_true(cluster, "tune", conditions.QUOTA_RESERVED)
        await running(3)

        # The cluster is deleted, and its quota is for the job. The cluster of the job needs no workload of its own.
        await cluster.client.delete(RAY_CLUSTERS, "serving", namespace="default")
        await deploys("tune", "Running")
        await running(2)
        assert len(await cluster.all_of(resources.WORKLOADS)) == 1

        # The workload is stopped: KubeRay deletes the pods, and creates them again when it may.
        (workload,) = await cluster.all_of(resources.WORKLOADS)
        for is_active, status, pods in ((False, "Suspended", 0), (True, "Running", 2)):
            patch = patches.merge({"spec": {"active": is_active}})
            await cluster.client.patch(resources.WORKLOADS, workload.metadata.name, namespace="default", patch=patch)
            await deploys("tune", status)
            await running(pods)

        heads.status = "SUCCEEDED"
        await deploys("tune", "Complete")
        await reaches("tune", conditions.FINISHED)
        await running(0)
        assert not await cluster.all_of(job.Job)
