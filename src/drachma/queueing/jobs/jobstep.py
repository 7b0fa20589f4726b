"""What anything that runs pods and its workload become when they are looked at, whatever kind it is of.

Held back until admitted, started with what it was given, stopped, over: the order of these is the same for all kinds;
how each is done is up to the kind, see ``jobreconcile`` and ``podreconcile``.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from typing import Final

from msgspec import structs

from drachma import errors
from drachma.queueing import conditions
from drachma.queueing.configuration.gates import Gate
from drachma.queueing.jobs import workloadslices
from drachma.queueing.jobs.jobmatching import JobMatching, JobT, UnretryableError
from drachma.queueing.jobs.jobworkload import QUEUE_LABEL, QueuedJob, WorkloadRecord
from drachma.queueing.kinds import workload
from drachma.queueing.workloads import podsetinfo, transitions, workloadstate
from drachma.queueing.workloads.podsetinfo import PodSetInfo

_NOT_READY: Final = "Not all pods are ready or succeeded"
_READY: Final = "All pods reached readiness and the workload is running"
_RECOVERING: Final = "At least one pod has failed, waiting for recovery"


class JobStep(JobMatching[JobT]):
    """One look at a job; what a kind does differently is abstract, or replaced."""

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
    def _run(self, job: JobT, infos: Sequence[PodSetInfo], message: str) -> None:
        """Let the job go; a PodSetConflictError if that cannot be."""

    def _is_deleted(self, job: JobT) -> bool:
        return bool(job.metadata.get("deletionTimestamp"))

    def _close(self, job: JobT) -> None:
        """The job is over."""

    def _discard(self, job: JobT) -> bool:
        """Delete the job; whether it was still there."""
        self._job = None
        return True

    def _noted(self, job: JobT, record: WorkloadRecord) -> bool:
        """Whether there was something to be said of the workload first, and was."""
        return False

    def _told(self, job: JobT) -> Iterable[str]:
        """Who hears of admission checks."""
        return (job.key,)

    def _comes_back(self, record: WorkloadRecord, reason: str) -> bool:
        """Whether a workload that was evicted for a reason goes back into its queue."""
        return reason in (transitions.PREEMPTED, transitions.DEVICES_CHANGED, "NodeFailures")

    def _follows_queue(self, job: JobT) -> bool:
        """Whether the workload changes queues with the job."""
        return True

    # What is the same for all

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
        if self._discard(job):
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
            self._keep(record.with_spec(queueName=queue or None))
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
        if workloadslices.is_elastic(job, self._gates):
            # Its pods are held back one by one.
            return True
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
