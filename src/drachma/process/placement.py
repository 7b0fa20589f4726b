"""Whether workloads would find nodes, answered by the scheduler's own cycle on the cluster as it is.

Queueing asks this before it admits, where its policy requires it. Pods that wait get their nodes first, then those that
workloads with quota have yet to make, then those in question: all in thought.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from typing import Any, Final

from drachma.api import pod
from drachma.claims import podstate
from drachma.queueing.admission import feasibility
from drachma.queueing.kinds import workload
from drachma.queueing.workloads import workloadstate
from drachma.queueing.workloads.podsetinfo import POD_SET_LABEL, WORKLOAD_ANNOTATION, Flavors
from drachma.runtime import Surroundings
from drachma.runtime.informer import Handler, Informer
from drachma.scheduler.settings import Settings
from drachma.simulate import ClusterState, Placement, Simulation, clusterstate

_MOST_PODS: Final = 500
"""Of one workload: how many pods are placed in thought; where these fit, the others are taken to."""
_MOST_BEFORE: Final = 2000
"""How many pods are placed before those in question. With more, answers are hopeful; nobody waits for them for long."""

_PodSet = tuple[str, str, str]
"""Namespace, workload and pod set."""


class SimulatedPlacement:
    """Fulfils ``feasibility.Placement`` of queueing by simulation; follows nothing until it is asked to."""

    def __init__(self, surroundings: Surroundings) -> None:
        self._surroundings: Final = surroundings
        self._settings: Final = Settings(gates=surroundings.gates, has_volume_controllers=False)
        self._informers: list[Informer[Any]] = []
        self._base: Simulation | None = None
        """The cluster with all that is promised placed; None when something changed."""
        self._promised: frozenset[str] = frozenset()

    def follow(self, listener: Callable[[], None]) -> None:
        if self._informers:
            return

        def changed(*_: object) -> None:
            self._base = None
            listener()

        for kind in clusterstate.followed(self._surroundings.gates):
            informer = self._surroundings.informers.of(kind)
            informer.add_handler(Handler(added=changed, updated=changed, deleted=changed))
            self._informers.append(informer)

    def obstacle(self, of: workload.Workload, holders: Iterable[workload.Workload], *, flavors: Flavors) -> str | None:
        if not self._informers or not all(each.is_synced for each in self._informers):
            return "nodes and devices of the cluster are not known yet"
        trial = self._with_promised(holders, flavors).fork()
        for tried, each in enumerate(_first(feasibility.pods(of, flavors))):
            outcome = trial.place(each)
            if not isinstance(outcome, Placement):
                pod_set = each.metadata.labels[POD_SET_LABEL]
                return f"couldn't place pod set {pod_set} after {tried} pod(s): {outcome.reason}"
        self._base = trial
        self._promised |= {of.metadata.uid}
        return None

    def _with_promised(self, holders: Iterable[workload.Workload], flavors: Flavors) -> Simulation:
        """The cluster with the pods of all holders of quota."""
        holders = [each for each in holders if not workloadstate.is_evicted(each)]
        promised = frozenset(each.metadata.uid for each in holders)
        if self._base is not None and self._promised == promised:
            return self._base
        objects = [each for informer in self._informers for each in informer.cache]
        alive = [each for each in objects if not (isinstance(each, pod.Pod) and podstate.has_ended(each))]
        base = Simulation(ClusterState.of(alive), chosen=self._settings)
        present: dict[_PodSet, int] = {}
        for each in alive:
            if isinstance(each, pod.Pod):
                present[_pod_set(each)] = present.get(_pod_set(each), 0) + 1
        missing = (
            each
            for holder in holders
            for each in _first(feasibility.pods(holder, flavors))
            if _is_missing(each, present)
        )
        base.schedule(itertools.islice(itertools.chain(base.pending, missing), _MOST_BEFORE))
        self._base, self._promised = base, promised
        return base


def _first(pods: Iterable[pod.Pod]) -> Iterable[pod.Pod]:
    return itertools.islice(pods, _MOST_PODS)


def _is_missing(of: pod.Pod, present: dict[_PodSet, int]) -> bool:
    """Whether a pod of a workload is still to be made: one that is there stands for one of its pod set."""
    left = present.get(_pod_set(of), 0)
    if left:
        present[_pod_set(of)] = left - 1
    return not left


def _pod_set(of: pod.Pod) -> _PodSet:
    metadata = of.metadata
    return (
        metadata.namespace,
        metadata.annotations.get(WORKLOAD_ANNOTATION, ""),
        metadata.labels.get(POD_SET_LABEL, ""),
    )
