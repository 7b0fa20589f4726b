"""Queues for the admitter: it takes over each queue that changes, and all of them when shared objects change.

A changed cluster queue costs the queues of its cohorts. Cohorts, flavors, topologies and admission checks matter to
many queues, so their changes cost all queues and quota holders.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from drachma.queueing.admission.admitter import Admitter
from drachma.queueing.admission.queuestatus import Readiness
from drachma.queueing.component import workloadwrites
from drachma.queueing.component.caches import (
    BY_CLUSTER_QUEUE,
    BY_LOCAL_QUEUE,
    LOCAL_BY_CLUSTER_QUEUE,
    Caches,
    Source,
    call_on_change,
    is_spec_changed,
    key_of,
)
from drachma.queueing.component.decisionwrites import DecisionWrites
from drachma.queueing.component.statusrequests import StatusRequests
from drachma.queueing.kinds import clusterqueue, localqueue, workload
from drachma.queueing.workloads import workloadstate
from drachma.runtime import cache, clock, workqueue
from drachma.runtime.informer import Handler

_MOST_CHANGED_QUEUES: Final = 8
"""Number of changed cluster queues above which the follower sets all queues."""


class QueueFollower:
    """Reports cluster queues and local queues with their quota holders to the current admitter."""

    def __init__(
        self,
        caches: Caches,
        *,
        admitter: Callable[[], Admitter],
        writes: DecisionWrites,
        workloads: workqueue.Queue[str],
        statuses: StatusRequests,
        clock: clock.Clock,
        on_change: Callable[[], None],
    ) -> None:
        """``on_change`` is called when a refresh is due, and when parked workloads may be admitted."""
        self._caches: Final = caches
        self._admitter: Final = admitter
        self._writes: Final = writes
        self._workloads: Final = workloads
        self._statuses: Final = statuses
        self._clock: Final = clock
        self._on_change: Final = on_change
        self.are_all_stale = True
        """True if the next refresh sets all queues."""
        self._changed_queues: Final[set[str]] = set()
        self._changed_local_queues: Final[set[cache.Key]] = set()
        self._readiness: dict[str, tuple[clusterqueue.ClusterQueueSpec, Readiness]] = {}
        self._follow(caches.cluster_queues, self._handle_queue)
        self._follow(caches.local_queues, self._handle_local_queue)
        self._follow(caches.cohorts, lambda _: self.expire())
        for informer in (caches.flavors, caches.topologies, caches.checks):
            call_on_change(informer, self.expire)

    # Event handlers

    def _follow(self, source: Source[Any], handle: Callable[[Any], None]) -> None:
        """Call a function when an object is added, deleted or changed in more than its status."""

        def updated(old: Any, new: Any) -> None:
            if is_spec_changed(old, new):
                handle(new)

        source.add_handler(Handler(added=handle, updated=updated, deleted=handle))

    def expire(self) -> None:
        """Set all queues at the next refresh."""
        self.are_all_stale = True
        self._on_change()

    def _handle_queue(self, queue: clusterqueue.ClusterQueue) -> None:
        self._changed_queues.add(queue.metadata.name)
        self.are_all_stale = self.are_all_stale or len(self._changed_queues) > _MOST_CHANGED_QUEUES
        self._on_change()

    def _handle_local_queue(self, queue: localqueue.LocalQueue) -> None:
        self._changed_local_queues.add(cache.key_of(queue))
        self._on_change()

    # Refresh

    def refresh(self) -> None:
        """Report all changes since the last refresh."""
        if self.are_all_stale:
            self.are_all_stale = False
            self._changed_queues.clear()
            self._changed_local_queues.clear()
            self._set_all()
        while self._changed_local_queues:
            self._set_local_queue(self._changed_local_queues.pop())
        while self._changed_queues:
            self._set_queue(self._changed_queues.pop())

    def _set_local_queue(self, key: cache.Key) -> None:
        """Report a local queue that was added, changed or deleted."""
        local = self._caches.local_queues.cache.get(key.name, namespace=key.namespace)
        self._admitter().set_local_queue((key.namespace, key.name), local)
        self._reconcile_waiting(key)
        pending = self._admitter().queues.get(local.spec.cluster_queue) if local is not None else None
        if pending is not None:
            pending.retry(workloadwrites.current_time(self._clock))
            self._on_change()

    def _set_queue(self, name: str) -> None:
        """Report a cluster queue that was added, changed or deleted."""
        caches = self._caches
        now = workloadwrites.current_time(self._clock)
        queue = caches.cluster_queues.cache.get(name)
        if queue is None:
            self._admitter().remove_queue(name, now)
            self._readiness.pop(name, None)
        else:
            readiness = caches.readiness(queue)
            holders = self._quota_holders(caches.workloads.cache.by(BY_CLUSTER_QUEUE, name))
            self._admitter().put_queue(
                queue,
                now,
                is_active=readiness.is_active,
                holders=(each for each in holders if _cluster_queue_of(each) == name),
            )
            self._readiness[name] = queue.spec, readiness
        self._reconcile_holders(name)
        for local in caches.local_queues.cache.by(LOCAL_BY_CLUSTER_QUEUE, name):
            self._reconcile_waiting(cache.key_of(local))
        self._on_change()

    def _set_all(self) -> None:
        caches, admitter = self._caches, self._admitter()
        queues = tuple(caches.cluster_queues.cache)
        readiness = {each.metadata.name: (each.spec, caches.readiness(each)) for each in queues}
        admitter.set_queues(
            queues,
            cohorts=caches.cohorts.cache,
            local_queues=caches.local_queues.cache,
            flavors=caches.flavors.cache,
            topologies=caches.topologies.cache,
            checks=caches.checks.cache,
            inactive=[name for name, (_, each) in readiness.items() if not each.is_active],
            holders=self._quota_holders(caches.workloads.cache),
        )
        changed = [name for name, value in readiness.items() if self._readiness.get(name) != value]
        changed += [name for name in self._readiness if name not in readiness]
        self._readiness = readiness
        for name in changed:
            self._reconcile_holders(name)
        for local in caches.local_queues.cache:
            self._reconcile_waiting(cache.key_of(local))
        now = workloadwrites.current_time(self._clock)
        for pending in admitter.queues.values():
            pending.retry(now)
        self._on_change()

    def _quota_holders(self, workloads: Iterable[workload.Workload]) -> Iterator[workload.Workload]:
        """Yield the workloads that hold quota, also by a decision that is not written yet."""
        for each in workloads:
            if (
                workloadstate.has_reservation(each)
                and not workloadstate.is_finished(each)
                and not self._writes.is_under_way(workloadstate.key(each))
            ):
                yield each
        yield from (each for each in self._writes.under_way() if each.status.admission is not None)

    # Reconciliation

    def _reconcile_holders(self, cluster_queue: str) -> None:
        """Report a cluster queue, and reconcile the workloads that hold its quota."""
        self._statuses.add(cluster_queue)
        for each in self._caches.workloads.cache.by(BY_CLUSTER_QUEUE, cluster_queue):
            self._workloads.hasten(key_of(each))

    def _reconcile_waiting(self, key: cache.Key) -> None:
        """Report a local queue, and reconcile its workloads that hold no quota."""
        self._statuses.add(str(key))
        for each in self._caches.workloads.cache.by(BY_LOCAL_QUEUE, str(key)):
            if workloadstate.key(each) not in self._admitter().snapshot.holders:
                self._workloads.hasten(key_of(each))


def _cluster_queue_of(wl: workload.Workload) -> str:
    """Return the cluster queue in which a workload holds quota, or an empty text."""
    return wl.status.admission.cluster_queue if wl.status.admission is not None else ""
