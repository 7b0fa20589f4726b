"""Queueing as a component of a whole control plane: jobs wait, run, are preempted, and give back what they had."""

import itertools
from typing import Any

import pytest

from drachma import errors
from drachma.api import job, pod
from drachma.client import patches
from drachma.queueing.admission import admitter
from drachma.queueing.component import resources, workloadwrites
from drachma.queueing.configuration import configurationform
from drachma.queueing.kinds import workload
from tests.scenarios import queues

_SHORT_OF_CPU = (
    "couldn't assign flavors to pod set main: insufficient unused quota for cpu in flavor default, 1 more needed"
)


async def test_a_job_runs_when_there_is_quota_and_others_wait_for_it() -> None:
    async with queues.queues() as cluster:
        await cluster.create_queue(cpu=3)
        await cluster.create_job("first", pods=2, seconds=60)
        await cluster.create_job("second", pods=2, seconds=60)

        assert not await cluster.is_suspended("first")
        assert await cluster.phases() == {"Running": 2}
        assert await cluster.is_suspended("second")
        condition = await cluster.workload_condition("second", "QuotaReserved")
        assert condition == ("False", "WaitingForQuota", _SHORT_OF_CPU)
        status = await cluster.status_of("team")
        assert (status["admittedWorkloads"], status["reservingWorkloads"], status["pendingWorkloads"]) == (1, 1, 1)
        usage = {"name": "cpu", "borrowed": "0", "total": "2"}
        assert status["flavorsUsage"] == [{"name": "default", "resources": [usage]}]

        await cluster.advance(120)
        assert (await cluster.workload_condition("first", "Finished"))[:2] == ("True", "Succeeded")
        assert not await cluster.is_suspended("second")


async def test_an_urgent_job_takes_the_place_of_another_which_comes_back() -> None:
    async with queues.queues() as cluster:
        priority = {"value": 100}
        await cluster.client.create_document(
            resources.WORKLOAD_PRIORITIES, {**queues.made("WorkloadPriorityClass", "urgent", {}), **priority}
        )
        await cluster.create_queue(cpu=2)
        await cluster.create_job("long", pods=2)
        assert not await cluster.is_suspended("long")
        labels = {"kueue.x-k8s.io/priority-class": "urgent"}
        await cluster.create_job("short", pods=2, labels=labels, seconds=30)
        await cluster.settle()

        assert await cluster.is_suspended("long")
        assert not await cluster.is_suspended("short")
        status, reason, _ = await cluster.workload_condition("long", "Preempted")
        assert (status, reason) == ("True", "InClusterQueue")
        assert await cluster.phases() == {"Running": 2}

        await cluster.advance(60)
        assert not await cluster.is_suspended("long")


async def test_flavors_tell_pods_where_to_go_and_take_it_back() -> None:
    async with queues.queues() as cluster:
        spec = {"nodeLabels": {"pool": "fast"}, "tolerations": [{"key": "gpu", "operator": "Exists"}]}
        await cluster.client.create_document(resources.FLAVORS, queues.made("ResourceFlavor", "fast", spec))
        await cluster.create_queue(flavor="fast", cpu=2)
        await cluster.create_job("placed")
        started = await cluster.client.get_document(job.Job, "placed", namespace="default")
        assert started["spec"]["template"]["spec"]["nodeSelector"] == {"pool": "fast"}
        assert {"key": "gpu", "operator": "Exists"} in started["spec"]["template"]["spec"]["tolerations"]

        patch = patches.merge({"spec": {"stopPolicy": "HoldAndDrain"}})
        await cluster.client.patch(resources.CLUSTER_QUEUES, "team", patch=patch)
        await cluster.advance(1)
        stopped = await cluster.client.get_document(job.Job, "placed", namespace="default")
        assert stopped["spec"]["suspend"] is True
        assert not stopped["spec"]["template"]["spec"].get("nodeSelector")
        assert not stopped["spec"]["template"]["spec"].get("tolerations")

        await cluster.client.patch(
            resources.CLUSTER_QUEUES, "team", patch=patches.merge({"spec": {"stopPolicy": "None"}})
        )
        await cluster.advance(1)
        assert not await cluster.is_suspended("placed")


