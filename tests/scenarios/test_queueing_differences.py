"""Where queueing differs from Kueue on purpose (docs/differences.md)."""

import pathlib

import drachma.queueing
from drachma.api import job
from drachma.queueing.component import resources
from tests.scenarios import queues

MISSING = (
    "workload_creation_latency_seconds",
    "pod_scheduling_gate_removal_seconds",
    "pending_scheduling_hashes",
    "admission_cycle_preemption_skips",
    "preemption_target_recomputations_total",
    "cohort_subtree_admitted_workloads_total",
)


def test_metrics_of_kueue_that_are_missing() -> None:
    source = "".join(path.read_text() for path in pathlib.Path(drachma.queueing.__path__[0]).rglob("*.py"))
    assert '"kueue_pending_workloads"' in source or '"pending_workloads"' in source
    assert [name for name in MISSING if f'{name}"' in source] == []


async def test_a_resource_that_no_group_covers_has_a_reason() -> None:
    async with queues.queues() as cluster:
        await cluster.create_queue(cpu=100)
        document = queues.job_document("odd")
        (container,) = document["spec"]["template"]["spec"]["containers"]
        container["resources"]["requests"]["memory"] = "1Gi"
        await cluster.client.create_document(job.Job, document)
        await cluster.settle()
        status, reason, message = await cluster.workload_condition("odd", "QuotaReserved")
        assert (status, reason) == ("False", "NoMatchingFlavor"), message


async def test_the_condition_about_devices_goes_when_they_are_counted() -> None:
    async with queues.queues() as cluster:
        await cluster.create_queue(cpu=0, gpus=0)
        await cluster.create_job("unmapped", template="one-gpu")
        assert (await cluster.workload_condition("unmapped", "QuotaReserved"))[1] == "Misconfigured"
        cluster.configured.offer(queues.MAPPED)
        await cluster.settle()
        conditions = (await cluster.workload_of("unmapped")).status.conditions
        assert "Misconfigured" not in [each.reason for each in conditions]


async def test_a_workload_keeps_its_devices_in_its_requests_after_a_backoff() -> None:
    """Devices count when the backoff of an evicted workload ends, without another reconcile."""
    requeuing = {"backoffBaseSeconds": 10, "backoffLimitCount": 3}
    waits = {"waitForPodsReady": {"timeout": "1m", "requeuingStrategy": requeuing}}
    async with queues.queues(configuration={**queues.MAPPED, **waits}) as cluster:
        await cluster.create_queue(cpu=20_000, gpus=1)
        # No node has so much cpu, so its pod never is ready.
        await cluster.create_job("huge", cpu="10000", template="one-gpu")
        for _ in range(2):
            await cluster.advance(90)
        record = await cluster.workload_of("huge")
        assert record.status.requeue_state is not None
        assert record.status.requeue_state.count
        assert record.status.admission is not None
        (assignment,) = record.status.admission.pod_set_assignments
        assert str(assignment.resource_usage["gpus"]) == "1"


async def test_a_workload_with_claims_and_without_a_queue_says_so() -> None:
    async with queues.queues(configuration=queues.MAPPED) as cluster:
        await cluster.create_job("lost", queue="nowhere", template="one-gpu")
        condition = await cluster.workload_condition("lost", "QuotaReserved")
        assert condition == ("False", "Misconfigured", "LocalQueue nowhere doesn't exist")


async def test_a_job_has_one_workload_with_concurrent_admission() -> None:
    """Kueue makes a workload for each flavor that is tried."""
    configuration = {**queues.MAPPED, "featureGates": {"ConcurrentAdmission": True}}
    async with queues.queues(configuration=configuration) as cluster:
        quota = [{"name": "cpu", "nominalQuota": "4"}]
        flavors = [{"name": "default", "resources": quota}]
        spec = {
            "namespaceSelector": {},
            "resourceGroups": [{"coveredResources": ["cpu"], "flavors": flavors}],
            "concurrentAdmissionPolicy": {"migration": {"mode": "TryPreferredFlavors"}},
        }
        await cluster.client.create_document(resources.CLUSTER_QUEUES, queues.made("ClusterQueue", "team", spec))
        local = queues.made("LocalQueue", "team", {"clusterQueue": "team"}, namespace="default")
        await cluster.client.create_document(resources.LOCAL_QUEUES, local)
        await cluster.settle()
        await cluster.create_job("single", seconds=60)
        assert not await cluster.is_suspended("single")
        assert len(await cluster.all_of(resources.WORKLOADS)) == 1
