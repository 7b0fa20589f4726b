"""Cron jobs: when jobs are made, what becomes of those that still run or have ended, and the status."""

import time
from collections.abc import AsyncIterator
from typing import Any

import pytest

from drachma.api import cronjob, job
from drachma.client import patches
from drachma.controllers.cronjob import CronJobController
from drachma.values import timezones
from tests.unit.controllers import worlds

CronJob = cronjob.CronJob


@pytest.fixture
async def world() -> AsyncIterator[worlds.World]:
    async with worlds.world(CronJobController) as running_world:
        yield running_world


async def create(world: worlds.World, schedule: str = "* * * * *", **spec: Any) -> None:
    """Made at a whole minute."""
    await world.advance(60 - world.clock.utc().timestamp() % 60)
    template = {
        "metadata": {"labels": {"app": "c"}, "annotations": {"a": "b"}},
        "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "x"}]}}},
    }
    document = {
        "metadata": {"name": "c", "namespace": "default"},
        "spec": {"schedule": schedule, "jobTemplate": template, **spec},
    }
    await world.client.create_document(CronJob, document)
    await world.settle()


async def jobs(world: worlds.World) -> list[str]:
    return sorted(each.metadata.name for each in await world.all_of(job.Job))


def name(world: worlds.World) -> str:
    """What a job is called that is for this minute."""
    return f"c-{int(world.clock.utc().timestamp()) // 60}"


async def finish(world: worlds.World, of: str, kind: str = "Complete") -> None:
    now = world.clock.utc().strftime("%Y-%m-%dT%H:%M:%SZ")
    interim = {"Complete": "SuccessCriteriaMet", "Failed": "FailureTarget"}[kind]
    status: dict[str, Any] = {
        "startTime": now,
        "conditions": [{"type": each, "status": "True", "lastTransitionTime": now} for each in (interim, kind)],
    }
    if kind == "Complete":
        status["completionTime"] = now
    await world.client.patch(
        job.Job, of, patch=patches.merge({"status": status}), namespace="default", subresource="status"
    )
    await world.settle()


async def status(world: worlds.World) -> cronjob.CronJobStatus:
    return (await world.client.get(CronJob, "c", namespace="default")).status


async def test_a_job_is_made_when_its_time_comes(world: worlds.World) -> None:
    await create(world)
    assert await jobs(world) == []
    await world.advance(61)
    assert await jobs(world) == [name(world)]
    document = await world.client.get_document(job.Job, name(world), namespace="default")
    stamp = world.clock.utc().strftime("%Y-%m-%dT%H:%M:00Z")
    annotations = document["metadata"]["annotations"]
    assert annotations["a"] == "b"
    assert annotations["batch.kubernetes.io/cronjob-scheduled-timestamp"] == stamp
    assert document["metadata"]["labels"] == {"app": "c"}
    current = await status(world)
    assert [each.name for each in current.active] == [name(world)]
    assert current.last_schedule_time == world.clock.utc().replace(second=0, microsecond=0)
    assert f"Normal SuccessfulCreate: Created job {name(world)}" in await world.events()
    await world.advance(60)
    assert len(await jobs(world)) == 2


async def test_a_job_that_ended(world: worlds.World) -> None:
    await create(world)
    await world.advance(61)
    first = name(world)
    await finish(world, first)
    current = await status(world)
    assert current.active == ()
    assert current.last_successful_time is not None
    assert f"Normal SawCompletedJob: Saw completed job: {first}, condition: Complete" in await world.events()


async def test_jobs_do_not_overlap_where_that_is_forbidden(world: worlds.World) -> None:
    await create(world, concurrencyPolicy="Forbid")
    await world.advance(61)
    first = name(world)
    await world.advance(60)
    assert await jobs(world) == [first]
    assert any("JobAlreadyActive" in each for each in await world.events())
    await finish(world, first)
    assert await jobs(world) == [first, name(world)]


async def test_a_job_replaces_the_one_before(world: worlds.World) -> None:
    await create(world, concurrencyPolicy="Replace")
    await world.advance(61)
    await world.advance(60)
    assert await jobs(world) == [name(world)]
    assert [each.name for each in (await status(world)).active] == [name(world)]


async def test_old_jobs_go(world: worlds.World) -> None:
    await create(world, successfulJobsHistoryLimit=1, failedJobsHistoryLimit=0)
    await world.advance(1)
    kept = ""
    for kind in ("Complete", "Complete", "Failed"):
        await world.advance(60)
        await finish(world, name(world), kind)
        kept = name(world) if kind == "Complete" else kept
    assert await jobs(world) == [kept]


async def test_nothing_is_made_on_hold(world: worlds.World) -> None:
    await create(world, suspend=True)
    await world.advance(600)
    assert await jobs(world) == []
    await world.client.patch(CronJob, "c", patch=patches.merge({"spec": {"suspend": False}}), namespace="default")
    await world.settle()
    # Only the newest of those that passed.
    assert await jobs(world) == [name(world)]


async def test_times_that_are_too_long_ago_are_missed(world: worlds.World) -> None:
    await create(world, "0 * * * *", suspend=True, startingDeadlineSeconds=60)
    await world.advance(3 * 3600 + 1800)
    await world.client.patch(CronJob, "c", patch=patches.merge({"spec": {"suspend": False}}), namespace="default")
    await world.settle()
    assert await jobs(world) == []


async def test_many_missed_times_are_told_of(world: worlds.World) -> None:
    await create(world, suspend=True)
    await world.advance(7 * 24 * 3600)
    await world.client.patch(CronJob, "c", patch=patches.merge({"spec": {"suspend": False}}), namespace="default")
    await world.settle()
    assert await jobs(world) == [name(world)]
    assert any("TooManyMissedTimes" in each for each in await world.events())


async def test_without_a_zone_the_schedule_is_in_utc(world: worlds.World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        await create(world, "0 12 * * *")
        await world.advance(24 * 3600)
        (created_job,) = await world.all_of(job.Job)
        stamp = created_job.metadata.annotations["batch.kubernetes.io/cronjob-scheduled-timestamp"]
        assert stamp.endswith("T12:00:00Z")
    finally:
        monkeypatch.undo()
        time.tzset()


async def test_a_zone(world: worlds.World) -> None:
    await create(world, "0 12 * * *", timeZone="Asia/Tokyo")
    await world.advance(24 * 3600)
    (created_job,) = await world.all_of(job.Job)
    stamp = created_job.metadata.annotations["batch.kubernetes.io/cronjob-scheduled-timestamp"]
    assert stamp.endswith("T12:00:00+09:00")


async def test_a_zone_that_the_database_has_lost(world: worlds.World, monkeypatch: pytest.MonkeyPatch) -> None:
    await create(world, timeZone="Asia/Tokyo")
    monkeypatch.setattr(timezones, "find", lambda name: None)
    await world.advance(120)
    assert await jobs(world) == []
    assert any("UnknownTimeZone" in each for each in await world.events())


async def test_a_job_that_went_missing(world: worlds.World) -> None:
    await create(world)
    await world.advance(61)
    first = name(world)
    await world.client.delete(job.Job, first, namespace="default", propagation="Background")
    await world.settle()
    assert (await status(world)).active == ()
    assert f"Normal MissingJob: Active job went missing: {first}" in await world.events()
