"""The reconciler of jobs: suspends a job until its workload is admitted, then starts, stops and finishes it.

The order of the rules is the same for every kind of job. The parts that differ are behind
:class:`drachma.queueing.jobs.interface.GenericJob`. Nothing is written here: the job changes in memory, and the
result has the workloads as they are to be.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

import msgspec
from msgspec import structs

from drachma import errors
from drachma.queueing import conditions
from drachma.queueing.configuration.frameworks import GroupVersionKind
from drachma.queueing.configuration.gates import Gate
from drachma.queueing.jobs import ancestry, elastic
from drachma.queueing.jobs.interface import (
    Document,
    GenericJob,
    Session,
    UnretryableError,
    controller_of,
    with_spec,
)
from drachma.queueing.jobs.matching import WorkloadMatcher
from drachma.queueing.jobs.settings import QUEUE_LABEL, Environment, JobSettings
from drachma.queueing.kinds import workload
from drachma.queueing.workloads import podsetinfo, transitions, workloadstate
from drachma.queueing.workloads.workloadevents import WARNING, Event

_NOT_READY: Final = "Not all pods are ready or succeeded"
_READY: Final = "All pods reached readiness and the workload is running"
_RECOVERING: Final = "At least one pod has failed, waiting for recovery"
_REQUEUED_REASONS: Final = (transitions.PREEMPTED, transitions.DEVICES_CHANGED, transitions.NODE_FAILURES)
"""Reasons of evictions after which a workload goes back to its queue."""


class ReconcileResult(msgspec.Struct, frozen=True):
    """Workloads after a reconcile, and the events to record. The job itself was changed in place."""

    workloads: Mapping[str, workload.Workload]
    """Workloads by key; those that are gone are missing."""
    new_pod_sets: Mapping[str, Sequence[Document]]
    """Pod sets, as whole documents, of the workloads whose pod sets the reconcile has set."""
    events: tuple[Event, ...] = ()
    requeue_after: timedelta = timedelta()
    error: str = ""
    """Problem after which the reconcile is to be repeated, or an empty text."""


def reconcile(job: GenericJob, environment: Environment, now: datetime, *, settings: JobSettings) -> ReconcileResult:
    """Reconcile a job, which changes in place, and its workloads."""
    session = Session(environment, now, settings)
    error = ""
    try:
        _Reconciler(job, session).reconcile()
    except UnretryableError:
        pass
    except errors.DrachmaError as problem:
        error = str(problem)
    return ReconcileResult(session.workloads, session.new_pod_sets, tuple(session.events), session.requeue_after, error)


class _Reconciler:
    def __init__(self, job: GenericJob, session: Session) -> None:
        self._job: Final = job
        self._session: Final = session
        self._settings: Final = session.settings
        self._gates: Final = session.gates
        self._matcher: Final = WorkloadMatcher(job, session)

    def reconcile(self) -> None:
        if self._job.is_gone or (self._job.is_deleted and not self._job.is_skipped):
            self._release_workloads()
        elif not self._job.is_skipped and self._is_queued():
            self._reconcile_queued()

    # Selection

    def _is_queued(self) -> bool:
        """Return True if the job needs a workload of its own."""
        namespace = self._session.environment.namespace_labels
        if namespace is None or not self._settings.namespaces.matches(namespace):
            return False
        has_queue = self._settings.management.without_queue_name or bool(self._job.labels.get(QUEUE_LABEL))
        ancestor = self._ancestor() if self._job.has_ancestors else None
        if ancestor is None:
            return has_queue
        if has_queue or (ancestor["metadata"].get("labels") or {}).get(QUEUE_LABEL):
            self._follow_ancestor(ancestor)
        return False

    def _ancestor(self) -> Document | None:
        document = {"metadata": self._job.metadata}
        try:
            return ancestry.ancestor(document, self._session.environment.owners, self._settings.management)
        except ancestry.NestingError:
            limit = f"ancestor depth exceeded limit of {ancestry.MAX_DEPTH}"
            message = f"Terminated search for Kueue-managed Job because {limit}"
            self._session.record(self._job.key, "JobNestingTooDeep", message, event_type=WARNING)
            raise

    def _follow_ancestor(self, ancestor: Document) -> None:
        """Suspend the job unless the workload of its ancestor is admitted."""
        job = self._job
        if job.completion is not None or job.is_suspended:
            return
        group, _, version = ancestor["apiVersion"].rpartition("/")
        kind = GroupVersionKind(group, version, ancestor["kind"])
        workloads = self._session.owned_by(kind, ancestor["metadata"]["name"])
        unfinished = [each for each in workloads if not workloadstate.is_finished(each)]
        latest = max(unfinished, key=_age, default=None)
        if latest is None or not workloadstate.is_admitted(latest):
            job.suspend()
            self._session.record(job.key, "Suspended", "Kueue managed child job suspended")

    # Rules

    def _release_workloads(self) -> None:
        """Finish the workloads of a job that is gone or being deleted, and remove their finalizers."""
        for each in self._job.child_workloads(self._session):
            after = each
            if (
                self._gates.on(Gate.FINISH_ORPHANED_WORKLOADS)
                and each.metadata.deletion_timestamp is None
                and controller_of(each) is not None
            ):
                after = self._session.finish(each, "OwnerNotFound", "The workload's owner no longer exists")
            self._session.release(after)
        if not self._job.is_gone:
            self._job.finalize()

    def _reconcile_queued(self) -> None:
        wl = self._matcher.ensure_one()
        if wl is None:
            if self._job.is_on_hold:
                return
            if self._job.completion is None:
                self._matcher.create()
            else:
                self._job.finalize()
            return
        rules: Sequence[Callable[[workload.Workload], bool]] = (
            self._update_conditions,
            self._close_finished,
            self._close_deleted,
            self._hold,
            self._finish_completed,
            self._update_reclaimable_pods,
            self._update_readiness,
            self._stop_evicted,
            self._start_or_wait,
            self._stop_unadmitted,
        )
        for rule in rules:
            if rule(wl):
                return

    def _update_conditions(self, wl: workload.Workload) -> bool:
        return self._job.update_conditions(wl, self._session)

    def _close_finished(self, wl: workload.Workload) -> bool:
        if not workloadstate.is_finished(wl):
            return False
        self._job.finalize()
        self._record_finished(wl)
        self._session.release(wl)
        return True

    def _record_finished(self, wl: workload.Workload) -> None:
        message = f"Workload '{workloadstate.key(wl)}' is declared finished"
        self._session.record(self._job.key, "FinishedWorkload", message)

    def _close_deleted(self, wl: workload.Workload) -> bool:
        if wl.metadata.deletion_timestamp is None:
            return False
        self._job.stop(wl, "Workload is deleted", reason="WorkloadDeleted", session=self._session)
        self._session.release(wl)
        return True

    def _hold(self, wl: workload.Workload) -> bool:
        """Release the quota of a job on hold."""
        if not self._job.is_on_hold:
            return False
        if workloadstate.has_reservation(wl):
            self._session.put(
                transitions.unreserve(
                    wl,
                    reason=workloadstate.ON_HOLD,
                    message="Job is on hold",
                    now=self._session.now,
                    gates=self._gates,
                )
            )
        return True

    def _finish_completed(self, wl: workload.Workload) -> bool:
        completion = self._job.completion
        if completion is None:
            return False
        self._session.finish(wl, "Succeeded" if completion.is_success else "Failed", completion.message)
        self._record_finished(wl)
        self._job.finalize()
        return True

    def _update_reclaimable_pods(self, wl: workload.Workload) -> bool:
        if not self._gates.on(Gate.RECLAIMABLE_PODS):
            return False
        sizes = {each.name: each.count for each in wl.spec.pod_sets}
        counts = {name: min(count, sizes.get(name, count)) for name, count in self._job.reclaimable_pods.items()}
        if {each.name: each.count for each in wl.status.reclaimable_pods} == counts:
            return False
        reclaimable = tuple(workload.ReclaimablePod(name=name, count=count) for name, count in counts.items())
        status = structs.replace(wl.status, reclaimable_pods=reclaimable)
        self._session.put(structs.replace(wl, status=status))
        return True

    def _update_readiness(self, wl: workload.Workload) -> bool:
        if not self._settings.waits_for_pods:
            return False
        status, reason, message = _readiness(self._job, wl)
        before = conditions.find(wl.status.conditions, conditions.PODS_READY)
        if before is not None and (before.status, before.reason) == (status, reason):
            return False
        self._session.put(
            transitions.condition(
                wl, conditions.PODS_READY, status, reason=reason, message=message, now=self._session.now
            )
        )
        return True

    def _stop_evicted(self, wl: workload.Workload) -> bool:
        """Stop the job of an evicted workload, and give the quota back when no pod is left.

        The status of a dispatched job is that of another cluster, which may never report the end of its pods.
        """
        condition = conditions.find(wl.status.conditions, conditions.EVICTED)
        if condition is None or condition.status != "True":
            return False
        reason = transitions.reason_with_cause("WorkloadEvicted", condition.reason)
        self._job.stop(wl, condition.message, reason=reason, session=self._session)
        if workloadstate.has_reservation(wl) and (self._job.is_dispatched or not self._job.is_active):
            is_requeued = condition.reason in _REQUEUED_REASONS and self._job.can_requeue(wl, self._gates)
            after = transitions.requeued(
                wl,
                "True" if is_requeued else "False",
                reason=condition.reason,
                message=condition.message,
            )
            reason = "PendingEvaluation" if self._gates.on(Gate.UNADMITTED_OBSERVABILITY) else "Pending"
            wl = self._session.put(
                transitions.unreserve(
                    after, reason=reason, message=condition.message, now=self._session.now, gates=self._gates
                )
            )
        self._delete_deactivated(wl, condition.reason, condition.last_transition_time)
        return True

    def _delete_deactivated(self, wl: workload.Workload, reason: str, since: datetime | None) -> None:
        """Delete a job that Kueue deactivated when its retention period is over."""
        retention = self._settings.retention
        is_deactivated = reason.startswith(transitions.reason_with_cause(transitions.DEACTIVATED, ""))
        if retention is None or since is None or workloadstate.is_active(wl) or not is_deactivated:
            return
        time_left = since + retention - self._session.now
        if time_left > timedelta():
            self._session.requeue_after = time_left
            return
        if self._job.delete():
            message = "Deleted job: deactivation retention period expired"
            self._session.record(self._job.key, "Deleted", message)
            self._job.finalize()

    def _start_or_wait(self, wl: workload.Workload) -> bool:
        """Start a suspended job whose workload is admitted; otherwise keep the workload in the job's queue."""
        job = self._job
        if not job.is_suspended:
            return False
        if workloadstate.is_admitted(wl):
            self._start(wl)
            return True
        if workloadstate.has_reservation(wl):
            checks = [
                f"{check.name}: {check.message}"
                for check in wl.status.admission_checks
                if check.state == workloadstate.PENDING and check.message
            ]
            for key in job.event_keys if checks else ():
                self._session.record(key, "UpdatedAdmissionCheck", "; ".join(checks))
        queue = job.labels.get(QUEUE_LABEL, "")
        if wl.spec.queue_name != queue and job.follows_queue:
            self._session.put(with_spec(wl, queue_name=queue))
        return True

    def _start(self, wl: workload.Workload) -> None:
        admission = wl.status.admission
        queue = admission.cluster_queue if admission is not None else ""
        try:
            infos = podsetinfo.admission_infos(wl, self._session.environment.flavors, self._gates)
            self._job.run(infos, f"Admitted by clusterQueue {queue}", self._session)
        except podsetinfo.PodSetConflictError as error:
            self._session.finish(wl, "FailedToStart", str(error))

    def _stop_unadmitted(self, wl: workload.Workload) -> bool:
        if workloadstate.is_admitted(wl):
            return False
        if elastic.is_elastic(self._job.annotations, self._gates):
            # The pods of elastic jobs are gated one by one.
            return True
        self._job.stop(wl, "Not admitted by cluster queue", reason="NotAdmitted", session=self._session)
        return True


