"""Claims of PodGroups in queues: charged once for a group, settled, and explained."""

from datetime import UTC, datetime
from typing import Any

from drachma.api import gates, job, pod, podgroup, resourceclaim
from drachma.queueing import explanation
from drachma.simulate import livecluster
from drachma.simulate.queueingstate import QueueingState
from tests.scenarios import queues

GATES = gates.ALL.switched({"GenericWorkload": True, "DRAWorkloadResourceClaims": True, "WorkloadWithJob": True})
GROUP = """
apiVersion: scheduling.k8s.io/v1beta1
kind: PodGroup
metadata: {name: %s}
spec:
  schedulingPolicy: {basic: {}}
  resourceClaims: [{name: g, resourceClaimTemplateName: one-gpu}]
"""


def _job(name: str, pods: int, *, group: str = "") -> dict[str, Any]:
    """A Job whose pods share their claim in a group, or else in a group that is made for the job."""
    document = queues.job_document(name, pods=pods, template="one-gpu", seconds=600)
    spec = document["spec"]
    if group:
        spec["template"]["spec"]["schedulingGroup"] = {"podGroupName": group}
    else:
        claims = [{"name": "g", "resourceClaimTemplateName": "one-gpu"}]
        spec["scheduling"] = {"schedulingPolicy": {"basic": {}}, "resourceClaims": claims}
    return document


async def _create(cluster: queues.Queues, document: dict[str, Any]) -> None:
    await cluster.client.create_document(job.Job, document)
    await cluster.settle()


async def _usage(cluster: queues.Queues, name: str) -> dict[str, str]:
    admission = (await cluster.workload_of(name)).status.admission
    assert admission is not None, await cluster.workload_condition(name, "QuotaReserved")
    (assignment,) = admission.pod_set_assignments
    return {resource: str(amount) for resource, amount in assignment.resource_usage.items()}


async def test_a_group_pays_once_for_its_claim() -> None:
    async with queues.queues(configuration=queues.MAPPED, gates=GATES) as cluster:
        await cluster.create_queue(cpu=100, gpus=1)
        await _create(cluster, _job("training", 4, group="shared"))
        assert await cluster.is_suspended("training"), "it is not known yet which claims the group shares"
        message = (await cluster.workload_condition("training", "QuotaReserved"))[2]
        assert 'podgroups.scheduling.k8s.io "shared" not found' in message

        await cluster.apply(GROUP % "shared")
        await cluster.advance(5)
        assert await _usage(cluster, "training") == {"cpu": "4", "gpus": "1"}
        assert await cluster.phases() == {"Running": 4}
        (claim,) = await cluster.all_of(resourceclaim.ResourceClaim)
        assert [each.resource for each in claim.status.reserved_for] == ["podgroups"]


async def test_jobs_of_one_group_pay_once_and_another_group_is_explained() -> None:
    async with queues.queues(configuration=queues.MAPPED, gates=GATES) as cluster:
        await cluster.create_queue(cpu=100, gpus=1)
        await cluster.apply(GROUP % "first", GROUP % "second")
        await _create(cluster, _job("a", 2, group="first"))
        await _create(cluster, _job("b", 3, group="first"))
        assert await _usage(cluster, "a") == {"cpu": "2", "gpus": "1"}
        assert await _usage(cluster, "b") == {"cpu": "3"}
        await _create(cluster, _job("c", 2, group="second"))
        assert await cluster.is_suspended("c")

        objects = await livecluster.read_queueing(cluster.client)
        (explained,) = QueueingState(objects, datetime.now(UTC), configured=cluster.configured).explain("default", "c")
        text = explanation.render(explained)
        assert "pod set main, flavor default: gpus: needs 1, 0 can be had, 1 short" in text, text
        assert "the end of" not in text, "b would pay for the claim of its group then"

        await cluster.client.delete(job.Job, "a", namespace="default", propagation="Background")
        await cluster.advance(5)
        (flavor,) = (await cluster.status_of("team"))["flavorsUsage"]
        assert {each["name"]: each["total"] for each in flavor["resources"]} == {"cpu": "3", "gpus": "1"}


async def test_the_group_that_is_made_for_a_job_pays_once() -> None:
    async with queues.queues(configuration=queues.MAPPED, gates=GATES) as cluster:
        await cluster.create_queue(cpu=100, gpus=1)
        await _create(cluster, _job("training", 3))
        await cluster.advance(5)
        assert await _usage(cluster, "training") == {"cpu": "3", "gpus": "1"}
        assert await cluster.phases() == {"Running": 3}
        (group,) = await cluster.all_of(podgroup.PodGroup)
        pods = await cluster.all_of(pod.Pod)
        assert {each.spec.scheduling_group.pod_group_name for each in pods if each.spec.scheduling_group} == {
            group.metadata.name
        }


async def test_without_the_gate_each_pod_pays() -> None:
    enabled = GATES.switched({"DRAWorkloadResourceClaims": False})
    async with queues.queues(configuration=queues.MAPPED, gates=enabled) as cluster:
        await cluster.create_queue(cpu=100, gpus=2)
        await cluster.apply(GROUP % "shared")
        await _create(cluster, _job("training", 2, group="shared"))
        assert await _usage(cluster, "training") == {"cpu": "2", "gpus": "2"}
