"""Scores by the use of resources: what NodeResourcesFit and NodeResourcesBalancedAllocation have in common.

A strategy names resources with weights, as ``scoringStrategy`` of upstream's configuration does. Amounts come from the
ledger of a node. An extended resource that the node itself does not have may be devices of a class; then its amounts
are the devices of that class that the node sees, and those of them that claims hold (upstream's DRAExtendedResource).
"""

from __future__ import annotations

import enum
import functools
import math
from collections.abc import Callable, Hashable, Sequence
from typing import Final, NamedTuple

from drachma.accounting import ledger, resourcenames
from drachma.scheduler.framework import cyclestate
from drachma.scheduler.framework.scoring import MAX, Scores
from drachma.scheduler.snapshot import devicecounts, nodeinfo

MOST_SHAPE_SCORE: Final = 10
"""Highest score of a point of a shape, in upstream's configuration."""


_DEVICES_OF: Final = "devices of a class"


class StrategyType(enum.Enum):
    """Preference of nodes, by upstream's names."""

    LEAST_ALLOCATED = "LeastAllocated"
    MOST_ALLOCATED = "MostAllocated"
    REQUESTED_TO_CAPACITY_RATIO = "RequestedToCapacityRatio"


class ScoredResource(NamedTuple):
    """Resource that counts for the score of a node."""

    name: str
    weight: int = 1


class ShapePoint(NamedTuple):
    """Point of a broken line: percentage of a resource in use, and its score from 0 to 10."""

    utilization: int
    score: int


CPU_AND_MEMORY: Final = (ScoredResource(resourcenames.CPU), ScoredResource(resourcenames.MEMORY))


