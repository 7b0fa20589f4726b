"""Transitions of a workload's status: quota reserved, quota released, evicted, finished.

Each function takes a workload and returns the new one; nothing is written here. A transition that changes nothing
returns the same object, so that callers can compare by identity.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Final

from msgspec import structs

from drachma.api import meta
from drachma.queueing import conditions
from drachma.queueing.configuration.gates import DEFAULT, Gate, Gates
from drachma.queueing.kinds import workload
from drachma.queueing.workloads import workloadstate

DEACTIVATED: Final = "Deactivated"
PREEMPTED: Final = "Preempted"
NODE_FAILURES: Final = "NodeFailures"
DEVICES_CHANGED: Final = "DevicesChanged"
"""Eviction reason: the workload's devices are not those that it was charged for."""
_RESERVED: Final = "QuotaReserved"


def put(wl: workload.Workload, condition: meta.Condition) -> workload.Workload:
    """Return the workload with a condition set."""
    after, is_change = conditions.put(wl.status.conditions, condition)
    return workloadstate.with_conditions(wl, after) if is_change else wl


def drop(wl: workload.Workload, kinds: Iterable[str]) -> workload.Workload:
    """Return the workload without some conditions."""
    removed = frozenset(kinds)
    remainder = [each for each in wl.status.conditions if each.type not in removed]
    return workloadstate.with_conditions(wl, remainder) if len(remainder) < len(wl.status.conditions) else wl


def condition(
    wl: workload.Workload,
    kind: str,
    status: conditions.Status,
    *,
    reason: str,
    message: str,
    now: datetime | None,
) -> workload.Workload:
    """Return the workload with a condition about its current generation."""
    new = conditions.make(kind, status, reason=reason, message=message, generation=wl.metadata.generation, now=now)
    return put(wl, new)


def reserve(wl: workload.Workload, admission: workload.Admission, now: datetime) -> workload.Workload:
    """Reserve quota, and reset the conditions of eviction, preemption and gates."""
    after = structs.replace(wl, status=structs.replace(wl.status, admission=admission))
    message = f"Quota reserved in ClusterQueue {admission.cluster_queue}"
    after = condition(after, conditions.QUOTA_RESERVED, "True", reason=_RESERVED, message=message, now=now)
    for kind in (conditions.EVICTED, conditions.PREEMPTED, conditions.BLOCKED_ON_PREEMPTION_GATES):
        before = conditions.find(after.status.conditions, kind)
        if before is not None and before.status == "True":
            message = f"Previously: {before.message}"
            after = condition(after, kind, "False", reason=_RESERVED, message=message, now=now)
    return after


def unreserve(
    wl: workload.Workload, *, reason: str, message: str, now: datetime, gates: Gates = DEFAULT
) -> workload.Workload:
    """Release quota, or report why none is reserved."""
    after = condition(wl, conditions.QUOTA_RESERVED, "False", reason=reason, message=message, now=now)
    if after.status.admission is not None:
        after = structs.replace(after, status=structs.replace(after.status, admission=None))
    return sync_admitted(after, now, gates=gates)


def sync_admitted(wl: workload.Workload, now: datetime, *, gates: Gates = DEFAULT) -> workload.Workload:
    """Set the Admitted condition from reservation, checks and topology."""
    status = wl.status
    has_reservation = workloadstate.has_reservation(wl)
    has_checks = workloadstate.has_all_checks_ready(wl)
    has_topology = not workloadstate.awaits_topology(wl)
    is_admitted = workloadstate.is_admitted(wl)
    observes = gates.on(Gate.UNADMITTED_OBSERVABILITY)
    if observes:
        if (
            conditions.find(status.conditions, conditions.QUOTA_RESERVED) is None
            and conditions.find(status.conditions, conditions.ADMITTED) is None
            and not gates.on(Gate.UNADMITTED_EXPLICIT_STATUS)
        ):
            return wl
    elif is_admitted == (has_reservation and has_checks and has_topology):
        return wl
    state: conditions.Status = "False"
    if not has_reservation and not has_checks and not observes:
        reason, message = "NoReservationUnsatisfiedChecks", "The workload has no reservation and not all checks ready"
    elif not has_reservation:
        reason, message = "NoReservation", "The workload has no reservation"
    elif not has_checks:
        reason = "UnsatisfiedAdmissionChecks" if observes else "UnsatisfiedChecks"
        message = "The workload has not all checks ready"
    elif not has_topology:
        reason, message = "PendingDelayedTopologyRequests", "There are pending delayed topology requests"
    else:
        state, reason, message = "True", "Admitted", "The workload is admitted"
    if is_admitted and state == "False":
        before = conditions.find(status.conditions, conditions.ADMITTED)
        if before is not None and before.last_transition_time is not None:
            seconds = int((now - before.last_transition_time).total_seconds())
            past_seconds = (status.accumulated_past_execution_time_seconds or 0) + seconds
            wl = structs.replace(
                wl, status=structs.replace(status, accumulated_past_execution_time_seconds=past_seconds)
            )
    return condition(wl, conditions.ADMITTED, state, reason=reason, message=message, now=now)


