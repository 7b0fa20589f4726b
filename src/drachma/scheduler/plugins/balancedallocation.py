"""NodeResourcesBalancedAllocation: prefers nodes whose resources, by default cpu and memory, are used evenly."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Iterable, Sequence
from typing import Final

from drachma.api import gates
from drachma.scheduler.framework import cyclestate, resourcescoring, scoring
from drachma.scheduler.framework.plugin import Scores
from drachma.scheduler.snapshot import delegation

_NAME: Final = "NodeResourcesBalancedAllocation"


class NodeResourcesBalancedAllocation:
    """The plugin."""

    name: Final = _NAME

    def __init__(
        self,
        enabled: gates.Gates,
        *,
        resources: tuple[resourcescoring.ScoredResource, ...] = resourcescoring.CPU_AND_MEMORY,
    ) -> None:
        self._resources: Final = resources
        self._has_extended: Final = enabled.on(gates.Gate.EXTENDED_RESOURCE)

    def score(self, cycle: cyclestate.CycleState, passing: int) -> Scores:
        """Score nodes by how much more evenly they are used with the pod. A pod without such requests has no scores."""
        demand = delegation.demand(cycle.pod, cycle.snapshot)
        requests = resourcescoring.requests_of(demand, self._resources, is_defaulted=False)
        if not any(requests):
            return {}
        question = resourcescoring.ScoreQuestion(_NAME, self._resources, requests, _score, is_defaulted=False)
        return resourcescoring.score_nodes(cycle, question, passing=passing, has_devices=self._has_extended)


def _score(usages: Sequence[resourcescoring.Usage]) -> int:
    half = scoring.MAX // 2
    present = [each for each in usages if each.allocatable]
    before = _balance(min(each.allocated / each.allocatable, 1.0) for each in present)
    after = _balance(min(each.requested / each.allocatable, 1.0) for each in present)
    return half + int((half + after - before) / 2)


def _balance(shares: Iterable[float]) -> int:
    """Return a score that falls with the standard deviation of the shares in use."""
    values = list(shares)
    deviation = 0.0
    if len(values) == 2:
        deviation = math.fabs((values[0] - values[1]) / 2)
    elif len(values) > 2:
        mean = _sum(values) / len(values)
        deviation = math.sqrt(_sum((share - mean) * (share - mean) for share in values) / len(values))
    return int((1 - deviation) * scoring.MAX)


def _sum(values: Iterable[float]) -> float:
    """Return the sum with the rounding of plain additions, as upstream's. Python's own is more exact."""
    return functools.reduce(operator.add, values, 0.0)
