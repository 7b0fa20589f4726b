"""The controller: looks at a cron job when it or one of its jobs changes, and when its next time comes."""

from __future__ import annotations

import copy
import datetime as dt
from collections.abc import Sequence
from typing import Any, Final

import msgspec
from msgspec import structs

from drachma import errors
from drachma.api import cronjob, event, job, meta
from drachma.claims import conditions, ownership
from drachma.client import patches
from drachma.controllers import statuswrites
from drachma.controllers.cronjob import missed
from drachma.controllers.workload import podcontrol
from drachma.runtime import Surroundings, cache, controller, events, informer, workqueue
from drachma.validation import cronschedule
from drachma.values import quotation, timezones

WORKERS: Final = 5
SCHEDULED: Final = "batch.kubernetes.io/cronjob-scheduled-timestamp"
"""The annotation that says for which time a job was made."""

_OWNER_INDEX: Final = "cronjob-owner"
_KIND: Final = ("batch/v1", "CronJob")
_ENDS: Final = ("Complete", "Failed")

CronJob = cronjob.CronJob


class CronJobController:
    """Makes jobs when their time has come."""

    name: Final = "cronjob"

    def __init__(self, surroundings: Surroundings) -> None:
        jobs = surroundings.informers.of(job.Job)
        cron_jobs = surroundings.informers.of(CronJob)
        self._client: Final = surroundings.client
        self._clock: Final = surroundings.clock
        self._recorder: Final = surroundings.recorder("cronjob-controller")
        self._jobs: Final = jobs.cache
        self._cron_jobs: Final = cron_jobs.cache
        self._jobs.add_index(_OWNER_INDEX, _owner)
        self._queue: Final[workqueue.Queue[cache.Key]] = workqueue.Queue(
            self.name, time=surroundings.clock, measured=surroundings.queues
        )
        cron_jobs.add_handler(informer.Handler(added=self._see, updated=lambda _, new: self._see(new)))
        jobs.add_handler(
            informer.Handler(added=self._see_job, updated=lambda _, new: self._see_job(new), deleted=self._see_job)
        )

    async def run(self) -> None:
        await controller.work(self._queue, self._reconcile, workers=WORKERS)

    # News

    def _see(self, of: CronJob) -> None:
        self._queue.add(cache.key_of(of))

    def _see_job(self, of: job.Job) -> None:
        owner = ownership.controller_of(of)
        if owner is not None and (owner.api_version, owner.kind) == _KIND:
            self._queue.add(cache.Key(of.metadata.namespace, owner.name))

    # Work

    async def _reconcile(self, key: cache.Key) -> controller.After | None:
        if self._cron_jobs.get(key.name, namespace=key.namespace) is None:
            return None
        try:
            # What was started is only to be read in the status, and the cache may not have it yet.
            current = await self._client.get(CronJob, key.name, namespace=key.namespace)
        except errors.ObjectNotFoundError:
            return None
        look = _Look(current)
        jobs = self._jobs.by(_OWNER_INDEX, current.metadata.uid)
        await self._clean_up(look, jobs)
        await self._take_stock(look, jobs)
        try:
            seconds = await self._start(look) if current.metadata.deletion_timestamp is None else None
        finally:
            await self._write_status(look)
        return None if seconds is None else controller.After(seconds)

    async def _take_stock(self, look: _Look, jobs: Sequence[job.Job]) -> None:
        """Brings the list of jobs that run up to date."""
        for each in jobs:
            end = _end(each)
            is_listed = look.lists(each.metadata.uid)
            if end is None and not is_listed:
                text = f"Saw a job that the controller did not create or forgot: {each.metadata.name}"
                self._tell(look.cron_job, events.WARNING, "UnexpectedJob", text)
            if end is None:
                continue
            if is_listed:
                look.unlist(each.metadata.uid)
                text = f"Saw completed job: {each.metadata.name}, condition: {end}"
                self._tell(look.cron_job, events.NORMAL, "SawCompletedJob", text)
            if end == "Complete":
                look.note_success(each.status.completion_time)
        children = {each.metadata.uid for each in jobs}
        for known in [each for each in look.active if each.uid not in children]:
            try:
                await self._client.get(job.Job, known.name, namespace=known.namespace)
            except errors.ObjectNotFoundError:
                self._tell(look.cron_job, events.NORMAL, "MissingJob", f"Active job went missing: {known.name}")
                look.unlist(known.uid)

    async def _start(self, look: _Look) -> float | None:
        """Makes the job that is due; after how many seconds to look again."""
        current = look.cron_job
        zone, now = self._zone(current), self._clock.utc()
        if zone is None or current.spec.suspend:
            return None
        try:
            times = missed.Times(cronschedule.parse(current.spec.schedule), zone)
        except errors.InvalidValueError as error:
            text = f"unparseable schedule: {quotation.quote(current.spec.schedule)} : {error}"
            self._tell(current, events.WARNING, "UnparseableSchedule", text)
            return None
        try:
            known = missed.due(current, times, now=now, has_deadline=True)
        except errors.InvalidValueError as error:
            text = f"invalid schedule: {current.spec.schedule} : {error}"
            self._tell(current, events.WARNING, "InvalidSchedule", text)
            return None
        if known.moment is not None and known.are_many:
            text = "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew"
            self._tell(current, events.WARNING, "TooManyMissedTimes", text)
        if known.moment is not None and self._is_to_start(look, known.moment, now=now):
            await self._make(look, known.moment, zone)
        return missed.seconds_left(look.changed(), times, now=now)

    def _zone(self, current: CronJob) -> dt.tzinfo | None:
        """The zone of a cron job; None where there is none of that name."""
        name = current.spec.time_zone
        if name is None:
            return dt.UTC
        zone = timezones.find(name)
        if zone is None:
            text = f"invalid timeZone: {quotation.quote(name)}: unknown time zone {name}"
            self._tell(current, events.WARNING, "UnknownTimeZone", text)
        return zone

    def _is_to_start(self, look: _Look, moment: dt.datetime, *, now: dt.datetime) -> bool:
        current = look.cron_job
        deadline = current.spec.starting_deadline_seconds
        if deadline is not None and moment + dt.timedelta(seconds=deadline) < now:
            shown = moment.strftime("%a, %d %b %Y %H:%M:%S +0000")
            text = f"Missed scheduled time to start a job: {shown}"
            self._tell(current, events.WARNING, "MissSchedule", text)
            return False
        if _job_name(current, moment) in {each.name for each in look.active}:
            return False
        if current.status.last_schedule_time == moment:
            return False
        if current.spec.concurrency_policy == "Forbid" and look.active:
            text = "Not starting job because prior execution is running and concurrency policy is Forbid"
            self._tell(current, events.NORMAL, "JobAlreadyActive", text)
            return False
        return True

    async def _make(self, look: _Look, moment: dt.datetime, zone: dt.tzinfo) -> None:
        current = look.cron_job
        if current.spec.concurrency_policy == "Replace":
            for each in tuple(look.active):
                if not await self._delete(look, each.name, each.uid):
                    raise errors.ReconcileError(f"could not replace job {each.namespace}/{each.name}")
        document = job_document(current, moment, zone)
        name = document["metadata"]["name"]
        try:
            made = await self._client.create_document(job.Job, document)
        except errors.ObjectExistsError:
            existing = await self._client.get(job.Job, name, namespace=current.metadata.namespace)
            if ownership.is_controlled_by(existing.metadata, current.metadata.uid):
                look.list(events.reference_to(existing), moment)
            return
        except errors.RefusedError as error:
            if not podcontrol.is_namespace_ending(error):
                self._tell(current, events.WARNING, "FailedCreate", f"Error creating job: {error}")
            raise
        self._tell(current, events.NORMAL, "SuccessfulCreate", f"Created job {name}")
        metadata = made["metadata"]
        look.list(
            event.ObjectReference(
                api_version="batch/v1",
                kind="Job",
                name=name,
                namespace=metadata["namespace"],
                uid=metadata["uid"],
                resource_version=metadata["resourceVersion"],
            ),
            moment,
        )

    # Jobs that have ended

    async def _clean_up(self, look: _Look, jobs: Sequence[job.Job]) -> None:
        """Deletes the oldest jobs that have ended and are more than are to be kept."""
        spec = look.cron_job.spec
        limits = {"Complete": spec.successful_jobs_history_limit, "Failed": spec.failed_jobs_history_limit}
        for end, limit in limits.items():
            ended = sorted((each for each in jobs if _end(each) == end), key=_start_order)
            for each in ended[: max(len(ended) - limit, 0)] if limit is not None else ():
                if each.metadata.deletion_timestamp is None:
                    await self._delete(look, each.metadata.name, each.metadata.uid)

    async def _delete(self, look: _Look, name: str, uid: str) -> bool:
        current = look.cron_job
        try:
            await self._client.delete(
                job.Job,
                name,
                namespace=current.metadata.namespace,
                preconditions=patches.Preconditions(uid=uid),
                propagation="Background",
            )
        except errors.RefusedError as error:
            self._tell(current, events.WARNING, "FailedDelete", f"Deleted job: {error}")
            return False
        look.unlist(uid)
        self._tell(current, events.NORMAL, "SuccessfulDelete", f"Deleted job {name}")
        return True

    # Writing

    async def _write_status(self, look: _Look) -> None:
        content = look.content()
        if content is None:
            return
        current = look.cron_job
        try:
            await statuswrites.update(
                self._client, CronJob, of=current.metadata, content=content, meant=patches.unchanged(current)
            )
        except errors.ObjectNotFoundError:
            return

    def _tell(self, about: CronJob, kind: events.Type, reason: str, message: str) -> None:
        self._recorder.record(about, type=kind, reason=reason, message=message)


