"""What anything that runs pods and its workload become when they are looked at, whatever kind it is of.

Held back until admitted, started with what it was given, stopped, over: the order of these is the same for all kinds;
how each is done is up to the kind, see ``jobreconcile`` and ``podreconcile``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final, Generic, TypeVar

import msgspec
from msgspec import structs

from drachma import errors
from drachma.queueing import (
    conditions,
    jobowners,
    jobworkload,
    podsetinfo,
    transitions,
    workloadstate,
)
from drachma.queueing.admitter import NORMAL, WARNING, Event
from drachma.queueing.gates import DEFAULT, Gate, Gates
from drachma.queueing.jobowners import Management
from drachma.queueing.jobworkload import QUEUE_LABEL, Priorities, QueuedJob, WorkloadRecord
from drachma.queueing.kinds import workload
from drachma.queueing.podsetinfo import PodSetInfo
from drachma.queueing.workloadrules import ADMISSION_GATES
from drachma.values import labels, names, quotation

Document = Mapping[str, Any]

_PREBUILT: Final = "kueue.x-k8s.io/prebuilt-workload-name"
_MESSAGE_LENGTH: Final = 1024
_NOT_READY: Final = "Not all pods are ready or succeeded"
_READY: Final = "All pods reached readiness and the workload is running"
_RECOVERING: Final = "At least one pod has failed, waiting for recovery"


class JobSettings(msgspec.Struct, frozen=True):
    """How jobs are queued."""

    management: Management = Management()
    namespaces: labels.Selector = labels.Selector()
    """In which namespaces."""
    waits_for_pods: bool = False
    """Whether it is noted when all pods are ready."""
    retention: timedelta | None = None
    """How long jobs are kept that were deactivated; None: for ever."""
    label_keys: Sequence[str] = ()
    annotation_keys: Sequence[str] = ()
    """What workloads take over from their jobs."""
    gates: Gates = DEFAULT


class Surroundings(msgspec.Struct, frozen=True):
    """What a job has around it."""

    namespace_labels: Mapping[str, str] | None
    """None: its namespace does not exist."""
    workloads: Sequence[WorkloadRecord] = ()
    """All of its namespace."""
    owners: jobowners.Owners = {}
    flavors: podsetinfo.Flavors = {}
    priorities: Priorities = Priorities()


class RetryError(errors.DrachmaError):
    """This look at the job ends here, and there is to be another."""


class UnretryableError(errors.DrachmaError):
    """This look at the job ends here; only a change of the job or its pods can help."""


JobT = TypeVar("JobT", bound=QueuedJob)


class JobStep(ABC, Generic[JobT]):
    """One look at a job; what a kind does differently is abstract, or replaced."""

    def __init__(self, job: JobT | None, around: Surroundings, now: datetime, settings: JobSettings) -> None:
        self._job = job
        self._around = around
        self._now = now
        self._settings = settings
        self._gates = settings.gates
        self._workloads = {each.key: each for each in around.workloads}
        self._events: list[Event] = []
        self._look_again_after = timedelta()

    def _take(self) -> str:
        """Takes the step; returns what went wrong and is tried again."""
        try:
            if self._job is None or self._is_deleted(self._job):
                self._let_go()
            elif self._is_queued(self._job):
                self._follow(self._job)
        except UnretryableError:
            return ""
        except errors.DrachmaError as refusal:
            return str(refusal)
        return ""

    # What kinds do differently

    @abstractmethod
    def _left_behind(self) -> list[WorkloadRecord]:
        """The workloads of the job, which is gone or about to be."""

    @abstractmethod
    def _is_queued(self, job: JobT) -> bool:
        """Whether the job is one that waits for a workload of its own."""

    @abstractmethod
    def _candidates(self, job: JobT) -> tuple[WorkloadRecord | None, list[WorkloadRecord]]:
        """The workload of the job as it is now, and others that it has."""

    @abstractmethod
    def _construct(self, job: JobT) -> WorkloadRecord:
        """The workload that the job is to have."""

    @abstractmethod
    def _stop(self, job: JobT, record: WorkloadRecord | None, message: str, *, reason: str) -> None:
        """End the job's pods, and hold back others."""

    @abstractmethod
    def _run(self, job: JobT, infos: Sequence[PodSetInfo], message: str) -> None:
        """Let the job go; a PodSetConflictError if that cannot be."""

    def _is_deleted(self, job: JobT) -> bool:
        return bool(job.metadata.get("deletionTimestamp"))

    def _own(self, job: JobT, record: WorkloadRecord) -> WorkloadRecord:
        """Take a workload that somebody made for the job."""
        return record if record.controller is not None else self._keep(record.owned_by(job))

    def _is_equivalent(self, job: JobT, record: WorkloadRecord) -> bool:
        return jobworkload.is_equivalent(job, record, flavors=self._around.flavors, gates=self._gates)

    def _close(self, job: JobT) -> None:
        """The job is over."""

    def _discard(self, job: JobT) -> None:
        """Delete the job."""
        self._job = None

    def _noted(self, job: JobT, record: WorkloadRecord) -> bool:
        """Whether there was something to be said of the workload first, and was."""
        return False

    def _told(self, job: JobT) -> Iterable[str]:
        """Who hears of admission checks."""
        return (job.key,)

    def _comes_back(self, record: WorkloadRecord, reason: str) -> bool:
        """Whether a workload that was evicted for a reason goes back into its queue."""
        return reason in (transitions.PREEMPTED, "NodeFailures")

    def _follows_queue(self, job: JobT) -> bool:
        """Whether the workload changes queues with the job."""
        return True

    # What is the same for all

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

    def _let_go(self) -> None:
        """The job is gone, or about to be: its workloads are over, and may go."""
        for record in self._left_behind():
            if (
                self._gates.on(Gate.FINISH_ORPHANED_WORKLOADS)
                and record.view.metadata.deletion_timestamp is None
                and record.controller is not None
            ):
                record = self._finish(record, "OwnerNotFound", "The workload's owner no longer exists")
            self._free(record)
        if self._job is not None:
            self._close(self._job)

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

    def _is_in_scope(self) -> bool:
        """Whether jobs of the namespace are queued."""
        namespace = self._around.namespace_labels
        return namespace is not None and self._settings.namespaces.matches(namespace)

    def _has_queue(self, job: JobT) -> bool:
        return self._settings.management.without_queue_name or bool(job.labels.get(QUEUE_LABEL))

    def _follow(self, job: JobT) -> None:
        record = self._workload(job)
        job = self._current
        if record is None:
            if job.ending is None:
                self._without_workload(job)
            else:
                self._close(job)
            return
        rules: Iterable[Callable[[JobT, WorkloadRecord], bool]] = (
            self._noted,
            self._over,
            self._deleted,
            self._ended,
            self._reclaimed,
            self._readiness,
            self._evicted,
            self._waiting,
            self._unadmitted,
        )
        for rule in rules:
            if rule(job, record):
                return

    @property
    def _current(self) -> JobT:
        assert self._job is not None
        return self._job

    # The workload of a job

    def _workload(self, job: JobT) -> WorkloadRecord | None:
        """The one workload of the job; others are deleted."""
        prebuilt = self._prebuilt(job)
        if prebuilt:
            return self._prebuilt_workload(job, prebuilt)
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

    def _prebuilt(self, job: JobT) -> str:
        """The name of the workload that somebody made for the job."""
        label, annotation = job.labels.get(_PREBUILT, ""), job.annotations.get(_PREBUILT, "")
        if self._gates.on(Gate.WORKLOAD_IDENTIFIER_ANNOTATIONS):
            return annotation or label
        return label or (annotation if len(annotation) > names.LABEL_LENGTH else "")

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
        made = self._make(job)
        spec = dict(made.document["spec"])
        if record.view.spec.active is not None:
            spec["active"] = record.view.spec.active
        after = self._keep(WorkloadRecord.of({**record.document, "spec": spec}))
        self._tell(job.key, "UpdatedWorkload", f"Updated not matching Workload for suspended job: {record.key}")
        return after

    def _sync_gates(self, job: JobT, record: WorkloadRecord) -> WorkloadRecord:
        gates = job.annotations.get(ADMISSION_GATES, "")
        annotations = dict(record.view.metadata.annotations)
        if not self._gates.on(Gate.ADMISSION_GATED_BY) or annotations.get(ADMISSION_GATES, "") == gates:
            return record
        annotations.pop(ADMISSION_GATES, None)
        if gates:
            annotations[ADMISSION_GATES] = gates
        self._tell(job.key, "UpdatedWorkload", f"Updated workload AdmissionGatedBy to {quotation.quote(gates)}")
        return self._keep(record.with_metadata(annotations=annotations))

    def _sync_priority(self, job: JobT, record: WorkloadRecord) -> WorkloadRecord:
        """The priority follows the job's label, unless it came from the pods."""
        ref = record.view.spec.priority_class_ref
        if ref is None and workloadstate.has_reservation(record.view):
            return record
        if ref is not None and ref.kind != jobworkload.WORKLOAD_PRIORITY:
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
        if job.is_active:
            return
        if is_prebuilt:
            raise RetryError("prebuilt workload not found")
        made = self._make(job)
        if made.key in self._workloads:
            name = quotation.quote(made.view.metadata.name)
            raise RetryError(f"workloads.kueue.x-k8s.io {name} already exists")
        self._keep(made)
        self._tell(job.key, "CreatedWorkload", f"Created Workload: {made.key}")

    # What a job and its workload do next

    def _over(self, job: JobT, record: WorkloadRecord) -> bool:
        if not workloadstate.is_finished(record.view):
            return False
        self._close(job)
        self._tell(job.key, "FinishedWorkload", f"Workload '{record.key}' is declared finished")
        self._free(record)
        return True

    def _deleted(self, job: JobT, record: WorkloadRecord) -> bool:
        if record.view.metadata.deletion_timestamp is None:
            return False
        self._stop(job, record, "Workload is deleted", reason="WorkloadDeleted")
        self._free(record)
        return True

    def _ended(self, job: JobT, record: WorkloadRecord) -> bool:
        ending = job.ending
        if ending is None:
            return False
        self._finish(record, "Succeeded" if ending.is_success else "Failed", ending.message)
        self._tell(job.key, "FinishedWorkload", f"Workload '{record.key}' is declared finished")
        self._close(job)
        return True

    def _reclaimed(self, job: JobT, record: WorkloadRecord) -> bool:
        """Pods that need their quota no more give it back."""
        if not self._gates.on(Gate.RECLAIMABLE_PODS):
            return False
        sizes = {each.name: each.count for each in record.view.spec.pod_sets}
        counts = {name: min(count, sizes.get(name, count)) for name, count in job.reclaimable_pods.items()}
        if {each.name: each.count for each in record.view.status.reclaimable_pods} == counts:
            return False
        pods = tuple(workload.ReclaimablePod(name=name, count=count) for name, count in counts.items())
        status = structs.replace(record.view.status, reclaimable_pods=pods)
        self._become(record, structs.replace(record.view, status=status))
        return True

    def _readiness(self, job: JobT, record: WorkloadRecord) -> bool:
        if not self._settings.waits_for_pods:
            return False
        status, reason, message = _readiness(job, record.view)
        before = conditions.find(record.view.status.conditions, conditions.PODS_READY)
        if before is not None and (before.status, before.reason) == (status, reason):
            return False
        after = transitions.condition(
            record.view, conditions.PODS_READY, status, reason=reason, message=message, now=self._now
        )
        self._become(record, after)
        return True

    def _evicted(self, job: JobT, record: WorkloadRecord) -> bool:
        """Stopped; and when no pod is left, the quota is given back."""
        condition = conditions.find(record.view.status.conditions, conditions.EVICTED)
        if condition is None or condition.status != "True":
            return False
        reason = transitions.reason_with_cause("WorkloadEvicted", condition.reason)
        self._stop(job, record, condition.message, reason=reason)
        if workloadstate.has_reservation(record.view) and not self._current.is_active:
            comes_back = self._comes_back(record, condition.reason)
            view = transitions.requeued(
                record.view,
                "True" if comes_back else "False",
                reason=condition.reason,
                message=condition.message,
            )
            reason = "PendingEvaluation" if self._gates.on(Gate.UNADMITTED_OBSERVABILITY) else "Pending"
            view = transitions.unreserve(
                view, reason=reason, message=condition.message, now=self._now, gates=self._gates
            )
            record = self._become(record, view)
        self._outdated(self._current, record, condition.reason, condition.last_transition_time)
        return True

    def _outdated(self, job: JobT, record: WorkloadRecord, reason: str, since: datetime | None) -> None:
        """Jobs that were deactivated are deleted after a while."""
        retention = self._settings.retention
        is_ours = reason.startswith(transitions.reason_with_cause(transitions.DEACTIVATED, ""))
        if retention is None or since is None or workloadstate.is_active(record.view) or not is_ours:
            return
        rest = since + retention - self._now
        if rest > timedelta():
            self._look_again_after = rest
            return
        self._discard(job)
        self._tell(job.key, "Deleted", "Deleted job: deactivation retention period expired")
        self._close(job)

    def _waiting(self, job: JobT, record: WorkloadRecord) -> bool:
        if not job.is_suspended:
            return False
        if workloadstate.is_admitted(record.view):
            self._start(job, record)
            return True
        if workloadstate.has_reservation(record.view):
            checks = [
                f"{check.name}: {check.message}"
                for check in record.view.status.admission_checks
                if check.state == workloadstate.PENDING and check.message
            ]
            for key in self._told(job) if checks else ():
                self._tell(key, "UpdatedAdmissionCheck", "; ".join(checks))
        queue = job.labels.get(QUEUE_LABEL, "")
        if record.view.spec.queue_name != queue and self._follows_queue(job):
            self._keep(record.with_spec(queueName=queue))
        return True

    def _start(self, job: JobT, record: WorkloadRecord) -> None:
        admission = record.view.status.admission
        queue = admission.cluster_queue if admission is not None else ""
        try:
            infos = podsetinfo.of_admission(record.view, self._around.flavors, self._gates)
            self._run(job, infos, f"Admitted by clusterQueue {queue}")
        except podsetinfo.PodSetConflictError as error:
            self._finish(record, "FailedToStart", str(error))

    def _unadmitted(self, job: JobT, record: WorkloadRecord) -> bool:
        if workloadstate.is_admitted(record.view):
            return False
        self._stop(job, record, "Not admitted by cluster queue", reason="NotAdmitted")
        return True


def _readiness(job: QueuedJob, of: workload.Workload) -> tuple[conditions.Status, str, str]:
    """What is to be said of the readiness of a job's pods: status, reason and message."""
    if not workloadstate.is_admitted(of):
        return "False", "WaitForStart", _NOT_READY
    before = conditions.find(of.status.conditions, conditions.PODS_READY)
    reason = before.reason if before is not None else ""
    if job.are_pods_ready:
        return "True", "Recovered" if reason in ("WaitForRecovery", "Recovered") else "Started", _READY
    if before is not None and (before.status == "True" or reason == "WaitForRecovery"):
        return "False", "WaitForRecovery", _RECOVERING
    return "False", "WaitForStart", _NOT_READY
