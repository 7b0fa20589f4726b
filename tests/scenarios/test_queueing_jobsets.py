"""JobSets in queues, where their definition is installed: one workload, a pod set for each replicated job."""

from collections.abc import Mapping
from typing import Any

import pytest

from drachma import errors
from drachma.client import patches
from drachma.queueing import conditions
from drachma.queueing.component import resources
from tests.scenarios import queues

_CONFIGURATION = {**queues.MAPPED, "integrations": {"frameworks": ["batch/job", "jobset.x-k8s.io/jobset"]}}
_DEFINITION = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: jobsets.jobset.x-k8s.io}
spec:
  group: jobset.x-k8s.io
  scope: Namespaced
  names: {kind: JobSet, plural: jobsets, singular: jobset, listKind: JobSetList}
  versions:
  - name: v1alpha2
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}
"""


def _job_set(name: str, *, queue: str = "team", workers: int = 2) -> dict[str, Any]:
    def replicated(of: str, replicas: int) -> dict[str, Any]:
        container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}
        template = {"spec": {"containers": [container], "restartPolicy": "Never"}}
        return {"name": of, "replicas": replicas, "template": {"spec": {"parallelism": 1, "template": template}}}

    jobs = [replicated("leader", 1), replicated("workers", workers)]
    document = queues.made(
        "JobSet", name, {"replicatedJobs": jobs}, namespace="default", api_version="jobset.x-k8s.io/v1alpha2"
    )
    document["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": queue}
    return document


async def _read(cluster: queues.Queues, name: str) -> dict[str, Any]:
    return await cluster.client.get_document(resources.JOB_SETS, name, namespace="default")


async def _tell(cluster: queues.Queues, name: str, status: Mapping[str, Any]) -> None:
    """What the controller of JobSets says of one."""
    patch = patches.merge({"status": dict(status)})
    await cluster.client.patch(resources.JOB_SETS, name, namespace="default", subresource="status", patch=patch)
    await cluster.settle()


async def test_a_job_set_waits_runs_gives_back_and_ends() -> None:
    async with queues.queues(configuration=_CONFIGURATION) as cluster:
        # The component runs already, and hears of the kind when it is there.
        await cluster.apply(_DEFINITION)
        await cluster.advance(120)
        spec = {"nodeLabels": {"pool": "fast"}}
        await cluster.client.create_document(resources.FLAVORS, queues.made("ResourceFlavor", "fast", spec))
        await cluster.create_queue(flavor="fast", cpu=4)
        for name in ("first", "second"):
            await cluster.client.create_document(resources.JOB_SETS, _job_set(name))
            await cluster.settle()

        record = await cluster.workload_of("first")
        assert record.metadata.name.startswith("jobset-first-")
        assert [(each.name, each.count) for each in record.spec.pod_sets] == [("leader", 1), ("workers", 2)]
        started = await _read(cluster, "first")
        assert started["spec"]["suspend"] is False
        selectors = [
            each["template"]["spec"]["template"]["spec"]["nodeSelector"] for each in started["spec"]["replicatedJobs"]
        ]
        assert selectors == [{"pool": "fast"}] * 2
        assert (await _read(cluster, "second"))["spec"]["suspend"] is True
        assert (await cluster.workload_condition("second", "QuotaReserved"))[:2] == ("False", "WaitingForQuota")

        await _tell(cluster, "first", {"replicatedJobsStatus": [{"name": "workers", "succeeded": 2, "ready": 0}]})
        assert (await _read(cluster, "second"))["spec"]["suspend"] is False

        condition = {"type": "Completed", "status": "True", "message": "all done"}
        await _tell(cluster, "first", {"conditions": [condition]})
        assert await cluster.workload_condition("first", "Finished") == ("True", "Succeeded", "all done")


async def test_a_job_set_that_runs_keeps_its_queue_and_is_stopped_as_it_was() -> None:
    async with queues.queues(configuration=_CONFIGURATION) as cluster:
        await cluster.apply(_DEFINITION)
        await cluster.advance(120)
        spec = {"nodeLabels": {"pool": "fast"}}
        await cluster.client.create_document(resources.FLAVORS, queues.made("ResourceFlavor", "fast", spec))
        await cluster.create_queue(flavor="fast", cpu=4)
        asked = _job_set("train")
        await cluster.client.create_document(resources.JOB_SETS, asked)
        await cluster.settle()
        assert (await _read(cluster, "train"))["spec"]["suspend"] is False

        other = patches.merge({"metadata": {"labels": {"kueue.x-k8s.io/queue-name": "other"}}})
        with pytest.raises(errors.ForbiddenError, match=r"queue-name.*field is immutable"):
            await cluster.client.patch(resources.JOB_SETS, "train", namespace="default", patch=other)

        patch = patches.merge({"spec": {"stopPolicy": "HoldAndDrain"}})
        await cluster.client.patch(resources.CLUSTER_QUEUES, "team", patch=patch)
        await cluster.advance(1)
        assert (await _read(cluster, "train"))["spec"] == {**asked["spec"], "suspend": True}
        assert conditions.is_false((await cluster.workload_of("train")).status.conditions, "QuotaReserved")
