"""Jobs: how many pods run, how they are counted, how a job ends, and that nothing is counted twice or lost."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from drachma import errors
from drachma.api import job, pod
from drachma.client import patches
from drachma.controllers.garbagecollector import GarbageCollector
from drachma.controllers.job import JobController, TimeToLive, indexes
from tests.unit.controllers import builders, worlds


@pytest.fixture
async def world() -> AsyncIterator[worlds.World]:
    async with worlds.world(JobController) as running_world:
        yield running_world


async def a_job(world: worlds.World, *, restart: str = "Never", name: str = "j", **spec: Any) -> job.Job:
    container = {"name": "main", "image": "registry.example/pause:3.10"}
    document = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "template": {
                "metadata": {"labels": {"app": "x"}},
                "spec": {"restartPolicy": restart, "containers": [container], "hostAliases": [{"ip": "10.0.0.1"}]},
            },
            **spec,
        },
    }
    await world.client.create_document(job.Job, document)
    await world.settle()
    return await world.client.get(job.Job, name, namespace="default")


async def pods(world: worlds.World, *phases: str) -> list[pod.Pod]:
    """The pods of jobs that are in one of the phases, or all; those that are going are left out."""
    matching_pods = [each for each in await world.all_of(pod.Pod) if each.metadata.deletion_timestamp is None]
    return [each for each in matching_pods if not phases or each.status.phase in phases]


async def finish(world: worlds.World, *ended: pod.Pod, phase: str = "Succeeded") -> None:
    since = world.clock.utc()
    for each in ended:
        ready = {"type": "Ready", "status": "False", "lastTransitionTime": since}
        await world.patch_status(each, {"phase": phase, "conditions": [ready]})
    await world.settle()


async def counts(world: worlds.World, name: str = "j") -> str:
    """Active, succeeded and failed pods of a job."""
    status = (await world.client.get(job.Job, name, namespace="default")).status
    return f"{status.active} active, {status.succeeded} succeeded, {status.failed} failed"


async def conditions(world: worlds.World, name: str = "j") -> dict[str, str]:
    stored_job = await world.client.get(job.Job, name, namespace="default")
    return {each.type: f"{each.status} {each.reason}" for each in stored_job.status.conditions}


async def test_one_pod_that_succeeds(world: worlds.World) -> None:
    created_job = await a_job(world)
    (only,) = await pods(world)
    assert only.metadata.name.startswith("j-")
    assert len(only.metadata.name) == len("j-xxxxx")
    assert only.metadata.finalizers == ("batch.kubernetes.io/job-tracking",)
    assert only.metadata.owner_references == builders.controlled_by(created_job, blocks=True)
    assert only.metadata.labels["batch.kubernetes.io/job-name"] == "j"
    document = await world.client.get_document(pod.Pod, only.metadata.name, namespace="default")
    assert document["spec"]["hostAliases"] == [{"ip": "10.0.0.1"}], "fields that no view knows are in the template too"
    assert await counts(world) == "1 active, 0 succeeded, 0 failed"
    await finish(world, only)
    assert await counts(world) == "0 active, 1 succeeded, 0 failed"
    assert await conditions(world) == {
        "SuccessCriteriaMet": "True CompletionsReached",
        "Complete": "True CompletionsReached",
    }
    ended = await world.get(created_job)
    assert ended.status.completion_time == world.clock.utc()
    assert ended.status.start_time is not None
    assert (await world.get(only)).metadata.finalizers == ()
    assert [line.partition(":")[0] for line in await world.events()] == ["Normal Completed", "Normal SuccessfulCreate"]
    labels = {"completion_mode": "NonIndexed", "result": "succeeded", "reason": "CompletionsReached"}
    assert world.metric("job_controller_jobs_finished_total", **labels) == 1


async def test_completions_with_parallelism(world: worlds.World) -> None:
    await a_job(world, completions=5, parallelism=2)
    seen = []
    while not (await conditions(world)).get("Complete"):
        pending_pods = await pods(world, "Pending")
        seen.append(len(pending_pods))
        await finish(world, pending_pods[0])
    assert seen == [2, 2, 2, 2, 1], "never more than are still needed"
    assert await counts(world) == "0 active, 5 succeeded, 0 failed"


async def test_without_completions_one_success_ends_it(world: worlds.World) -> None:
    await a_job(world, parallelism=3)
    first, second, third = await pods(world)
    await finish(world, first)
    assert await counts(world) == "2 active, 1 succeeded, 0 failed"
    await finish(world, second, third, phase="Failed")
    assert (await conditions(world))["Complete"] == "True CompletionsReached"


async def test_parallelism_changes(world: worlds.World) -> None:
    created_job = await a_job(world, completions=10, parallelism=2)
    await world.patch(created_job, {"spec": {"parallelism": 4}})
    await world.settle()
    assert len(await pods(world)) == 4
    bound = (await pods(world))[0]
    await world.client.bind(bound, node="n")
    await world.patch(created_job, {"spec": {"parallelism": 1}})
    await world.settle()
    assert [each.metadata.name for each in await pods(world)] == [bound.metadata.name], "what has come farthest stays"
    assert await counts(world) == "1 active, 0 succeeded, 0 failed", "and the others did not fail"


async def test_no_parallelism(world: worlds.World) -> None:
    await a_job(world, parallelism=0)
    assert await pods(world) == []
    assert await conditions(world) == {}


# Failing


async def test_failures_are_retried_after_growing_pauses(world: worlds.World) -> None:
    await a_job(world, backoffLimit=3)
    for pause in (10, 20, 40):
        (pending_pod,) = await pods(world, "Pending")
        await finish(world, pending_pod, phase="Failed")
        await world.advance(pause - 1)
        assert await pods(world, "Pending") == []
        await world.advance(1)
    (pending_pod,) = await pods(world, "Pending")
    assert await counts(world) == "1 active, 0 succeeded, 3 failed"
    await finish(world, pending_pod, phase="Failed")
    assert await counts(world) == "0 active, 0 succeeded, 4 failed"
    assert await conditions(world) == {
        "FailureTarget": "True BackoffLimitExceeded",
        "Failed": "True BackoffLimitExceeded",
    }
    assert "Warning BackoffLimitExceeded: Job has reached the specified backoff limit" in await world.events()


async def test_success_ends_a_series_of_failures(world: worlds.World) -> None:
    await a_job(world, completions=3, parallelism=2)
    first, second = await pods(world)
    await finish(world, first, phase="Failed")
    await world.advance(1)
    await finish(world, second)
    assert len(await pods(world, "Pending")) == 2, "no pause after a success"


async def test_a_failed_job_takes_its_other_pods_along(world: worlds.World) -> None:
    await a_job(world, completions=3, parallelism=3, backoffLimit=0)
    first, second, third = await pods(world)
    await world.client.bind(second, node="n")
    await finish(world, first, phase="Failed")
    assert await pods(world, "Pending") == []
    assert "Failed" not in await conditions(world), "one has a node and is still on its way out"
    assert (await conditions(world))["FailureTarget"] == "True BackoffLimitExceeded"
    await world.delete(second, grace_period_seconds=0)
    await world.settle()
    assert (await conditions(world))["Failed"] == "True BackoffLimitExceeded"
    assert await counts(world) == "0 active, 0 succeeded, 3 failed"
    assert not await world.exists(third)


async def test_a_pod_that_somebody_deletes_is_replaced(world: worlds.World) -> None:
    await a_job(world)
    (only,) = await pods(world)
    await world.delete(only, grace_period_seconds=0)
    await world.advance(10)
    assert await counts(world) == "1 active, 0 succeeded, 1 failed"
    assert not await world.exists(only)


async def test_pods_on_their_way_out_are_waited_for_where_asked(world: worlds.World) -> None:
    await a_job(world, podReplacementPolicy="Failed")
    (only,) = await pods(world)
    await world.client.bind(only, node="n")
    await world.delete(only)
    await world.advance(100)
    assert await pods(world) == []
    await finish(world, only, phase="Failed")
    await world.advance(10)
    assert len(await pods(world)) == 1
    assert await counts(world) == "1 active, 0 succeeded, 1 failed"


async def test_restarts_of_containers_count(world: worlds.World) -> None:
    await a_job(world, restart="OnFailure", backoffLimit=2)
    (only,) = await pods(world)
    for restarts, want in ((1, {}), (2, {"FailureTarget": "True BackoffLimitExceeded"})):
        status = {"name": "main", "restartCount": restarts, "ready": False, "image": "i", "imageID": "i"}
        await world.patch_status(only, {"containerStatuses": [status]})
        await world.settle()
        condition = await conditions(world)
        condition.pop("Failed", None)
        assert condition == want


async def test_a_deadline(world: worlds.World) -> None:
    await a_job(world, activeDeadlineSeconds=30)
    await world.advance(29)
    assert len(await pods(world)) == 1
    await world.advance(1)
    assert await pods(world) == []
    assert (await conditions(world))["Failed"] == "True DeadlineExceeded"
    assert "Warning DeadlineExceeded: Job was active longer than specified deadline" in await world.events()


# On hold


async def test_suspend_and_resume(world: worlds.World) -> None:
    created_job = await a_job(world, suspend=True, activeDeadlineSeconds=30)
    assert await pods(world) == []
    assert await conditions(world) == {"Suspended": "True JobSuspended"}
    assert (await world.get(created_job)).status.start_time is None
    await world.advance(100)
    await world.patch(created_job, {"spec": {"suspend": False}})
    await world.settle()
    assert len(await pods(world)) == 1
    assert await conditions(world) == {"Suspended": "False JobResumed"}
    assert (await world.get(created_job)).status.start_time == world.clock.utc()
    await world.patch(created_job, {"spec": {"suspend": True}})
    await world.settle()
    assert await pods(world) == []
    assert await counts(world) == "0 active, 0 succeeded, 0 failed", "pods put away did not fail"
    names = {"Normal Suspended: Job suspended", "Normal Resumed: Job resumed"}
    assert names <= set(await world.events())


# Indexed


async def test_an_indexed_job(world: worlds.World) -> None:
    await a_job(world, completions=4, parallelism=3, completionMode="Indexed")
    pods_by_index = {indexes.pod_index(each): each for each in await pods(world)}
    assert pods_by_index.keys() == {0, 1, 2}
    document = await world.client.get_document(pod.Pod, pods_by_index[1].metadata.name, namespace="default")
    assert document["metadata"]["name"].startswith("j-1-")
    assert document["spec"]["hostname"] == "j-1"
    assert document["metadata"]["labels"][indexes.LABEL] == "1"
    (variable,) = document["spec"]["containers"][0]["env"]
    assert variable["name"] == "JOB_COMPLETION_INDEX"
    await finish(world, pods_by_index[1])
    await finish(world, pods_by_index[2], phase="Failed")
    await world.advance(10)
    assert {indexes.pod_index(each) for each in await pods(world, "Pending")} == {0, 2, 3}
    status = (await world.client.get_document(job.Job, "j", namespace="default"))["status"]
    assert (status["completedIndexes"], status["succeeded"], status["failed"]) == ("1", 1, 1)
    await finish(world, *await pods(world, "Pending"))
    status = (await world.client.get_document(job.Job, "j", namespace="default"))["status"]
    assert (status["completedIndexes"], status["succeeded"]) == ("0-3", 4)
    assert (await conditions(world))["Complete"] == "True CompletionsReached"


async def test_duplicates_of_an_index_go(world: worlds.World) -> None:
    await a_job(world, completions=2, parallelism=2, completionMode="Indexed")
    first, _ = await pods(world)
    document = await world.client.get_document(pod.Pod, first.metadata.name, namespace="default")
    copied = {"spec": document["spec"], "apiVersion": "v1", "kind": "Pod"}
    kept = {key: document["metadata"][key] for key in ("labels", "annotations", "ownerReferences", "namespace")}
    await world.client.create_document(pod.Pod, {**copied, "metadata": {**kept, "name": "copy"}})
    await world.settle()
    assert sorted(str(indexes.pod_index(each)) for each in await pods(world)) == ["0", "1"]


@pytest.mark.parametrize(
    ("numbers", "text"),
    [
        pytest.param([], "", id="none"),
        pytest.param([3], "3", id="one"),
        pytest.param([1, 2], "1,2", id="two-in-a-row"),
        pytest.param([0, 1, 2, 4, 6, 7, 8], "0-2,4,6-8", id="ranges"),
    ],
)
def test_indexes_as_text(numbers: list[int], text: str) -> None:
    assert indexes.format_indexes(numbers) == text
    assert indexes.parse(text) == frozenset(numbers)


def test_indexes_that_make_no_sense() -> None:
    assert indexes.parse("1,x,3-y,5-6") == {1, 5, 6}


# Counting


async def test_failures_in_between_do_not_lose_or_repeat_pods() -> None:
    """Every write of the controller fails once, and in the end every pod is counted once."""
    failed: set[str] = set()

    def fail(verb: str, kind: Any, name: str = "", *_: Any, **options: Any) -> None:
        subject = f"{verb} {getattr(kind, '__name__', '')} {name} {options.get('subresource', '')} {len(failed) % 7}"
        if verb == "patch" and kind in (pod.Pod, job.Job) and subject not in failed and len(failed) < 40:
            failed.add(subject)
            raise errors.UnreachableError("no answer")

    async with worlds.world(JobController, wrap=worlds.meddling(fail)) as world:
        await a_job(world, completions=6, parallelism=3)
        await world.advance(5)
        for _ in range(20):
            pending_pods = await pods(world, "Pending")
            if not pending_pods:
                break
            await finish(world, *pending_pods)
            await world.advance(120)
        assert failed
        assert await counts(world) == "0 active, 6 succeeded, 0 failed"
        assert (await conditions(world))["Complete"] == "True CompletionsReached"


async def test_a_stale_cache_does_not_make_too_many_pods() -> None:
    async with worlds.world(JobController) as world:
        informer = world.surroundings.informers.of(pod.Pod)
        handle, held = informer._handle, list[Any]()
        informer._handle = held.append  # type: ignore[method-assign,assignment]
        created_job = await a_job(world, completions=3, parallelism=3)
        for number in range(5):
            await world.patch(created_job, {"metadata": {"labels": {"some": f"news-{number}"}}})
            await world.advance(2)
        assert len(await pods(world)) == 3
        informer._handle = handle  # type: ignore[method-assign]
        for event in held:
            handle(event)
        await world.settle()
        assert await counts(world) == "3 active, 0 succeeded, 0 failed"


async def test_refusals_are_told_and_what_ended_is_counted() -> None:
    is_full = False

    def refuse(verb: str, kind: Any, *_: Any, **options: Any) -> None:
        if is_full and verb == "create_document" and kind is pod.Pod:
            raise errors.ForbiddenError({"message": "exceeded quota", "code": 403})

    async with worlds.world(JobController, wrap=worlds.meddling(refuse)) as world:
        await a_job(world, completions=10, parallelism=2)
        is_full = True
        await finish(world, (await pods(world))[0])
        assert (await counts(world)).endswith("1 succeeded, 0 failed")
        assert "Warning FailedCreate: Error creating: exceeded quota" in await world.events()
        is_full = False
        await world.advance(10)
        assert await counts(world) == "2 active, 1 succeeded, 0 failed"


async def test_pods_of_a_job_that_is_gone_are_let_go() -> None:
    async with worlds.world(JobController, GarbageCollector) as world:
        created_job = await a_job(world, completions=2, parallelism=2)
        await world.delete(created_job, propagation="Background")
        await world.advance(60)
        assert not await world.exists(created_job)
        assert await world.all_of(pod.Pod) == ()


async def test_orphans_of_a_job_are_let_go_too() -> None:
    async with worlds.world(JobController, GarbageCollector) as world:
        created_job = await a_job(world)
        await world.delete(created_job, propagation="Orphan")
        await world.advance(60)
        assert not await world.exists(created_job)
        (orphan,) = await world.all_of(pod.Pod)
        assert orphan.metadata.owner_references == ()


async def test_jobs_of_other_controllers_are_left_alone(world: worlds.World) -> None:
    await a_job(world, managedBy="example.com/mine")
    assert await pods(world) == []


# Time to live


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
async def test_a_finished_job_goes_after_a_while(phase: str) -> None:
    async with worlds.world(JobController, TimeToLive, GarbageCollector) as world:
        created_job = await a_job(world, ttlSecondsAfterFinished=60, backoffLimit=0)
        await world.advance(100)
        await finish(world, *await pods(world), phase=phase)
        await world.advance(59)
        assert await world.exists(created_job)
        await world.advance(2)
        assert not await world.exists(created_job)
        assert await world.all_of(pod.Pod) == ()


async def test_a_job_is_given_more_time() -> None:
    async with worlds.world(JobController, TimeToLive, GarbageCollector) as world:
        created_job = await a_job(world, ttlSecondsAfterFinished=60)
        await finish(world, *await pods(world))
        await world.advance(30)
        await world.patch(created_job, {"spec": {"ttlSecondsAfterFinished": 600}})
        await world.advance(300)
        assert await world.exists(created_job)


async def test_jobs_without_a_time_to_live_stay() -> None:
    async with worlds.world(JobController, TimeToLive) as world:
        created_job = await a_job(world)
        await finish(world, *await pods(world))
        await world.advance(100_000)
        assert await world.exists(created_job)


async def test_a_job_is_replaced_by_another_of_its_name(world: worlds.World) -> None:
    await a_job(world)
    (old,) = await pods(world)
    await world.client.delete(job.Job, "j", namespace="default", propagation="Orphan")
    await world.client.patch(job.Job, "j", patch=patches.merge({"metadata": {"finalizers": None}}), namespace="default")
    await a_job(world)
    assert len(await pods(world)) == 2
    assert (await world.get(old)).metadata.finalizers == ()
    assert await counts(world) == "1 active, 0 succeeded, 0 failed"
