"""The worker of one pod: order of its steps, retries, refusals, statuses and its end."""

import asyncio
import contextlib
import datetime as dt
from collections.abc import AsyncIterator

import pytest
from msgspec import structs

from drachma import errors
from drachma.api.pod import Container, ContainerStatus, Pod, PodCondition, PodStatus
from drachma.node.pods.admission import Verdict
from drachma.node.pods.containerstate import Record, Running, Terminated
from drachma.node.pods.podworker import PodWorker
from drachma.node.pods.podworkers import PodWorkers
from drachma.node.runtimes.protocol import Exit
from tests.unit.node.pods.fakes import FakeNode, Plan, conditions, deleted, make_pod

SIDECAR = Container(name="a-sidecar", restart_policy="Always")
INIT = Container(name="init")
THEN = dt.datetime(2025, 12, 31, tzinfo=dt.UTC)
GONE = errors.ObjectNotFoundError({"message": "not found", "code": 404})
REFUSAL = errors.InvalidObjectError({"message": "bad status", "code": 422})
UNREACHABLE = errors.UnreachableError("no route")


@pytest.fixture
def node() -> FakeNode:
    return FakeNode()


@contextlib.asynccontextmanager
async def _running(node: FakeNode, pod: Pod) -> AsyncIterator[tuple[PodWorker, asyncio.Task[None]]]:
    worker = PodWorker(node.services, pod)
    task = asyncio.create_task(worker.run())
    try:
        await node.clock.advance(0)
        yield worker, task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_a_pod_that_succeeds_goes_through_its_phases_and_keeps_its_object(node: FakeNode) -> None:
    node.runtime.plans["c"] = [Plan(5)]
    pod = make_pod(policy="Never")
    async with _running(node, pod) as (worker, task):
        await node.clock.advance(10)
        assert node.api.phases == ["Pending", "Running", "Succeeded"]
        assert node.calls == ["begin", "prepare", "start c", "unprepare"]
        assert not task.done()
        worker.update(deleted(pod))
        await node.clock.advance(0)
        assert node.calls[4:] == ["delete", "forget"]
        assert task.done()


async def test_conditions_follow_the_steps(node: FakeNode) -> None:
    node.claims.failures = ["not yet"]
    async with _running(node, make_pod()):
        first = conditions(node.api.statuses[0])
        await node.clock.advance(2)
        last = conditions(node.api.statuses[-1])
    assert first == {
        "PodReadyToStartContainers": "False",
        "Initialized": "True",
        "Ready": "False",
        "ContainersReady": "False",
        "PodScheduled": "True",
    }
    assert last == dict.fromkeys(first, "True")


