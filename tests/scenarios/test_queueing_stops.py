"""Jobs that are stopped by their queues: who has to go, and how their pods are then."""

import logging
from typing import Any

import pytest

from drachma.api import job, namespace
from drachma.client import patches
from drachma.queueing.component import resources
from tests.scenarios import queues


async def _stop_local_queue(cluster: queues.Queues, policy: str) -> None:
    patch = patches.merge({"spec": {"stopPolicy": policy}})
    await cluster.client.patch(resources.LOCAL_QUEUES, "team", namespace="default", patch=patch)


async def test_a_local_queue_that_is_drained_stops_its_jobs_until_it_goes_on() -> None:
    async with queues.queues() as cluster:
        await cluster.create_queue(cpu=2)
        await cluster.create_job("running", seconds=600)

        await _stop_local_queue(cluster, "Hold")
        await cluster.advance(1)
        assert not await cluster.is_suspended("running")

        await _stop_local_queue(cluster, "HoldAndDrain")
        await cluster.advance(1)
        assert await cluster.is_suspended("running")
        evicted = await cluster.workload_condition("running", "Evicted")
        assert evicted == ("True", "LocalQueueStopped", "The LocalQueue is stopped")

        await _stop_local_queue(cluster, "None")
        await cluster.advance(1)
        assert not await cluster.is_suspended("running")
        requeued = await cluster.workload_condition("running", "Requeued")
        assert requeued == ("True", "LocalQueueRestarted", "The LocalQueue was restarted after being stopped")


async def _placed(cluster: queues.Queues) -> dict[str, Any]:
    document: dict[str, Any] = dict(await cluster.client.get_document(job.Job, "placed", namespace="default"))
    return document


@pytest.mark.parametrize("moments", range(0, 24, 3))
async def test_a_job_that_is_being_stopped_in_a_crash_is_as_it_was_in_the_end(
    moments: int, caplog: pytest.LogCaptureFixture
) -> None:
    async with queues.queues() as cluster:
        spec = {"nodeLabels": {"pool": "fast"}}
        await cluster.client.create_document(resources.FLAVORS, queues.made("ResourceFlavor", "fast", spec))
        await cluster.create_queue(flavor="fast", cpu=2)
        await cluster.create_job("placed", seconds=600)
        assert (await _placed(cluster))["spec"]["template"]["spec"]["nodeSelector"] == {"pool": "fast"}

        await _stop_local_queue(cluster, "HoldAndDrain")
        await cluster.let_pass(moments)
        await cluster.kill("queueing")
        caplog.clear()
        cluster.launch_queueing()
        await cluster.advance(1)
        stopped = await _placed(cluster)
        assert stopped["spec"]["suspend"] is True
        assert "nodeSelector" not in stopped["spec"]["template"]["spec"]
        assert "kueue.x-k8s.io/stopping" not in stopped["metadata"].get("annotations", {})
        assert [each.message for each in caplog.records if each.levelno >= logging.WARNING] == []


async def test_a_job_of_no_queue_waits_with_a_workload_that_says_so() -> None:
    configuration = {
        **queues.MAPPED,
        "manageJobsWithoutQueueName": True,
        "managedJobsNamespaceSelector": {"matchLabels": {"managed": "yes"}},
    }
    async with queues.queues(configuration=configuration) as cluster:
        await cluster.create_queue(cpu=2)
        labels = patches.merge({"metadata": {"labels": {"managed": "yes"}}})
        await cluster.client.patch(namespace.Namespace, "default", patch=labels)
        await cluster.create_job("unnamed", queue="", seconds=30)
        assert await cluster.is_suspended("unnamed")
        condition = await cluster.workload_condition("unnamed", "QuotaReserved")
        assert condition == ("False", "Misconfigured", "LocalQueue  doesn't exist")

        label = patches.merge({"metadata": {"labels": {"kueue.x-k8s.io/queue-name": "team"}}})
        await cluster.client.patch(job.Job, "unnamed", namespace="default", patch=label)
        await cluster.settle()
        assert not await cluster.is_suspended("unnamed")


@pytest.mark.parametrize("moments", range(0, 24, 8))
async def test_a_job_that_runs_already_when_queueing_starts_is_suspended_and_admitted(
    moments: int, caplog: pytest.LogCaptureFixture
) -> None:
    async with queues.queues(has_webhooks=False) as cluster:
        await cluster.create_queue(cpu=2)
        await cluster.kill("queueing")
        for name in ("first", "second"):
            await cluster.create_job(name, cpu="2", seconds=600)
        await cluster.advance(10)
        assert await cluster.phases() == {"Running": 2}

        cluster.launch_queueing()
        await cluster.let_pass(moments)
        await cluster.kill("queueing")
        caplog.clear()
        cluster.launch_queueing()
        await cluster.advance(60)
        assert await cluster.phases() == {"Running": 1}
        assert sorted([await cluster.is_suspended("first"), await cluster.is_suspended("second")]) == [False, True]
        assert len(await cluster.all_of(resources.WORKLOADS)) == 2
        for each in await cluster.all_of(job.Job):
            assert "kueue.x-k8s.io/stopping" not in each.metadata.annotations
        assert [each.message for each in caplog.records if each.levelno >= logging.WARNING] == []