async def test_a_queue_on_hold_goes_on_saying_what_runs_in_it() -> None:
    async with queues.queues() as cluster:
        await cluster.create_queue(cpu=3)
        await cluster.create_job("before", pods=2, seconds=60)
        await cluster.client.patch(
            resources.CLUSTER_QUEUES, "team", patch=patches.merge({"spec": {"stopPolicy": "Hold"}})
        )
        await cluster.create_job("after")
        await cluster.advance(1)

        status = await cluster.status_of("team")
        assert (status["admittedWorkloads"], status["reservingWorkloads"], status["pendingWorkloads"]) == (1, 1, 1)
        usage = {"name": "cpu", "borrowed": "0", "total": "2"}
        assert status["flavorsUsage"] == [{"name": "default", "resources": [usage]}]

        await cluster.advance(120)
        status = await cluster.status_of("team")
        assert (status["reservingWorkloads"], status["pendingWorkloads"]) == (0, 1)


async def test_without_webhooks_a_queue_that_nobody_uses_tells_of_itself_and_stays_while_it_is_used() -> None:
    async with queues.queues(has_webhooks=False) as cluster:
        await cluster.create_queue(cpu=2)
        status = await cluster.status_of("team")
        assert [(each["type"], each["status"]) for each in status["conditions"]] == [("Active", "True")]
        document = await cluster.client.get_document(resources.CLUSTER_QUEUES, "team")
        assert document["metadata"]["finalizers"] == ["kueue.x-k8s.io/resource-in-use"]


async def test_devices_are_charged_as_the_configuration_says() -> None:
    async with queues.queues(configuration=queues.MAPPED) as cluster:
        await cluster.create_queue(cpu=100, gpus=3)
        await cluster.create_job("two", pods=2, template="one-gpu")
        await cluster.create_job("more", pods=2, template="one-gpu")
        admission = (await cluster.workload_of("two")).status.admission
        assert admission is not None
        (assignment,) = admission.pod_set_assignments
        assert str(assignment.resource_usage["gpus"]) == "2"
        assert dict(assignment.flavors) == {"cpu": "default", "gpus": "default"}
        status, reason, message = await cluster.workload_condition("more", "QuotaReserved")
        assert (status, reason) == ("False", "WaitingForQuota")
        assert "insufficient unused quota for gpus in flavor default, 1 more needed" in message


async def test_a_missing_template_is_waited_for_and_a_new_mapping_helps_at_once() -> None:
    async with queues.queues() as cluster:
        await cluster.create_queue(cpu=100, gpus=3)
        await cluster.create_job("unmapped", template="one-gpu")
        status, reason, message = await cluster.workload_condition("unmapped", "QuotaReserved")
        assert (status, reason) == ("False", "Misconfigured")
        assert "is not mapped in DRA configuration" in message

        cluster.configured.offer(queues.MAPPED)
        await cluster.settle()
        assert not await cluster.is_suspended("unmapped")

        await cluster.create_job("early", template="two-gpus")
        assert await cluster.is_suspended("early")
        await cluster.apply(queues.TEMPLATE.replace("one-gpu", "two-gpus"))
        assert not await cluster.is_suspended("early")


async def test_a_wrong_configuration_is_refused_and_the_old_one_stays() -> None:
    async with queues.queues(configuration=queues.MAPPED) as cluster:
        before = cluster.configured.configuration
        twice: dict[str, Any] = {
            **queues.MAPPED,
            "resources": {
                "deviceClassMappings": [
                    {"name": "whole-gpus", "deviceClassNames": ["gpus.example.com"]},
                    {"name": "fast-gpus", "deviceClassNames": ["gpus.example.com"]},
                ]
            },
        }
        with pytest.raises(configurationform.RefusedConfigurationError, match=r"deviceClassNames\[0\]"):
            cluster.configured.offer(twice)
        assert cluster.configured.configuration is before


