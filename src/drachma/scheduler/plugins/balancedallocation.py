"""NodeResourcesBalancedAllocation: prefers nodes whose cpu and memory are used evenly."""

from __future__ import annotations

import functools
import math
from typing import Final

from drachma.accounting import ledger, resourcenames
from drachma.scheduler.framework import cyclestate, scoring
from drachma.scheduler.framework.plugin import Scores
from drachma.scheduler.snapshot import delegation, nodeinfo

_NAME: Final = "NodeResourcesBalancedAllocation"


class NodeResourcesBalancedAllocation:
    """The plugin."""

    name: Final = _NAME

    def score(self, cycle: cyclestate.CycleState, passing: int) -> Scores:
        """Score nodes by how much more evenly they are used with the pod. A pod without such requests has no scores."""
        requested = dict(delegation.demand(cycle.pod, cycle.snapshot).amounts)
        cpu, memory = requested.get(resourcenames.CPU, 0), requested.get(resourcenames.MEMORY, 0)
        if not cpu and not memory:
            return {}
        classes = cycle.snapshot.nodes.resources.classes(
            (_NAME, cpu, memory), functools.partial(_balanced, cpu, memory), among=passing
        )
        return {score: same for score, nodes in classes.items() if (same := nodes & passing)}


def _balanced(cpu: int, memory: int, info: nodeinfo.NodeInfo) -> int:
    half = scoring.MAX // 2
    before, after = _balance(info.ledger, cpu=0, memory=0), _balance(info.ledger, cpu=cpu, memory=memory)
    return half + int((half + after - before) / 2)


def _balance(account: ledger.Ledger, *, cpu: int, memory: int) -> int:
    requested, allocatable = account.requested, account.allocatable
    all_cpu, all_memory = allocatable.get(resourcenames.CPU, 0), allocatable.get(resourcenames.MEMORY, 0)
    if not all_cpu or not all_memory:
        return scoring.MAX
    cpu_share = min((requested.get(resourcenames.CPU, 0) + cpu) / all_cpu, 1.0)
    memory_share = min((requested.get(resourcenames.MEMORY, 0) + memory) / all_memory, 1.0)
    return int((1 - math.fabs((cpu_share - memory_share) / 2)) * scoring.MAX)
