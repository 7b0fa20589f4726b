"""The timeline of a pod: from its creation to its end, by the times that objects and events carry."""

from __future__ import annotations

import datetime as dt
import itertools
from collections.abc import Iterable
from typing import Final, NamedTuple

from drachma.api import event, meta, pod, resourceclaim
from drachma.claims import conditions
from drachma.queueing.kinds import workload
from drachma.web import rendering

_MOST_EVENTS: Final = 20


class Step(NamedTuple):
    """One step of a pod."""

    title: str
    time: dt.datetime | None
    """None for a step that has not happened."""
    detail: str = ""
    is_current: bool = False
    after: str = ""
    """Time since the step before, in words."""


def steps(
    subject: pod.Pod, claims: Iterable[resourceclaim.ResourceClaim], queued: workload.Workload | None
) -> list[Step]:
    """Return the steps of a pod in their usual order; the first that has not happened is the current one."""
    listed = list(claims)
    result = [Step("Created", subject.metadata.creation_timestamp)]
    if queued is not None:
        result.append(Step("Queued", queued.metadata.creation_timestamp, f"in {queued.spec.queue_name}"))
        result.append(Step("Quota reserved", _true_time(queued.status.conditions, "QuotaReserved")))
        result.append(Step("Admitted", _true_time(queued.status.conditions, "Admitted")))
    if subject.spec.resource_claims:
        creation_times = [each.metadata.creation_timestamp for each in listed]
        is_complete = len(listed) >= len(subject.spec.resource_claims) and all(creation_times)
        result.append(Step("Claims created", max(filter(None, creation_times), default=None) if is_complete else None))
    scheduled = _true_time(subject.status.conditions, "PodScheduled")
    if listed:
        times = [_allocated(each, scheduled) for each in listed]
        done = all(each.status.allocation is not None for each in listed)
        devices = sum(len(each.status.allocation.devices.results) for each in listed if each.status.allocation)
        detail = f"{devices} device{'' if devices == 1 else 's'}" if done else ""
        result.append(Step("Devices allocated", max(filter(None, times), default=None) if done else None, detail))
    result.append(Step("Scheduled", scheduled, f"to {subject.spec.node_name}" if subject.spec.node_name else ""))
    if listed:
        result.append(Step("Prepared", _true_time(subject.status.conditions, "PodReadyToStartContainers")))
    started = _true_time(subject.status.conditions, "ContainersReady") or _true_time(subject.status.conditions, "Ready")
    is_over = subject.status.phase in ("Succeeded", "Failed")
    result.append(Step("Running", started or (subject.status.start_time if is_over else None)))
    if is_over:
        ends = [
            each.state.terminated.finished_at
            for each in subject.status.container_statuses
            if each.state.terminated is not None and each.state.terminated.finished_at is not None
        ]
        result.append(Step(subject.status.phase, max(ends, default=None), subject.status.message))
    return _mark_current(_with_delays(result))


def _with_delays(listed: list[Step]) -> list[Step]:
    """Return the steps with the time since the step before, where both have happened."""
    result = listed[:1]
    for before, step in itertools.pairwise(listed):
        if before.time is None or step.time is None:
            result.append(step)
            continue
        seconds = (step.time - before.time).total_seconds()
        result.append(step._replace(after=f"+{rendering.age(before.time, step.time)}" if seconds >= 1 else ""))
    return result


def _mark_current(listed: list[Step]) -> list[Step]:
    """Mark the first step that has not happened, unless a later one has."""
    last = max((number for number, step in enumerate(listed) if step.time is not None), default=-1)
    if last + 1 < len(listed):
        listed[last + 1] = listed[last + 1]._replace(is_current=True)
    return listed


def _allocated(claim: resourceclaim.ResourceClaim, scheduled: dt.datetime | None) -> dt.datetime | None:
    """Return when a claim was allocated: its own time, or that of the pod, which gets node and devices at once."""
    allocation = claim.status.allocation
    if allocation is None:
        return None
    return allocation.allocation_timestamp or scheduled or claim.metadata.creation_timestamp


def _true_time(listed: Iterable[pod.PodCondition] | Iterable[meta.Condition], kind: str) -> dt.datetime | None:
    condition = conditions.find(listed, kind)
    return condition.last_transition_time if condition is not None and condition.status == "True" else None


class Report(NamedTuple):
    """An event about a pod."""

    time: dt.datetime | None
    reason: str
    message: str
    times: int
    is_warning: bool


def reports(events: Iterable[event.Event]) -> list[Report]:
    """Return the newest events, the newest first."""
    listed = [
        Report(
            each.last_timestamp or each.first_timestamp or _moment(each.event_time) or each.metadata.creation_timestamp,
            each.reason,
            each.message,
            int(each.count or 1),
            each.type == "Warning",
        )
        for each in events
    ]
    listed.sort(key=lambda each: each.time.timestamp() if each.time else 0.0, reverse=True)
    return listed[:_MOST_EVENTS]


def _moment(text: str | None) -> dt.datetime | None:
    try:
        return dt.datetime.fromisoformat(text) if text else None
    except ValueError:
        return None
