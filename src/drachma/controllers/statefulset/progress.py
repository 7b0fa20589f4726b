"""How far a stateful set is: its pods counted, what its status says then, and which pods go next in an update. Pure."""

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


def is_burst(of: Set) -> bool:
    """Whether pods come and go side by side, and not one after the other."""
    return of.spec.pod_management_policy == _PARALLEL


def is_running_and_ready(of: pod.Pod) -> bool:
    return of.status.phase == "Running" and readiness.is_ready(of)


def is_unavailable(of: pod.Pod | None, owner: Set, *, now: dt.datetime) -> bool:
    """Whether a pod is missing, about to go, or not ready for long enough."""
    if of is None or of.metadata.deletion_timestamp is not None:
        return True
    return not readiness.is_available(of, owner.spec.min_ready_seconds, now=now)


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    """A set's pods in numbers, and its revisions by name."""

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
    """The pods of a set whose revisions have these names."""
    known = tuple(pods)
    ready = [each for each in known if is_running_and_ready(each)]
    revisions = [ordinals.revision(each) for each in known if each.metadata.deletion_timestamp is None]
    return Progress(
        replicas=len(known),
        ready=len(ready),
        available=sum(readiness.is_available(each, owner.spec.min_ready_seconds, now=now) for each in ready),
        current=revisions.count(current),
        updated=revisions.count(update),
        current_revision=current,
        update_revision=update,
        collisions=collisions,
    )


def status(owner: Set, progress: Progress, *, replaced: int) -> dict[str, Any] | None:
    """What the status of a set is to say, as fields to merge; None where it says so.

    ``replaced`` pods of the current revision were just deleted. Once all pods are of the newest revision and ready,
    that is the current one.
    """
    wanted = ordinals.replicas(owner)
    current, current_revision = max(progress.current - replaced, 0), progress.current_revision
    if progress.updated == progress.ready == progress.replicas == wanted:
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
    stored = {
        "observedGeneration": before.observed_generation,
        "replicas": before.replicas,
        "readyReplicas": before.ready_replicas,
        "currentReplicas": before.current_replicas,
        "updatedReplicas": before.updated_replicas,
        "availableReplicas": before.available_replicas,
        "currentRevision": before.current_revision,
        "updateRevision": before.update_revision,
    }
    if content == stored:
        return None
    content["collisionCount"] = progress.collisions
    return {field: value if value or field in _ALWAYS_WRITTEN else None for field, value in content.items()}


def outdated(
    owner: Set, replicas: Sequence[pod.Pod | None], *, update_revision: str, now: dt.datetime
) -> list[pod.Pod]:
    """The pods that are to be replaced next by ones of the newest revision, those of high ordinals first.

    ``replicas`` are all pods by their place among the ordinals. Where pods are managed side by side, those that are not
    available anyway go first and at once; no more go than may be missing.
    """
    rolling = owner.spec.update_strategy.rolling_update
    first = (rolling.partition or 0) if rolling is not None else 0
    most = max(shares.rounded_down(_most_unavailable(rolling), ordinals.replicas(owner)), 1)
    missing = sum(is_unavailable(each, owner, now=now) for each in replicas)
    old = [
        each
        for each in reversed(replicas[first:])
        if each is not None and ordinals.revision(each) != update_revision and each.metadata.deletion_timestamp is None
    ]
    if not is_burst(owner):
        return old[: max(most - missing, 0)]
    broken = [each for each in old if is_unavailable(each, owner, now=now)]
    sound = [each for each in old if not is_unavailable(each, owner, now=now)]
    return [*broken, *sound[: max(most - missing, 0)]]


def _most_unavailable(rolling: statefulset.RollingUpdateStatefulSetStrategy | None) -> int | str:
    return 1 if rolling is None or rolling.max_unavailable is None else rolling.max_unavailable