def _readiness(job: GenericJob, wl: workload.Workload) -> tuple[conditions.Status, str, str]:
    """Return status, reason and message of the PodsReady condition."""
    if not workloadstate.is_admitted(wl):
        return "False", "WaitForStart", _NOT_READY
    before = conditions.find(wl.status.conditions, conditions.PODS_READY)
    reason = before.reason if before is not None else ""
    if job.are_pods_ready:
        return "True", "Recovered" if reason in ("WaitForRecovery", "Recovered") else "Started", _READY
    if before is not None and (before.status == "True" or reason == "WaitForRecovery"):
        return "False", "WaitForRecovery", _RECOVERING
    return "False", "WaitForStart", _NOT_READY


def initial_workload(
    wl: workload.Workload, job: GenericJob, now: datetime, *, settings: JobSettings
) -> workload.Workload:
    """Return a workload to create with the readiness that the next reconcile would write into its status."""
    if not settings.waits_for_pods or wl.status.conditions:
        return wl
    status, reason, message = _readiness(job, wl)
    ready = conditions.make(conditions.PODS_READY, status, reason=reason, message=message, generation=1, now=now)
    return transitions.put(wl, ready)


def _age(wl: workload.Workload) -> tuple[bool, datetime | None, str]:
    created = wl.metadata.creation_timestamp
    return created is not None, created, wl.metadata.uid
