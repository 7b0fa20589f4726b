"""Status of a deployment: counts, and the conditions Available, Progressing and ReplicaFailure. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from drachma.api import deployment, meta, replicaset
from drachma.claims import conditions
from drachma.controllers.deployment import rollout

PROGRESSING: Final = "Progressing"
AVAILABLE: Final = "Available"
FAILURE: Final = "ReplicaFailure"

CREATED: Final = "NewReplicaSetCreated"
FOUND: Final = "FoundNewReplicaSet"
UPDATED: Final = "ReplicaSetUpdated"
COMPLETE: Final = "NewReplicaSetAvailable"
TIMED_OUT: Final = "ProgressDeadlineExceeded"
PAUSED: Final = "DeploymentPaused"
RESUMED: Final = "DeploymentResumed"

_ENDLESS: Final = 2**31 - 1

Condition = dict[str, Any]


def status(
    deployment: deployment.Deployment,
    new: replicaset.ReplicaSet | None,
    sets: Sequence[replicaset.ReplicaSet],
    *,
    now: datetime,
    is_created: bool = False,
) -> dict[str, Any]:
    """Return the status of a deployment, as far as its sets determine it."""
    bounds = rollout.bounds(deployment.spec)
    total = sum(each.status.replicas for each in sets)
    available = sum(each.status.available_replicas for each in sets)
    counts = {
        "observedGeneration": int(deployment.metadata.generation),
        "replicas": total,
        "updatedReplicas": int(new.status.replicas) if new is not None else 0,
        "readyReplicas": sum(each.status.ready_replicas for each in sets),
        "availableReplicas": available,
        "unavailableReplicas": max(sum(each.spec.replicas or 0 for each in sets) - available, 0),
        "terminatingReplicas": sum(each.status.terminating_replicas or 0 for each in sets),
    }
    new_conditions = [_progress(deployment, new, counts, bounds, now=now, is_created=is_created)]
    is_enough = available >= bounds.least_available
    new_conditions.append(
        _condition(
            deployment,
            AVAILABLE,
            "True" if is_enough else "False",
            reason="MinimumReplicasAvailable" if is_enough else "MinimumReplicasUnavailable",
            message=f"Deployment {'has' if is_enough else 'does not have'} minimum availability.",
            now=now,
        )
    )
    for each in sets:
        failure = conditions.find(each.status.conditions, FAILURE)
        if failure is not None and failure.status == "True":
            new_conditions.append(
                _condition(deployment, FAILURE, "True", reason=failure.reason, message=failure.message, now=now)
            )
            break
    return {**counts, "conditions": [each for each in new_conditions if each is not None]}


def deadline(deployment: deployment.Deployment, *, now: datetime) -> float | None:
    """Return the seconds until a rollout under way is checked against its deadline, or None."""
    condition = conditions.find(deployment.status.conditions, PROGRESSING)
    seconds = deployment.spec.progress_deadline_seconds
    if condition is None or condition.last_update_time is None or seconds in (None, _ENDLESS) or deployment.spec.paused:
        return None
    if condition.status != "True" or condition.reason == COMPLETE:
        return None
    assert seconds is not None, "it was looked at"
    seconds_left = (condition.last_update_time + timedelta(seconds=seconds) - now).total_seconds()
    return max(seconds_left, 0) + 1


def _progress(
    deployment: deployment.Deployment,
    new: replicaset.ReplicaSet | None,
    counts: dict[str, int],
    bounds: rollout.Bounds,
    *,
    now: datetime,
    is_created: bool,
) -> Condition | None:
    """Return the condition Progressing, or None if the deployment has no deadline."""
    seconds = deployment.spec.progress_deadline_seconds
    before = conditions.find(deployment.status.conditions, PROGRESSING)
    if seconds in (None, _ENDLESS):
        return None
    assert seconds is not None, "it was looked at"
    subject = f'ReplicaSet "{new.metadata.name}"' if new is not None else f'Deployment "{deployment.metadata.name}"'
    if deployment.spec.paused:
        return _condition(deployment, PROGRESSING, "Unknown", reason=PAUSED, message="Deployment is paused", now=now)
    if before is not None and before.reason == PAUSED:
        return _condition(deployment, PROGRESSING, "Unknown", reason=RESUMED, message="Deployment is resumed", now=now)
    if is_created and new is not None:
        message = f'Created new replica set "{new.metadata.name}"'
        return _condition(deployment, PROGRESSING, "True", reason=CREATED, message=message, now=now, is_news=True)
    is_done = rollout.is_complete(
        bounds, updated=counts["updatedReplicas"], total=counts["replicas"], available=counts["availableReplicas"]
    )
    if is_done:
        message = f"{subject} has successfully progressed."
        return _condition(deployment, PROGRESSING, "True", reason=COMPLETE, message=message, now=now)
    if _has_moved(deployment.status, counts):
        message = f"{subject} is progressing."
        return _condition(deployment, PROGRESSING, "True", reason=UPDATED, message=message, now=now, is_news=True)
    if before is None:
        message = f'Found new replica set "{new.metadata.name}"' if new is not None else f"{subject} is progressing."
        return _condition(deployment, PROGRESSING, "True", reason=FOUND, message=message, now=now, is_news=True)
    has_begun = before.last_update_time is not None and before.reason != COMPLETE
    if has_begun and before.last_update_time is not None:
        is_late = before.last_update_time + timedelta(seconds=seconds) < now
        if is_late or before.reason == TIMED_OUT:
            message = f"{subject} has timed out progressing."
            return _condition(deployment, PROGRESSING, "False", reason=TIMED_OUT, message=message, now=now)
    return _condition(deployment, PROGRESSING, before.status, reason=before.reason, message=before.message, now=now)


def _has_moved(before: deployment.DeploymentStatus, counts: dict[str, int]) -> bool:
    old_before = before.replicas - before.updated_replicas
    old_now = counts["replicas"] - counts["updatedReplicas"]
    return (
        counts["updatedReplicas"] > before.updated_replicas
        or old_now < old_before
        or counts["readyReplicas"] > before.ready_replicas
        or counts["availableReplicas"] > before.available_replicas
    )


def _condition(
    deployment: deployment.Deployment,
    kind: str,
    value: str,
    *,
    reason: str,
    message: str,
    now: datetime,
    is_news: bool = False,
) -> Condition:
    before = conditions.find(deployment.status.conditions, kind)
    is_same = before is not None and (before.status, before.reason) == (value, reason)
    updated = before.last_update_time if before is not None and is_same and not is_news else None
    condition = conditions.document(kind, value, reason=reason, message=message, now=now, before=before)
    return {**condition, "lastUpdateTime": meta.time_text(updated or now)}
