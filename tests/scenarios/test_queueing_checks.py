"""Admission checks: a gate that others open, close for a while, or close for good."""

from typing import Any

from drachma.client import patches
from drachma.queueing.component import resources
from tests.scenarios import queues

_TIME = "2026-01-01T00:00:00Z"


async def _gated(cluster: queues.Queues) -> None:
    """A queue with a check, whose controller is there."""
    spec = {"controllerName": "example.com/gate"}
    await cluster.client.create_document(resources.CHECKS, queues.made("AdmissionCheck", "gate", spec))
    active = {"type": "Active", "status": "True", "reason": "Active", "message": "", "lastTransitionTime": _TIME}
    await cluster.client.patch(
        resources.CHECKS, "gate", subresource="status", patch=patches.merge({"status": {"conditions": [active]}})
    )
    await cluster.create_queue(cpu=2)
    strategy = {"admissionChecksStrategy": {"admissionChecks": [{"name": "gate"}]}}
    await cluster.client.patch(resources.CLUSTER_QUEUES, "team", patch=patches.merge({"spec": strategy}))
    await cluster.settle()


async def _answer(cluster: queues.Queues, job: str, state: str, message: str) -> None:
    of = await cluster.workload_of(job)
    check: dict[str, Any] = {"name": "gate", "state": state, "message": message, "lastTransitionTime": _TIME}
    await cluster.client.patch(
        resources.WORKLOADS,
        of.metadata.name,
        namespace="default",
        subresource="status",
        patch=patches.merge({"status": {"admissionChecks": [check]}}),
    )
    await cluster.settle()


async def _states(cluster: queues.Queues, job: str) -> list[tuple[str, str]]:
    return [(each.name, each.state) for each in (await cluster.workload_of(job)).status.admission_checks]


async def test_a_job_with_quota_waits_for_its_check_and_is_stopped_by_it() -> None:
    async with queues.queues() as cluster:
        await _gated(cluster)
        await cluster.create_job("checked", seconds=600)
        assert await _states(cluster, "checked") == [("gate", "Pending")]
        assert (await cluster.workload_condition("checked", "QuotaReserved"))[:2] == ("True", "QuotaReserved")
        assert await cluster.is_suspended("checked")

        await _answer(cluster, "checked", "Ready", "fine")
        assert (await cluster.workload_condition("checked", "Admitted"))[:2] == ("True", "Admitted")
        assert not await cluster.is_suspended("checked")

        await _answer(cluster, "checked", "Retry", "later")
        assert await cluster.is_suspended("checked")
        message = 'Previously: Evicted due to AdmissionCheck in Retry state: "gate" (later)'
        assert await cluster.workload_condition("checked", "Evicted") == ("False", "QuotaReserved", message)
        assert await _states(cluster, "checked") == [("gate", "Pending")]

        await _answer(cluster, "checked", "Rejected", "never")
        assert (await cluster.workload_of("checked")).spec.active is False
        status, reason, message = await cluster.workload_condition("checked", "Evicted")
        assert (status, reason) == ("True", "DeactivatedDueToAdmissionCheck")
        assert message == 'The workload is deactivated due to AdmissionCheck in Rejected state: "gate" (never)'
