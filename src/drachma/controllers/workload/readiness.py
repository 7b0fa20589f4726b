"""Which pods count for a workload: those that live, are ready, and have been so for long enough. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from drachma.api import pod
from drachma.claims import conditions, podstate

_READY = "Ready"


def is_active(of: pod.Pod) -> bool:
    """Whether a pod lives and is not about to go."""
    return not podstate.has_ended(of) and of.metadata.deletion_timestamp is None


def is_ready(of: pod.Pod) -> bool:
    return conditions.is_true(of.status.conditions, _READY)


def ready_since(of: pod.Pod) -> datetime | None:
    """When a pod became ready; None where it is not."""
    condition = conditions.find(of.status.conditions, _READY)
    return condition.last_transition_time if condition is not None and condition.status == "True" else None


def available_from(of: pod.Pod, min_ready_seconds: int) -> datetime | None:
    """When a pod is, or was, ready for long enough; None where it is not ready."""
    since = ready_since(of)
    return None if since is None else since + timedelta(seconds=min_ready_seconds)


def is_available(of: pod.Pod, min_ready_seconds: int, *, now: datetime) -> bool:
    """Whether a pod has been ready for long enough."""
    if not min_ready_seconds:
        return is_ready(of)
    moment = available_from(of, min_ready_seconds)
    return moment is not None and moment <= now


def until_available(pods: Iterable[pod.Pod], min_ready_seconds: int, *, now: datetime) -> float | None:
    """After how many seconds the next pod will have been ready for long enough; None where none is to be waited for."""
    if not min_ready_seconds:
        return None
    moments = [available_from(each, min_ready_seconds) for each in pods]
    later = [moment for moment in moments if moment is not None and moment > now]
    return (min(later) - now).total_seconds() if later else None
