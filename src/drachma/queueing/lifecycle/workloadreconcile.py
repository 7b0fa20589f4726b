"""Reconcile of a workload outside of admission cycles: one change at a time, in Kueue's order.

Called when a workload, its queues or its checks change, or after the time that a step asked for. A step makes at most
one change. The caller writes the change and reconciles again.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from msgspec import structs

from drachma.queueing import conditions
from drachma.queueing.configuration.gates import Gate, Gates
from drachma.queueing.kinds import workload
from drachma.queueing.lifecycle.workloadholding import HoldingStep
from drachma.queueing.lifecycle.workloadstep import NO_TIME, Neighbourhood, Outcome
from drachma.queueing.lifecycle.workloadwaiting import WaitingStep, has_gate
from drachma.queueing.workloads import transitions, workloadstate
from drachma.queueing.workloads.settings import DEFAULT_SETTINGS, Settings
from drachma.queueing.workloads.workloadevents import NORMAL

IN_USE: Final = "kueue.x-k8s.io/resource-in-use"


def is_admissible(wl: workload.Workload, gates: Gates) -> bool:
    """Return True if a workload belongs into its queue."""
    return not (
        has_gate(wl, gates)
        or workloadstate.is_finished(wl)
        or not workloadstate.is_active(wl)
        or workloadstate.has_reservation(wl)
        or workloadstate.is_on_hold(wl)
        or conditions.is_true(wl.status.conditions, "WaitingForReplacementPods")
    )


def reconcile(
    wl: workload.Workload, around: Neighbourhood, now: datetime, *, settings: Settings = DEFAULT_SETTINGS
) -> Outcome:
    """Take one step."""
    return _Step(wl, around, now, settings).run()


class _Step(WaitingStep, HoldingStep):
    def run(self) -> Outcome:
        for rule in (
            self._orphaned,
            self._preemption_gates,
            self._finished,
            self._delayed_by_checks,
            self._refuse_uncounted_devices,
            self._count_devices,
            self._activity,
            self._local_queue_restarted,
            self._gated,
            self._cluster_queue,
            self._unadmitted,
        ):
            outcome = rule()
            if outcome is not None:
                return outcome
        if workloadstate.has_reservation(self._workload):
            return self._reserving()
        return self._done()

    def _orphaned(self) -> Outcome | None:
        """Finish or release a workload without owners."""
        metadata = self._workload.metadata
        is_deleted = metadata.deletion_timestamp is not None
        finishes = self._gates.on(Gate.FINISH_ORPHANED_WORKLOADS)
        if metadata.owner_references or not (is_deleted or (finishes and metadata.labels.get(workload.JOB_UID_LABEL))):
            return None
        if finishes and not is_deleted and not workloadstate.is_finished(self._workload):
            message = "The workload's owner no longer exists"
            self._workload = transitions.finished(
                self._workload, reason="OwnerNotFound", message=message, now=self._now
            )
        self._workload = _without_finalizer(self._workload)
        if finishes and not is_deleted:
            return None
        is_gone = is_deleted and not self._workload.metadata.finalizers
        return Outcome(None if is_gone else self._workload)

    def _preemption_gates(self) -> Outcome | None:
        if self._gates.on(Gate.ORCHESTRATED_PREEMPTION):
            self._workload = workloadstate.sync_preemption_gates(self._workload, self._now)
        return None

    def _finished(self) -> Outcome | None:
        condition = conditions.find(self._workload.status.conditions, conditions.FINISHED)
        if condition is None or condition.status != "True":
            return None
        retention = self._around.retention
        if retention is None or condition.last_transition_time is None:
            return self._done()
        time_left = condition.last_transition_time + retention - self._now
        if time_left > NO_TIME:
            return self._done(time_left)
        after = _without_finalizer(self._workload)
        if after.metadata.deletion_timestamp is None:
            self._tell(NORMAL, "Deleted", "Deleted finished workload due to elapsed retention")
            return Outcome(None, tuple(self._events))
        return Outcome(after if after.metadata.finalizers else None)

    def _delayed_by_checks(self) -> Outcome | None:
        """Set the time at which checks ask for another attempt."""
        status = self._workload.status
        times = [
            check.last_transition_time + timedelta(seconds=check.requeue_after_seconds)
            for check in status.admission_checks
            if check.state == "Retry" and check.requeue_after_seconds is not None and check.last_transition_time
        ]
        latest = max(times, default=None)
        if latest is None or latest <= self._now:
            return None
        state = status.requeue_state
        if state is not None and state.requeue_at is not None and state.requeue_at >= latest:
            return None
        state = workloadstate.wait_until(state, latest, counts=False)
        return self._become(workloadstate.with_status(self._workload, requeue_state=state))

    def _activity(self) -> Outcome | None:
        return self._active() if workloadstate.is_active(self._workload) else self._inactive()

    def _active(self) -> Outcome | None:
        wl = self._workload
        if conditions.is_true(wl.status.conditions, conditions.DEACTIVATION_TARGET):
            return self._become(structs.replace(wl, spec=structs.replace(wl.spec, active=False)))
        state = wl.status.requeue_state
        if state is not None and state.requeue_at is not None:
            time_left = state.requeue_at - self._now
            if time_left > NO_TIME:
                return self._done(time_left)
            if self._is_pending:
                return self._become(
                    workloadstate.with_status(wl, requeue_state=structs.replace(state, requeue_at=None))
                )
        requeued = conditions.find(wl.status.conditions, conditions.REQUEUED)
        if requeued is None or requeued.status != "False":
            return None
        if requeued.reason == transitions.DEACTIVATED:
            message = "The workload was reactivated"
            return self._become(transitions.requeued(wl, "True", reason="Reactivated", message=message))
        if requeued.reason in (workloadstate.PODS_READY_TIMEOUT, workloadstate.ADMISSION_CHECK):
            message = "The workload backoff was finished"
            if state is not None:
                wl = workloadstate.with_status(wl, requeue_state=structs.replace(state, requeue_at=None))
            return self._become(transitions.requeued(wl, "True", reason="BackoffFinished", message=message))
        return None

    def _inactive(self) -> Outcome | None:
        wl = self._workload
        target = conditions.find(wl.status.conditions, conditions.DEACTIVATION_TARGET)
        is_evicted = workloadstate.is_evicted(wl)
        if is_evicted and wl.status.requeue_state is None:
            return None
        prepared = transitions.drop(wl, (conditions.DEACTIVATION_TARGET,))
        prepared = workloadstate.with_status(prepared, requeue_state=None)
        if is_evicted:
            return self._become(prepared)
        cause, message = "", "The workload is deactivated"
        if target is not None:
            cause, message = target.reason, f"{message} due to {target.message}"
        return self._evict(prepared, transitions.DEACTIVATED, message, cause=cause)


def _without_finalizer(wl: workload.Workload) -> workload.Workload:
    if IN_USE not in wl.metadata.finalizers:
        return wl
    finalizers = tuple(each for each in wl.metadata.finalizers if each != IN_USE)
    empty = workload.Workload().metadata.finalizers
    return structs.replace(wl, metadata=structs.replace(wl.metadata, finalizers=finalizers or empty))
