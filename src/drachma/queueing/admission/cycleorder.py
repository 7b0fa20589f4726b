"""The order in which a cycle processes its entries: classical, or by fair shares.

The classical order is: quota reserved already, lower borrowing height, higher priority, earlier queueing time. The
order by fair shares is a tournament that runs again for every position: in each cohort, the child wins whose share is
lowest with its workload admitted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Generic, Protocol, TypeVar

from drachma.queueing.admission.dominantshare import Share, share
from drachma.queueing.admission.quotatree import Node
from drachma.queueing.admission.snapshot import Snapshot, with_usage
from drachma.queueing.configuration.gates import Gate
from drachma.queueing.workloads.requests import Usage
from drachma.queueing.workloads.settings import Settings
from drachma.queueing.workloads.workloadinfo import WorkloadInfo


class Candidate(Protocol):
    """Properties of an entry that the order depends on."""

    @property
    def info(self) -> WorkloadInfo: ...

    @property
    def usage(self) -> Usage: ...

    @property
    def is_preemptor(self) -> bool: ...

    @property
    def borrowing(self) -> int: ...


_CandidateT = TypeVar("_CandidateT", bound=Candidate)


def classical(entries: Sequence[_CandidateT], settings: Settings) -> Iterator[_CandidateT]:
    """Yield entries in classical order; equal entries keep their order."""
    gates = settings.gates
    by_preemptor = gates.on(Gate.PRIORITIZE_PREEMPTOR)
    by_priority = gates.on(Gate.PRIORITY_SORTING_WITHIN_COHORT)

    def rank(entry: _CandidateT) -> tuple[object, ...]:
        return (
            not entry.info.has_reservation,
            by_preemptor and not entry.is_preemptor,
            entry.borrowing,
            -entry.info.priority if by_priority else 0,
            entry.info.queue_time,
        )

    return iter(sorted(entries, key=rank))


def fair(entries: Sequence[_CandidateT], snapshot: Snapshot, settings: Settings) -> Iterator[_CandidateT]:
    """Yield entries by fair shares, computed when each entry is requested."""
    entries_by_node = {id(snapshot.queues[entry.info.cluster_queue].node): entry for entry in entries}
    while entries_by_node:
        first = next(iter(entries_by_node.values()))
        node = snapshot.queues[first.info.cluster_queue].node
        if node.parent is None:
            yield entries_by_node.pop(id(node))
            continue
        winner = _Tournament(node.root, entries_by_node, settings).run(node.root)
        assert winner is not None
        yield entries_by_node.pop(id(snapshot.queues[winner.info.cluster_queue].node))


class _Tournament(Generic[_CandidateT]):
    """One tournament in a tree of cohorts, for one position in the order."""

    def __init__(self, root: Node, entries_by_node: Mapping[int, _CandidateT], settings: Settings) -> None:
        self._remaining = entries_by_node
        self._gates = settings.gates
        self._shares: dict[tuple[int, str], Share] = {}
        for queue in root.walk_queues():
            entry = entries_by_node.get(id(queue))
            if entry is None:
                continue
            with with_usage(queue, entry.usage):
                below = queue
                for cohort in queue.ancestors:
                    self._shares[id(cohort), entry.info.key] = share(below)
                    below = cohort

    def run(self, cohort: Node) -> _CandidateT | None:
        """Return the winner among all entries below a cohort."""
        best: _CandidateT | None = None
        for entry in self._contestants(cohort):
            if best is None or self._rank(entry, cohort) < self._rank(best, cohort):
                best = entry
        return best

    def _contestants(self, cohort: Node) -> Iterator[_CandidateT]:
        for child in cohort.cohorts:
            winner = self.run(child)
            if winner is not None:
                yield winner
        for queue in cohort.queues:
            if id(queue) in self._remaining:
                yield self._remaining[id(queue)]

    def _rank(self, entry: _CandidateT, cohort: Node) -> tuple[object, ...]:
        current = self._shares[id(cohort), entry.info.key]
        gates = self._gates
        return (
            gates.on(Gate.PRIORITIZE_PREEMPTOR) and not entry.is_preemptor,
            gates.on(Gate.FAIR_SHARING_PRIORITIZE_NON_BORROWING) and current.is_borrowing_any(entry.usage),
            current.order,
            -entry.info.priority if gates.on(Gate.PRIORITY_SORTING_WITHIN_COHORT) else 0,
            entry.info.queue_time,
        )