async def test_a_pod_that_is_deleted_stops_then_unprepares_then_goes(node: FakeNode) -> None:
    pod = make_pod()
    async with _running(node, pod) as (worker, task):
        worker.update(deleted(pod, grace=12))
        await node.clock.advance(0)
        assert task.done()
    assert node.calls == ["begin", "prepare", "start c", "stop c 12", "unprepare", "delete", "forget"]
    assert node.api.statuses[-1]["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 143


async def test_preparing_is_retried_after_pauses_that_grow(node: FakeNode) -> None:
    node.claims.failures = ["one", "two", "three"]
    async with _running(node, make_pod()):
        for seconds, attempts in ((0, 1), (1, 2), (1, 2), (1, 3), (3, 3), (1, 4)):
            await node.clock.advance(seconds)
            assert node.calls.count("prepare") == attempts
        assert node.calls[-1] == "start c"
    reason = "FailedPrepareDynamicResources"
    prefix = "Failed to prepare dynamic resources: "
    assert node.api.events[:3] == [(reason, f"{prefix}{each}") for each in ("one", "two", "three")]


async def test_a_change_cuts_the_pause_short(node: FakeNode) -> None:
    node.claims.failures = ["no driver"]
    async with _running(node, make_pod()) as (worker, _):
        worker.retry()
        await node.clock.advance(0)
        assert node.calls == ["begin", "prepare", "prepare", "start c"]


async def test_a_pod_without_room_is_refused_and_never_started(node: FakeNode) -> None:
    node.resources.verdict = Verdict(is_admitted=False, reason="OutOfcpu", message="too little cpu")
    pod = make_pod()
    async with _running(node, pod) as (worker, task):
        assert node.calls == []
        assert node.api.events == [("OutOfcpu", "too little cpu")]
        (status,) = node.api.statuses
        assert (status["phase"], status["reason"]) == ("Failed", "OutOfcpu")
        worker.update(deleted(pod))
        await node.clock.advance(0)
        assert task.done()
    assert node.calls == ["delete"]


async def test_init_containers_run_one_after_the_other(node: FakeNode) -> None:
    first, second = Container(name="first"), Container(name="second")
    node.runtime.plans = {"first": [Plan(5)], "second": [Plan(5)]}
    async with _running(node, make_pod(init=(first, second))):
        assert node.calls[2:] == ["start first"]
        await node.clock.advance(6)
        assert node.calls[2:] == ["start first", "start second"]
        await node.clock.advance(6)
        assert node.calls[2:] == ["start first", "start second", "start c"]
        assert node.api.phases == ["Pending", "Running"]


@pytest.mark.parametrize(
    ("policy", "want_calls", "want_phase"),
    [
        pytest.param("Never", ["start init", "unprepare"], "Failed", id="never"),
        pytest.param("OnFailure", ["start init", "start init"], "Pending", id="on-failure"),
    ],
)
async def test_an_init_container_that_fails(
    node: FakeNode, policy: str, want_calls: list[str], want_phase: str
) -> None:
    node.runtime.plans["init"] = [Plan(1, 1)]
    async with _running(node, make_pod(init=(INIT,), policy=policy)):
        await node.clock.advance(5)
        assert node.calls[2:] == want_calls
        assert node.api.statuses[-1]["phase"] == want_phase


async def test_a_sidecar_starts_before_the_containers_and_stops_after_them(node: FakeNode) -> None:
    pod = make_pod(init=(SIDECAR,))
    async with _running(node, pod) as (worker, _):
        await node.clock.advance(1)
        worker.update(deleted(pod))
        await node.clock.advance(0)
    steps = [each for each in node.calls if each.startswith(("start", "stop"))]
    assert steps == ["start a-sidecar", "start c", "stop c 30", "stop a-sidecar 30"]


async def test_an_ephemeral_container_that_is_added_runs_once(node: FakeNode) -> None:
    node.runtime.plans["debugger"] = [Plan(1, 1)]
    pod = make_pod()
    async with _running(node, pod) as (worker, _):
        spec = structs.replace(pod.spec, ephemeral_containers=(Container(name="debugger"),))
        worker.update(structs.replace(pod, spec=spec))
        await node.clock.advance(30)
    assert node.calls == ["begin", "prepare", "start c", "start debugger"]


async def test_a_status_that_is_refused_does_not_hold_up_the_end(node: FakeNode) -> None:
    node.api.status_errors = [REFUSAL] * 100
    pod = make_pod()
    async with _running(node, pod) as (worker, task):
        worker.update(deleted(pod))
        await node.clock.advance(10)
        assert task.done()
    assert node.calls[-3:] == ["unprepare", "delete", "forget"]
    assert node.api.reasons.count("FailedStatus") == 1


async def test_a_status_is_written_when_the_api_server_answers_again(node: FakeNode) -> None:
    node.api.status_errors = [UNREACHABLE] * 3
    async with _running(node, make_pod()):
        assert node.api.statuses == []
        await node.clock.advance(7)
        assert node.api.statuses[-1]["phase"] == "Running"
    assert "FailedStatus" not in node.api.reasons


async def test_unpreparing_is_retried_before_the_pod_is_deleted(node: FakeNode) -> None:
    pod = make_pod()
    async with _running(node, pod) as (worker, task):
        node.claims.failures = ["driver is away"]
        worker.update(deleted(pod))
        await node.clock.advance(0)
        assert "delete" not in node.calls
        await node.clock.advance(1)
        assert task.done()
    assert node.calls[-4:] == ["unprepare", "unprepare", "delete", "forget"]
    assert ("FailedUnprepareDynamicResources", "driver is away") in node.api.events


async def test_the_end_is_reported_after_the_claims_are_unprepared(node: FakeNode) -> None:
    """As soon as a pod has ended, its devices may be allocated to others."""
    node.runtime.plans["c"] = [Plan(5)]
    async with _running(node, make_pod(policy="Never")):
        node.claims.failures = ["busy"]
        await node.clock.advance(5)
        assert node.api.phases[-1] == "Running"
        assert node.api.statuses[-1]["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 0
        await node.clock.advance(10)
        assert node.api.phases[-1] == "Succeeded"
        assert node.calls == ["begin", "prepare", "start c", "unprepare", "unprepare"]


async def test_a_pod_that_is_gone_is_cleaned_up(node: FakeNode) -> None:
    node.api.delete_errors = [GONE]
    pod = make_pod()
    async with _running(node, pod) as (worker, task):
        worker.remove(worker.pod)
        await node.clock.advance(0)
        assert task.done()
    assert node.calls[-2:] == ["unprepare", "forget"]


async def test_a_status_that_another_client_overwrites_is_corrected(node: FakeNode) -> None:
    pod = make_pod()
    async with _running(node, pod) as (worker, _):
        count = len(node.api.statuses)
        not_ready = PodStatus(conditions=(PodCondition(type="Ready", status="False"),))
        metadata = structs.replace(pod.metadata, resource_version="1000")
        worker.update(structs.replace(pod, metadata=metadata, status=not_ready))
        await node.clock.advance(0)
        assert len(node.api.statuses) == count + 1
        assert conditions(node.api.statuses[-1])["Ready"] == "True"


async def test_an_earlier_status_that_the_api_server_carries_out_late_is_corrected(node: FakeNode) -> None:
    """A stopped API server goes on with all requests that it has, in any order, also with those given up."""
    node.runtime.plans["c"] = [Plan(5)]
    pod = make_pod(policy="Never")
    async with _running(node, pod) as (worker, task):
        await node.clock.advance(10)
        (*_, last) = node.api.statuses
        assert last["phase"] == "Succeeded"
        count = len(node.api.statuses)
        earlier = PodStatus(
            phase="Running",
            conditions=tuple(PodCondition(type=kind, status=status) for kind, status in conditions(last).items()),
        )
        metadata = structs.replace(pod.metadata, resource_version="1000")
        worker.update(structs.replace(pod, metadata=metadata, status=earlier))
        await node.clock.advance(0)
        assert len(node.api.statuses) == count + 1
        assert node.api.phases[-1] == "Succeeded"
        assert not task.done()
        worker.update(deleted(pod))
        await node.clock.advance(0)
        assert task.done()


def _restarted(pod: Pod) -> Pod:
    return structs.replace(pod, status=PodStatus(phase="Running", container_statuses=(ContainerStatus(name="c"),)))


async def test_after_a_restart_of_the_agent_containers_go_on(node: FakeNode) -> None:
    node.api.recall_errors = [errors.NodeError("not now")]
    node.api.records = {"c": Record(Running("fake://old", THEN), None, 1)}
    node.runtime.survivors = {"fake://old"}
    async with _running(node, _restarted(make_pod())):
        assert node.api.reasons == ["FailedRecall"]
        await node.clock.advance(1)
        assert node.calls == ["begin", "prepare"]
        (container,) = node.api.statuses[-1]["containerStatuses"]
        assert (container["restartCount"], container["containerID"]) == (1, "fake://old")


async def test_a_pod_that_had_ended_only_gives_its_claims_back(node: FakeNode) -> None:
    pod = _restarted(make_pod(policy="Never"))
    node.api.records = {"c": Record(Terminated("fake://old", Exit(0), THEN, THEN))}
    async with _running(node, structs.replace(pod, status=structs.replace(pod.status, phase="Succeeded"))):
        await node.clock.advance(1)
    assert node.calls == ["unprepare"]
    assert node.api.statuses == []


async def test_claims_that_change_the_quality_of_service_are_reported(node: FakeNode) -> None:
    node.resources.notice = "Quality of service with claims is Burstable"
    async with _running(node, make_pod()):
        pass
    assert ("QualityOfService", node.resources.notice) in node.api.events


async def test_a_worker_that_fails_unexpectedly_is_replaced(node: FakeNode) -> None:
    workers = PodWorkers("n", node.services)
    node.api.status_errors = [RuntimeError("a bug")]
    node.resources.verdict = Verdict(is_admitted=False, reason="OutOfcpu", message="")
    workers.start([make_pod()])
    await node.clock.advance(9)
    assert node.api.statuses == []
    await node.clock.advance(1)
    assert len(node.api.statuses) == 1
    assert workers.uids == {"u"}
    await workers.stop()
    await node.clock.advance(0)
    assert workers.uids == frozenset()


async def test_a_worker_that_cannot_write_statuses_is_replaced_while_its_containers_run(node: FakeNode) -> None:
    workers = PodWorkers("n", node.services)
    workers.start([make_pod()])
    await node.clock.advance(1)
    node.api.status_errors = [RuntimeError("a bug")]
    workers.all()[0].report()
    await node.clock.advance(11)
    assert node.api.status_errors == []
    assert "stop c 30" not in node.calls
    assert node.api.phases[-1] == "Running"
    await workers.stop()


async def test_a_worker_that_fails_while_it_is_cancelled_is_not_replaced(node: FakeNode) -> None:
    workers = PodWorkers("n", node.services)
    workers.start([make_pod()])
    await node.clock.advance(1)
    node.api.status_errors = [RuntimeError("a bug")]
    workers.all()[0].report()
    async with asyncio.timeout(20):
        await workers.stop()
    assert node.api.status_errors == []
    assert workers.uids == frozenset()


async def test_late_news_of_a_deleted_pod_starts_no_other_worker(node: FakeNode) -> None:
    """Such a worker never ended: it could not read the pod, and held the room of the pod on the node."""
    workers = PodWorkers("n", node.services)
    pod = make_pod()
    workers.start([pod])
    await node.clock.advance(0)
    workers.update(deleted(pod))
    await node.clock.advance(0)
    assert node.calls[-1] == "forget"
    workers.update(deleted(pod))
    assert workers.uids == frozenset()
    workers.remove(deleted(pod))
    workers.update(pod)
    assert workers.uids == {"u"}
    await workers.stop()


async def test_containers_of_a_pod_that_is_gone_are_not_recalled_for_ever(node: FakeNode) -> None:
    node.api.recall_errors = [errors.NodeError("forbidden")] * 100
    pod = structs.replace(make_pod(), status=PodStatus(container_statuses=(ContainerStatus(name="c"),)))
    workers = PodWorkers("n", node.services)
    workers.start([pod])
    await node.clock.advance(30)
    assert workers.uids == {"u"}
    workers.remove(pod)
    await node.clock.advance(0)
    assert workers.uids == frozenset()


async def test_workers_find_pods_by_name(node: FakeNode) -> None:
    workers = PodWorkers("n", node.services)
    workers.update(make_pod())
    assert workers.all() == []
    workers.start([make_pod()])
    worker = workers.find("ns", "p")
    assert worker is not None
    assert worker.pod.metadata.uid == "u"
    assert workers.find("other", "p") is None
    await workers.stop()