class _Look:
    """One look at one cron job: what its status is to say."""

    def __init__(self, cron_job: CronJob) -> None:
        self.cron_job: Final = cron_job
        self.active: list[event.ObjectReference] = list(cron_job.status.active)
        self._scheduled = cron_job.status.last_schedule_time
        self._succeeded = cron_job.status.last_successful_time

    def lists(self, uid: str) -> bool:
        """Whether a job counts as one that runs."""
        return any(each.uid == uid for each in self.active)

    def list(self, started: event.ObjectReference, moment: dt.datetime) -> None:
        """A job was made for a time."""
        if not self.lists(started.uid):
            self.active.append(started)
        self._scheduled = moment

    def unlist(self, uid: str) -> None:
        """A job runs no more."""
        self.active = [each for each in self.active if each.uid != uid]

    def note_success(self, moment: dt.datetime | None) -> None:
        """A job has succeeded at some time."""
        if moment is not None and (self._succeeded is None or moment > self._succeeded):
            self._succeeded = moment

    def changed(self) -> CronJob:
        """The cron job as it will be once its status is written."""
        return structs.replace(
            self.cron_job, status=structs.replace(self.cron_job.status, last_schedule_time=self._scheduled)
        )

    def content(self) -> dict[str, Any] | None:
        """The status as fields to merge; None where it says so."""
        before = self.cron_job.status
        if (tuple(self.active), self._scheduled, self._succeeded) == (
            tuple(before.active),
            before.last_schedule_time,
            before.last_successful_time,
        ):
            return None
        return {
            "active": msgspec.to_builtins(self.active) or None,
            "lastScheduleTime": _shown(self._scheduled),
            "lastSuccessfulTime": _shown(self._succeeded),
        }


