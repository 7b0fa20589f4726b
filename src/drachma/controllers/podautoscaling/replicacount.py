"""Number of replicas that brings the average usage of a workload's pods to its target. Pure.

Follows upstream's calculator. Pods that start, or that have no metrics, count in the direction that changes less: as
idle before a scale-up, and as using their whole request before a scale-down. A ratio within the tolerance changes
nothing.
"""

import datetime as dt
import math
from collections.abc import Callable, Iterable, Mapping
from typing import Final, NamedTuple

from drachma import errors
from drachma.api import pod
from drachma.claims import conditions

CPU: Final = "cpu"
TOLERANCE: Final = 0.1
_STARTING: Final = dt.timedelta(minutes=5)
"""Time after the start of a pod in which its CPU usage counts only once it has been ready for a whole sample."""
_FIRST_READINESS: Final = dt.timedelta(seconds=30)
"""Time after the start of a pod in which a pod that is not ready has never been ready."""


class UsageSample(NamedTuple):
    """Usage of a pod in thousandths: the end of the sample, its length, and the value."""

    end: dt.datetime
    window: dt.timedelta
    milli_value: int


class Proposal(NamedTuple):
    """Proposed number of replicas, with the current values of the metric that the status shows."""

    replicas: int
    average_milli_value: int
    utilization: int | None = None


class Tolerances(NamedTuple):
    """Deviations from the target that change nothing: above it and below it."""

    up: float = TOLERANCE
    down: float = TOLERANCE

    def cover(self, ratio: float) -> bool:
        """Return True if a ratio of usage to target is too close to 1 for a change."""
        return 1.0 - self.down <= ratio <= 1.0 + self.up


class _Groups(NamedTuple):
    ready_count: int
    unready: frozenset[str]
    missing: frozenset[str]
    ignored: frozenset[str]


def propose_by_utilization(
    current: int,
    percentage: int,
    *,
    resource: str,
    container: str,
    pods: Iterable[pod.Pod],
    samples: Mapping[str, UsageSample],
    tolerances: Tolerances,
    now: dt.datetime,
) -> Proposal:
    """Propose replicas for a target that is a percentage of the requests of pods, or of one container of each.

    Raises:
        errors.ReconcileError: a pod requests nothing of the resource, or no pod has usable metrics.
    """
    pods = tuple(pods)
    requests = {each.metadata.name: _request(each, resource, container) for each in pods}

    def ratio(values: Mapping[str, int]) -> tuple[float, Proposal]:
        names = [name for name in values if name in requests]
        total = sum(requests[name] for name in names)
        if not total:
            raise errors.ReconcileError("no metrics returned matched known pods")
        usage = sum(values[name] for name in names)
        utilization = usage * 100 // total
        return utilization / percentage, Proposal(current, usage // len(names), utilization)

    def fallback(name: str) -> int:
        return requests[name] * max(100, percentage) // 100

    groups = _group(pods, samples, resource=resource, now=now)
    return _propose(current, groups, samples, ratio=ratio, fallback=fallback, tolerances=tolerances)


def propose_by_average(
    current: int,
    target: int,
    *,
    resource: str,
    pods: Iterable[pod.Pod],
    samples: Mapping[str, UsageSample],
    tolerances: Tolerances,
    now: dt.datetime,
) -> Proposal:
    """Propose replicas for a target that is an average over pods, in thousandths.

    Raises like propose_by_utilization().
    """

    def ratio(values: Mapping[str, int]) -> tuple[float, Proposal]:
        average = sum(values.values()) // len(values)
        return average / target, Proposal(current, average)

    groups = _group(tuple(pods), samples, resource=resource, now=now)
    return _propose(current, groups, samples, ratio=ratio, fallback=lambda _: target, tolerances=tolerances)


def _propose(
    current: int,
    groups: _Groups,
    samples: Mapping[str, UsageSample],
    *,
    ratio: Callable[[Mapping[str, int]], tuple[float, Proposal]],
    fallback: Callable[[str], int],
    tolerances: Tolerances,
) -> Proposal:
    """Propose replicas. ``ratio`` returns usage divided by target, ``fallback`` the usage of a pod without metrics."""
    values = {
        name: each.milli_value
        for name, each in samples.items()
        if name not in groups.ignored and name not in groups.unready
    }
    if not values:
        raise errors.ReconcileError("did not receive metrics for targeted pods (pods might be unready)")
    first, proposal = ratio(values)
    counts_unready = bool(groups.unready) and first > 1.0
    if not counts_unready and not groups.missing:
        if tolerances.cover(first):
            return proposal
        return proposal._replace(replicas=math.ceil(first * groups.ready_count))
    if first < 1.0:
        values.update((name, fallback(name)) for name in groups.missing)
    elif first > 1.0:
        values.update(dict.fromkeys(groups.missing, 0))
    if counts_unready:
        values.update(dict.fromkeys(groups.unready, 0))
    second, _ = ratio(values)
    has_turned = (first < 1.0 < second) or (second < 1.0 < first)
    if tolerances.cover(second) or has_turned:
        return proposal
    replicas = math.ceil(second * len(values))
    if (second < 1.0 and replicas > current) or (second > 1.0 and replicas < current):
        return proposal
    return proposal._replace(replicas=replicas)


def _group(pods: Iterable[pod.Pod], samples: Mapping[str, UsageSample], *, resource: str, now: dt.datetime) -> _Groups:
    ready = 0
    unready, unmeasured, ignored = set(), set(), set()
    for each in pods:
        name, sample = each.metadata.name, samples.get(each.metadata.name)
        if each.metadata.deletion_timestamp is not None or each.status.phase == "Failed":
            ignored.add(name)
        elif each.status.phase == "Pending":
            unready.add(name)
        elif sample is None:
            unmeasured.add(name)
        elif resource == CPU and _is_starting(each, sample, now=now):
            unready.add(name)
        else:
            ready += 1
    return _Groups(ready, frozenset(unready), frozenset(unmeasured), frozenset(ignored))


def _is_starting(subject: pod.Pod, sample: UsageSample, *, now: dt.datetime) -> bool:
    """Return True if the CPU usage of a pod is still that of its start."""
    ready, start = conditions.find(subject.status.conditions, "Ready"), subject.status.start_time
    if ready is None or start is None or ready.last_transition_time is None:
        return True
    if start + _STARTING > now:
        return ready.status == "False" or sample.end < ready.last_transition_time + sample.window
    return ready.status == "False" and start + _FIRST_READINESS > ready.last_transition_time


def _request(subject: pod.Pod, resource: str, container: str) -> int:
    """Return the request of a pod or of one of its containers in thousandths."""
    total = 0
    sidecars = tuple(each for each in subject.spec.init_containers if each.restart_policy == "Always")
    for each in (*subject.spec.containers, *sidecars):
        if container and each.name != container:
            continue
        amount = each.resources.requests.get(resource)
        if amount is None:
            problem = f"missing request for {resource} in container {each.name} of Pod {subject.metadata.name}"
            raise errors.ReconcileError(problem)
        total += amount.milli_value()
    return total
