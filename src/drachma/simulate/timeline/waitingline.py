"""Waiting line: pods without a node, the most important first, then those that have waited longest.

Pods of one shape are alike: if one of them fits nowhere, the others do not either. So a shape that was refused is left
out until a node has room for it again, and a long line costs little.
"""

from __future__ import annotations

import collections
import heapq
from collections.abc import Iterable
from typing import Final

from drachma.accounting import ledger
from drachma.api import meta, pod
from drachma.scheduler.snapshot import Snapshot, podinfo
from drachma.simulate.timeline.events import JobShape
from drachma.simulate.timeline.jobrun import JobRun


class _Group:
    """Waiting jobs of one shape, in the order of their arrival."""

    def __init__(self, shape: JobShape) -> None:
        example = pod.Pod(metadata=meta.ObjectMeta(namespace=shape.namespace, labels=shape.labels), spec=shape.spec)
        self.shape: Final = shape
        self.is_local: Final = podinfo.is_local(example)
        self.amounts: Final = podinfo.PodInfo(example).demand.amounts
        self.jobs: Final[collections.deque[tuple[int, JobRun]]] = collections.deque()
        self.is_refused = False


class WaitingLine:
    """Jobs with pods that wait for nodes."""

    def __init__(self) -> None:
        self._groups: Final[dict[JobShape, _Group]] = {}
        self._number = 0
        self._candidates: list[tuple[int, int, _Group]] = []

    def append(self, job: JobRun) -> None:
        """Add a job whose pods wait."""
        group = self._groups.get(job.shape)
        if group is None:
            group = self._groups[job.shape] = _Group(job.shape)
        self._number += 1
        group.jobs.append((self._number, job))

    def remove(self, job: JobRun) -> None:
        """Remove a job that no longer waits."""
        group = self._groups.get(job.shape)
        if group is not None:
            jobs = [entry for entry in group.jobs if entry[1] is not job]
            group.jobs.clear()
            group.jobs.extend(jobs)
            self._drop_if_empty(group)

    def open(self, snapshot: Snapshot, released: Iterable[str] | None) -> None:
        """Start a pass over the line. ``released`` are nodes with new room; None if any node may have some."""
        ledgers = None
        if released is not None:
            infos = (snapshot.nodes.find(name) for name in released)
            ledgers = [info.ledger for info in infos if info is not None]
        self._candidates = []
        for group in self._groups.values():
            if group.is_refused and group.is_local and ledgers is not None and not _has_room(group, ledgers):
                continue
            group.is_refused = False
            self._offer(group)

    def head(self) -> JobRun | None:
        """Return the first job that was not refused in this pass, or None."""
        while self._candidates:
            _, number, group = self._candidates[0]
            if group.jobs and group.jobs[0][0] == number and not group.is_refused:
                return group.jobs[0][1]
            heapq.heappop(self._candidates)
            if group.jobs and not group.is_refused:
                self._offer(group)
        return None

    def pop(self) -> None:
        """Remove the head: all of its pods have nodes."""
        _, _, group = heapq.heappop(self._candidates)
        group.jobs.popleft()
        if group.jobs:
            self._offer(group)
        else:
            self._drop_if_empty(group)

    def refuse(self) -> None:
        """Leave the head and all jobs of its shape out of this pass."""
        _, _, group = heapq.heappop(self._candidates)
        group.is_refused = True

    def jobs(self) -> list[JobRun]:
        """Return all waiting jobs, in the order in which they came."""
        return [job for _, job in sorted(entry for group in self._groups.values() for entry in group.jobs)]

    def _offer(self, group: _Group) -> None:
        heapq.heappush(self._candidates, (-group.shape.priority, group.jobs[0][0], group))

    def _drop_if_empty(self, group: _Group) -> None:
        if not group.jobs:
            self._groups.pop(group.shape, None)


def _has_room(group: _Group, ledgers: Iterable[ledger.Ledger]) -> bool:
    return any(not ledger.lacking_resources(group.amounts, account) for account in ledgers)
