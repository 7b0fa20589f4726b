"""State of a workload by its status: reserved, admitted, evicted, pending; and its time in the queue."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

import msgspec
from msgspec import structs

from drachma.api import meta
from drachma.queueing import amounts, conditions
from drachma.queueing.configuration.gates import DEFAULT, Gate, Gates
from drachma.queueing.kinds import workload
from drachma.values import labels

if TYPE_CHECKING:
    from drachma.queueing.workloads.requests import PodSetRequests

PRIORITY_BOOST: Final = "kueue.x-k8s.io/priority-boost"
PODS_READY_TIMEOUT: Final = "PodsReadyTimeout"
ADMISSION_CHECK: Final = "AdmissionCheck"
WAIT_FOR_START: Final = "WaitForStart"
WAIT_FOR_RECOVERY: Final = "WaitForRecovery"
ON_HOLD: Final = "OnHold"
PENDING: Final = "Pending"
READY: Final = "Ready"

Timestamp = Literal["Creation", "Eviction"]


def is_elastic(wl: workload.Workload, gates: Gates) -> bool:
    """Return True if the workload belongs to an elastic job."""
    return gates.on(Gate.ELASTIC_JOBS) and wl.metadata.annotations.get(workload.ELASTIC) == "true"


def slice_name(wl: workload.Workload) -> str:
    """Return the name of the first slice in the chain of replacements."""
    return wl.metadata.annotations.get(workload.SLICE_NAME) or wl.metadata.name


def key(wl: workload.Workload) -> str:
    """Return ``namespace/name``."""
    return f"{wl.metadata.namespace}/{wl.metadata.name}"


def has_reservation(wl: workload.Workload) -> bool:
    """Return True if quota is reserved."""
    return conditions.is_true(wl.status.conditions, conditions.QUOTA_RESERVED)


def is_admitted(wl: workload.Workload) -> bool:
    """Return True if the pods may run."""
    return conditions.is_true(wl.status.conditions, conditions.ADMITTED)


def is_evicted(wl: workload.Workload) -> bool:
    """Return True if the workload has to give up its quota."""
    return conditions.is_true(wl.status.conditions, conditions.EVICTED)


def eviction_message(wl: workload.Workload) -> str:
    """Return the reason for which the workload has to give up its quota, or an empty text."""
    condition = conditions.find(wl.status.conditions, conditions.EVICTED)
    return "" if condition is None else condition.message


def is_finished(wl: workload.Workload) -> bool:
    """Return True if the workload is finished."""
    return conditions.is_true(wl.status.conditions, conditions.FINISHED)


def is_active(wl: workload.Workload) -> bool:
    """Return True if the workload is not deactivated."""
    return wl.spec.active is not False


def is_on_hold(wl: workload.Workload) -> bool:
    """Return True if an active workload stays out of its queue."""
    condition = conditions.find(wl.status.conditions, conditions.QUOTA_RESERVED)
    return condition is not None and condition.status == "False" and condition.reason == ON_HOLD


def priority(wl: workload.Workload, gates: Gates = DEFAULT) -> int:
    """Return the priority with the boost of an annotation; no priority is zero, an invalid boost adds nothing."""
    base = wl.spec.priority or 0
    if not gates.on(Gate.PRIORITY_BOOST):
        return base
    boost = labels.parse_int64(wl.metadata.annotations.get(PRIORITY_BOOST, ""))
    return base + boost if boost is not None and -(2**31) <= boost < 2**31 else base


def can_be_partial(wl: workload.Workload) -> bool:
    """Return True if the workload may be admitted with fewer pods."""
    return any(each.min_count is not None and each.count > each.min_count for each in wl.spec.pod_sets)


def queue_time(wl: workload.Workload, *, timestamp: Timestamp = "Eviction", gates: Gates = DEFAULT) -> datetime | None:
    """Return the time that orders the workload in its queue: its creation, unless it was requeued."""
    evicted = conditions.find(wl.status.conditions, conditions.EVICTED)
    if evicted is not None and evicted.status == "True":
        if evicted.reason == PODS_READY_TIMEOUT and timestamp == "Eviction":
            return evicted.last_transition_time
        if evicted.reason == ADMISSION_CHECK:
            return evicted.last_transition_time
    if not gates.on(Gate.PRIORITY_SORTING_WITHIN_COHORT):
        preempted = conditions.find(wl.status.conditions, conditions.PREEMPTED)
        if (
            preempted is not None
            and preempted.status == "True"
            and preempted.reason == "InCohortReclaimWhileBorrowing"
            and preempted.last_transition_time is not None
        ):
            # Later than its preemptors, so that it cannot come before them.
            return preempted.last_transition_time + timedelta(milliseconds=1)
    return wl.metadata.creation_timestamp


def queued_at(wl: workload.Workload) -> datetime | None:
    """Return the time since which the workload waits: when it was requeued, or else created."""
    requeued = conditions.find(wl.status.conditions, conditions.REQUEUED)
    return requeued.last_transition_time if requeued is not None else wl.metadata.creation_timestamp


class Lateness(NamedTuple):
    """Cause why an admitted workload is not ready, and the time it has left; without a cause, it is ready."""

    cause: str
    recheck_after: timedelta


_PUNCTUAL: Final = Lateness("", timedelta())


class ReadyTimeouts(msgspec.Struct, frozen=True):
    """Time that pods may take to become ready, and to recover."""

    start: timedelta
    recovery: timedelta | None = None


def lateness(wl: workload.Workload, timeouts: ReadyTimeouts | None, now: datetime) -> Lateness:
    """Return the lateness of an admitted workload."""
    if timeouts is None or not is_admitted(wl):
        return _PUNCTUAL
    ready = conditions.find(wl.status.conditions, conditions.PODS_READY)
    if ready is not None and ready.status == "True":
        return _PUNCTUAL
    if ready is None or ready.reason in (WAIT_FOR_START, conditions.PODS_READY):
        admitted = conditions.find(wl.status.conditions, conditions.ADMITTED)
        return Lateness(WAIT_FOR_START, _rest(timeouts.start, admitted, now))
    if ready.reason == WAIT_FOR_RECOVERY and timeouts.recovery is not None:
        return Lateness(WAIT_FOR_RECOVERY, _rest(timeouts.recovery, ready, now))
    return _PUNCTUAL


def _rest(timeout: timedelta, since: meta.Condition | None, now: datetime) -> timedelta:
    if since is None or since.last_transition_time is None:
        return timedelta()
    return max(timeout - (now - since.last_transition_time), timedelta())


def wait_until(state: workload.RequeueState | None, until: datetime, *, counts: bool) -> workload.RequeueState:
    """Return the requeue state of a workload that stays out of its queue; ``counts`` adds an attempt."""
    before = state or workload.RequeueState()
    requeue_at = before.requeue_at
    if requeue_at is None or requeue_at < until:
        requeue_at = until
    count = (before.count or 0) + 1 if counts else before.count
    return workload.RequeueState(count=count, requeue_at=requeue_at)


def sync_checks(
    states: Sequence[workload.AdmissionCheckState], checks: Iterable[str], now: datetime
) -> tuple[workload.AdmissionCheckState, ...]:
    """Return the states of exactly these checks: existing states, and Pending for others."""
    names = dict.fromkeys(checks)
    remainder = tuple(each for each in states if each.name in names)
    present = {each.name for each in remainder}
    added = tuple(
        # The message is written even if it is empty, because the definition of workloads requires it.
        workload.AdmissionCheckState(name=name, state=PENDING, last_transition_time=now, message="")
        for name in names
        if name not in present
    )
    if not added and len(remainder) == len(states):
        return remainder
    return tuple(sorted(remainder + added, key=lambda each: each.name))


def has_all_checks_ready(wl: workload.Workload) -> bool:
    """Return True if all admission checks are ready."""
    return all(each.state == READY for each in wl.status.admission_checks)


def awaits_topology(wl: workload.Workload) -> bool:
    """Return True if a pod set was admitted without the topology that it requests."""
    admission = wl.status.admission
    return admission is not None and any(
        each.topology_assignment is None and each.delayed_topology_request == PENDING
        for each in admission.pod_set_assignments
    )


def sync_preemption_gates(wl: workload.Workload, now: datetime) -> workload.Workload:
    """Return the states of exactly the gates of the spec; new ones are closed."""
    names = [each.name for each in wl.spec.preemption_gates]
    states = wl.status.preemption_gates
    remainder = tuple(each for each in states if each.name in names)
    missing_names = [name for name in names if name not in {each.name for each in remainder}]
    if not missing_names and len(remainder) == len(states):
        return wl
    closed = (
        workload.PreemptionGateState(name=name, position="Closed", last_transition_time=now) for name in missing_names
    )
    return with_status(wl, preemption_gates=(*remainder, *closed) or workload.WorkloadStatus().preemption_gates)


def has_closed_gate(wl: workload.Workload) -> bool:
    """Return True if a gate keeps the workload from preempting; a gate without a state is closed."""
    positions = {each.name: each.position for each in wl.status.preemption_gates}
    return any(positions.get(gate.name) in (None, "Closed") for gate in wl.spec.preemption_gates)


def request_lists(
    pod_sets: Iterable[PodSetRequests], *, binary: Container[str] = ()
) -> tuple[workload.PodSetRequest, ...]:
    """Return the requests as ``status.resourceRequests`` shows them."""
    return tuple(
        workload.PodSetRequest(
            name=each.name,
            resources={
                name: amounts.to_quantity(name, amount, binary=binary) for name, amount in each.requests.items()
            },
        )
        for each in pod_sets
    )


def with_conditions(wl: workload.Workload, now: Iterable[meta.Condition]) -> workload.Workload:
    """Return the workload with other conditions."""
    return structs.replace(wl, status=structs.replace(wl.status, conditions=tuple(now)))


def with_status(wl: workload.Workload, **changes: object) -> workload.Workload:
    """Return the workload with other fields of its status."""
    return structs.replace(wl, status=structs.replace(wl.status, **changes))
