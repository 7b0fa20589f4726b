"""What a daemon set does next: on which nodes it makes pods, and which it deletes. Pure.

Nodes are looked at in the order of their names, where upstream takes them as they come.
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
"""The pods of a daemon set by the node that they are for."""

ROLLING: Final = "RollingUpdate"


class Step(NamedTuple):
    """Nodes that get a pod, and pods that go."""

    nodes: list[str]
    pods: list[pod.Pod]


class Cluster(NamedTuple):
    """What a step is decided on: a daemon set, the hash of its template, its pods, nodes that suit it, the time."""

    daemon_set: DaemonSet
    mark: str
    pods: OnNodes
    fits: Mapping[str, daemonpods.Fit]
    now: dt.datetime

    def is_available(self, of: pod.Pod) -> bool:
        return readiness.is_available(of, self.daemon_set.spec.min_ready_seconds, now=self.now)

    def is_updated(self, of: pod.Pod) -> bool:
        return daemonpods.is_updated(of, self.daemon_set, mark=self.mark)

    @property
    def desired(self) -> int:
        """On how many nodes a pod should run."""
        return sum(each.should_run for each in self.fits.values())


def order(of: pod.Pod) -> tuple[bool, str, str]:
    """Of several pods on a node the first stays: one that is there, then the oldest."""
    return not of.spec.node_name, str(of.metadata.creation_timestamp), of.metadata.name


def allows_surge(of: DaemonSet) -> bool:
    """Whether a new pod may run beside the one that it replaces."""
    return _surge(of, 1) > 0


def on_node(cluster: Cluster, name: str, running: Sequence[pod.Pod]) -> Step:
    """What is to be done about a node whose pods that run, and are not about to go, are these."""
    fit, known = cluster.fits[name], cluster.pods.get(name, ())
    if fit.should_run and not known:
        return Step([name], [])
    if not fit.may_stay:
        return Step([], [each for each in known if each.metadata.deletion_timestamp is None])
    ordered = sorted(running, key=order)
    if not allows_surge(cluster.daemon_set):
        return Step([], ordered[1:])
    if not ordered and fit.should_run:
        return Step([name], [])
    return Step([], _beyond_surge(cluster, ordered))


def _beyond_surge(cluster: Cluster, ordered: Sequence[pod.Pod]) -> list[pod.Pod]:
    """Of a node: all but the oldest new and the oldest old pod, and the old one once the new one does its work."""
    if len(ordered) <= 1:
        return []
    new = [each for each in ordered if each.metadata.labels.get(history.HASH) == cluster.mark]
    old = [each for each in ordered if each not in new]
    gone = [*new[1:], *old[1:]]
    if new and old and (not readiness.is_ready(old[0]) or cluster.is_available(new[0])):
        gone.append(old[0])
    return gone


def update(cluster: Cluster) -> Step:
    """The next step of a rolling update."""
    of = cluster.daemon_set
    surge = _surge(of, cluster.desired)
    if surge:
        return _with_surge(cluster, surge)
    rolling = of.spec.update_strategy.rolling_update
    unavailable = shares.rounded_up(rolling.max_unavailable, cluster.desired) if rolling is not None else 0
    # Where neither may be, nothing would ever be replaced.
    return _without_surge(cluster, max(unavailable, 1) if cluster.desired else unavailable)


def _without_surge(cluster: Cluster, most: int) -> Step:
    """Old pods go before new ones come: at once where they do no work, others while at most ``most`` are missing."""
    missing, broken, candidates = 0, [], []
    for name in sorted({*cluster.pods, *(name for name, fit in cluster.fits.items() if fit.should_run)}):
        new, old = _new_and_old(cluster, name)
        if len(new) > 1 or len(old) > 1 or bool(new) == bool(old):
            missing += 1
        elif new:
            missing += not cluster.is_available(new[0])
        elif not cluster.is_available(old[0]):
            broken.append(old[0])
            missing += 1
        else:
            candidates.append(old[0])
    return Step([], [*broken, *candidates[: max(most - missing, 0)]])


def _with_surge(cluster: Cluster, most: int) -> Step:
    """New pods come beside old ones, on no more than ``most`` nodes at once; the old go once the new do their work."""
    surging, available = 0, 0
    at_once: list[str] = []
    candidates: list[str] = []
    gone: list[pod.Pod] = []
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
                gone.append(old[0])
            else:
                surging += 1
            continue
        fit = cluster.fits.get(name)
        should_run, is_available = fit is not None and fit.should_run, cluster.is_available(old[0])
        if should_run:
            (candidates if is_available else at_once).append(name)
        else:
            (misplaced if is_available else gone).append(old[0])
    gone += misplaced[: max(available - cluster.desired, 0)]
    return Step([*at_once, *candidates[: max(most - surging, 0)]], gone)


def _new_and_old(cluster: Cluster, name: str) -> tuple[list[pod.Pod], list[pod.Pod]]:
    staying = [each for each in cluster.pods.get(name, ()) if each.metadata.deletion_timestamp is None]
    new = [each for each in staying if cluster.is_updated(each)]
    return new, [each for each in staying if each not in new]


def _surge(of: DaemonSet, total: int) -> int:
    strategy = of.spec.update_strategy
    if strategy.type != ROLLING or strategy.rolling_update is None:
        return 0
    return shares.rounded_up(strategy.rolling_update.max_surge, total)
