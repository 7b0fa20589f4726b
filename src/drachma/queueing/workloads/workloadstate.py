"""What a workload's status says: reserved, admitted, evicted, waiting; and when its turn comes."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from datetime import datetime, timedelta
from typing import Final, Literal, NamedTuple

import msgspec
from msgspec import structs

from drachma.api import meta
from drachma.queueing import amounts, conditions
from drachma.queueing.configuration.gates import DEFAULT, Gate, Gates
from drachma.queueing.kinds import workload
from drachma.queueing.workloads.requests import PodSetRequests
from drachma.values import labels

PRIORITY_BOOST: Final = "kueue.x-k8s.io/priority-boost"
PODS_READY_TIMEOUT: Final = "PodsReadyTimeout"
ADMISSION_CHECK: Final = "AdmissionCheck"
WAIT_FOR_START: Final = "WaitForStart"
WAIT_FOR_RECOVERY: Final = "WaitForRecovery"
ON_HOLD: Final = "OnHold"
PENDING: Final = "Pending"
READY: Final = "Ready"

Timestamp = Literal["Creation", "Eviction"]


def is_elastic(of: workload.Workload, gates: Gates) -> bool:
    """Whether it is of a job that changes its size while it runs."""
    return gates.on(Gate.ELASTIC_JOBS) and of.metadata.annotations.get(workload.ELASTIC) == "true"


def slice_name(of: workload.Workload) -> str:
    """The name of the first of the workloads that it came after, each in place of the one before."""
    return of.metadata.annotations.get(workload.SLICE_NAME) or of.metadata.name


def key(of: workload.Workload) -> str:
    """``namespace/name``."""
    return f"{of.metadata.namespace}/{of.metadata.name}"


def has_reservation(of: workload.Workload) -> bool:
    """Whether quota is reserved."""
    return conditions.is_true(of.status.conditions, conditions.QUOTA_RESERVED)


def is_admitted(of: workload.Workload) -> bool:
    """Whether its pods may run."""
    return conditions.is_true(of.status.conditions, conditions.ADMITTED)


def is_evicted(of: workload.Workload) -> bool:
    """Whether it has to give up what it has."""
    return conditions.is_true(of.status.conditions, conditions.EVICTED)


def is_finished(of: workload.Workload) -> bool:
    """Whether it is over."""
    return conditions.is_true(of.status.conditions, conditions.FINISHED)


def is_active(of: workload.Workload) -> bool:
    """Whether it wants to run."""
    return of.spec.active is not False


def is_on_hold(of: workload.Workload) -> bool:
    """Whether it stays out of the queue although it wants to run some time."""
    condition = conditions.find(of.status.conditions, conditions.QUOTA_RESERVED)
    return condition is not None and condition.status == "False" and condition.reason == ON_HOLD


def priority(of: workload.Workload, gates: Gates = DEFAULT) -> int:
    """Its priority, none is zero, and what an annotation adds to it; one that cannot be read adds nothing."""
    base = of.spec.priority or 0
    if not gates.on(Gate.PRIORITY_BOOST):
        return base
    boost = labels.parse_int64(of.metadata.annotations.get(PRIORITY_BOOST, ""))
    return base + boost if boost is not None and -(2**31) <= boost < 2**31 else base


def can_be_partial(of: workload.Workload) -> bool:
    """Whether fewer pods than asked for would do."""
    return any(each.min_count is not None and each.count > each.min_count for each in of.spec.pod_sets)


def queue_time(of: workload.Workload, *, timestamp: Timestamp = "Eviction", gates: Gates = DEFAULT) -> datetime | None:
    """The time that orders it in its queue: of creation, unless it has to queue up again."""
    evicted = conditions.find(of.status.conditions, conditions.EVICTED)
    if evicted is not None and evicted.status == "True":
        if evicted.reason == PODS_READY_TIMEOUT and timestamp == "Eviction":
            return evicted.last_transition_time
        if evicted.reason == ADMISSION_CHECK:
            return evicted.last_transition_time
    if not gates.on(Gate.PRIORITY_SORTING_WITHIN_COHORT):
        preempted = conditions.find(of.status.conditions, conditions.PREEMPTED)
        if (
            preempted is not None
            and preempted.status == "True"
            and preempted.reason == "InCohortReclaimWhileBorrowing"
            and preempted.last_transition_time is not None
        ):
            # Later than who preempted it, so that it cannot come before them.
            return preempted.last_transition_time + timedelta(milliseconds=1)
    return of.metadata.creation_timestamp


def queued_at(of: workload.Workload) -> datetime | None:
    """Since when it waits: since it was put back, or else since it was made."""
    requeued = conditions.find(of.status.conditions, conditions.REQUEUED)
    return requeued.last_transition_time if requeued is not None else of.metadata.creation_timestamp


class Lateness(NamedTuple):
    """Why an admitted workload is not ready, and how long it may still take; no cause: all is well."""

    cause: str
    recheck_after: timedelta


_PUNCTUAL: Final = Lateness("", timedelta())


class ReadyTimeouts(msgspec.Struct, frozen=True):
    """How long pods may take to get ready, and ready again."""

    start: timedelta
    recovery: timedelta | None = None


def lateness(of: workload.Workload, timeouts: ReadyTimeouts | None, now: datetime) -> Lateness:
    """How an admitted workload stands against its timeouts."""
    if timeouts is None or not is_admitted(of):
        return _PUNCTUAL
    ready = conditions.find(of.status.conditions, conditions.PODS_READY)
    if ready is not None and ready.status == "True":
        return _PUNCTUAL
    if ready is None or ready.reason in (WAIT_FOR_START, conditions.PODS_READY):
        admitted = conditions.find(of.status.conditions, conditions.ADMITTED)
        return Lateness(WAIT_FOR_START, _rest(timeouts.start, admitted, now))
    if ready.reason == WAIT_FOR_RECOVERY and timeouts.recovery is not None:
        return Lateness(WAIT_FOR_RECOVERY, _rest(timeouts.recovery, ready, now))
    return _PUNCTUAL


def _rest(timeout: timedelta, since: meta.Condition | None, now: datetime) -> timedelta:
    if since is None or since.last_transition_time is None:
        return timedelta()
    return max(timeout - (now - since.last_transition_time), timedelta())


def wait_until(state: workload.RequeueState | None, until: datetime, *, counts: bool) -> workload.RequeueState:
    """The state of a workload that stays out of its queue, at least until then; ``counts`` as one more attempt."""
    before = state or workload.RequeueState()
    requeue_at = before.requeue_at
    if requeue_at is None or requeue_at < until:
        requeue_at = until
    count = (before.count or 0) + 1 if counts else before.count
    return workload.RequeueState(count=count, requeue_at=requeue_at)


def sync_checks(
    states: Sequence[workload.AdmissionCheckState], checks: Iterable[str], now: datetime
) -> tuple[workload.AdmissionCheckState, ...]:
    """The states of exactly these checks: those that are there as they are, the others pending."""
    names = dict.fromkeys(checks)
    kept = tuple(each for each in states if each.name in names)
    present = {each.name for each in kept}
    added = tuple(
        # The message is written even where there is none: the definition of workloads requires one.
        workload.AdmissionCheckState(name=name, state=PENDING, last_transition_time=now, message="")
        for name in names
        if name not in present
    )
    if not added and len(kept) == len(states):
        return kept
    return tuple(sorted(kept + added, key=lambda each: each.name))


def has_all_checks_ready(of: workload.Workload) -> bool:
    """Whether nobody objects to the admission."""
    return all(each.state == READY for each in of.status.admission_checks)


def awaits_topology(of: workload.Workload) -> bool:
    """Whether a pod set was admitted without the topology that it asks for."""
    admission = of.status.admission
    return admission is not None and any(
        each.topology_assignment is None and each.delayed_topology_request == PENDING
        for each in admission.pod_set_assignments
    )


def sync_preemption_gates(of: workload.Workload, now: datetime) -> workload.Workload:
    """With a state for every gate of the spec, closed where there was none, and for no other."""
    names = [each.name for each in of.spec.preemption_gates]
    states = of.status.preemption_gates
    kept = tuple(each for each in states if each.name in names)
    missing = [name for name in names if name not in {each.name for each in kept}]
    if not missing and len(kept) == len(states):
        return of
    closed = (workload.PreemptionGateState(name=name, position="Closed", last_transition_time=now) for name in missing)
    return with_status(of, preemption_gates=(*kept, *closed) or workload.WorkloadStatus().preemption_gates)


def has_closed_gate(of: workload.Workload) -> bool:
    """Whether a gate keeps the workload from preempting others; one that nobody has opened is closed."""
    positions = {each.name: each.position for each in of.status.preemption_gates}
    return any(positions.get(gate.name) in (None, "Closed") for gate in of.spec.preemption_gates)


def request_lists(of: Iterable[PodSetRequests], *, binary: Container[str] = ()) -> tuple[workload.PodSetRequest, ...]:
    """What was asked for, as ``status.resourceRequests`` shows it."""
    return tuple(
        workload.PodSetRequest(
            name=each.name,
            resources={
                name: amounts.as_quantity(name, amount, binary=binary) for name, amount in each.requests.items()
            },
        )
        for each in of
    )


def with_conditions(of: workload.Workload, now: Iterable[meta.Condition]) -> workload.Workload:
    """The workload with other conditions."""
    return structs.replace(of, status=structs.replace(of.status, conditions=tuple(now)))


def with_status(of: workload.Workload, **changes: object) -> workload.Workload:
    """With fields of its status set."""
    return structs.replace(of, status=structs.replace(of.status, **changes))
