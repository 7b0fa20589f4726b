"""State of a pod: has it ended and why, does it still need its claims, and was it disrupted?"""

from __future__ import annotations

from datetime import datetime
from typing import Final

from drachma.api import pod
from drachma.claims import conditions, wellknown

DEFAULT_SCHEDULER: Final = "default-scheduler"
"""Scheduler of pods that name none."""

_ENDED: Final = frozenset({"Succeeded", "Failed"})
_USUAL_WAITS: Final = frozenset({"", "ContainerCreating", "PodInitializing"})
"""Reasons of containers that wait for their start as all do."""


def scheduler_name(subject: pod.Pod) -> str:
    """Return the name of the scheduler that places a pod."""
    return subject.spec.scheduler_name or DEFAULT_SCHEDULER


def has_ended(subject: pod.Pod) -> bool:
    """Return True if all containers of a pod have ended, so that it takes nothing of a node."""
    return subject.status.phase in _ENDED


def is_done(subject: pod.Pod) -> bool:
    """Return True if no container of the pod runs or ever will: it has ended, or is deleted before it had a node."""
    if subject.status.phase in _ENDED:
        return True
    return subject.metadata.deletion_timestamp is not None and not subject.spec.node_name


def failure(subject: pod.Pod) -> str:
    """Return why a pod has failed: its message, or the exit codes of its containers. Empty for other pods."""
    status = subject.status
    if status.phase != "Failed":
        return ""
    if status.message or status.reason:
        return status.message or status.reason
    states = {
        each.name: each.state.terminated for each in (*status.init_container_statuses, *status.container_statuses)
    }
    codes = [f"{name}: exit code {state.exit_code}" for name, state in states.items() if state and state.exit_code]
    return ", ".join(codes)


def held_container(subject: pod.Pod) -> pod.ContainerStateWaiting | None:
    """Return the state of the first container that cannot start or crashes again and again, or None."""
    status = subject.status
    for each in (*status.init_container_statuses, *status.container_statuses):
        if each.state.waiting is not None and each.state.waiting.reason not in _USUAL_WAITS:
            return each.state.waiting
    return None


def disruption_target(subject: pod.Pod, *, reason: str, message: str, now: datetime) -> pod.PodCondition | None:
    """Return the condition for a pod that is disrupted on purpose, or None if it has the condition."""
    before = conditions.find(subject.status.conditions, wellknown.DISRUPTION_TARGET)
    if before is not None and (before.status, before.reason, before.message) == ("True", reason, message):
        return None
    return pod.PodCondition(
        type=wellknown.DISRUPTION_TARGET,
        status="True",
        reason=reason,
        message=message,
        last_transition_time=conditions.since(before, "True", now=now),
        observed_generation=subject.metadata.generation,
    )
