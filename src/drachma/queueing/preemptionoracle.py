"""What preemption could achieve: targets for a whole assignment, and the oracle that the search for flavors asks."""

from __future__ import annotations

from datetime import datetime

from drachma.queueing import classicalpreemption, fairpreemption
from drachma.queueing.flavorassignment import Assignment, Possibility
from drachma.queueing.flavorsearch import Oracle
from drachma.queueing.preemption import Need, Target
from drachma.queueing.requests import FlavorResource, Usage
from drachma.queueing.settings import Settings
from drachma.queueing.snapshot import Snapshot
from drachma.queueing.workloadinfo import WorkloadInfo


def targets(need: Need, snapshot: Snapshot, settings: Settings) -> list[Target]:
    """Workloads that have to give up their quota for a need."""
    if settings.fair_sharing:
        return fairpreemption.targets(need, snapshot, settings)
    return classicalpreemption.targets(need, snapshot)


def targets_for(
    info: WorkloadInfo, assignment: Assignment, snapshot: Snapshot, *, settings: Settings, now: datetime
) -> list[Target]:
    """Workloads that have to give up their quota for an assignment."""
    queue = snapshot.queues[info.cluster_queue]
    need = Need(info, queue, assignment.total(info.pod_sets), assignment.to_preempt, now)
    return targets(need, snapshot, settings)


def oracle(info: WorkloadInfo, snapshot: Snapshot, *, settings: Settings, now: datetime) -> Oracle:
    """Answers for one workload, resource by resource."""
    queue = snapshot.queues[info.cluster_queue]

    def ask(key: FlavorResource, amount: int) -> tuple[Possibility, int]:
        usage: Usage = {key: amount}
        victims = targets(Need(info, queue, usage, frozenset((key,)), now), snapshot, settings)
        if not victims:
            return Possibility.NO_CANDIDATES, queue.node.borrowing_level(key, amount)[0]
        with snapshot.without_usage(target.info for target in victims):
            level = queue.node.borrowing_level(key, amount)[0]
        is_own = any(target.info.cluster_queue == queue.name for target in victims)
        return Possibility.PREEMPT if is_own else Possibility.RECLAIM, level

    return ask