def job_document(of: CronJob, moment: dt.datetime, zone: dt.tzinfo) -> dict[str, Any]:
    """The job of a time, as it is created."""
    template = copy.deepcopy(dict(of.spec.job_template))
    metadata = template.get("metadata") or {}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": _job_name(of, moment),
            "namespace": of.metadata.namespace,
            "labels": metadata.get("labels") or {},
            "annotations": {**(metadata.get("annotations") or {}), SCHEDULED: _local_text(moment.astimezone(zone))},
            "ownerReferences": [ownership.reference(of)],
        },
        "spec": template.get("spec") or {},
    }


def _job_name(of: CronJob, moment: dt.datetime) -> str:
    return f"{of.metadata.name}-{int(moment.timestamp()) // 60}"


def _local_text(moment: dt.datetime) -> str:
    text = moment.isoformat(timespec="seconds")
    return text.removesuffix("+00:00") + "Z" if text.endswith("+00:00") else text


def _shown(moment: dt.datetime | None) -> str | None:
    return None if moment is None else meta.time_text(moment)


def _end(of: job.Job) -> str | None:
    """How a job has ended, if it has."""
    return next((each for each in _ENDS if conditions.is_true(of.status.conditions, each)), None)


def _start_order(of: job.Job) -> tuple[bool, str, str]:
    start = of.status.start_time
    return start is None, str(start), of.metadata.name


def _owner(of: job.Job) -> tuple[str, ...]:
    owner = ownership.controller_of(of)
    return (owner.uid,) if owner is not None and (owner.api_version, owner.kind) == _KIND else ()
