"""What a job that is one document, and its workload, become when they are looked at.

Called whenever a Job or JobSet or its workload changes. The outcome says what both are afterwards; whoever calls it
writes that down.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import msgspec

from drachma.queueing.configuration.frameworks import GroupVersionKind
from drachma.queueing.jobs import jobowners, jobworkload, workloadnames, workloadslices
from drachma.queueing.jobs.batchjob import BatchJob
from drachma.queueing.jobs.jobdocument import JobDocument
from drachma.queueing.jobs.jobsettings import JobSettings, Surroundings
from drachma.queueing.jobs.jobstep import JobStep
from drachma.queueing.jobs.jobworkload import QUEUE_LABEL, WorkloadRecord
from drachma.queueing.kinds import workload
from drachma.queueing.workloads import workloadstate
from drachma.queueing.workloads.podsetinfo import PodSetInfo
from drachma.queueing.workloads.workloadevents import WARNING, Event

Document = Mapping[str, Any]


class Outcome(msgspec.Struct, frozen=True):
    """What became of a job and of the workloads of its namespace."""

    job: Document | None
    workloads: Mapping[str, WorkloadRecord]
    events: tuple[Event, ...] = ()
    look_again_after: timedelta = timedelta()
    error: str = ""
    """What went wrong and is tried again."""


def reconcile(
    name: str,
    job: JobDocument | None,
    around: Surroundings,
    now: datetime,
    *,
    settings: JobSettings,
    kind: GroupVersionKind = BatchJob.kind,
) -> Outcome:
    """One look at the job of a kind and name, which may be gone."""
    return _DocumentStep(name, job, around, now, settings, kind=kind).run()


class _DocumentStep(JobStep[JobDocument]):
    def __init__(
        self,
        name: str,
        job: JobDocument | None,
        around: Surroundings,
        now: datetime,
        settings: JobSettings,
        *,
        kind: GroupVersionKind,
    ) -> None:
        super().__init__(job, around, now, settings)
        self._name = name
        self._kind = kind

    def run(self) -> Outcome:
        error = self._take()
        return Outcome(
            None if self._job is None else self._job.document,
            self._workloads,
            tuple(self._events),
            self._look_again_after,
            error,
        )

    def _owned(self, name: str) -> list[WorkloadRecord]:
        return self._of_owner(name, self._kind.kind, self._kind.api_version)

    def _left_behind(self) -> list[WorkloadRecord]:
        return self._owned(self._name)

    def _is_queued(self, job: JobDocument) -> bool:
        if not self._is_in_scope():
            return False
        management = self._settings.management
        try:
            ancestor = jobowners.ancestor(job.document, self._around.owners, management)
        except jobowners.NestingError:
            limit = f"ancestor depth exceeded limit of {jobowners.MOST}"
            message = f"Terminated search for Kueue-managed Job because {limit}"
            self._tell(job.key, "JobNestingTooDeep", message, kind=WARNING)
            raise
        if ancestor is None:
            return self._has_queue(job)
        if self._has_queue(job) or (ancestor["metadata"].get("labels") or {}).get(QUEUE_LABEL):
            self._follow_ancestor(job, ancestor)
        return False

    def _follow_ancestor(self, job: JobDocument, ancestor: Document) -> None:
        """A Job of something that is admitted in its place runs only while that does."""
        if job.ending is not None or job.is_suspended:
            return
        theirs = self._of_owner(ancestor["metadata"]["name"], ancestor["kind"], ancestor["apiVersion"])
        pending = [each for each in theirs if not workloadstate.is_finished(each.view)]
        latest = max(pending, key=lambda each: _age(each.view), default=None)
        if latest is None or not workloadstate.is_admitted(latest.view):
            self._job = job.suspended()
            self._tell(job.key, "Suspended", "Kueue managed child job suspended")

    def _candidates(self, job: JobDocument) -> tuple[WorkloadRecord | None, list[WorkloadRecord]]:
        match: WorkloadRecord | None = None
        others: list[WorkloadRecord] = []
        for record in self._owned(job.name):
            if match is None and self._is_equivalent(job, record):
                match = record
            else:
                others.append(record)
        return match, others

    def _construct(self, job: JobDocument) -> WorkloadRecord:
        is_elastic = workloadslices.is_elastic(job, self._gates)
        generation = job.metadata.get("generation", 0) if is_elastic else None
        made = jobworkload.make(
            job,
            name=workloadnames.for_owner(
                job.name, uid=job.uid, kind=job.kind, gates=self._gates, generation=generation
            ),
            priorities=self._around.priorities,
            gates=self._gates,
            label_keys=self._settings.label_keys,
            annotation_keys=self._settings.annotation_keys,
        ).owned_by(job)
        if not is_elastic:
            return made
        own = workloadslices.annotations_for(made.view.metadata.name, self._slices(job))
        return made.with_metadata(annotations={**made.view.metadata.annotations, **own})

    def _stop(self, job: JobDocument, record: WorkloadRecord | None, message: str, *, reason: str) -> None:
        infos = record.pod_set_infos if record is not None else ()
        if not job.is_suspended:
            self._tell(job.key, "Stopped", message)
        self._job = job.stopped(infos)

    def _run(self, job: JobDocument, infos: Sequence[PodSetInfo], message: str) -> None:
        self._job = job.started(infos)
        self._tell(job.key, "Started", message)


def _age(of: workload.Workload) -> tuple[bool, datetime | None, str]:
    created = of.metadata.creation_timestamp
    return created is not None, created, of.metadata.uid