def requeued(wl: workload.Workload, status: conditions.Status, *, reason: str, message: str) -> workload.Workload:
    """Set the Requeued condition."""
    return condition(wl, conditions.REQUEUED, status, reason=reason, message=message, now=None)


def preempted(wl: workload.Workload, *, reason: str, message: str, now: datetime) -> workload.Workload:
    """Set the Preempted condition."""
    new = conditions.make(conditions.PREEMPTED, "True", reason=reason, message=message, generation=0, now=now)
    return put(wl, structs.replace(new, observed_generation=meta.Condition().observed_generation))


def finished(wl: workload.Workload, *, reason: str, message: str, now: datetime) -> workload.Workload:
    """Set the Finished condition."""
    return condition(wl, conditions.FINISHED, "True", reason=reason, message=message, now=now)


def evict(wl: workload.Workload, *, reason: str, message: str, now: datetime, cause: str = "") -> workload.Workload:
    """Set the Evicted condition, and reset admission checks and gates."""
    full_reason = reason_with_cause(reason, cause) if reason == DEACTIVATED and cause else reason
    after = condition(wl, conditions.EVICTED, "True", reason=full_reason, message=message, now=now)
    gated = conditions.find(after.status.conditions, conditions.BLOCKED_ON_PREEMPTION_GATES)
    if gated is not None and gated.status == "True":
        after = condition(
            after,
            conditions.BLOCKED_ON_PREEMPTION_GATES,
            "False",
            reason=full_reason,
            message=message,
            now=now,
        )
    status = after.status
    status = structs.replace(
        status,
        admission_checks=tuple(_reset(each, now) for each in status.admission_checks) or status.admission_checks,
        preemption_gates=tuple(
            structs.replace(each, position="Closed", last_transition_time=now) for each in status.preemption_gates
        )
        or status.preemption_gates,
        unhealthy_nodes=workload.WorkloadStatus().unhealthy_nodes,
        nominated_cluster_names=workload.WorkloadStatus().nominated_cluster_names,
        cluster_name=None,
        scheduling_stats=_counted(status.scheduling_stats, reason, cause),
    )
    return structs.replace(after, status=status)


def reason_with_cause(reason: str, cause: str) -> str:
    """Return a reason and its cause as one word."""
    return f"{reason}DueTo{cause}"


def _reset(check: workload.AdmissionCheckState, now: datetime) -> workload.AdmissionCheckState:
    if check.state == workloadstate.PENDING:
        return check
    return workload.AdmissionCheckState(
        name=check.name,
        state=workloadstate.PENDING,
        message=f"Reset to Pending after eviction. Previously: {check.state}",
        last_transition_time=now,
        requeue_after_seconds=check.requeue_after_seconds,
        retry_count=(check.retry_count or 0) + 1 if check.state == "Retry" else None,
    )


def _counted(stats: workload.SchedulingStats | None, reason: str, cause: str) -> workload.SchedulingStats:
    evictions = list((stats or workload.SchedulingStats()).evictions)
    for position, each in enumerate(evictions):
        if (each.reason, each.underlying_cause) == (reason, cause):
            evictions[position] = structs.replace(each, count=each.count + 1)
            break
    else:
        evictions.append(workload.EvictionCount(reason=reason, underlying_cause=cause, count=1))
    return workload.SchedulingStats(evictions=tuple(evictions))
