"""One admission cycle: the heads of all queues, the flavors that each would get, and the decision for each.

First every head is judged by itself (:func:`nominate`). Then the entries are processed in the order of
:mod:`cycleorder`: an entry that fits into the remaining quota is admitted, an entry that needs preemption has its
victims preempted, and an entry that has to wait reserves quota in this cycle if its queue could not reclaim it later.
The next cycle sees the results.

Nothing is written here, and the snapshot is unchanged afterwards.
"""

from __future__ import annotations

import enum
import functools
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from typing import Final

from msgspec import structs

from drachma.queueing import amounts, conditions
from drachma.queueing.admission import cycleorder, feasibility
from drachma.queueing.admission.entry import Entry, Head, Status
from drachma.queueing.admission.flavorassignment import Assignment, Mode, reduce_counts
from drachma.queueing.admission.flavorsearch import FlavorSearch, Nominated
from drachma.queueing.admission.pendingqueue import RequeueReason
from drachma.queueing.admission.preemption import SLICE_REPLACED, Target
from drachma.queueing.admission.preemptionoracle import PreemptionOracle
from drachma.queueing.admission.quotatree import Node
from drachma.queueing.admission.snapshot import QueueState, Snapshot
from drachma.queueing.admission.topologyplacement import is_node_failed, needs_second_pass
from drachma.queueing.configuration.gates import Gate
from drachma.queueing.kinds import clusterqueue, workload
from drachma.queueing.workloads import workloadstate
from drachma.queueing.workloads.admissibility import NAMESPACE_MISMATCH
from drachma.queueing.workloads.placedpods import PlacedPods
from drachma.queueing.workloads.requests import FlavorResource, Usage
from drachma.queueing.workloads.settings import Settings
from drachma.queueing.workloads.workloadinfo import NO_SHAPE, Attempt, WorkloadInfo

MISCONFIGURED: Final = "Misconfigured"
PENDING_EVALUATION: Final = "PendingEvaluation"
SUSPENDED: Final = "Suspended"
WAITING_FOR_PODS_READY: Final = "WaitingForPodsReady"
WAITING_FOR_PREEMPTED: Final = "WaitingForPreemptedWorkloads"
WAITING_FOR_QUOTA: Final = "WaitingForQuota"
_UNREADY: Final = "waiting for all admitted workloads to be in PodsReady condition"
ADMISSION_GATED: Final = "AdmissionGated"


class _Fit(enum.Enum):
    """Room for an entry when its turn comes."""

    OK = enum.auto()
    NO_QUOTA = enum.auto()
    NO_PLACES = enum.auto()
    """Another entry took places on the topology."""


