"""The workload of a job of any kind: looked for, made, brought up to date; what does not match is deleted."""

from __future__ import annotations

from abc import ABC, abstractmethod
from datetime import datetime, timedelta
from typing import Final, Generic, TypeVar

from drachma import errors
from drachma.queueing.configuration.gates import Gate
from drachma.queueing.jobs import jobworkload, workloadnames, workloadslices
from drachma.queueing.jobs.jobsettings import JobSettings, Surroundings
from drachma.queueing.jobs.jobworkload import QueuedJob, WorkloadRecord
from drachma.queueing.kinds import workload
from drachma.queueing.workloads import transitions, workloadstate
from drachma.queueing.workloads.workloadevents import NORMAL, WARNING, Event
from drachma.values import quotation

_MESSAGE_LENGTH: Final = 1024


class RetryError(errors.DrachmaError):
    """This look at the job ends here, and there is to be another."""


class UnretryableError(errors.DrachmaError):
    """This look at the job ends here; only a change of the job or its pods can help."""


JobT = TypeVar("JobT", bound=QueuedJob)


class JobMatching(ABC, Generic[JobT]):
    """A look at a job and at the workloads of its namespace; what a kind does differently is abstract, or replaced."""

    def __init__(self, job: JobT | None, around: Surroundings, now: datetime, settings: JobSettings) -> None:
        self._job = job
        self._around = around
        self._now = now
        self._settings = settings
        self._gates = settings.gates
        self._workloads = {each.key: each for each in around.workloads}
        self._events: list[Event] = []
        self._look_again_after = timedelta()

    @abstractmethod
    def _candidates(self, job: JobT) -> tuple[WorkloadRecord | None, list[WorkloadRecord]]:
        """The workload of the job as it is now, and others that it has."""

    @abstractmethod
    def _construct(self, job: JobT) -> WorkloadRecord:
        """The workload that the job is to have."""

    @abstractmethod
    def _stop(self, job: JobT, record: WorkloadRecord | None, message: str, *, reason: str) -> None:
        """End the job's pods, and hold back others."""

    def _own(self, job: JobT, record: WorkloadRecord) -> WorkloadRecord:
        """Take a workload that somebody made for the job."""
        return record if record.controller is not None else self._keep(record.owned_by(job))

    def _is_equivalent(self, job: JobT, record: WorkloadRecord) -> bool:
        return jobworkload.is_equivalent(job, record, flavors=self._around.flavors, gates=self._gates)

    def _tell(self, key: str, reason: str, message: str, *, kind: str = NORMAL) -> None:
        text = message if len(message) <= _MESSAGE_LENGTH else f"{message[: _MESSAGE_LENGTH - 4]} ..."
        self._events.append(Event(key, kind, reason, text))

    def _keep(self, record: WorkloadRecord) -> WorkloadRecord:
        self._workloads[record.key] = record
        return record

    def _become(self, record: WorkloadRecord, view: workload.Workload) -> WorkloadRecord:
        return self._keep(record.with_status(view))

    def _of_owner(self, name: str, kind: str, api_version: str) -> list[WorkloadRecord]:
        return [
            each
            for each in self._workloads.values()
            if any(
                (owner.api_version, owner.kind, owner.name) == (api_version, kind, name)
                for owner in each.view.metadata.owner_references
            )
        ]

    def _free(self, record: WorkloadRecord) -> None:
        """Without the finalizer; what is deleted is gone with its last one."""
        after = record.without_finalizer()
        if after.view.metadata.deletion_timestamp is not None and not after.view.metadata.finalizers:
            del self._workloads[record.key]
        else:
            self._keep(after)

    def _finish(self, record: WorkloadRecord, reason: str, message: str) -> WorkloadRecord:
        if workloadstate.is_finished(record.view):
            return record
        return self._become(record, transitions.finished(record.view, reason=reason, message=message, now=self._now))

    @property
    def _current(self) -> JobT:
        assert self._job is not None
        return self._job

    def _workload(self, job: JobT) -> WorkloadRecord | None:
        """The one workload of the job; others are deleted."""
        prebuilt = self._prebuilt(job)
        if prebuilt:
            return self._prebuilt_workload(job, prebuilt)
        if workloadslices.is_elastic(job, self._gates):
            current, is_compatible = self._slice(job)
            if is_compatible:
                return current
        match, others = self._candidates(job)
        outdated: WorkloadRecord | None = None
        if match is None and others and job.is_suspended and not workloadstate.has_reservation(others[0].view):
            outdated = others.pop(0)
        if match is None and not job.is_suspended and job.ending is None:
            self._stop_unmatched(job, others)
        self._delete(job, others, has_match=match is not None)
        if outdated is not None:
            return self._renew(job, outdated)
        return None if match is None else self._sync_priority(job, self._sync_gates(job, match))

    def _slices(self, job: JobT) -> list[WorkloadRecord]:
        return workloadslices.unfinished(self._of_owner(job.name, job.kind.kind, job.kind.api_version))

    def _slice(self, job: JobT) -> tuple[WorkloadRecord | None, bool]:
        """The slice of an elastic job that follows it as it is now, None if it needs a new one.

        The second value is False where the job has changed in more than its size, so that slices are of no use.
        """
        slices = self._slices(job)
        current = slices[0] if slices else None
        if len(slices) > 1:
            current, retired = workloadslices.chosen(slices)
            for each in retired:
                self._finish(*each)
        if current is not None:
            wanted, standing = workloadslices.counts_of(job, self._gates), workloadslices.counts_in(current)
            if standing.keys() != wanted.keys():
                return None, False
            if standing != wanted:
                is_reserved = workloadstate.has_reservation(current.view)
                if is_reserved and not workloadslices.is_smaller(wanted, standing):
                    current = None
                else:
                    current = self._keep(workloadslices.resized(current, wanted))
        # Both are compared with others when somebody has to go: they have one priority.
        running = workloadslices.active(each.view for each in self._slices(job))
        if current is not None:
            current = self._sync_priority(job, current)
        if running is not None and (current is None or current.key != workloadstate.key(running)):
            self._sync_priority(job, self._workloads[workloadstate.key(running)])
        return current, True

    def _prebuilt(self, job: JobT) -> str:
        """The name of the workload that somebody made for the job."""
        return workloadnames.prebuilt(job.labels, job.annotations, self._gates)

    def _prebuilt_workload(self, job: JobT, name: str) -> WorkloadRecord | None:
        record = self._workloads.get(f"{job.metadata.get('namespace', '')}/{name}")
        if record is None:
            return None
        owner = record.controller
        if owner is not None and owner.uid != job.uid:
            return None
        record = self._own(job, record)
        if not self._is_equivalent(job, record):
            self._finish(record, "OutOfSync", "The prebuilt workload is out of sync with its user job")
            return None
        return record

    def _stop_unmatched(self, job: JobT, others: list[WorkloadRecord]) -> None:
        if len(others) == 1:
            message = "No matching Workload; restoring pod templates according to existent Workload"
            self._stop(job, others[0], message, reason="NoMatchingWorkload")
        else:
            message = "Missing Workload; unable to restore pod templates"
            self._stop(job, None, message, reason="NoMatchingWorkload")

    def _delete(self, job: JobT, others: list[WorkloadRecord], *, has_match: bool) -> None:
        is_deleted = False
        for record in others:
            after = record.without_finalizer()
            if after.view.metadata.deletion_timestamp is not None:
                self._free(record)
                continue
            is_deleted = True
            if after.view.metadata.finalizers:
                self._keep(after.with_metadata(deletionTimestamp=self._now.isoformat()))
            else:
                del self._workloads[record.key]
            self._tell(job.key, "DeletedWorkload", f"Deleted not matching Workload: {record.key}")
        if is_deleted:
            problem = "extra workloads" if has_match else "no matching workloads"
            raise RetryError(f"{problem}: deleted {len(others)} workloads")

    def _make(self, job: JobT) -> WorkloadRecord:
        try:
            return self._construct(job)
        except jobworkload.ClassMissingError:
            self._tell_of_missing_class(job)
            raise

    def _tell_of_missing_class(self, job: JobT) -> None:
        name = job.labels.get(jobworkload.PRIORITY_LABEL, "")
        if name:
            message = f"WorkloadPriorityClass {quotation.quote(name)} not found"
            self._tell(job.key, "WorkloadPriorityClassNotFound", message, kind=WARNING)

    def _renew(self, job: JobT, record: WorkloadRecord) -> WorkloadRecord:
        """A workload without quota follows its job."""
        try:
            made = self._make(job)
        except UnretryableError:
            raise
        except errors.DrachmaError as error:
            raise RetryError(f"can't construct workload for update: {error}") from None
        spec = dict(made.document["spec"])
        if record.view.spec.active is not None:
            spec["active"] = record.view.spec.active
        after = self._keep(WorkloadRecord.of({**record.document, "spec": spec}))
        self._tell(job.key, "UpdatedWorkload", f"Updated not matching Workload for suspended job: {record.key}")
        return after

    def _sync_gates(self, job: JobT, record: WorkloadRecord) -> WorkloadRecord:
        gates = job.annotations.get(workload.ADMISSION_GATES, "")
        annotations = dict(record.view.metadata.annotations)
        if not self._gates.on(Gate.ADMISSION_GATED_BY) or annotations.get(workload.ADMISSION_GATES, "") == gates:
            return record
        annotations.pop(workload.ADMISSION_GATES, None)
        if gates:
            annotations[workload.ADMISSION_GATES] = gates
        self._tell(job.key, "UpdatedWorkload", f"Updated workload AdmissionGatedBy to {quotation.quote(gates)}")
        return self._keep(record.with_metadata(annotations=annotations))

    def _sync_priority(self, job: JobT, record: WorkloadRecord) -> WorkloadRecord:
        """The priority follows the job's label, unless it came from the pods."""
        ref = record.view.spec.priority_class_ref
        if ref is None and workloadstate.has_reservation(record.view):
            return record
        if ref is not None and (ref.group, ref.kind) != (jobworkload.GROUP, jobworkload.WORKLOAD_PRIORITY):
            return record
        if (ref.name if ref is not None else "") == job.labels.get(jobworkload.PRIORITY_LABEL, ""):
            return record
        try:
            source, priority = self._around.priorities.of(job, record.document["spec"].get("podSets") or ())
        except jobworkload.ClassMissingError as error:
            self._tell_of_missing_class(job)
            raise RetryError(f"prepare workload priority: {error}") from None
        after = record.with_spec(priorityClassRef=source, priority=priority)
        if after.view == record.view:
            return record
        self._tell(job.key, "UpdatedWorkload", f"Updated workload priority class: {record.key}")
        return self._keep(after)

    def _without_workload(self, job: JobT) -> None:
        is_prebuilt = bool(self._prebuilt(job))
        if is_prebuilt:
            self._stop(job, None, "missing workload", reason="NoMatchingWorkload")
            job = self._current
        if job.is_active and not workloadslices.is_elastic(job, self._gates):
            return
        if is_prebuilt:
            raise RetryError("prebuilt workload not found")
        made = self._make(job)
        if made.key in self._workloads:
            name = quotation.quote(made.view.metadata.name)
            raise RetryError(f"workloads.kueue.x-k8s.io {name} already exists")
        self._keep(made)
        self._tell(job.key, "CreatedWorkload", f"Created Workload: {made.key}")
