"""Feasibility of workloads: whether their pods would find nodes, simulated by the scheduler's own cycle.

Queueing asks this before it admits a workload, if its policy requires it. The simulation places pending pods first,
then future pods of workloads that hold quota, then the pods of the workload.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from typing import Any, Final

from drachma.api import pod, podgroup
from drachma.api.gates import Gate
from drachma.claims import podstate
from drachma.queueing.admission import feasibility
from drachma.queueing.devices import groupclaims
from drachma.queueing.kinds import workload
from drachma.queueing.workloads import workloadstate
from drachma.queueing.workloads.podsetinfo import POD_SET_LABEL, WORKLOAD_ANNOTATION, Flavors
from drachma.runtime import Surroundings
from drachma.runtime.informer import Handler, Informer
from drachma.scheduler.settings import Settings
from drachma.simulate import ClusterState, Placement, Simulation, clusterstate

_MOST_PODS: Final = 500
"""Pods of one workload to simulate; if they fit, the others are assumed to fit."""
_MOST_BEFORE: Final = 2000
"""Pods to place before those of the workload. With more pods, answers are optimistic but quick."""

_PodSet = tuple[str, str, str]
"""Namespace, workload and pod set."""


class SimulatedPlacement:
    """Implementation of queueing's ``feasibility.Placement`` by simulation; it watches nothing before follow()."""

    def __init__(self, surroundings: Surroundings) -> None:
        self._surroundings: Final = surroundings
        self._settings: Final = Settings(gates=surroundings.gates, has_volume_controllers=False)
        self._informers: list[Informer[Any]] = []
        self._base: Simulation | None = None
        """Cluster with the pods of all quota holders placed; None after a change."""
        self._holder_uids: frozenset[str] = frozenset()

    def follow(self, listener: Callable[[], None]) -> None:
        if self._informers:
            return

        def changed(*_: object) -> None:
            self._base = None
            listener()

        for kind in clusterstate.served_kinds(self._surroundings.gates):
            informer = self._surroundings.informers.of(kind)
            informer.add_handler(Handler(added=changed, updated=changed, deleted=changed))
            self._informers.append(informer)

    def obstacle(self, of: workload.Workload, holders: Iterable[workload.Workload], *, flavors: Flavors) -> str | None:
        if not self._informers or not all(each.is_synced for each in self._informers):
            return "nodes and devices of the cluster are not known yet"
        trial = self._place_holders(holders, flavors).fork()
        for placed_count, each in enumerate(_first(feasibility.pods(of, flavors, groups=self._groups()))):
            outcome = trial.place(each)
            if not isinstance(outcome, Placement):
                pod_set = each.metadata.labels[POD_SET_LABEL]
                return f"couldn't place pod set {pod_set} after {placed_count} pod(s): {outcome.reason}"
        self._base = trial
        self._holder_uids |= {of.metadata.uid}
        return None

    def _groups(self) -> groupclaims.Groups | None:
        """Return the groups whose pods share claims, or None if none do."""
        if not self._surroundings.gates.on(Gate.WORKLOAD_RESOURCE_CLAIMS):
            return None
        objects = (each for informer in self._informers for each in informer.cache)
        return {
            (each.metadata.namespace, each.metadata.name): each
            for each in objects
            if isinstance(each, podgroup.PodGroup)
        }

    def _place_holders(self, holders: Iterable[workload.Workload], flavors: Flavors) -> Simulation:
        """Return the cluster with the pods of all quota holders placed."""
        holders = [each for each in holders if not workloadstate.is_evicted(each)]
        holder_uids = frozenset(each.metadata.uid for each in holders)
        if self._base is not None and self._holder_uids == holder_uids:
            return self._base
        objects = [each for informer in self._informers for each in informer.cache]
        alive = [each for each in objects if not (isinstance(each, pod.Pod) and podstate.has_ended(each))]
        base = Simulation(ClusterState.of(alive), settings=self._settings)
        present: dict[_PodSet, int] = {}
        for each in alive:
            if isinstance(each, pod.Pod):
                present[_pod_set(each)] = present.get(_pod_set(each), 0) + 1
        groups = self._groups()
        future_pods = (
            each
            for holder in holders
            for each in _first(feasibility.pods(holder, flavors, groups=groups))
            if _is_missing(each, present)
        )
        base.schedule(itertools.islice(itertools.chain(base.pending, future_pods), _MOST_BEFORE))
        self._base, self._holder_uids = base, holder_uids
        return base


def _first(pods: Iterable[pod.Pod]) -> Iterable[pod.Pod]:
    return itertools.islice(pods, _MOST_PODS)


def _is_missing(candidate: pod.Pod, present: dict[_PodSet, int]) -> bool:
    """Return True if a pod of a workload does not exist yet, and count one existing pod of its pod set as used."""
    unused = present.get(_pod_set(candidate), 0)
    if unused:
        present[_pod_set(candidate)] = unused - 1
    return not unused


def _pod_set(member: pod.Pod) -> _PodSet:
    metadata = member.metadata
    return (
        metadata.namespace,
        metadata.annotations.get(WORKLOAD_ANNOTATION, ""),
        metadata.labels.get(POD_SET_LABEL, ""),
    )