async def test_nobody_is_admitted_while_pods_of_another_are_not_ready() -> None:
    waits = {"waitForPodsReady": {"timeout": "5m", "blockAdmission": True}}
    async with queues.queues(configuration={**queues.MAPPED, **waits}) as cluster:
        await cluster.create_queue(cpu=20_000)
        await cluster.create_job("huge", cpu="10000")
        await cluster.create_job("small")
        assert not await cluster.is_suspended("huge")
        assert await cluster.is_suspended("small")
        want = ("False", "WaitingForPodsReady", "waiting for all admitted workloads to be in PodsReady condition")
        assert await cluster.workload_condition("small", "QuotaReserved") == want

        await cluster.delete(job.Job, "huge")
        assert not await cluster.is_suspended("small")
        await cluster.create_job("next")
        assert not await cluster.is_suspended("next")


async def test_a_job_with_quota_waits_for_an_admission_check() -> None:
    async with queues.queues() as cluster:
        await cluster.create_queue(cpu=1)
        await cluster.create_check("team")
        await cluster.create_job("checked", seconds=60)
        record = await cluster.workload_of("checked")
        assert record.status.admission is not None
        assert [(each.name, each.state) for each in record.status.admission_checks] == [("manual", "Pending")]
        assert await cluster.is_suspended("checked")

        state = {"name": "manual", "state": "Ready", "message": "go", "lastTransitionTime": "2026-01-01T00:00:00Z"}
        ready = patches.merge({"status": {"admissionChecks": [state]}})
        name = record.metadata.name
        await cluster.client.patch(resources.WORKLOADS, name, namespace="default", subresource="status", patch=ready)
        await cluster.settle()
        assert not await cluster.is_suspended("checked")


async def test_pods_are_gated_until_admitted() -> None:
    configuration = {**queues.MAPPED, "integrations": {"frameworks": ["batch/job", "pod"]}}
    async with queues.queues(configuration=configuration) as cluster:
        await cluster.create_queue(cpu=1)
        for name in ("one", "two"):
            container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}
            spec = {"containers": [container], "restartPolicy": "Never"}
            document = queues.made("Pod", name, spec, namespace="default", api_version="v1")
            document["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": "team"}
            document["metadata"]["annotations"] = {"simulation.drachma.dev/run-seconds": "30"}
            await cluster.client.create_document(pod.Pod, document)
            await cluster.settle()
        assert await cluster.phases() == {"Running": 1, "Pending": 1}
        gated = await cluster.client.get_document(pod.Pod, "two", namespace="default")
        names = [each["name"] for each in gated["spec"]["schedulingGates"]]
        assert names == ["kueue.x-k8s.io/admission", "kueue.x-k8s.io/topology"]

        await cluster.advance(31)
        assert await cluster.phases() == {"Succeeded": 1, "Running": 1}


async def test_pods_of_a_group_are_admitted_together() -> None:
    configuration = {**queues.MAPPED, "integrations": {"frameworks": ["batch/job", "pod"]}}
    async with queues.queues(configuration=configuration) as cluster:
        await cluster.create_queue(cpu=2)
        for name in ("one", "two"):
            container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}
            spec = {"containers": [container], "restartPolicy": "Never"}
            document = queues.made("Pod", name, spec, namespace="default", api_version="v1")
            document["metadata"]["labels"] = {
                "kueue.x-k8s.io/queue-name": "team",
                "kueue.x-k8s.io/pod-group-name": "both",
            }
            document["metadata"]["annotations"] = {"kueue.x-k8s.io/pod-group-total-count": "2"}
            await cluster.client.create_document(pod.Pod, document)
            await cluster.settle()
            phases = await cluster.phases()
            assert phases == ({"Pending": 1} if name == "one" else {"Running": 2})
        (group,) = await cluster.all_of(resources.WORKLOADS)
        assert group.metadata.name == "both"
        assert sorted(each.name for each in group.metadata.owner_references) == ["one", "two"]


