"""Next step of a daemon set: nodes on which it creates pods, and pods that it deletes. Pure.

Nodes are taken in the order of their names; upstream has no order.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from drachma.api import daemonset, pod
from drachma.controllers.daemonset import daemonpods
from drachma.controllers.workload import history, readiness, shares

DaemonSet = daemonset.DaemonSet
OnNodes = Mapping[str, Sequence[pod.Pod]]
"""Pods of a daemon set by the node that they are for."""

ROLLING: Final = "RollingUpdate"


class Step(NamedTuple):
    """Nodes to create a pod on, and pods to delete."""

    nodes: list[str]
    pods: list[pod.Pod]


class Cluster(NamedTuple):
    """Input of a step: a daemon set, the hash of its template, its pods, suitable nodes, the time."""

    daemon_set: DaemonSet
    mark: str
    pods: OnNodes
    fits: Mapping[str, daemonpods.Fit]
    now: dt.datetime

    def is_available(self, pod: pod.Pod) -> bool:
        return readiness.is_available(pod, self.daemon_set.spec.min_ready_seconds, now=self.now)

    def is_updated(self, pod: pod.Pod) -> bool:
        return daemonpods.is_updated(pod, self.daemon_set, mark=self.mark)

    @property
    def desired(self) -> int:
        """Number of nodes that should run a pod."""
        return sum(each.should_run for each in self.fits.values())


def order(pod: pod.Pod) -> tuple[bool, str, str]:
    """Return a sort key for the pods of a node. The first one stays: an existing pod, then the oldest."""
    return not pod.spec.node_name, str(pod.metadata.creation_timestamp), pod.metadata.name


def allows_surge(daemon_set: DaemonSet) -> bool:
    """Return True if a new pod may run next to the one that it replaces."""
    return _surge(daemon_set, 1) > 0


def plan_node(cluster: Cluster, name: str, pods: Sequence[pod.Pod]) -> Step:
    """Return the step for a node with these running pods, none of which is about to be deleted."""
    fit, node_pods = cluster.fits[name], cluster.pods.get(name, ())
    if fit.should_run and not node_pods:
        return Step([name], [])
    if not fit.may_stay:
        return Step([], [each for each in node_pods if each.metadata.deletion_timestamp is None])
    ordered = sorted(pods, key=order)
    if not allows_surge(cluster.daemon_set):
        return Step([], ordered[1:])
    if not ordered and fit.should_run:
        return Step([name], [])
    return Step([], _beyond_surge(cluster, ordered))


def _beyond_surge(cluster: Cluster, ordered: Sequence[pod.Pod]) -> list[pod.Pod]:
    """Return the pods of a node to delete: all but the oldest new and old pod, and the old one once the new one is
    available.
    """
    if len(ordered) <= 1:
        return []
    new = [each for each in ordered if each.metadata.labels.get(history.HASH) == cluster.mark]
    old = [each for each in ordered if each not in new]
    surplus = [*new[1:], *old[1:]]
    if new and old and (not readiness.is_ready(old[0]) or cluster.is_available(new[0])):
        surplus.append(old[0])
    return surplus


def update(cluster: Cluster) -> Step:
    """Return the next step of a rolling update."""
    daemon_set = cluster.daemon_set
    surge = _surge(daemon_set, cluster.desired)
    if surge:
        return _replace_by_surge(cluster, surge)
    rolling = daemon_set.spec.update_strategy.rolling_update
    unavailable = shares.rounded_up(rolling.max_unavailable, cluster.desired) if rolling is not None else 0
    # If both are zero, no pod could ever be replaced.
    return _replace_in_place(cluster, max(unavailable, 1) if cluster.desired else unavailable)


def _replace_in_place(cluster: Cluster, most: int) -> Step:
    """Delete old pods first: unavailable ones at once, others while at most ``most`` pods are missing."""
    unavailable, broken, candidates = 0, [], []
    for name in sorted({*cluster.pods, *(name for name, fit in cluster.fits.items() if fit.should_run)}):
        new, old = _new_and_old(cluster, name)
        if len(new) > 1 or len(old) > 1 or bool(new) == bool(old):
            unavailable += 1
        elif new:
            unavailable += not cluster.is_available(new[0])
        elif not cluster.is_available(old[0]):
            broken.append(old[0])
            unavailable += 1
        else:
            candidates.append(old[0])
    return Step([], [*broken, *candidates[: max(most - unavailable, 0)]])


def _replace_by_surge(cluster: Cluster, most: int) -> Step:
    """Create new pods next to old ones on at most ``most`` nodes, and delete an old pod once the new one works."""
    surging, available = 0, 0
    at_once: list[str] = []
    candidates: list[str] = []
    replaced: list[pod.Pod] = []
    misplaced: list[pod.Pod] = []
    for name in sorted(cluster.pods):
        new, old = _new_and_old(cluster, name)
        if len(new) > 1 or len(old) > 1:
            surging += 1
            continue
        available += bool(old or new) and cluster.is_available((old or new)[0])
        if not old:
            continue
        if new:
            if cluster.is_available(new[0]):
                replaced.append(old[0])
            else:
                surging += 1
            continue
        fit = cluster.fits.get(name)
        should_run, is_available = fit is not None and fit.should_run, cluster.is_available(old[0])
        if should_run:
            (candidates if is_available else at_once).append(name)
        else:
            (misplaced if is_available else replaced).append(old[0])
    replaced += misplaced[: max(available - cluster.desired, 0)]
    return Step([*at_once, *candidates[: max(most - surging, 0)]], replaced)


def _new_and_old(cluster: Cluster, name: str) -> tuple[list[pod.Pod], list[pod.Pod]]:
    staying = [each for each in cluster.pods.get(name, ()) if each.metadata.deletion_timestamp is None]
    new = [each for each in staying if cluster.is_updated(each)]
    return new, [each for each in staying if each not in new]


def _surge(daemon_set: DaemonSet, total: int) -> int:
    strategy = daemon_set.spec.update_strategy
    if strategy.type != ROLLING or strategy.rolling_update is None:
        return 0
    return shares.rounded_up(strategy.rolling_update.max_surge, total)


# Pods that failed


_INITIAL_PAUSE: Final = dt.timedelta(seconds=1)
_LONGEST_PAUSE: Final = dt.timedelta(minutes=15)


class _Failure(NamedTuple):
    last: dt.datetime
    pause: dt.timedelta


class Failures:
    """Failures on each node of each version of a daemon set."""

    def __init__(self) -> None:
        self._failures: Final[dict[tuple[str, int, str], _Failure]] = {}

    def seconds_left(self, key: tuple[str, int, str], *, now: dt.datetime) -> float:
        """Return the seconds until a failed pod may be deleted."""
        failure = self._last_failure(key, now)
        return 0.0 if failure is None else max((failure.last + failure.pause - now).total_seconds(), 0.0)

    def note(self, key: tuple[str, int, str], *, now: dt.datetime) -> None:
        """Note that a failed pod is deleted now."""
        failure = self._last_failure(key, now)
        pause = _INITIAL_PAUSE if failure is None else min(failure.pause * 2, _LONGEST_PAUSE)
        self._failures[key] = _Failure(now, pause)

    def forget(self, uid: str) -> None:
        """Forget a deleted daemon set."""
        for key in [key for key in self._failures if key[0] == uid]:
            del self._failures[key]

    def _last_failure(self, key: tuple[str, int, str], now: dt.datetime) -> _Failure | None:
        failure = self._failures.get(key)
        return None if failure is None or now - failure.last > 2 * _LONGEST_PAUSE else failure
