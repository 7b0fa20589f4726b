"""The pods of a job by what they are: active, on their way out, succeeded, failed, counted or not. Pure."""

from collections.abc import Iterable
from typing import Any, Final

import msgspec

from drachma.api import pod
from drachma.claims import conditions, podstate
from drachma.controllers.job import failurepolicy, indexes, model

FINALIZER: Final = "batch.kubernetes.io/job-tracking"
"""On every pod of a job until it is counted."""

_PHASES: Final = {"Pending": 0, "Unknown": 1, "Running": 2}


def is_tracked(of: pod.Pod) -> bool:
    return FINALIZER in of.metadata.finalizers


def is_ready(of: pod.Pod) -> bool:
    return conditions.is_true(of.status.conditions, "Ready")


def is_active(of: pod.Pod) -> bool:
    return not podstate.has_ended(of) and of.metadata.deletion_timestamp is None


def is_terminating(of: pod.Pod) -> bool:
    return not podstate.has_ended(of) and of.metadata.deletion_timestamp is not None


def is_failed(of: pod.Pod, spec: model.Spec) -> bool:
    """Whether a pod counts as failed: also when it is deleted, because it may never come to say so itself."""
    if of.status.phase == "Failed":
        return True
    if spec.replaces_only_failed:
        return False
    return of.metadata.deletion_timestamp is not None and of.status.phase != "Succeeded"


def removal_order(of: pod.Pod) -> tuple[Any, ...]:
    """Which pods go first when there are too many: those that have come least far, then the newest."""
    created = of.metadata.creation_timestamp
    age = -created.timestamp() if created is not None else float("-inf")
    return bool(of.spec.node_name), _PHASES.get(of.status.phase, 1), is_ready(of), age, of.metadata.name


class Tally(msgspec.Struct, frozen=True):
    """The pods of one job at one time. ``new_succeeded`` and ``new_failed`` are in no list or count of its status.

    ``failed`` does not count failures that the job's policy says are to be ignored.
    """

    pods: tuple[pod.Pod, ...]
    active: tuple[pod.Pod, ...]
    new_succeeded: tuple[pod.Pod, ...]
    new_failed: tuple[pod.Pod, ...]
    succeeded: int
    failed: int

    @property
    def restarts(self) -> int:
        """How often containers were restarted in pods that have not ended."""
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
    """The pods of a job, counted with what its status has counted already."""
    known = tuple(pods)
    status = current.status
    uncounted = status.uncounted_terminated_pods or model.Uncounted()
    countable = [each for each in known if is_tracked(each) and _has_valid_index(each, current.spec)]
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
        succeeded = len(succeeded_indexes(current, known))
    return Tally(
        pods=known,
        active=tuple(filter(is_active, known)),
        new_succeeded=new_succeeded,
        new_failed=new_failed,
        succeeded=succeeded,
        failed=status.failed + new_failures + len(uncounted.failed),
    )


def succeeded_indexes(current: model.Job, pods: Iterable[pod.Pod]) -> frozenset[int]:
    """The indexes that are done, by the status of an indexed job and by pods that are not counted yet."""
    completions = current.spec.completions or 0
    found = {
        index
        for each in pods
        if each.status.phase == "Succeeded" and is_tracked(each) and (index := indexes.of_pod(each)) is not None
    }
    done = indexes.parse(current.status.completed_indexes) | found
    return frozenset(index for index in done if index < completions)


def _has_valid_index(of: pod.Pod, spec: model.Spec) -> bool:
    if not spec.is_indexed:
        return True
    index = indexes.of_pod(of)
    return index is not None and index < (spec.completions or 0)
