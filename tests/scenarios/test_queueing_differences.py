"""Where queueing differs from Kueue on purpose (docs/differences.md)."""

import pathlib

import drachma.queueing
from drachma.api import job
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