@pytest.mark.parametrize("moments", range(8))
async def test_a_component_that_is_killed_leaves_nothing_twice_and_nothing_behind(moments: int) -> None:
    async with queues.queues() as cluster:
        await cluster.create_queue(cpu=4)
        for number in range(3):
            await cluster.put_job(f"job-{number}", pods=2, seconds=30)
        await cluster.let_pass(moments * 3)
        await cluster.kill("queueing")
        await cluster.settle()
        cluster.launch_queueing()
        await cluster.settle()

        running = [number for number in range(3) if not await cluster.is_suspended(f"job-{number}")]
        assert len(running) == 2
        assert len(await cluster.all_of(resources.WORKLOADS)) == 3
        status = await cluster.status_of("team")
        assert status["flavorsUsage"][0]["resources"][0]["total"] == "4"
        await cluster.advance(45)
        await cluster.advance(45)
        finished = [await cluster.workload_condition(f"job-{number}", "Finished") for number in range(3)]
        assert [each[:2] for each in finished] == [("True", "Succeeded")] * 3


async def test_a_decision_that_cannot_be_written_is_tried_again_after_growing_pauses(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    written = workloadwrites.write_status
    tries: list[float] = []

    async with queues.queues() as cluster:

        async def refusing(client: Any, before: workload.Workload, after: workload.Workload) -> Any:
            if "unlucky" in after.metadata.name:
                tries.append(cluster.clock.monotonic())
                raise errors.UnreachableError("nobody answers")
            return await written(client, before, after)

        await cluster.create_queue(cpu=3)
        monkeypatch.setattr(workloadwrites, "write_status", refusing)
        await cluster.create_job("unlucky", pods=2)
        assert len(tries) <= 3, "at once only when there is news of it"
        await cluster.create_job("other", pods=2)
        assert not await cluster.is_suspended("other"), "what cannot be written down is not held"

        await cluster.advance(1)
        tries.clear()
        for _ in range(100):
            await cluster.advance(0.1)
        pauses = [later - earlier for earlier, later in itertools.pairwise(tries)]
        step = 0.15
        assert all(later >= earlier - step for earlier, later in itertools.pairwise(pauses)), "to a step of the clock"
        assert 4 <= len(tries) <= 9, "in ten seconds"

        monkeypatch.undo()
        await cluster.delete(job.Job, "other")
        await cluster.advance(60)
        assert not await cluster.is_suspended("unlucky")


async def test_a_weight_beyond_floating_point_stops_nothing() -> None:
    async with queues.queues() as cluster:
        await cluster.create_queue(cpu=4)
        weight = {"fairSharing": {"weight": "9" * 400}}
        await cluster.client.patch(resources.CLUSTER_QUEUES, "team", patch=patches.merge({"spec": weight}))
        await cluster.create_job("train", seconds=600)
        await cluster.advance(2)
        assert await cluster.phases() == {"Running": 1}


async def test_admission_that_fails_unexpectedly_starts_again(monkeypatch: pytest.MonkeyPatch) -> None:
    async with queues.queues() as cluster:
        await cluster.create_queue(cpu=4)

        def fail(*_: object) -> None:
            raise ZeroDivisionError("a defect")

        with monkeypatch.context() as patched:
            patched.setattr(admitter.Admitter, "run_cycle", fail)
            await cluster.create_job("train", seconds=600)
            await cluster.advance(2)
            assert await cluster.phases() == {}
        await cluster.advance(11)
        assert await cluster.phases() == {"Running": 1}
