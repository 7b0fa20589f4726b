"""The status of a disruption budget: what follows from its spec, its pods and the time, without asking anybody."""

import datetime as dt
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from drachma.api import meta, pod, poddisruptionbudget
from drachma.claims import conditions

DELETION_TIMEOUT: Final = dt.timedelta(minutes=2)
"""How long an evicted pod counts as going; one that is still there afterwards was not deleted at all."""

Budget = poddisruptionbudget.PodDisruptionBudget
Status = poddisruptionbudget.PodDisruptionBudgetStatus


class Disrupted(NamedTuple):
    """The evicted pods that are still to go, those that did not go in time, and when to look again."""

    pods: Mapping[str, dt.datetime]
    overdue: tuple[pod.Pod, ...]
    recheck: dt.datetime | None


def disrupted(budget: Budget, pods: Sequence[pod.Pod], *, now: dt.datetime) -> Disrupted:
    """What is to be remembered of evictions: pods that are gone or going need not be."""
    waiting: dict[str, dt.datetime] = {}
    overdue = []
    recheck: dt.datetime | None = None
    for each in pods:
        since = budget.status.disrupted_pods.get(each.metadata.name)
        if since is None or each.metadata.deletion_timestamp is not None:
            continue
        deadline = since + DELETION_TIMEOUT
        if deadline <= now:
            overdue.append(each)
            continue
        waiting[each.metadata.name] = since
        recheck = deadline if recheck is None else min(recheck, deadline)
    return Disrupted(waiting, tuple(overdue), recheck)


def healthy(pods: Sequence[pod.Pod], waiting: Mapping[str, dt.datetime], *, now: dt.datetime) -> int:
    """How many pods are ready and stay."""
    return sum(
        each.metadata.deletion_timestamp is None
        and not (each.metadata.name in waiting and waiting[each.metadata.name] + DELETION_TIMEOUT > now)
        and conditions.is_true(each.status.conditions, "Ready")
        for each in pods
    )


class Counts(NamedTuple):
    """What a status counts."""

    current: int
    desired: int
    expected: int

    @property
    def allowed(self) -> int:
        """How many pods may go. A budget without pods allows nothing, so that it is safe when its first ones appear."""
        return max(self.current - self.desired, 0) if self.expected > 0 else 0


def next_status(budget: Budget, counts: Counts, waiting: Mapping[str, dt.datetime], *, now: dt.datetime) -> Status:
    """The status that a budget is to have."""
    generation = budget.metadata.generation
    allowed = counts.allowed
    condition = _condition(
        budget,
        "True" if allowed else "False",
        reason=poddisruptionbudget.SUFFICIENT_PODS if allowed else poddisruptionbudget.INSUFFICIENT_PODS,
        generation=generation,
        now=now,
    )
    return Status(
        observed_generation=generation,
        disrupted_pods=dict(waiting),
        disruptions_allowed=allowed,
        current_healthy=counts.current,
        desired_healthy=counts.desired,
        expected_pods=counts.expected,
        conditions=_with(budget.status.conditions, condition),
    )


def failed(budget: Budget, message: str, *, now: dt.datetime) -> dict[str, Any]:
    """What to write of a budget that cannot be counted for: nothing may go."""
    generation = budget.status.observed_generation
    condition = _condition(
        budget, "False", reason=poddisruptionbudget.SYNC_FAILED, message=message, generation=generation, now=now
    )
    return {"disruptionsAllowed": 0, "conditions": _with(budget.status.conditions, condition)}


def changes(status: Status, before: Status) -> dict[str, Any]:
    """What to write to make one status out of another; empty where they are the same."""
    if status == before:
        return {}
    gone: dict[str, Any] = dict.fromkeys(before.disrupted_pods)
    return {
        "observedGeneration": status.observed_generation,
        "disruptedPods": {**gone, **status.disrupted_pods} if status.disrupted_pods else None,
        "disruptionsAllowed": status.disruptions_allowed,
        "currentHealthy": status.current_healthy,
        "desiredHealthy": status.desired_healthy,
        "expectedPods": status.expected_pods,
        "conditions": status.conditions,
    }


def _condition(
    budget: Budget, status: str, *, reason: str, message: str = "", generation: int, now: dt.datetime
) -> meta.Condition:
    before = conditions.find(budget.status.conditions, poddisruptionbudget.DISRUPTION_ALLOWED)
    return meta.Condition(
        type=poddisruptionbudget.DISRUPTION_ALLOWED,
        status=status,
        observed_generation=generation,
        last_transition_time=conditions.since(before, status, now=now),
        reason=reason,
        message=message,
    )


def _with(before: Sequence[meta.Condition], condition: meta.Condition) -> tuple[meta.Condition, ...]:
    if conditions.find(before, condition.type) is None:
        return (*before, condition)
    return tuple(condition if each.type == condition.type else each for each in before)
