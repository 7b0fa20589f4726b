"""How far a pod is: whether it has ended, whether it will still need its claims, and why it was taken away."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from drachma.api import pod
from drachma.claims import conditions, wellknown

_ENDED: Final = frozenset({"Succeeded", "Failed"})


def has_ended(of: pod.Pod) -> bool:
    """Whether all of a pod's containers have run, for good or bad: it takes nothing of a node any more."""
    return of.status.phase in _ENDED


def is_done(of: pod.Pod) -> bool:
    """Whether it is certain that nothing of the pod runs or ever will: it has ended, or goes before it had a node."""
    if of.status.phase in _ENDED:
        return True
    return of.metadata.deletion_timestamp is not None and not of.spec.node_name


def disruption_target(of: pod.Pod, *, reason: str, message: str, now: datetime) -> pod.PodCondition | None:
    """The condition that a pod is to have which is taken away on purpose; None if it has it."""
    before = conditions.find(of.status.conditions, wellknown.DISRUPTION_TARGET)
    if before is not None and (before.status, before.reason, before.message) == ("True", reason, message):
        return None
    return pod.PodCondition(
        type=wellknown.DISRUPTION_TARGET,
        status="True",
        reason=reason,
        message=message,
        last_transition_time=conditions.since(before, "True", now=now),
        observed_generation=of.metadata.generation,
    )
