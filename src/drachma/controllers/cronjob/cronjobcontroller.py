"""The controller: reconciles a cron job when it or one of its jobs changes, and at its next scheduled time."""

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
from drachma.controllers import objectwrites
from drachma.controllers.cronjob import missed
from drachma.controllers.workload import podcontrol
from drachma.runtime import Surroundings, cache, controller, events, informer, workqueue
from drachma.validation import cronschedule
from drachma.values import quotation, timezones

WORKERS: Final = 5
SCHEDULED: Final = "batch.kubernetes.io/cronjob-scheduled-timestamp"
"""Annotation with the scheduled time of a job."""

_OWNER_INDEX: Final = "cronjob-owner"
_KIND: Final = ("batch/v1", "CronJob")
_ENDS: Final = ("Complete", "Failed")

CronJob = cronjob.CronJob


class CronJobController:
    """Creates jobs on schedule."""

    name: Final = "cronjob"

    def __init__(self, surroundings: Surroundings) -> None:
        jobs = surroundings.informers.of(job.Job)
        cron_jobs = surroundings.informers.of(CronJob)
        self._client: Final = surroundings.client
        self._clock: Final = surroundings.clock
        self._recorder: Final = surroundings.recorder("cronjob-controller")
        self._jobs: Final = jobs.cache
        self._cron_jobs: Final = cron_jobs.cache
        self._writer: Final = objectwrites.Writer(surroundings.client, cron_jobs, recorder=self._recorder)
        self._jobs.add_index(_OWNER_INDEX, _owner)
        self._queue: Final[workqueue.Queue[cache.Key]] = workqueue.Queue(
            self.name, clock=surroundings.clock, metrics=surroundings.queues
        )
        cron_jobs.add_handler(informer.Handler.on_write(self._enqueue))
        jobs.add_handler(informer.Handler.on_change(self._handle_job))

    async def run(self) -> None:
        await controller.work(self._queue, self._reconcile, workers=WORKERS)

    # Handlers

    def _enqueue(self, cron_job: CronJob) -> None:
        self._queue.add(cache.key_of(cron_job))

    def _handle_job(self, job: job.Job) -> None:
        owner = ownership.controller_of(job)
        if owner is not None and (owner.api_version, owner.kind) == _KIND:
            self._queue.add(cache.Key(job.metadata.namespace, owner.name))

    # Reconciling

    async def _reconcile(self, key: cache.Key) -> controller.After | None:
        current = self._cron_jobs.get(key.name, namespace=key.namespace)
        if current is None:
            return None
        status = _Status(current)
        jobs = self._jobs.by(_OWNER_INDEX, current.metadata.uid)
        await self._clean_up(status, jobs)
        await self._update_active(status, jobs)
        try:
            seconds = await self._start(status) if current.metadata.deletion_timestamp is None else None
        finally:
            await self._write_status(status)
        return None if seconds is None else controller.After(seconds)

    async def _update_active(self, status: _Status, jobs: Sequence[job.Job]) -> None:
        """Update the list of active jobs."""
        for each in jobs:
            end = _end(each)
            is_listed = status.lists(each.metadata.uid)
            if end is None and not is_listed:
                text = f"Saw a job that the controller did not create or forgot: {each.metadata.name}"
                self._record(status.cron_job, events.WARNING, "UnexpectedJob", text)
            if end is None:
                continue
            if is_listed:
                status.unlist(each.metadata.uid)
                text = f"Saw completed job: {each.metadata.name}, condition: {end}"
                self._record(status.cron_job, events.NORMAL, "SawCompletedJob", text)
            if end == "Complete":
                status.note_success(each.status.completion_time)
        children = {each.metadata.uid for each in jobs}
        for reference in [each for each in status.active if each.uid not in children]:
            try:
                await self._client.get(job.Job, reference.name, namespace=reference.namespace)
            except errors.ObjectNotFoundError:
                self._record(status.cron_job, events.NORMAL, "MissingJob", f"Active job went missing: {reference.name}")
                status.unlist(reference.uid)

    async def _start(self, status: _Status) -> float | None:
        """Create the job that is due. Return the seconds until the next reconcile."""
        current = status.cron_job
        zone, now = self._zone(current), self._clock.utc()
        if zone is None or current.spec.suspend:
            return None
        try:
            times = missed.Times(cronschedule.parse(current.spec.schedule), zone)
        except errors.InvalidValueError as error:
            text = f"unparseable schedule: {quotation.quote(current.spec.schedule)} : {error}"
            self._record(current, events.WARNING, "UnparseableSchedule", text)
            return None
        try:
            schedule = missed.due(current, times, now=now, has_deadline=True)
        except errors.InvalidValueError as error:
            text = f"invalid schedule: {current.spec.schedule} : {error}"
            self._record(current, events.WARNING, "InvalidSchedule", text)
            return None
        if schedule.moment is not None and schedule.are_many:
            text = "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew"
            self._record(current, events.WARNING, "TooManyMissedTimes", text)
        if schedule.moment is not None and self._is_to_start(status, schedule.moment, now=now):
            await self._make(status, schedule.moment, zone)
        return missed.seconds_left(status.changed(), times, now=now)

    def _zone(self, current: CronJob) -> dt.tzinfo | None:
        """Return the time zone of a cron job, or None if its name is unknown."""
        name = current.spec.time_zone
        if name is None:
            return dt.UTC
        zone = timezones.find(name)
        if zone is None:
            text = f"invalid timeZone: {quotation.quote(name)}: unknown time zone {name}"
            self._record(current, events.WARNING, "UnknownTimeZone", text)
        return zone

    def _is_to_start(self, status: _Status, moment: dt.datetime, *, now: dt.datetime) -> bool:
        current = status.cron_job
        deadline = current.spec.starting_deadline_seconds
        if deadline is not None and moment + dt.timedelta(seconds=deadline) < now:
            scheduled_time = moment.strftime("%a, %d %b %Y %H:%M:%S +0000")
            text = f"Missed scheduled time to start a job: {scheduled_time}"
            self._record(current, events.WARNING, "MissSchedule", text)
            return False
        if _job_name(current, moment) in {each.name for each in status.active}:
            return False
        if current.status.last_schedule_time == moment:
            return False
        if current.spec.concurrency_policy == "Forbid" and status.active:
            text = "Not starting job because prior execution is running and concurrency policy is Forbid"
            self._record(current, events.NORMAL, "JobAlreadyActive", text)
            return False
        return True

    async def _make(self, status: _Status, moment: dt.datetime, zone: dt.tzinfo) -> None:
        current = status.cron_job
        if current.spec.concurrency_policy == "Replace":
            for each in tuple(status.active):
                if not await self._delete(status, each.name, each.uid):
                    raise errors.ReconcileError(f"could not replace job {each.namespace}/{each.name}")
        document = job_document(current, moment, zone)
        name = document["metadata"]["name"]
        try:
            created = await self._client.create_document(job.Job, document)
        except errors.ObjectExistsError:
            existing = await self._client.get(job.Job, name, namespace=current.metadata.namespace)
            if ownership.is_controlled_by(existing.metadata, current.metadata.uid):
                status.list(events.reference_to(existing), moment)
            return
        except errors.RefusedError as error:
            if not podcontrol.is_namespace_ending(error):
                self._record(current, events.WARNING, "FailedCreate", f"Error creating job: {error}")
            raise
        self._record(current, events.NORMAL, "SuccessfulCreate", f"Created job {name}")
        metadata = created["metadata"]
        status.list(
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

    async def _clean_up(self, status: _Status, jobs: Sequence[job.Job]) -> None:
        """Delete the oldest finished jobs beyond the history limits."""
        spec = status.cron_job.spec
        limits = {"Complete": spec.successful_jobs_history_limit, "Failed": spec.failed_jobs_history_limit}
        for end, limit in limits.items():
            ended = sorted((each for each in jobs if _end(each) == end), key=_start_order)
            for each in ended[: max(len(ended) - limit, 0)] if limit is not None else ():
                if each.metadata.deletion_timestamp is None:
                    await self._delete(status, each.metadata.name, each.metadata.uid)

    async def _delete(self, status: _Status, name: str, uid: str) -> bool:
        current = status.cron_job
        try:
            await self._client.delete(
                job.Job,
                name,
                namespace=current.metadata.namespace,
                preconditions=patches.Preconditions(uid=uid),
                propagation="Background",
            )
        except errors.RefusedError as error:
            self._record(current, events.WARNING, "FailedDelete", f"Deleted job: {error}")
            return False
        status.unlist(uid)
        self._record(current, events.NORMAL, "SuccessfulDelete", f"Deleted job {name}")
        return True

    # Writing

    async def _write_status(self, status: _Status) -> None:
        content = status.content()
        if content is None:
            return
        current = status.cron_job
        try:
            await self._writer.update_status(current, content, only_if_unchanged=True)
        except errors.ObjectNotFoundError:
            return

    def _record(self, cron_job: CronJob, kind: events.Type, reason: str, message: str) -> None:
        self._recorder.record(cron_job, type=kind, reason=reason, message=message)


class _Status:
    """State of one reconcile of a cron job: the status to write."""

    def __init__(self, cron_job: CronJob) -> None:
        self.cron_job: Final = cron_job
        self.active: list[event.ObjectReference] = list(cron_job.status.active)
        self._scheduled = cron_job.status.last_schedule_time
        self._succeeded = cron_job.status.last_successful_time

    def lists(self, uid: str) -> bool:
        """Return True if a job is in the list of active jobs."""
        return any(each.uid == uid for each in self.active)

    def list(self, started: event.ObjectReference, moment: dt.datetime) -> None:
        """Add a job that was created for a time."""
        if not self.lists(started.uid):
            self.active.append(started)
        self._scheduled = moment

    def unlist(self, uid: str) -> None:
        """Remove a job from the list of active jobs."""
        self.active = [each for each in self.active if each.uid != uid]

    def note_success(self, moment: dt.datetime | None) -> None:
        """Note the completion time of a job."""
        if moment is not None and (self._succeeded is None or moment > self._succeeded):
            self._succeeded = moment

    def changed(self) -> CronJob:
        """Return the cron job with the new status."""
        return structs.replace(
            self.cron_job, status=structs.replace(self.cron_job.status, last_schedule_time=self._scheduled)
        )

    def content(self) -> dict[str, Any] | None:
        """Return the status as fields to merge, or None if it is unchanged."""
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


def job_document(cron_job: CronJob, moment: dt.datetime, zone: dt.tzinfo) -> dict[str, Any]:
    """Return a new job for a scheduled time."""
    template = copy.deepcopy(dict(cron_job.spec.job_template))
    metadata = template.get("metadata") or {}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": _job_name(cron_job, moment),
            "namespace": cron_job.metadata.namespace,
            "labels": metadata.get("labels") or {},
            "annotations": {**(metadata.get("annotations") or {}), SCHEDULED: _local_text(moment.astimezone(zone))},
            "ownerReferences": [ownership.reference(cron_job)],
        },
        "spec": template.get("spec") or {},
    }


def _job_name(cron_job: CronJob, moment: dt.datetime) -> str:
    return f"{cron_job.metadata.name}-{int(moment.timestamp()) // 60}"


def _local_text(moment: dt.datetime) -> str:
    text = moment.isoformat(timespec="seconds")
    return text.removesuffix("+00:00") + "Z" if text.endswith("+00:00") else text


def _shown(moment: dt.datetime | None) -> str | None:
    return None if moment is None else meta.time_text(moment)


def _end(job: job.Job) -> str | None:
    """Return the condition by which a job has finished, or None."""
    return next((each for each in _ENDS if conditions.is_true(job.status.conditions, each)), None)


def _start_order(job: job.Job) -> tuple[bool, str, str]:
    start = job.status.start_time
    return start is None, str(start), job.metadata.name


def _owner(job: job.Job) -> tuple[str, ...]:
    owner = ownership.controller_of(job)
    return (owner.uid,) if owner is not None and (owner.api_version, owner.kind) == _KIND else ()
