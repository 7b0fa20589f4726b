"""Events that report the decisions of a cycle: admissions and preemptions."""

from __future__ import annotations

from datetime import datetime

from drachma.queueing.admission import preemption
from drachma.queueing.admission.entry import Entry
from drachma.queueing.kinds import workload
from drachma.queueing.workloads import workloadstate
from drachma.queueing.workloads.workloadevents import NORMAL, Event
from drachma.queueing.workloads.workloadinfo import WorkloadInfo


def admission_events(entry: Entry, after: workload.Workload, now: datetime) -> list[Event]:
    """Return the events of a workload for which quota is reserved, or which is admitted."""
    queue = entry.info.cluster_queue
    events = []
    if not entry.info.has_reservation:
        queued = workloadstate.queued_at(after)
        waited = round((now - queued).total_seconds()) if queued is not None else 0
        message = f"Quota reserved in ClusterQueue {queue}, wait time since queued was {waited}s"
        considered = entry.assignment.considered
        if considered:
            message += f"; Flavors considered: {considered}"
        events.append(Event(entry.info.key, NORMAL, "QuotaReserved", message))
    if workloadstate.is_admitted(after) and not entry.info.workload.status.unhealthy_nodes:
        message = f"Admitted by ClusterQueue {queue}, wait time since reservation was 0s"
        events.append(Event(entry.info.key, NORMAL, "Admitted", message))
    return events


def preemption_events(preemptor: WorkloadInfo, target: preemption.Target, message: str) -> tuple[Event, ...]:
    """Return the events of a victim and of the workload that preempts it."""
    priorities = preemption.priorities(preemptor, target.info)
    metadata = target.info.workload.metadata
    name = f"{metadata.namespace}/{metadata.name}" if metadata.namespace else metadata.name
    return (
        Event(target.info.key, NORMAL, "EvictedDueToPreempted", message),
        Event(target.info.key, NORMAL, "Preempted", f"{message}; {priorities}"),
        Event(
            preemptor.key,
            NORMAL,
            "PreemptedWorkload",
            f"Preempted workload {name} (UID: {metadata.uid}) in ClusterQueue {target.queue.name}; {priorities}",
        ),
    )
