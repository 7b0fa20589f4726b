"""Pods of a job by state: active, terminating, succeeded, failed, counted or not. Pure."""

from collections.abc import Iterable
from typing import Any, Final

import msgspec

from drachma.api import pod
from drachma.claims import conditions, podstate
from drachma.controllers.job import failurepolicy, indexes, model

FINALIZER: Final = "batch.kubernetes.io/job-tracking"
"""Finalizer of every pod of a job until it is counted."""

_PHASES: Final = {"Pending": 0, "Unknown": 1, "Running": 2}


def is_tracked(pod: pod.Pod) -> bool:
    return FINALIZER in pod.metadata.finalizers


def is_ready(pod: pod.Pod) -> bool:
    return conditions.is_true(pod.status.conditions, "Ready")


def is_active(pod: pod.Pod) -> bool:
    return not podstate.has_ended(pod) and pod.metadata.deletion_timestamp is None


def is_terminating(pod: pod.Pod) -> bool:
    return not podstate.has_ended(pod) and pod.metadata.deletion_timestamp is not None


def is_failed(pod: pod.Pod, spec: model.Spec) -> bool:
    """Return True if a pod counts as failed. A deleted pod does, because it may never report its phase."""
    if pod.status.phase == "Failed":
        return True
    if spec.replaces_only_failed:
        return False
    return pod.metadata.deletion_timestamp is not None and pod.status.phase != "Succeeded"


def removal_order(pod: pod.Pod) -> tuple[Any, ...]:
    """Return a sort key for deletion: pods with the least progress first, then the newest."""
    created = pod.metadata.creation_timestamp
    age = -created.timestamp() if created is not None else float("-inf")
    return bool(pod.spec.node_name), _PHASES.get(pod.status.phase, 1), is_ready(pod), age, pod.metadata.name


class Tally(msgspec.Struct, frozen=True):
    """Pods of one job at one time. ``new_succeeded`` and ``new_failed`` are in no list or count of its status.

    ``failed`` does not count failures that the job's policy ignores.
    """

    pods: tuple[pod.Pod, ...]
    active: tuple[pod.Pod, ...]
    new_succeeded: tuple[pod.Pod, ...]
    new_failed: tuple[pod.Pod, ...]
    succeeded: int
    failed: int

    @property
    def restarts(self) -> int:
        """Number of container restarts in pods that have not finished."""
        return sum(
            status.restart_count
            for each in self.pods
            if each.status.phase in ("Pending", "Running")
            for status in (*each.status.init_container_statuses, *each.status.container_statuses)
        )

    @property
    def ready(self) -> int:
        return sum(map(is_ready, self.active))

    @property
    def terminating(self) -> int:
        return sum(map(is_terminating, self.pods))

    @property
    def tracked(self) -> tuple[pod.Pod, ...]:
        return tuple(filter(is_tracked, self.pods))


def of(current: model.Job, pods: Iterable[pod.Pod]) -> Tally:
    """Count the pods of a job, together with those that its status has counted already."""
    all_pods = tuple(pods)
    status = current.status
    uncounted = status.uncounted_terminated_pods or model.Uncounted()
    countable = [each for each in all_pods if is_tracked(each) and _has_valid_index(each, current.spec)]
    new_succeeded = tuple(
        each for each in countable if each.status.phase == "Succeeded" and each.metadata.uid not in uncounted.succeeded
    )
    new_failed = tuple(
        each for each in countable if is_failed(each, current.spec) and each.metadata.uid not in uncounted.failed
    )
    policy = current.spec.pod_failure_policy
    new_failures = sum(failurepolicy.judge(policy, each).is_counted for each in new_failed)
    succeeded = status.succeeded + len(new_succeeded) + len(uncounted.succeeded)
    if current.spec.is_indexed:
        succeeded = len(succeeded_indexes(current, all_pods))
    return Tally(
        pods=all_pods,
        active=tuple(filter(is_active, all_pods)),
        new_succeeded=new_succeeded,
        new_failed=new_failed,
        succeeded=succeeded,
        failed=status.failed + new_failures + len(uncounted.failed),
    )


def succeeded_indexes(current: model.Job, pods: Iterable[pod.Pod]) -> frozenset[int]:
    """Return the succeeded indexes, by the status of an indexed job and by pods that are not counted yet."""
    completions = current.spec.completions or 0
    new = {
        index
        for each in pods
        if each.status.phase == "Succeeded" and is_tracked(each) and (index := indexes.pod_index(each)) is not None
    }
    done = indexes.parse(current.status.completed_indexes) | new
    return frozenset(index for index in done if index < completions)


def _has_valid_index(pod: pod.Pod, spec: model.Spec) -> bool:
    if not spec.is_indexed:
        return True
    index = indexes.pod_index(pod)
    return index is not None and index < (spec.completions or 0)
