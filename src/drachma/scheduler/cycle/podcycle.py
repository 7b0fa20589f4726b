"""The cycle of one pod: from a pod and a snapshot to a decision. Pure.

Filters narrow down one set of nodes by questions to classes of nodes. Then scores choose among the remaining nodes. The
profile knows the filters and scores and their order. Differs from upstream: all nodes are considered, not a sample of
them in large clusters.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Final

from drachma.bounds import effort
from drachma.scheduler.cycle.decision import Aborted, Decision, Placed, Unfit
from drachma.scheduler.framework import cyclestate, diagnosis, plugin, profile, scoring, verdict
from drachma.scheduler.snapshot import Snapshot, nodeinfo, podinfo

_EFFORT: Final = 200
_NODES_PER_EFFORT: Final = 8
"""Effort of a decision about an ordinary pod. Plugins add their own effort."""

Observe = Callable[[str, float, str], None]
"""Function that observes the duration of an extension point in seconds, with the name of the pod's scheduler."""


class Cycle:
    """Decides about one pod after the other."""

    def __init__(
        self,
        plugins: profile.Profile,
        *,
        rng: random.Random,
        monotonic: Callable[[], float],
        observe: Observe = lambda point, seconds, profile: None,
        prefer: Callable[[int], int] = lambda nodes: nodes,
    ) -> None:
        """``prefer`` returns the nodes to choose from, out of equally good ones."""
        self._profile: Final = plugins
        self._rng: Final = rng
        self._monotonic: Final = monotonic
        self._observe: Final = observe
        self._prefer: Final = prefer

    def score_placement(self, pods: Sequence[podinfo.PodInfo], nodes: Sequence[nodeinfo.NodeInfo]) -> int:
        """Return the score of a topology domain with these nodes for pods that would go there."""
        return self._profile.score_placement(pods, nodes)

    def decide(
        self, info: podinfo.PodInfo, snapshot: Snapshot, *, excluded: int = 0, domain: int | None = None
    ) -> Decision:
        """Return the decision about a pod.

        ``excluded`` are nodes to leave out. With a ``domain``, the cluster seems to have no other nodes than these.
        """
        try:
            return self._decide(cyclestate.CycleState(info, snapshot), excluded, domain)
        except verdict.AbortError as error:
            return Aborted(info, str(error))

    def _decide(self, cycle: cyclestate.CycleState, excluded: int, domain: int | None) -> Decision:
        info, nodes = cycle.pod, cycle.snapshot.nodes
        all_nodes = nodes.all_nodes if domain is None else nodes.all_nodes & domain
        count = len(nodes) if domain is None else all_nodes.bit_count()
        effort.spend(_EFFORT + count // _NODES_PER_EFFORT)
        if not count:
            return Unfit(info, diagnosis.Diagnosis(0), cycle)
        began = self._monotonic()
        selected = self._profile.pre_filter(cycle)
        if isinstance(selected, verdict.Rejection):
            return Unfit(info, diagnosis.Diagnosis(count, selected), cycle)
        self._observe("PreFilter", self._monotonic() - began, info.scheduler)
        nominated = cycle.snapshot.nominations.node_of(info.uid) or info.pod.status.nominated_node_name
        favourite = nodes.find(nominated) if nominated else None
        if favourite is not None and favourite.bit & all_nodes & ~excluded:
            # A nominated node is tried alone first.
            attempt = cycle.on(cycle.snapshot)
            passing, _ = self._filter(attempt, favourite.bit)
            if passing:
                return self._place(attempt, passing)
        alive, absent = all_nodes, None
        if selected.names is not None and selected.absent is not None:
            alive &= nodes.named(selected.names)
            absent_count = count - alive.bit_count()
            absent = (selected.absent, absent_count) if absent_count else None
        passing, rejections = self._filter(cycle, alive & ~excluded)
        if passing:
            return self._place(cycle, passing)
        return Unfit(info, diagnosis.Diagnosis(count, None, tuple(rejections), absent), cycle)

    def _filter(self, cycle: cyclestate.CycleState, alive: int) -> plugin.Filtered:
        began = self._monotonic()
        filtered = self._profile.filter_with_nominated_pods(cycle, alive)
        self._observe("Filter", self._monotonic() - began, cycle.pod.scheduler)
        return filtered

    def _place(self, cycle: cyclestate.CycleState, passing: int) -> Placed:
        """Return the decision for the best of the passing nodes."""
        began = self._monotonic()
        best = self._prefer(self._profile.best(cycle, passing))
        self._observe("Score", self._monotonic() - began, cycle.pod.scheduler)
        nodes = cycle.snapshot.nodes
        node = nodes.at(scoring.pick(best, self._rng.randrange(nodes.all_nodes.bit_length())))
        assignment = self._profile.reserve(cycle, node.name)
        return Placed(cycle.pod, assignment, cycle, passing.bit_count())