class Cycle:
    """A cycle under way."""

    def __init__(
        self,
        snapshot: Snapshot,
        *,
        settings: Settings,
        now: datetime,
        number: int = 0,
        objection: Callable[[WorkloadInfo], str | None] = lambda _: None,
        obstacle: feasibility.Obstacle | None = None,
    ) -> None:
        """``objection`` returns the reason why a queue does not take a workload at all, ``obstacle`` why its pods find
        no nodes.
        """
        self._snapshot = snapshot
        self._settings = settings
        self._gates = settings.gates
        self._now = now
        self._number = number
        self._objection = objection
        self._obstacle = obstacle
        self._admitted: list[workload.Workload] = []
        self._preempted: dict[str, WorkloadInfo] = {}
        self._before: list[tuple[Node, FlavorResource, int]] = []
        """Usage of nodes before the cycle added to it, in the order of the additions."""
        self._places: list[tuple[PlacedPods, ...]] = []
        """Domains of topologies that the cycle gave away."""

    def run(self, heads: Iterable[Head]) -> list[Entry]:
        """Process the heads and return an entry for each, except for heads that hold quota already."""
        nominated: list[Entry] = []
        skipped: list[Entry] = []
        for head in heads:
            entry = self._nominate(head)
            if entry is not None:
                (skipped if entry.message and not entry.assignment.pod_sets else nominated).append(entry)
        try:
            for entry in self._ordered(nominated):
                self._process(entry)
        finally:
            self._restore()
        for entry in nominated:
            if entry.status is not Status.WAITING and entry.requeue_reason is RequeueReason.GENERIC:
                entry.requeue_reason = RequeueReason.FAILED_AFTER_NOMINATION
        return nominated + skipped

    def _ordered(self, entries: list[Entry]) -> Iterator[Entry]:
        if self._settings.fair_sharing:
            return cycleorder.fair(entries, self._snapshot, self._settings)
        return cycleorder.classical(entries, self._settings)

    def _nominate(self, head: Head) -> Entry | None:
        entry = Entry(head)
        info = head.info
        queue = self._snapshot.queues.get(info.cluster_queue)
        if info.key in self._snapshot.holders and not needs_second_pass(info.workload):
            return None
        if any(each.state in ("Retry", "Rejected") for each in info.workload.status.admission_checks):
            entry.message, entry.quota_reason = "The workload has failed admission checks", PENDING_EVALUATION
        elif info.cluster_queue in self._snapshot.inactive:
            entry.message, entry.quota_reason = f"ClusterQueue {info.cluster_queue} is inactive", SUSPENDED
        elif queue is None:
            entry.message, entry.quota_reason = f"ClusterQueue {info.cluster_queue} not found", MISCONFIGURED
        elif (objection := self._objection(info)) is not None:
            entry.message, entry.quota_reason = objection, MISCONFIGURED
            if objection == NAMESPACE_MISMATCH:
                entry.requeue_reason = RequeueReason.NAMESPACE_MISMATCH
        else:
            entry.record(*self._assign(info, queue))
        return entry

    def _assign(
        self, info: WorkloadInfo, queue: QueueState, nominated: Nominated | None = None
    ) -> tuple[Assignment, list[Target], tuple[PlacedPods, ...]]:
        """Return flavors, victims and places for a workload: for all of its pods, or for as many as fit."""
        if info.attempt is not None and self._is_outdated(info, info.attempt, queue):
            info.attempt = None
        replaced = self._replaced(info, queue)
        own = [Target(replaced, SLICE_REPLACED, queue)] if replaced is not None else []
        oracle = PreemptionOracle(info, self._snapshot, settings=self._settings, now=self._now, replaced=replaced)
        search = FlavorSearch(
            info,
            queue,
            self._snapshot.flavors,
            oracle=oracle.ask,
            settings=self._settings,
            cycle=self._number,
            nominated=nominated,
            topologies=self._snapshot.topologies,
            replaced=replaced,
        )
        placement = search.placement

        def attempt(counts: list[int] | None) -> tuple[Assignment, list[Target] | None]:
            assignment = search.run(counts)
            mode = assignment.mode
            if mode is Mode.FIT:
                return assignment, own
            if mode is Mode.PREEMPT:
                requests = placement.requests(assignment)
                has_room = functools.partial(placement.has_room, requests) if requests else None
                if victims := oracle.targets_for(assignment, has_room):
                    return assignment, [*own, *victims]
            return assignment, None

        assignment, targets = attempt(None)
        if (
            targets is None
            and self._gates.on(Gate.PARTIAL_ADMISSION)
            and workloadstate.can_be_partial(info.workload)
            and (partial := reduce_counts(info.workload.spec.pod_sets, attempt)) is not None
        ):
            assignment, targets = partial
        victims = targets or []
        assignment = placement.reserve(assignment, (each.info for each in victims), self._snapshot)
        return assignment, victims, placement.usage(assignment)

    def _replaced(self, info: WorkloadInfo, queue: QueueState) -> WorkloadInfo | None:
        """Return the workload of the queue that this workload replaces, a smaller slice of the same elastic job."""
        key = info.workload.metadata.annotations.get(workload.REPLACES)
        if key is None or not self._gates.on(Gate.ELASTIC_JOBS):
            return None
        replaced = queue.workloads.get(key)
        is_near = replaced is not None and replaced.workload.metadata.namespace == info.workload.metadata.namespace
        return replaced if is_near else None

    def _is_outdated(self, info: WorkloadInfo, attempt: Attempt, queue: QueueState) -> bool:
        """Return True if an earlier flavor search is outdated and has to start over."""
        if self._gates.on(Gate.PRESERVE_SCAN_PROGRESS):
            if NO_SHAPE not in (attempt.shape, info.shape) and attempt.shape != info.shape:
                return True
            if self._number - attempt.cycle <= 1:
                return False
        return queue.generation > attempt.generation

    def _process(self, entry: Entry) -> None:
        queue = self._snapshot.queues[entry.info.cluster_queue]
        fit = self._refresh(entry, queue)
        mode = entry.assignment.mode
        if mode is not Mode.FIT and self._gates.on(Gate.TAS_FAIL_FAST) and is_node_failed(entry.info.workload):
            entry.status = Status.EVICTED
            names = ",".join(each.name for each in entry.info.workload.status.unhealthy_nodes)
            entry.message = f"Workload was evicted as there was no replacement for unhealthy node(s): {names}"
            return
        if mode is Mode.NO_FIT:
            entry.requeue_reason = RequeueReason.NO_FIT
            entry.quota_reason = str(entry.assignment.no_fit_reason)
            return
        if mode is Mode.PREEMPT:
            if not entry.targets:
                entry.requeue_reason = RequeueReason.PREEMPTION_NO_CANDIDATES
                entry.quota_reason = WAITING_FOR_QUOTA
                self._reserve(entry, queue)
                return
            if self._is_gated(entry):
                entry.status = Status.GATED
                entry.message = "Workload requires preemption, but it's gated"
                entry.quota_reason = ADMISSION_GATED
                entry.requeue_reason = RequeueReason.PREEMPTION_GATED
                entry.attempt = None
                return
        if mode is Mode.DEFERRED_FIT:
            entry.message = (
                "Workload has overlapping preemption targets with another workload, "
                "but will fit after these preemptions complete"
            )
            entry.quota_reason = WAITING_FOR_PREEMPTED
            entry.requeue_reason = RequeueReason.PENDING_PREEMPTION
            entry.attempt = None
            self._add(queue, entry.usage, entry.places)
            return
        if self._overlaps(entry):
            self._skip(entry, "Workload has overlapping preemption targets with another workload")
            return
        if fit is not _Fit.OK:
            self._skip(entry, "Workload no longer fits after processing another workload")
            return
        is_second_pass = needs_second_pass(entry.info.workload)
        if mode is Mode.FIT and self._settings.blocks_admission and not is_second_pass and self._has_unready_pods:
            entry.status = Status.SKIPPED
            entry.message, entry.quota_reason = _UNREADY, WAITING_FOR_PODS_READY
            return
        admission = self._admission(entry)
        if mode is Mode.FIT and (obstacle := self._placement_obstacle(entry, admission)) is not None:
            entry.message, entry.quota_reason = obstacle, feasibility.PLACEMENT_FAILED
            return
        self._preempted.update((target.info.key, target.info) for target in entry.targets)
        self._add(queue, entry.usage, entry.places)
        if mode is Mode.PREEMPT:
            entry.quota_reason = WAITING_FOR_PREEMPTED
            entry.message += f". Pending the preemption of {len(entry.victims)} workload(s)"
            entry.requeue_reason = RequeueReason.PENDING_PREEMPTION
            entry.attempt = None
            return
        entry.status = Status.ADMITTED
        entry.admission = admission
        self._has_unready_pods = True

    @functools.cached_property
    def _has_unready_pods(self) -> bool:
        """Return True if pods of a quota holder, or of a workload admitted in this cycle, are not ready."""
        return any(
            not conditions.is_true(each.workload.status.conditions, conditions.PODS_READY)
            for each in self._snapshot.holders.values()
        )

    def _admission(self, entry: Entry) -> workload.Admission:
        return workload.Admission(
            cluster_queue=entry.info.cluster_queue,
            pod_set_assignments=tuple(
                each.admitted(
                    binary=self._settings.binary, by_hostname_prefix=self._gates.on(Gate.TAS_ENCODE_BY_HOSTNAME)
                )
                for each in entry.assignment.pod_sets
            ),
        )

    def _placement_obstacle(self, entry: Entry, admission: workload.Admission) -> str | None:
        """Return the reason why the pods of an entry would find no nodes, if placement is checked."""
        if self._obstacle is None:
            return None
        before = entry.info.workload
        after = structs.replace(before, status=structs.replace(before.status, admission=admission))
        obstacle = self._obstacle(after, self._admitted)
        if obstacle is None:
            self._admitted.append(after)
        return obstacle

    def _refresh(self, entry: Entry, queue: QueueState) -> _Fit:
        """Judge an entry again whose victims another entry has preempted, or whose places another entry has taken.

        Returns whether the entry fits in the end.
        """
        fit = self._fit(entry, queue)
        is_overlap = self._overlaps(entry) and self._gates.on(Gate.RECOMPUTE_UPON_OVERLAP)
        if not is_overlap and not (fit is _Fit.NO_PLACES and self._gates.on(Gate.TAS_RECOMPUTE_ASSIGNMENT)):
            return fit
        entry.info.attempt = None
        nominated = entry.assignment.nominated
        if is_overlap:
            with self._snapshot.without(self._preempted.values()):
                entry.record(*self._assign(entry.info, queue, nominated))
            if entry.assignment.mode is Mode.FIT:
                entry.assignment = entry.assignment.deferred()
        else:
            entry.record(*self._assign(entry.info, queue, nominated))
        return self._fit(entry, queue)

    def _fit(self, entry: Entry, queue: QueueState) -> _Fit:
        """Return whether an entry fits into the remaining quota and nodes after all of its victims are gone."""
        victims = {**self._preempted, **{target.info.key: target.info for target in entry.targets}}
        if not victims:
            return self._fit_now(entry, queue)
        with self._snapshot.without_usage(victims.values()):
            return self._fit_now(entry, queue)

    def _fit_now(self, entry: Entry, queue: QueueState) -> _Fit:
        if not queue.node.fits(entry.usage):
            return _Fit.NO_QUOTA
        return _Fit.OK if self._snapshot.topologies.fits(entry.places) else _Fit.NO_PLACES

    def _overlaps(self, entry: Entry) -> bool:
        return any(target.info.key in self._preempted for target in entry.targets)

    def _is_gated(self, entry: Entry) -> bool:
        is_looked_at = self._gates.on(Gate.CONCURRENT_ADMISSION) or self._gates.on(Gate.ORCHESTRATED_PREEMPTION)
        return is_looked_at and workloadstate.has_closed_gate(entry.info.workload)

    def _skip(self, entry: Entry, message: str) -> None:
        entry.status = Status.SKIPPED
        entry.message = message
        entry.quota_reason = WAITING_FOR_QUOTA
        if not self._gates.on(Gate.PRESERVE_SCAN_PROGRESS):
            entry.attempt = None

    def _add(self, queue: QueueState, usage: Usage, places: tuple[PlacedPods, ...]) -> None:
        self._snapshot.topologies.add(places)
        self._places.append(places)
        for node in (queue.node, *queue.node.ancestors):
            self._before += [(node, key, node.usage.get(key, 0)) for key in usage]
        queue.node.add(usage)

    def _restore(self) -> None:
        for places in reversed(self._places):
            self._snapshot.topologies.remove(places)
        # A reservation beyond the queue's limit is negative. It counts in the queue alone, so removing it would not
        # restore the usage at the start of the cycle.
        for node, key, amount in reversed(self._before):
            node.usage[key] = amount

    def _reserve(self, entry: Entry, queue: QueueState) -> None:
        """Reserve quota in this cycle that the queue could not reliably reclaim later."""
        is_waiting = self._gates.on(Gate.PRIORITIZE_PREEMPTOR) and entry.head.is_preemptor
        if queue.preemption.reclaim_within_cohort != clusterqueue.ANY or is_waiting:
            self._add(queue, _usage_to_reserve(entry, queue), entry.places)


def _usage_to_reserve(entry: Entry, queue: QueueState) -> Usage:
    usage: dict[FlavorResource, int] = {}
    is_borrowing = entry.assignment.borrowing > 0
    for key, amount in entry.usage.items():
        quota = queue.node.quota(key)
        used = queue.node.usage.get(key, 0)
        if not is_borrowing:
            usage[key] = max(0, min(amount, amounts.minus(quota.nominal, used)))
        elif quota.borrowing_limit is None:
            usage[key] = amount
        else:
            limit = amounts.plus(quota.nominal, quota.borrowing_limit)
            usage[key] = min(amount, amounts.minus(limit, used))
    return usage
