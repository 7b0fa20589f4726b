"""The scheduling cycle: from a pod and a snapshot to a decision. Nothing is written and nothing is changed here.

Filters narrow down one set of nodes, each asking its question of classes of nodes; then scores choose among those that
are left. Which filters and scores there are, and in which order, is up to the profile. Differs from upstream: all nodes
are considered, not a sample of them in large clusters.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Final

from drachma.bounds import effort
from drachma.scheduler.decision import Aborted, Decision, Placed, Unfit
from drachma.scheduler.framework import cyclestate, diagnosis, plugin, profile, scoring, verdict
from drachma.scheduler.snapshot import Snapshot, podinfo

_EFFORT: Final = 200
_NODES_PER_EFFORT: Final = 8
"""Effort of a decision about an ordinary pod; plugins add what they find to be more."""

Observe = Callable[[str, float], None]
"""Hears how long an extension point took, in seconds."""


class Cycle:
    """Decides about pods, one after the other."""

    def __init__(
        self,
        plugins: profile.Profile,
        *,
        chance: random.Random,
        monotonic: Callable[[], float],
        observe: Observe = lambda point, seconds: None,
        favoured: Callable[[int], int] = lambda nodes: nodes,
    ) -> None:
        """``favoured`` says among which of equally good nodes to choose."""
        self._profile: Final = plugins
        self._chance: Final = chance
        self._monotonic: Final = monotonic
        self._observe: Final = observe
        self._favoured: Final = favoured

    def decide(self, info: podinfo.PodInfo, snapshot: Snapshot, *, besides: int = 0) -> Decision:
        """Where a pod goes, why it goes nowhere, or what went wrong; ``besides`` are nodes that are left out."""
        try:
            return self._decide(cyclestate.CycleState(info, snapshot), besides)
        except verdict.AbortError as error:
            return Aborted(info, str(error))

    def _decide(self, cycle: cyclestate.CycleState, besides: int) -> Decision:
        info, nodes = cycle.pod, cycle.snapshot.nodes
        count = len(nodes)
        effort.spend(_EFFORT + count // _NODES_PER_EFFORT)
        if not count:
            return Unfit(info, diagnosis.Diagnosis(0), cycle)
        began = self._monotonic()
        selected = self._profile.pre_filter(cycle)
        if isinstance(selected, verdict.Rejection):
            return Unfit(info, diagnosis.Diagnosis(count, selected), cycle)
        self._observe("PreFilter", self._monotonic() - began)
        nominated = cycle.snapshot.nominations.node_of(info.uid) or info.pod.status.nominated_node_name
        favourite = nodes.find(nominated) if nominated else None
        if favourite is not None and not favourite.bit & besides:
            # The node that others were evicted from is tried alone first.
            attempt = cycle.on(cycle.snapshot)
            passing, _ = self._filter(attempt, favourite.bit)
            if passing:
                return self._place(attempt, passing)
        alive, absent = nodes.everyone, None
        if selected.names is not None and selected.absent is not None:
            alive = nodes.named(selected.names)
            missing = count - alive.bit_count()
            absent = (selected.absent, missing) if missing else None
        passing, rejections = self._filter(cycle, alive & ~besides)
        if passing:
            return self._place(cycle, passing)
        return Unfit(info, diagnosis.Diagnosis(count, None, tuple(rejections), absent), cycle)

    def _filter(self, cycle: cyclestate.CycleState, alive: int) -> plugin.Filtered:
        began = self._monotonic()
        filtered = self._profile.filter_with_nominated_pods(cycle, alive)
        self._observe("Filter", self._monotonic() - began)
        return filtered

    def _place(self, cycle: cyclestate.CycleState, passing: int) -> Placed:
        """The best of the nodes that would do, and what it takes to go there."""
        began = self._monotonic()
        best = self._favoured(self._profile.best(cycle, passing))
        self._observe("Score", self._monotonic() - began)
        nodes = cycle.snapshot.nodes
        node = nodes.at(scoring.pick(best, self._chance.randrange(nodes.everyone.bit_length())))
        assignment = self._profile.reserve(cycle, node.name)
        return Placed(cycle.pod, assignment, cycle, passing.bit_count())