class Strategy(NamedTuple):
    """Scoring strategy of NodeResourcesFit."""

    type: StrategyType = StrategyType.LEAST_ALLOCATED
    resources: tuple[ScoredResource, ...] = CPU_AND_MEMORY
    shape: tuple[ShapePoint, ...] = ()
    """Points in the order of their utilization, for RequestedToCapacityRatio."""

    def score(self, usages: Sequence[Usage]) -> int:
        """Return the weighted mean of the scores of resources. A resource that a node does not have is left out."""
        total = weights = 0
        is_ratio = self.type is StrategyType.REQUESTED_TO_CAPACITY_RATIO
        for usage, resource in zip(usages, self.resources, strict=True):
            if not usage.allocatable:
                continue
            score = self._resource_score(usage)
            if score > 0 or not is_ratio:
                total += score * resource.weight
                weights += resource.weight
        if not weights:
            return 0
        return math.floor(total / weights + 0.5) if is_ratio else total // weights

    def _resource_score(self, usage: Usage) -> int:
        requested, allocatable = min(usage.requested, usage.allocatable), usage.allocatable
        match self.type:
            case StrategyType.LEAST_ALLOCATED:
                return (allocatable - requested) * MAX // allocatable
            case StrategyType.MOST_ALLOCATED:
                return requested * MAX // allocatable
            case StrategyType.REQUESTED_TO_CAPACITY_RATIO:
                return _on_line(self.shape, requested * 100 // allocatable)


class Usage(NamedTuple):
    """Use of one resource of a node: zeros if the node does not have it, or if the pod does not need it."""

    requested: int = 0
    """Amount in use with the pod."""
    allocated: int = 0
    allocatable: int = 0


class ScoreQuestion(NamedTuple):
    """Question to nodes about the use of resources."""

    key: Hashable
    """Key of the scorer: equal only for equal functions."""
    resources: tuple[ScoredResource, ...]
    requests: tuple[int, ...]
    """Amounts that the pod requests, one for each resource."""
    scorer: Callable[[Sequence[Usage]], int]
    is_defaulted: bool
    """True if cpu and memory count with defaults for containers without requests."""

    def usages(self, info: nodeinfo.NodeInfo) -> tuple[Usage, ...]:
        """Return the use of every resource according to the ledger of a node."""
        return tuple(
            self._usage(info.ledger, resource.name, amount)
            for resource, amount in zip(self.resources, self.requests, strict=True)
        )

    def _usage(self, account: ledger.Ledger, name: str, amount: int) -> Usage:
        if not amount and name not in _ALWAYS_SCORED:
            return Usage()
        allocatable = account.allocatable.get(name, 0)
        if not allocatable:
            return Usage()
        if self.is_defaulted and name == resourcenames.CPU:
            allocated = account.scored_cpu
        elif self.is_defaulted and name == resourcenames.MEMORY:
            allocated = account.scored_memory
        else:
            allocated = account.requested.get(name, 0)
        return Usage(allocated + amount, allocated, allocatable)


_ALWAYS_SCORED: Final = frozenset({resourcenames.CPU, resourcenames.MEMORY, resourcenames.EPHEMERAL_STORAGE})


def requests_of(demand: ledger.Demand, resources: Sequence[ScoredResource], *, is_defaulted: bool) -> tuple[int, ...]:
    """Return the amounts that a pod requests, one for each resource."""
    amounts = dict(demand.amounts)
    if is_defaulted:
        amounts[resourcenames.CPU], amounts[resourcenames.MEMORY] = demand.scored_cpu, demand.scored_memory
    return tuple(amounts.get(resource.name, 0) for resource in resources)


def score_nodes(cycle: cyclestate.CycleState, question: ScoreQuestion, *, passing: int, has_devices: bool) -> Scores:
    """Return the scores of nodes. With ``has_devices``, device classes can back extended resources."""
    snapshot = cycle.snapshot
    key = (question.key, question.resources, question.requests)
    classes_by_place = _backing_classes(cycle, question) if has_devices else {}
    if not classes_by_place:
        classes = snapshot.nodes.resources.classes(
            key, lambda info: question.scorer(question.usages(info)), among=passing
        )
        return {score: same for score, nodes in classes.items() if (same := nodes & passing)}
    sets = [
        (usages, same)
        for usages, nodes in snapshot.nodes.resources.classes((key, "usages"), question.usages, among=passing).items()
        if (same := nodes & passing)
    ]
    for place, class_name in classes_by_place.items():
        counts = snapshot.devices.availability.classes(
            (_DEVICES_OF, class_name), functools.partial(devicecounts.count, class_name), among=passing
        )
        sets = [
            (_with_devices(usages, place, count=count, amount=question.requests[place]), both)
            for usages, nodes in sets
            for count, same in counts.items()
            if (both := nodes & same)
        ]
    scores: dict[int, int] = {}
    for usages, nodes in sets:
        score = question.scorer(usages)
        scores[score] = scores.get(score, 0) | nodes
    return scores


def _backing_classes(cycle: cyclestate.CycleState, question: ScoreQuestion) -> dict[int, str]:
    """Return the device classes of the requested resources that have one, by the place of the resource."""
    names = cycle.snapshot.devices.names
    classes: dict[int, str] = {}
    for place, (resource, amount) in enumerate(zip(question.resources, question.requests, strict=True)):
        if amount and resourcenames.may_be_devices(resource.name):
            backing_class = names.get(resource.name)
            if backing_class is not None:
                classes[place] = str(backing_class.metadata.name)
    return classes


def _with_devices(
    usages: tuple[Usage, ...], place: int, *, count: devicecounts.DeviceCount, amount: int
) -> tuple[Usage, ...]:
    if usages[place].allocatable or not count.devices:
        # A device plugin comes before devices of claims.
        return usages
    usage = Usage(count.allocated + amount, count.allocated, count.devices)
    return (*usages[:place], usage, *usages[place + 1 :])


def _on_line(shape: tuple[ShapePoint, ...], utilization: int) -> int:
    """Return the score of a utilization on a broken line, scaled from 0..10 to 0..100."""
    scale = MAX // MOST_SHAPE_SCORE
    before = None
    for point in shape:
        if utilization <= point.utilization:
            if before is None:
                return point.score * scale
            rise = (point.score - before.score) * scale * (utilization - before.utilization)
            # Rounded towards zero, as Go's division.
            return before.score * scale + int(rise / (point.utilization - before.utilization))
        before = point
    return shape[-1].score * scale
