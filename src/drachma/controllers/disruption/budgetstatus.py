"""Status of a disruption budget, computed from its spec, its pods and the time. Pure."""

import datetime as dt
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from drachma.api import meta, pod, poddisruptionbudget
from drachma.claims import conditions

DELETION_TIMEOUT: Final = dt.timedelta(minutes=2)
"""Time for which an evicted pod counts as disrupted; after that its deletion has failed."""

Budget = poddisruptionbudget.PodDisruptionBudget
Status = poddisruptionbudget.PodDisruptionBudgetStatus


class Disrupted(NamedTuple):
    """Evicted pods that are still to be deleted, overdue pods, and the time of the next check."""

    pods: Mapping[str, dt.datetime]
    overdue: tuple[pod.Pod, ...]
    recheck: dt.datetime | None


def disrupted(budget: Budget, pods: Sequence[pod.Pod], *, now: dt.datetime) -> Disrupted:
    """Return the evictions to keep: those of pods that exist and are not being deleted."""
    undeleted: dict[str, dt.datetime] = {}
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
        undeleted[each.metadata.name] = since
        recheck = deadline if recheck is None else min(recheck, deadline)
    return Disrupted(undeleted, tuple(overdue), recheck)


def healthy(pods: Sequence[pod.Pod], disrupted_pods: Mapping[str, dt.datetime], *, now: dt.datetime) -> int:
    """Return the number of pods that are ready and not disrupted."""
    return sum(
        each.metadata.deletion_timestamp is None
        and not (each.metadata.name in disrupted_pods and disrupted_pods[each.metadata.name] + DELETION_TIMEOUT > now)
        and conditions.is_true(each.status.conditions, "Ready")
        for each in pods
    )


class Counts(NamedTuple):
    """Counts of a status."""

    current: int
    desired: int
    expected: int

    @property
    def allowed(self) -> int:
        """Number of allowed disruptions. A budget without pods allows none, so that it is safe when its first pods
        appear.
        """
        return max(self.current - self.desired, 0) if self.expected > 0 else 0


def next_status(budget: Budget, counts: Counts, evictions: Mapping[str, dt.datetime], *, now: dt.datetime) -> Status:
    """Return the new status of a budget."""
    generation = budget.metadata.generation
    allowed_count = counts.allowed
    condition = _condition(
        "True" if allowed_count else "False",
        reason=poddisruptionbudget.SUFFICIENT_PODS if allowed_count else poddisruptionbudget.INSUFFICIENT_PODS,
        generation=generation,
        now=now,
    )
    return Status(
        observed_generation=generation,
        disrupted_pods=dict(evictions),
        disruptions_allowed=allowed_count,
        current_healthy=counts.current,
        desired_healthy=counts.desired,
        expected_pods=counts.expected,
        conditions=conditions.put(budget.status.conditions, condition),
    )


def failed(budget: Budget, message: str, *, now: dt.datetime) -> dict[str, Any]:
    """Return the change of the status of a budget whose pods cannot be counted: no disruption is allowed."""
    generation = budget.status.observed_generation
    condition = _condition(
        "False", reason=poddisruptionbudget.SYNC_FAILED, message=message, generation=generation, now=now
    )
    return {"disruptionsAllowed": 0, "conditions": conditions.put(budget.status.conditions, condition)}


def changes(status: Status, before: Status) -> dict[str, Any]:
    """Return the fields that differ between two statuses."""
    if status == before:
        return {}
    removed: dict[str, Any] = dict.fromkeys(before.disrupted_pods)
    return {
        "observedGeneration": status.observed_generation,
        "disruptedPods": {**removed, **status.disrupted_pods} if status.disrupted_pods else None,
        "disruptionsAllowed": status.disruptions_allowed,
        "currentHealthy": status.current_healthy,
        "desiredHealthy": status.desired_healthy,
        "expectedPods": status.expected_pods,
        "conditions": status.conditions,
    }


def _condition(status: str, *, reason: str, message: str = "", generation: int, now: dt.datetime) -> meta.Condition:
    return meta.Condition(
        type=poddisruptionbudget.DISRUPTION_ALLOWED,
        status=status,
        observed_generation=generation,
        last_transition_time=now.replace(microsecond=0),
        reason=reason,
        message=message,
    )
