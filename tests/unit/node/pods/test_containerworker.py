"""The worker of one container: restarts, back-off, hooks, probes and stops."""

import asyncio
import contextlib
import datetime as dt
from collections.abc import AsyncIterator

import pytest
from msgspec import structs

from drachma.api.pod import Container, Pod
from drachma.node.pods import containerstate
from drachma.node.pods.containerstate import Record, Running, Terminated, Waiting
from drachma.node.pods.containerworker import ContainerWorker, grace_seconds
from drachma.node.podview.containers import ExecAction, Probe
from drachma.node.probes.watching import Probes, Stage
from drachma.node.runtimes.protocol import Exit, StartError
from tests.unit.node.pods.fakes import FakeNode, Plan, make_pod

THEN = dt.datetime(2025, 12, 31, tzinfo=dt.UTC)


@pytest.fixture
def node() -> FakeNode:
    return FakeNode()


def _worker(node: FakeNode, pod: Pod | None = None) -> ContainerWorker:
    newest = pod or make_pod()
    return ContainerWorker(node.services, Container(name="c"), get_pod=lambda: newest, on_change=lambda: None)


@contextlib.asynccontextmanager
async def _running(worker: ContainerWorker, policy: str = "Always") -> AsyncIterator[asyncio.Task[None]]:
    task = asyncio.create_task(worker.keep_running(policy))
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@pytest.mark.parametrize(
    ("policy", "code", "want_starts"),
    [
        pytest.param("Always", 0, 2, id="always-after-success"),
        pytest.param("Always", 1, 2, id="always-after-failure"),
        pytest.param("OnFailure", 0, 1, id="on-failure-after-success"),
        pytest.param("OnFailure", 1, 2, id="on-failure-after-failure"),
        pytest.param("Never", 1, 1, id="never-after-failure"),
    ],
)
async def test_restart_policy(node: FakeNode, policy: str, code: int, want_starts: int) -> None:
    node.runtime.plans["c"] = [Plan(1, code), Plan(1e6)]
    worker = _worker(node)
    async with _running(worker, policy) as task:
        await node.clock.advance(5)
        assert len(node.runtime.starts) == want_starts
        assert task.done() == (want_starts == 1)
        assert worker.record.restarts == want_starts - 1


async def test_restarts_back_off_up_to_five_minutes(node: FakeNode) -> None:
    node.runtime.plans["c"] = [Plan(0, 1)]
    async with _running(_worker(node)):
        await node.clock.advance(1000)
    assert node.runtime.starts == [0, 0, 10, 30, 70, 150, 310, 610, 910]


async def test_a_container_that_waits_is_in_crash_loop_back_off(node: FakeNode) -> None:
    node.runtime.plans["c"] = [Plan(0, 1)]
    worker = _worker(node)
    async with _running(worker):
        await node.clock.advance(80)
        message = "back-off 1m20s restarting failed container=c pod=p_ns(u)"
        assert worker.record.state == Waiting("CrashLoopBackOff", message)
        assert worker.record.last is not None
        assert worker.record.last.exit.code == 1
        assert worker.record.restarts == 4
    assert ("BackOff", "Back-off restarting failed container c in pod p_ns(u)") in node.api.events


async def test_a_long_run_resets_the_back_off(node: FakeNode) -> None:
    node.runtime.plans["c"] = [Plan(0, 1), Plan(0, 1), Plan(600, 1), Plan(0, 1)]
    async with _running(_worker(node)):
        await node.clock.advance(625)
    assert node.runtime.starts == [0, 0, 10, 610, 620]


async def test_a_start_that_fails_is_tried_again_and_is_no_restart(node: FakeNode) -> None:
    failure = StartError("ErrImagePull", "no such image")
    node.runtime.plans["c"] = [failure, failure, Plan()]
    worker = _worker(node)
    async with _running(worker):
        await node.clock.advance(10)
        assert worker.record == Record(Waiting("ErrImagePull", "no such image"))
        await node.clock.advance(25)
        assert node.runtime.starts == [0, 10, 30]
        assert isinstance(worker.record.state, Running)
        assert worker.record.restarts == 0
    assert node.api.events[0] == ("Failed", "Error: no such image")
    assert node.metrics.starts == ["container"] * 3
    assert node.metrics.start_errors == [("container", "ErrImagePull")] * 2


@pytest.mark.parametrize(
    ("grace", "hook_seconds", "want"),
    [
        pytest.param(30.0, 0.0, ["stop c 30"], id="no-hook"),
        pytest.param(30.0, 10.0, ["hook c 30", "stop c 20"], id="hook-takes-a-part"),
        pytest.param(30.0, 60.0, ["hook c 30", "stop c 2"], id="hook-takes-everything"),
        pytest.param(1.0, 60.0, ["hook c 1", "stop c 1"], id="short-grace"),
        pytest.param(0.0, 60.0, ["stop c 0"], id="no-grace-no-hook"),
    ],
)
async def test_the_hook_before_the_stop_uses_the_grace_period(
    node: FakeNode, grace: float, hook_seconds: float, want: list[str]
) -> None:
    node.setups.stop_seconds = hook_seconds
    worker = _worker(node)
    async with _running(worker):
        await node.clock.advance(1)
    stopping = asyncio.create_task(worker.stop(grace))
    await node.clock.advance(60)
    await stopping
    assert node.calls == ["start c", *want]
    assert isinstance(worker.record.state, Terminated)
    assert worker.record.state.exit.code == 143
    assert worker.current_run is None


