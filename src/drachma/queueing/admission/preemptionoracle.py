"""Targets of preemption for a whole assignment, and the oracle that the flavor search asks."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from drachma.queueing.admission import classicalpreemption, fairpreemption
from drachma.queueing.admission.flavorassignment import Assignment, Possibility
from drachma.queueing.admission.preemption import Need, Target
from drachma.queueing.admission.snapshot import Snapshot
from drachma.queueing.workloads.requests import FlavorResource, Usage
from drachma.queueing.workloads.settings import Settings
from drachma.queueing.workloads.workloadinfo import WorkloadInfo


def targets(need: Need, snapshot: Snapshot, settings: Settings) -> list[Target]:
    """Return the workloads that have to give up their quota for a need."""
    if settings.fair_sharing:
        return fairpreemption.targets(need, snapshot, settings)
    return classicalpreemption.targets(need, snapshot)


class PreemptionOracle:
    """Answers for one workload while the snapshot does not change. Equal needs are computed once."""

    def __init__(
        self,
        info: WorkloadInfo,
        snapshot: Snapshot,
        *,
        settings: Settings,
        now: datetime,
        replaced: WorkloadInfo | None = None,
    ) -> None:
        """``replaced`` is the workload that gives up its quota to this one in any case."""
        self._info = info
        self._replaced = replaced
        self._snapshot = snapshot
        self._settings = settings
        self._now = now
        self._queue = snapshot.queues[info.cluster_queue]
        self._answers: dict[tuple[frozenset[tuple[FlavorResource, int]], frozenset[FlavorResource]], list[Target]] = {}

    def ask(self, key: FlavorResource, amount: int) -> tuple[Possibility, int]:
        """Return the result that preemption could achieve for one resource; see ``flavorsearch.Oracle``."""
        queue = self._queue
        victims = self._targets({key: amount}, frozenset((key,)))
        if not victims:
            return Possibility.NO_CANDIDATES, queue.node.borrowing_level(key, amount)[0]
        with self._snapshot.without_usage(target.info for target in victims):
            level = queue.node.borrowing_level(key, amount)[0]
        is_own = any(target.info.cluster_queue == queue.name for target in victims)
        return Possibility.PREEMPT if is_own else Possibility.RECLAIM, level

    def targets_for(self, assignment: Assignment, has_room: Callable[[], bool] | None = None) -> list[Target]:
        """Return the workloads that have to give up their quota for an assignment.

        ``has_room`` returns True if the pods find places on topologies without the workloads removed so far.
        """
        replaced = self._replaced.pod_sets if self._replaced is not None else ()
        usage, keys = assignment.total(self._info.pod_sets, replaced), assignment.resources_to_preempt
        if has_room is None:
            return self._targets(usage, keys)
        need = Need(self._info, self._queue, usage, keys, self._now, has_room)
        return targets(need, self._snapshot, self._settings)

    def _targets(self, usage: Usage, keys: frozenset[FlavorResource]) -> list[Target]:
        # The flavor search asks for one resource at a time; with a single resource, the assignment is the same need.
        question = frozenset(usage.items()), keys
        answer = self._answers.get(question)
        if answer is None:
            need = Need(self._info, self._queue, usage, keys, self._now)
            answer = self._answers[question] = targets(need, self._snapshot, self._settings)
        return answer
