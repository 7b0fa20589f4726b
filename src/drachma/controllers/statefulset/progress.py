"""Progress of a stateful set: counts of its pods, its status, and the pods to replace next. Pure."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec

from drachma.api import pod, statefulset
from drachma.controllers.statefulset import ordinals
from drachma.controllers.workload import readiness, shares

Set = statefulset.StatefulSet

_PARALLEL: Final = "Parallel"
_ALWAYS_WRITTEN: Final = frozenset({"replicas", "availableReplicas", "collisionCount"})


def is_burst(stateful_set: Set) -> bool:
    """Return True if pods are created and deleted concurrently, not one after the other."""
    return stateful_set.spec.pod_management_policy == _PARALLEL


def is_running_and_ready(pod: pod.Pod) -> bool:
    return pod.status.phase == "Running" and readiness.is_ready(pod)


def is_unavailable(pod: pod.Pod | None, owner: Set, *, now: dt.datetime) -> bool:
    """Return True if a pod is missing, being deleted, or not ready for long enough."""
    if pod is None or pod.metadata.deletion_timestamp is not None:
        return True
    return not readiness.is_available(pod, owner.spec.min_ready_seconds, now=now)


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    """Counts of a set's pods, and the names of its revisions."""

    replicas: int
    ready: int
    available: int
    current: int
    updated: int
    current_revision: str
    update_revision: str
    collisions: int


def count(
    owner: Set, pods: Iterable[pod.Pod], *, current: str, update: str, collisions: int, now: dt.datetime
) -> Progress:
    """Count the pods of a set whose revisions have these names."""
    all_pods = tuple(pods)
    ready = [each for each in all_pods if is_running_and_ready(each)]
    revisions = [ordinals.revision(each) for each in all_pods if each.metadata.deletion_timestamp is None]
    return Progress(
        replicas=len(all_pods),
        ready=len(ready),
        available=sum(readiness.is_available(each, owner.spec.min_ready_seconds, now=now) for each in ready),
        current=revisions.count(current),
        updated=revisions.count(update),
        current_revision=current,
        update_revision=update,
        collisions=collisions,
    )


def status(owner: Set, progress: Progress, *, replaced: int) -> dict[str, Any] | None:
    """Return the status of a set as fields to merge, or None if it is unchanged.

    ``replaced`` pods of the current revision were just deleted. Once all pods have the newest revision and are ready,
    it becomes the current one.
    """
    desired = ordinals.replicas(owner)
    current, current_revision = max(progress.current - replaced, 0), progress.current_revision
    if progress.updated == progress.ready == progress.replicas == desired:
        current, current_revision = progress.updated, progress.update_revision
    content: dict[str, Any] = {
        "observedGeneration": int(owner.metadata.generation),
        "replicas": progress.replicas,
        "readyReplicas": progress.ready,
        "currentReplicas": current,
        "updatedReplicas": progress.updated,
        "availableReplicas": progress.available,
        "currentRevision": current_revision,
        "updateRevision": progress.update_revision,
    }
    before = owner.status
    previous = {
        "observedGeneration": before.observed_generation,
        "replicas": before.replicas,
        "readyReplicas": before.ready_replicas,
        "currentReplicas": before.current_replicas,
        "updatedReplicas": before.updated_replicas,
        "availableReplicas": before.available_replicas,
        "currentRevision": before.current_revision,
        "updateRevision": before.update_revision,
    }
    if content == previous:
        return None
    content["collisionCount"] = progress.collisions
    return {field: value if value or field in _ALWAYS_WRITTEN else None for field, value in content.items()}


def outdated(
    owner: Set, replicas: Sequence[pod.Pod | None], *, update_revision: str, now: dt.datetime
) -> list[pod.Pod]:
    """Return the pods to replace next by ones of the newest revision, the highest ordinals first.

    ``replicas`` are all pods in the order of ordinals. With parallel management, unavailable pods are replaced at once,
    and others while enough pods stay available.
    """
    rolling = owner.spec.update_strategy.rolling_update
    first = (rolling.partition or 0) if rolling is not None else 0
    most = max(shares.rounded_down(_most_unavailable(rolling), ordinals.replicas(owner)), 1)
    unavailable = sum(is_unavailable(each, owner, now=now) for each in replicas)
    old = [
        each
        for each in reversed(replicas[first:])
        if each is not None and ordinals.revision(each) != update_revision and each.metadata.deletion_timestamp is None
    ]
    if not is_burst(owner):
        return old[: max(most - unavailable, 0)]
    broken = [each for each in old if is_unavailable(each, owner, now=now)]
    sound = [each for each in old if not is_unavailable(each, owner, now=now)]
    return [*broken, *sound[: max(most - unavailable, 0)]]


def _most_unavailable(rolling: statefulset.RollingUpdateStatefulSetStrategy | None) -> int | str:
    return 1 if rolling is None or rolling.max_unavailable is None else rolling.max_unavailable
