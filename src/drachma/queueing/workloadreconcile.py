"""What a workload becomes when its surroundings are looked at: one step at a time, in Kueue's order.

Called whenever a workload, its queues or its checks change, or a time that a step asked for has come. A step makes at
most one change and says when to look again; whoever calls it writes the change down and looks again then.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final

import msgspec
from msgspec import structs

from drachma import errors
from drachma.api import labelselectors
from drachma.queueing import (
    admissibility,
    clusterqueuechecks,
    conditions,
    devicerequests,
    settlement,
    templatechange,
    transitions,
    workloadstate,
)
from drachma.queueing.admitter import NORMAL, WARNING, Event
from drachma.queueing.devicemappings import NO_MAPPINGS, DeviceMappings
from drachma.queueing.deviceobjects import DeviceObjects
from drachma.queueing.devicerequests import DeviceRequests
from drachma.queueing.feasibility import PLACEMENT_FAILED
from drachma.queueing.gates import Gate, Gates
from drachma.queueing.kinds import clusterqueue, localqueue, workload
from drachma.queueing.preemption import JOB_UID_LABEL
from drachma.queueing.settings import DEFAULT_SETTINGS, Settings
from drachma.queueing.workloadrules import ADMISSION_GATES
from drachma.values import quotation

IN_USE: Final = "kueue.x-k8s.io/resource-in-use"

_NO_TIME: Final = timedelta()
_GATED: Final = "AdmissionGated"
_INADMISSIBLE: Final = frozenset({"Inadmissible", "Misconfigured"})
_DISABLED: Final = "Workload uses DRA resources but the KueueDRAIntegration feature gate is not enabled"
_BY_NAME: Final = "KueueDRAIntegration feature does not support use of resource claims"
_OF_SCHEDULER: Final = frozenset(
    {
        "NoMatchingFlavor",
        "WaitingForQuota",
        "ExceedsMaxQuota",
        "TopologyPlacementFailed",
        "WaitingForPreemptedWorkloads",
        "WaitingForPodsReady",
        PLACEMENT_FAILED,
    }
)
"""Reasons that only a cycle of admission gives; they stand until the next one."""


class Patience(msgspec.Struct, frozen=True):
    """How long pods may take to get ready, and how a workload whose pods do not comes back."""

    timeouts: workloadstate.ReadyTimeouts
    limit: int | None = None
    """How often it comes back."""
    base_seconds: int = 60
    max_seconds: int = 3600

    def backoff(self, attempt: int) -> timedelta:
        """How long it stays out of its queue, doubling with every attempt."""
        longest = self.max_seconds or 2**31
        return timedelta(seconds=min(self.base_seconds * 2 ** min(attempt - 1, 62), longest))


class Neighbourhood(msgspec.Struct, frozen=True):
    """What a workload has around it."""

    local_queue: localqueue.LocalQueue | None = None
    cluster_queue: clusterqueue.ClusterQueue | None = None
    is_queue_active: bool = False
    """Whether the cluster queue admits workloads."""
    places: admissibility.Places = {}
    objects: DeviceObjects = DeviceObjects({}, {}, ())
    mappings: DeviceMappings = NO_MAPPINGS
    uses: tuple[settlement.PodUse, ...] = ()
    """What the devices of its pods count for, if it has quota that is to be settled."""
    patience: Patience | None = None
    retention: timedelta | None = None
    """How long finished workloads are kept; None: for ever."""
    parked_reason: str | None = None
    """Why the workload was parked without being tried, because one like it did not fit."""

    @property
    def queue_name(self) -> str:
        return self.local_queue.spec.cluster_queue if self.local_queue is not None else ""


class Outcome(msgspec.Struct, frozen=True):
    """What a step made of a workload: None if it is gone."""

    workload: workload.Workload | None
    events: tuple[Event, ...] = ()
    look_again_after: timedelta = _NO_TIME
    error: str = ""
    """What went wrong and is tried again, with growing patience."""
    devices: DeviceRequests | None = None
    """What it is charged with for devices, if that had to be counted."""
    is_refused: bool = False
    """Whether its devices cannot be counted, so that it belongs into no queue."""


def is_admissible(of: workload.Workload, gates: Gates) -> bool:
    """Whether a workload belongs into its queue."""
    return not (
        has_gate(of, gates)
        or workloadstate.is_finished(of)
        or not workloadstate.is_active(of)
        or workloadstate.has_reservation(of)
        or workloadstate.is_on_hold(of)
        or conditions.is_true(of.status.conditions, "WaitingForReplacementPods")
    )


def has_gate(of: workload.Workload, gates: Gates) -> bool:
    """Whether somebody else has to let the workload in first."""
    return gates.on(Gate.ADMISSION_GATED_BY) and bool(of.metadata.annotations.get(ADMISSION_GATES))


def reconcile(
    of: workload.Workload, around: Neighbourhood, now: datetime, *, settings: Settings = DEFAULT_SETTINGS
) -> Outcome:
    """One step."""
    return _Step(of, around, now, settings).run()


class _Step:
    def __init__(self, of: workload.Workload, around: Neighbourhood, now: datetime, settings: Settings) -> None:
        self._workload = of
        self._around = around
        self._now = now
        self._gates = settings.gates
        self._policy = settings.policy
        self._key = workloadstate.key(of)
        self._events: list[Event] = []
        self._devices: DeviceRequests | None = None

    def run(self) -> Outcome:
        for rule in (
            self._orphaned,
            self._finished,
            self._delayed_by_checks,
            self._without_devices,
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

    def _done(self, after: timedelta = _NO_TIME) -> Outcome:
        return Outcome(self._workload, tuple(self._events), after, devices=self._devices)

    def _become(self, after: workload.Workload) -> Outcome:
        self._workload = after
        return self._done()

    def _refused(self, after: workload.Workload, error: str = "") -> Outcome:
        return Outcome(after, error=error, is_refused=True)

    def _tell(self, kind: str, reason: str, message: str) -> None:
        self._events.append(Event(self._key, kind, reason, message))

    def _reason(self, granular: str, fallback: str) -> str:
        return granular if self._gates.on(Gate.UNADMITTED_OBSERVABILITY) else fallback

    def _orphaned(self) -> Outcome | None:
        """Nobody owns it any more: it is over, or may go."""
        metadata = self._workload.metadata
        is_deleted = metadata.deletion_timestamp is not None
        finishes = self._gates.on(Gate.FINISH_ORPHANED_WORKLOADS)
        if metadata.owner_references or not (is_deleted or (finishes and metadata.labels.get(JOB_UID_LABEL))):
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

    def _finished(self) -> Outcome | None:
        condition = conditions.find(self._workload.status.conditions, conditions.FINISHED)
        if condition is None or condition.status != "True":
            return None
        retention = self._around.retention
        if retention is None or condition.last_transition_time is None:
            return self._done()
        rest = condition.last_transition_time + retention - self._now
        if rest > _NO_TIME:
            return self._done(rest)
        after = _without_finalizer(self._workload)
        if after.metadata.deletion_timestamp is None:
            self._tell(NORMAL, "Deleted", "Deleted finished workload due to elapsed retention")
            return Outcome(None, tuple(self._events))
        return Outcome(after if after.metadata.finalizers else None)

    def _delayed_by_checks(self) -> Outcome | None:
        """Checks that want another attempt say when."""
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
        return self._become(_with_status(self._workload, requeue_state=state))

    @property
    def _is_pending(self) -> bool:
        of = self._workload
        return not (workloadstate.is_finished(of) or workloadstate.is_admitted(of) or workloadstate.has_reservation(of))

    def _without_devices(self) -> Outcome | None:
        """Devices are not counted here: who has claims is not admitted."""
        refuses = not self._gates.on(Gate.DRA) and self._gates.on(Gate.DRA_REJECT_WHEN_DISABLED)
        if not (self._is_pending and refuses and devicerequests.has_claims(self._workload)):
            return None
        return self._refused(self._misconfigured(_DISABLED))

    def _misconfigured(self, message: str, requeued: str = "") -> workload.Workload:
        """Out of its queue until something changes."""
        reason = self._reason("Misconfigured", "Inadmissible")
        after = transitions.unreserve(self._workload, reason=reason, message=message, now=self._now, gates=self._gates)
        if after is self._workload:
            return after
        return transitions.requeued(after, "False", reason="Inadmissible", message=requeued or message)

    def _count_devices(self) -> Outcome | None:
        around = self._around
        if (
            not self._is_pending
            or workloadstate.is_on_hold(self._workload)
            or not self._gates.on(Gate.DRA)
            or not devicerequests.are_needed(self._workload, around.objects, gates=self._gates)
        ):
            return None
        if devicerequests.names_claims(self._workload):
            return self._refused(self._misconfigured(_BY_NAME, "DRA resource claims not supported"))
        counted = devicerequests.count(
            self._workload, around.objects, around.mappings, gates=self._gates, policy=self._policy
        )
        if isinstance(counted, devicerequests.Refusal):
            error = counted.message if counted.is_retried else ""
            return self._refused(self._misconfigured(counted.message), error)
        self._devices = counted
        stale = [
            kind for kind in (conditions.QUOTA_RESERVED, conditions.REQUEUED) if _is_inadmissible(self._workload, kind)
        ]
        self._workload = transitions.drop(self._workload, stale)
        return None

    def _activity(self) -> Outcome | None:
        return self._active() if workloadstate.is_active(self._workload) else self._inactive()

    def _active(self) -> Outcome | None:
        of = self._workload
        if conditions.is_true(of.status.conditions, conditions.DEACTIVATION_TARGET):
            return self._become(structs.replace(of, spec=structs.replace(of.spec, active=False)))
        state = of.status.requeue_state
        if state is not None and state.requeue_at is not None:
            rest = state.requeue_at - self._now
            if rest > _NO_TIME:
                return self._done(rest)
            if self._is_pending:
                return self._become(_with_status(of, requeue_state=structs.replace(state, requeue_at=None)))
        requeued = conditions.find(of.status.conditions, conditions.REQUEUED)
        if requeued is None or requeued.status != "False":
            return None
        if requeued.reason == transitions.DEACTIVATED:
            message = "The workload was reactivated"
            return self._become(transitions.requeued(of, "True", reason="Reactivated", message=message))
        if requeued.reason in (workloadstate.PODS_READY_TIMEOUT, workloadstate.ADMISSION_CHECK):
            message = "The workload backoff was finished"
            return self._become(transitions.requeued(of, "True", reason="BackoffFinished", message=message))
        return None

    def _inactive(self) -> Outcome | None:
        of = self._workload
        target = conditions.find(of.status.conditions, conditions.DEACTIVATION_TARGET)
        is_evicted = workloadstate.is_evicted(of)
        if is_evicted and of.status.requeue_state is None:
            return None
        prepared = transitions.drop(of, (conditions.DEACTIVATION_TARGET,))
        prepared = _with_status(prepared, requeue_state=None)
        if is_evicted:
            return self._become(prepared)
        cause, message = "", "The workload is deactivated"
        if target is not None:
            cause, message = target.reason, f"{message} due to {target.message}"
        return self._evict(prepared, transitions.DEACTIVATED, message, cause=cause)

    def _evict(self, of: workload.Workload, reason: str, message: str, *, cause: str = "") -> Outcome:
        if of.status.admission is not None:
            told = transitions.reason_with_cause(conditions.EVICTED, reason)
            if reason == transitions.DEACTIVATED and cause:
                told = transitions.reason_with_cause(told, cause)
            self._tell(NORMAL, told, message)
        return self._become(transitions.evict(of, reason=reason, message=message, now=self._now, cause=cause))

    def _stopped_by(self, reason: str) -> bool:
        requeued = conditions.find(self._workload.status.conditions, conditions.REQUEUED)
        return requeued is not None and requeued.status == "False" and requeued.reason == reason

    def _local_queue_restarted(self) -> Outcome | None:
        queue = self._around.local_queue
        if queue is None or _is_stopped(queue.spec.stop_policy) or not self._stopped_by("LocalQueueStopped"):
            return None
        message = "The LocalQueue was restarted after being stopped"
        return self._become(transitions.requeued(self._workload, "True", reason="LocalQueueRestarted", message=message))

    def _gated(self) -> Outcome | None:
        if not self._gates.on(Gate.ADMISSION_GATED_BY):
            return None
        condition = conditions.find(self._workload.status.conditions, conditions.QUOTA_RESERVED)
        was_gated = condition is not None and condition.reason == _GATED
        names = self._workload.metadata.annotations.get(ADMISSION_GATES, "")
        if was_gated and not names:
            self._tell(NORMAL, "AdmissionGateCleared", "Admission gate cleared, workload is now admissible")
            message = "AdmissionGatedBy cleared, waiting for quota reservation"
            reason = self._reason("PendingEvaluation", "Pending")
            return self._become(self._unreserved(reason, message))
        if names and not was_gated:
            self._tell(NORMAL, _GATED, f"Workload admission is gated by: {names}")
            return self._become(self._unreserved(_GATED, f"Admission is gated by: {names}"))
        return None

    def _unreserved(self, reason: str, message: str) -> workload.Workload:
        return transitions.unreserve(self._workload, reason=reason, message=message, now=self._now, gates=self._gates)

    def _cluster_queue(self) -> Outcome | None:
        queue = self._around.cluster_queue
        if queue is None:
            return None
        if self._stopped_by("ClusterQueueStopped") and not _is_stopped(queue.spec.stop_policy):
            message = "The ClusterQueue was restarted after being stopped"
            return self._become(
                transitions.requeued(self._workload, "True", reason="ClusterQueueRestarted", message=message)
            )
        names = clusterqueuechecks.expected(self._workload, queue.spec)
        states = self._workload.status.admission_checks
        if {each.name for each in states} == set(names):
            return None
        synced = workloadstate.sync_checks(states, names, self._now)
        return self._become(
            _with_status(self._workload, admission_checks=synced or workload.WorkloadStatus().admission_checks)
        )

    def _unadmitted(self) -> Outcome | None:
        """Why it is not admitted; or that now it is."""
        if workloadstate.is_admitted(self._workload):
            return None
        before = self._workload
        if not workloadstate.has_reservation(self._workload):
            reason, message = self._obstacle()
            if reason:
                self._workload = transitions.condition(
                    self._workload,
                    conditions.QUOTA_RESERVED,
                    "False",
                    reason=reason,
                    message=message,
                    now=self._now,
                )
        self._workload = transitions.sync_admitted(self._workload, self._now, gates=self._gates)
        if self._workload is not before and workloadstate.is_admitted(self._workload):
            reserved = conditions.find(self._workload.status.conditions, conditions.QUOTA_RESERVED)
            since = reserved.last_transition_time if reserved is not None else None
            waited = round((self._now - since).total_seconds()) if since is not None else 0
            admission = self._workload.status.admission
            queue = admission.cluster_queue if admission is not None else ""
            message = f"Admitted by ClusterQueue {queue}, wait time since reservation was {waited}s"
            self._tell(NORMAL, conditions.ADMITTED, message)
        return None

    def _obstacle(self) -> tuple[str, str]:
        """What keeps the workload from being admitted: reason and message, empty if nothing is to be said."""
        blocker = self._blocker()
        if not self._gates.on(Gate.UNADMITTED_OBSERVABILITY):
            return ("Inadmissible", blocker[1]) if blocker is not None else ("", "")
        of = self._workload
        condition = conditions.find(of.status.conditions, conditions.QUOTA_RESERVED)
        if not workloadstate.is_active(of):
            return transitions.DEACTIVATED, "The workload is deactivated"
        if workloadstate.is_on_hold(of) and condition is not None:
            return condition.reason, condition.message
        if blocker is not None:
            return blocker
        objection = self._objection()
        if objection is not None:
            return "Misconfigured", objection
        if has_gate(of, self._gates):
            return _GATED, f"Admission is gated by: {of.metadata.annotations[ADMISSION_GATES]}"
        is_of_scheduler = condition is not None and condition.reason in _OF_SCHEDULER
        if self._around.parked_reason is not None and condition is not None and not is_of_scheduler:
            message = "Bypassed scheduling evaluation because an equivalent workload recently failed"
            return self._around.parked_reason, message
        if is_of_scheduler and condition is not None:
            return condition.reason, condition.message
        if condition is None and not self._gates.on(Gate.UNADMITTED_EXPLICIT_STATUS):
            return "", ""
        return "PendingEvaluation", "Workload is pending evaluation in the scheduling queue"

    def _blocker(self) -> tuple[str, str] | None:
        around = self._around
        name = self._workload.spec.queue_name
        if around.local_queue is None:
            return "Misconfigured", f"LocalQueue {name} doesn't exist"
        if _is_stopped(around.local_queue.spec.stop_policy):
            return "Suspended", f"LocalQueue {name} is inactive"
        if around.cluster_queue is None:
            return "Misconfigured", f"ClusterQueue {around.queue_name} doesn't exist"
        if not around.is_queue_active:
            return "Suspended", f"ClusterQueue {around.queue_name} is inactive"
        return None

    def _objection(self) -> str | None:
        queue = self._around.cluster_queue
        if queue is None:
            return None
        try:
            takes = labelselectors.of(queue.spec.namespace_selector)
        except errors.InvalidValueError as error:
            return f"invalid namespace selector: {error}"
        return admissibility.objection(self._workload, takes, self._around.places)

    def _reserving(self) -> Outcome:
        """It has quota: whether it may keep it."""
        for rule in (
            self._failed_checks,
            self._local_queue_state,
            self._cluster_queue_state,
            self._other_templates,
            self._settled_devices,
        ):
            outcome = rule()
            if outcome is not None:
                return outcome
        late = self._late()
        if isinstance(late, Outcome):
            return late
        overdue = self._overdue()
        if isinstance(overdue, Outcome):
            return overdue
        return self._done(min((each for each in (late, overdue) if each), default=_NO_TIME))

    def _failed_checks(self) -> Outcome | None:
        of = self._workload
        if workloadstate.is_evicted(of):
            return None
        rejected = [each for each in of.status.admission_checks if each.state == "Rejected"]
        if rejected:
            message = _checks_message(rejected, "Rejected")
            self._tell(WARNING, "AdmissionCheckRejected", f"Deactivated due to {message}")
            return self._become(self._deactivate(workloadstate.ADMISSION_CHECK, message))
        retried = [each for each in of.status.admission_checks if each.state == "Retry"]
        if retried:
            message = f"Evicted due to {_checks_message(retried, 'Retry')}"
            return self._evict(of, workloadstate.ADMISSION_CHECK, message)
        return None

    def _other_templates(self) -> Outcome | None:
        """Its claims would be made from templates that ask for more than was counted."""
        around = self._around
        if workloadstate.is_evicted(self._workload):
            return None
        problem = templatechange.problem(
            self._workload, around.objects, around.mappings, gates=self._gates, policy=self._policy
        )
        return None if problem is None else self._evict(self._workload, transitions.DEVICES_CHANGED, problem)

    def _settled_devices(self) -> Outcome | None:
        """Its pods have got devices: it is charged with these, unless they are more than is reserved."""
        before = self._workload
        if workloadstate.is_evicted(before):
            return None
        after = settlement.settle(before, self._around.uses, gates=self._gates)
        if after is before:
            return None
        if isinstance(after, settlement.Overdrawn):
            return self._evict(before, transitions.DEVICES_CHANGED, after.message)
        self._tell(NORMAL, "DevicesSettled", settlement.message(before, after))
        return self._become(after)

    def _deactivate(self, reason: str, message: str) -> workload.Workload:
        return transitions.condition(
            self._workload, conditions.DEACTIVATION_TARGET, "True", reason=reason, message=message, now=None
        )

    def _local_queue_state(self) -> Outcome | None:
        queue = self._around.local_queue
        is_gone = queue is None or queue.metadata.deletion_timestamp is not None
        policy = queue.spec.stop_policy if queue is not None else None
        return self._queue_state("LocalQueue", self._workload.spec.queue_name, policy, is_gone=is_gone)

    def _cluster_queue_state(self) -> Outcome | None:
        queue = self._around.cluster_queue
        is_gone = queue is None or queue.metadata.deletion_timestamp is not None
        policy = queue.spec.stop_policy if queue is not None else None
        return self._queue_state("ClusterQueue", self._around.queue_name, policy, is_gone=is_gone)

    def _queue_state(self, kind: str, name: str, policy: str | None, *, is_gone: bool) -> Outcome | None:
        if workloadstate.is_admitted(self._workload):
            if policy != clusterqueue.HOLD_AND_DRAIN or workloadstate.is_evicted(self._workload):
                return None
            return self._evict(self._workload, f"{kind}Stopped", f"The {kind} is stopped")
        if is_gone:
            reason = self._reason("Misconfigured", "Inadmissible")
            return self._become(self._unreserved(reason, f"{kind} {name} is terminating or missing"))
        if _is_stopped(policy):
            reason = self._reason("Suspended", "Inadmissible")
            return self._become(self._unreserved(reason, f"{kind} {name} is stopped"))
        return None

    def _late(self) -> timedelta | Outcome:
        """How long its pods may still take to get ready; or what becomes of it if they took too long."""
        of, patience = self._workload, self._around.patience
        if patience is None or not workloadstate.is_active(of) or workloadstate.is_evicted(of):
            return _NO_TIME
        late = workloadstate.lateness(of, patience.timeouts, self._now)
        if not late.cause or late.recheck_after > _NO_TIME:
            return late.recheck_after
        state = of.status.requeue_state or workload.RequeueState()
        count = (state.count or 0) + 1
        if patience.limit is not None and count > patience.limit:
            message = "exceeding the maximum number of re-queuing retries"
            return self._become(self._deactivate("RequeuingLimitExceeded", message))
        state = workloadstate.wait_until(state, self._now + patience.backoff(count), counts=True)
        message = f"Exceeded the PodsReady timeout {self._key}"
        return self._evict(
            _with_status(of, requeue_state=state), workloadstate.PODS_READY_TIMEOUT, message, cause=late.cause
        )

    def _overdue(self) -> timedelta | Outcome:
        """How long it may still run; or what becomes of it if it ran too long."""
        of = self._workload
        admitted = conditions.find(of.status.conditions, conditions.ADMITTED)
        limit = of.spec.maximum_execution_time_seconds
        if admitted is None or admitted.status != "True" or limit is None or admitted.last_transition_time is None:
            return _NO_TIME
        past = of.status.accumulated_past_execution_time_seconds or 0
        rest = timedelta(seconds=limit - past) - (self._now - admitted.last_transition_time)
        if rest > _NO_TIME:
            return rest
        if conditions.is_true(of.status.conditions, conditions.DEACTIVATION_TARGET):
            return _NO_TIME
        self._tell(WARNING, "MaximumExecutionTimeExceeded", f"The maximum execution time ({limit}s) exceeded")
        after = self._deactivate("MaximumExecutionTimeExceeded", "exceeding the maximum execution time")
        return self._become(_with_status(after, accumulated_past_execution_time_seconds=None))


def _is_inadmissible(of: workload.Workload, kind: str) -> bool:
    """Whether a condition says that a workload was kept out of its queue for what it asks for."""
    condition = conditions.find(of.status.conditions, kind)
    return condition is not None and condition.status == "False" and condition.reason in _INADMISSIBLE


def _is_stopped(policy: str | None) -> bool:
    return policy not in (None, "", "None")


def _with_status(of: workload.Workload, **changes: object) -> workload.Workload:
    return structs.replace(of, status=structs.replace(of.status, **changes))


def _without_finalizer(of: workload.Workload) -> workload.Workload:
    if IN_USE not in of.metadata.finalizers:
        return of
    rest = tuple(each for each in of.metadata.finalizers if each != IN_USE)
    empty = workload.Workload().metadata.finalizers
    return structs.replace(of, metadata=structs.replace(of.metadata, finalizers=rest or empty))


def _checks_message(checks: Iterable[workload.AdmissionCheckState], state: str) -> str:
    ordered = sorted(checks, key=lambda each: each.name)
    texts = [
        f"{quotation.quote(each.name)} ({each.message})" if each.message else quotation.quote(each.name)
        for each in ordered
    ]
    noun = "AdmissionChecks" if len(ordered) > 1 else "AdmissionCheck"
    return f"{noun} in {state} state: {'; '.join(texts)}"
