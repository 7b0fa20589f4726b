"""Jobs: what single failures mean, when enough indexes have succeeded or too many failed, and whose pods are whose."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from drachma.api import job, pod
from drachma.controllers.job import JobController
from tests.unit.controllers import worlds
from tests.unit.controllers.test_job import a_job, conditions, counts, finish, pods

IGNORED_ON_DISRUPTION = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}
FAILS_ON_42 = {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}}


@pytest.fixture
async def world() -> AsyncIterator[worlds.World]:
    async with worlds.world(JobController) as running_world:
        yield running_world


async def fail(world: worlds.World, of: pod.Pod, *, code: int = 1, **status: Any) -> None:
    """A pod fails, and its container with a code."""
    now = world.clock.utc()
    terminated = {"exitCode": code, "finishedAt": now, "startedAt": now, "reason": "Error"}
    container = {
        "name": "main",
        "image": "i",
        "imageID": "i",
        "ready": False,
        "restartCount": 0,
        "state": {"terminated": terminated},
    }
    await world.patch_status(of, {"phase": "Failed", "containerStatuses": [container], **status})
    await world.settle()


async def status(world: worlds.World) -> dict[str, Any]:
    document = await world.client.get_document(job.Job, "j", namespace="default")
    content: dict[str, Any] = document["status"]
    return content


async def message(world: worlds.World, kind: str) -> str:
    (condition,) = [each for each in (await status(world))["conditions"] if each["type"] == kind]
    return str(condition["message"])


def number(of: pod.Pod) -> int:
    return int(of.metadata.annotations["batch.kubernetes.io/job-completion-index"])


async def test_a_failure_that_ends_the_job(world: worlds.World) -> None:
    await a_job(world, backoffLimit=6, podFailurePolicy={"rules": [FAILS_ON_42]})
    (only,) = await pods(world)
    await fail(world, only, code=42)
    assert (await conditions(world))["Failed"] == "True PodFailurePolicy"
    name = only.metadata.name
    assert await message(world, "Failed") == (
        f"Container main for pod default/{name} failed with exit code 42 matching FailJob rule at index 0"
    )


async def test_a_failure_that_does_not_count(world: worlds.World) -> None:
    await a_job(world, backoffLimit=0, podFailurePolicy={"rules": [IGNORED_ON_DISRUPTION]})
    (first,) = await pods(world)
    await fail(world, first, conditions=[{"type": "DisruptionTarget", "status": "True"}])
    await world.advance(10)
    assert await counts(world) == "1 active, 0 succeeded, 0 failed"
    (second,) = await pods(world, "Pending")
    await fail(world, second)
    assert (await conditions(world))["Failed"] == "True BackoffLimitExceeded"


async def test_codes_that_are_not_named(world: worlds.World) -> None:
    rule = {"action": "Ignore", "onExitCodes": {"operator": "NotIn", "values": [1], "containerName": "main"}}
    await a_job(world, backoffLimit=0, podFailurePolicy={"rules": [rule]})
    (first,) = await pods(world)
    await fail(world, first, code=2)
    assert "Failed" not in await conditions(world)


async def test_indexes_fail_by_themselves(world: worlds.World) -> None:
    await a_job(world, completions=2, parallelism=2, completionMode="Indexed", backoffLimitPerIndex=1)
    for pause in (10, 20):
        (unlucky,) = [each for each in await pods(world, "Pending") if number(each) == 0]
        await fail(world, unlucky)
        await world.advance(pause)
    assert (await status(world))["failedIndexes"] == "0"
    assert "Failed" not in await conditions(world)
    (other,) = await pods(world, "Pending")
    await finish(world, other)
    assert (await conditions(world))["Failed"] == "True FailedIndexes"
    assert await message(world, "Failed") == "Job has failed indexes"


async def test_an_index_hands_its_failures_on(world: worlds.World) -> None:
    await a_job(world, completions=1, parallelism=1, completionMode="Indexed", backoffLimitPerIndex=3)
    counted = []
    for pause in (10, 20, 40):
        (current,) = await pods(world, "Pending")
        counted.append(current.metadata.annotations["batch.kubernetes.io/job-index-failure-count"])
        await fail(world, current)
        assert await pods(world, "Pending") == []
        await world.advance(pause)
    assert counted == ["0", "1", "2"]


async def test_too_many_failed_indexes(world: worlds.World) -> None:
    await a_job(
        world,
        completions=4,
        parallelism=4,
        completionMode="Indexed",
        backoffLimitPerIndex=0,
        maxFailedIndexes=1,
    )
    first, second, *_ = await pods(world)
    await fail(world, first)
    assert "Failed" not in await conditions(world)
    await fail(world, second)
    assert (await conditions(world))["FailureTarget"] == "True MaxFailedIndexesExceeded"


async def test_an_index_that_is_given_up_at_once(world: worlds.World) -> None:
    rule = {"action": "FailIndex", "onExitCodes": {"operator": "In", "values": [42]}}
    await a_job(
        world,
        completions=2,
        parallelism=2,
        completionMode="Indexed",
        backoffLimitPerIndex=5,
        podFailurePolicy={"rules": [rule]},
    )
    (unlucky,) = [each for each in await pods(world) if number(each) == 1]
    await fail(world, unlucky, code=42)
    assert (await status(world))["failedIndexes"] == "1"


@pytest.mark.parametrize(
    ("rule", "winners"),
    [
        pytest.param({"succeededIndexes": "1"}, [1], id="indexes"),
        pytest.param({"succeededCount": 2}, [0, 2], id="count"),
        pytest.param({"succeededIndexes": "0-2", "succeededCount": 1}, [2], id="count-of-indexes"),
    ],
)
async def test_enough_indexes_have_succeeded(world: worlds.World, rule: dict[str, Any], winners: list[int]) -> None:
    await a_job(world, completions=3, parallelism=3, completionMode="Indexed", successPolicy={"rules": [rule]})
    for winner in winners:
        assert "SuccessCriteriaMet" not in await conditions(world)
        (chosen,) = [each for each in await pods(world, "Pending") if number(each) == winner]
        await finish(world, chosen)
    assert (await conditions(world))["SuccessCriteriaMet"] == "True SuccessPolicy"
    assert await message(world, "SuccessCriteriaMet") == "Matched rules at index 0"
    assert (await conditions(world))["Complete"] == "True SuccessPolicy"


async def test_a_pod_that_matches_is_adopted(world: worlds.World) -> None:
    document = {
        "metadata": {"name": "stray", "namespace": "default", "labels": {"app": "x"}},
        "spec": {"containers": [{"name": "c", "image": "i"}], "restartPolicy": "Never"},
    }
    await world.client.create_document(pod.Pod, document)
    created_job = await a_job(world, manualSelector=True, selector={"matchLabels": {"app": "x"}})
    (stray,) = await pods(world)
    assert stray.metadata.name == "stray"
    assert [each.uid for each in stray.metadata.owner_references] == [created_job.metadata.uid]
    assert stray.metadata.finalizers == ("batch.kubernetes.io/job-tracking",)


async def test_a_pod_that_matches_no_more_is_let_go(world: worlds.World) -> None:
    await a_job(world)
    (only,) = await pods(world)
    labels = dict.fromkeys(only.metadata.labels)
    await world.patch(only, {"metadata": {"labels": labels}})
    await world.settle()
    former = await world.get(only)
    assert former.metadata.owner_references == ()
    assert former.metadata.finalizers == ()
    assert len(await pods(world)) == 2
