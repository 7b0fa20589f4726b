"""Pods that count for a workload: active, ready, and available. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from drachma.api import pod
from drachma.claims import conditions, podstate

_READY = "Ready"


def is_active(pod: pod.Pod) -> bool:
    """Return True if a pod has not finished and is not being deleted."""
    return not podstate.has_ended(pod) and pod.metadata.deletion_timestamp is None


def is_ready(pod: pod.Pod) -> bool:
    return conditions.is_true(pod.status.conditions, _READY)


def ready_since(pod: pod.Pod) -> datetime | None:
    """Return the time at which a pod became ready, or None."""
    condition = conditions.find(pod.status.conditions, _READY)
    return condition.last_transition_time if condition is not None and condition.status == "True" else None


def available_from(pod: pod.Pod, min_ready_seconds: int) -> datetime | None:
    """Return the time at which a pod becomes available, or None if it is not ready."""
    since = ready_since(pod)
    return None if since is None else since + timedelta(seconds=min_ready_seconds)


def is_available(pod: pod.Pod, min_ready_seconds: int, *, now: datetime) -> bool:
    """Return True if a pod has been ready for long enough."""
    if not min_ready_seconds:
        return is_ready(pod)
    moment = available_from(pod, min_ready_seconds)
    return moment is not None and moment <= now


def seconds_until_available(pods: Iterable[pod.Pod], min_ready_seconds: int, *, now: datetime) -> float | None:
    """Return the seconds until the next pod becomes available, or None if there is none to wait for."""
    if not min_ready_seconds:
        return None
    moments = [available_from(each, min_ready_seconds) for each in pods]
    later = [moment for moment in moments if moment is not None and moment > now]
    return (min(later) - now).total_seconds() if later else None