async def test_a_container_whose_start_hook_fails_is_stopped_without_telling_why(node: FakeNode) -> None:
    node.setups.start_problem = "the password is 1234"
    pod = make_pod(termination_grace_period_seconds=7)
    worker = _worker(node, pod)
    async with _running(worker, "Never"):
        await node.clock.advance(1)
    assert node.calls == ["start c", "stop c 7"]
    assert node.api.events == [
        ("Started", "Container started: c"),
        ("FailedPostStartHook", "PostStartHook failed"),
        ("Killing", "FailedPostStartHook"),
    ]


async def test_a_container_that_fails_its_liveness_probe_is_restarted(node: FakeNode) -> None:
    probe = Probe(
        exec=ExecAction(command=("check",)), period_seconds=5, failure_threshold=2, termination_grace_period_seconds=3
    )
    node.setups.probes_of["c"] = Probes(liveness=probe)
    worker = _worker(node)
    async with _running(worker):
        await node.clock.advance(1)
        node.runtime.runs["c"].probe_codes = [0, 1, 1]
        await node.clock.advance(10)
        assert node.calls == ["start c"]
        await node.clock.advance(5)
        assert node.calls == ["start c", "stop c 3", "start c"]
        assert worker.record.restarts == 1
    assert node.api.reasons == ["Started", "Unhealthy", "Unhealthy", "Killing", "Started"]


async def test_readiness_follows_the_probe(node: FakeNode) -> None:
    probe = Probe(exec=ExecAction(command=("check",)), period_seconds=5, failure_threshold=1)
    node.setups.probes_of["c"] = Probes(readiness=probe)
    worker = _worker(node)
    async with _running(worker):
        await node.clock.advance(1)
        assert worker.record.is_ready
        node.runtime.runs["c"].probe_codes = [1]
        await node.clock.advance(5)
        assert worker.record.is_started
        assert not worker.record.is_ready


async def test_the_termination_message_is_part_of_the_end(node: FakeNode) -> None:
    node.setups.message = "out of tokens"
    node.runtime.plans["c"] = [Plan(1, 3)]
    worker = _worker(node)
    async with _running(worker, "Never"):
        await node.clock.advance(2)
    assert isinstance(worker.record.state, Terminated)
    assert worker.record.state.exit == Exit(3, message="out of tokens")


async def test_a_run_that_survived_the_agent_goes_on(node: FakeNode) -> None:
    node.runtime.survivors = {"fake://old"}
    worker = _worker(node)
    await worker.recall(Record(Running("fake://old", THEN, Stage.READY), None, 2))
    async with _running(worker):
        await node.clock.advance(1)
        assert node.calls == []
        assert worker.record == Record(Running("fake://old", THEN, Stage.READY), None, 2)
        assert worker.current_run is not None


async def test_a_run_that_was_lost_counts_as_a_failure(node: FakeNode) -> None:
    worker = _worker(node)
    await worker.recall(Record(Running("fake://old", THEN), None, 2))
    assert isinstance(worker.record.state, Terminated)
    assert worker.record.state.exit == containerstate.LOST
    async with _running(worker, "OnFailure"):
        await node.clock.advance(1)
        assert node.calls == ["start c"]
        assert worker.record.restarts == 3


async def test_a_container_that_had_succeeded_is_not_run_again(node: FakeNode) -> None:
    worker = _worker(node)
    await worker.recall(Record(Terminated("fake://old", Exit(0), THEN, THEN)))
    async with _running(worker, "OnFailure") as task:
        await node.clock.advance(1)
        assert task.done()
    assert node.calls == []


async def test_logs_of_the_current_run_and_the_run_before_are_kept(node: FakeNode) -> None:
    node.runtime.plans["c"] = [Plan(1, 1), Plan(1, 1), Plan()]
    worker = _worker(node)
    async with _running(worker):
        await node.clock.advance(20)
        run_ids = [run for run in ("fake://c/0", "fake://c/1", "fake://c/2") if worker.log(run) is not None]
    assert run_ids == ["fake://c/1", "fake://c/2"]


@pytest.mark.parametrize(
    ("deletion", "spec", "want"),
    [
        pytest.param(5, 60, 5, id="deletion-decides"),
        pytest.param(0, 60, 0, id="forced-deletion"),
        pytest.param(None, 60, 60, id="spec-decides"),
        pytest.param(None, None, 30, id="default"),
    ],
)
def test_grace_period(deletion: int | None, spec: int | None, want: float) -> None:
    pod = make_pod(termination_grace_period_seconds=spec)
    metadata = structs.replace(pod.metadata, deletion_grace_period_seconds=deletion)
    assert grace_seconds(structs.replace(pod, metadata=metadata)) == want
