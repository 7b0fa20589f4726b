"""Admission as a loop: cycles while anything may be admitted, and what they decide written down behind them.

A decision counts at once, before it is written (:mod:`decisionwrites`): the next cycle is taken on it. One that cannot
be written is taken back, and its workload looked at anew. What is in memory follows from objects only, so that a new
process comes to where the old one was.
"""

from __future__ import annotations

import asyncio
import functools
import logging
from collections.abc import Callable, Coroutine
from typing import Any, Final

from drachma.api import event
from drachma.queueing.admission.admitter import Admitter, CycleReport
from drachma.queueing.admission.cycle import Status
from drachma.queueing.admission.feasibility import PLACEMENT_FAILED, Placement
from drachma.queueing.admission.queuestatus import Readiness
from drachma.queueing.component import resources, wholeseconds, workloadwrites
from drachma.queueing.component.activeconfiguration import ActiveConfiguration
from drachma.queueing.component.caches import (
    BY_CLUSTER_QUEUE,
    BY_LOCAL_QUEUE,
    Caches,
    Source,
    is_news,
    key_of,
    on_change,
)
from drachma.queueing.component.decisionwrites import DecisionWrites
from drachma.queueing.component.pendingview import PendingView
from drachma.queueing.component.queuemeasures import QueueMeasures
from drachma.queueing.configuration.queueingpolicy import Feasibility
from drachma.queueing.devices.devicerequests import DeviceRequests
from drachma.queueing.kinds import clusterqueue, workload
from drachma.queueing.lifecycle import workloadreconcile
from drachma.queueing.workloads import workloadstate
from drachma.runtime import Surroundings, events
from drachma.runtime.informer import Handler

_log = logging.getLogger(__name__)

_STOPPED: Final = (clusterqueue.HOLD, clusterqueue.HOLD_AND_DRAIN)


class Admission:
    """The loop, and the admitter that it runs.

    ``look_again`` has a workload looked at by its controller, ``look_again_after`` after so many seconds, and
    ``queue_changed`` a queue by its own.
    """

    name: Final = "admission"

    def __init__(
        self,
        surroundings: Surroundings,
        caches: Caches,
        configured: ActiveConfiguration,
        *,
        recorder: events.Recorder,
        measures: QueueMeasures,
        placement: Placement | None = None,
        view: PendingView | None = None,
    ) -> None:
        self._informers: Final = surroundings.informers
        self._placement: Final = placement
        self._misplaced: set[str] = set()
        """Workloads that quota would admit and no nodes take, since they were last tried."""
        self._clock: Final = surroundings.clock
        self._caches: Final = caches
        self._configured: Final = configured
        self._recorder: Final = recorder
        self._measures: Final = measures
        self._view: Final = view or PendingView()
        self.admitter = self._make_admitter()
        self.look_again: Callable[[str], None] = lambda _: None
        self.look_again_after: Callable[[str, float], None] = lambda _key, _seconds: None
        self.queue_changed: Callable[[str], None] = lambda _: None
        self._wake: Final = asyncio.Event()
        self._writes: Final = DecisionWrites(
            surroundings.client,
            caches.workloads,
            observe=functools.partial(surroundings.informers.observe, resources.WORKLOADS),
            sleep=surroundings.clock.sleep,
            spawn=self._spawn,
            written=self._on_written,
            refused=self._on_refused,
        )
        self._tasks: Final[set[asyncio.Task[None]]] = set()
        self._are_queues_stale = True
        self._are_places_stale = True
        self._to_retry: set[str] = set()
        """Cluster queues for which something became free since the last cycle."""
        self._readiness: dict[str, tuple[clusterqueue.ClusterQueueSpec, Readiness]] = {}
        for queues in (caches.cluster_queues, caches.cohorts, caches.local_queues):
            self._follow_specs(queues)
        for informer in (caches.flavors, caches.checks):
            on_change(informer, self._on_queue)
        for place in (caches.namespaces, caches.limit_ranges, caches.runtime_classes):
            on_change(place, self._on_place)
        configured.subscribe(self._on_configuration)

    def _make_admitter(self) -> Admitter:
        placement = self._placement
        if self._configured.policy.feasibility is not Feasibility.REQUIRED:
            placement = None
        if placement is not None:
            placement.follow(self._on_cluster)
        made = Admitter(
            placement=placement,
            settings=self._configured.settings,
            counting=self._configured.counting,
            runtime_classes=self._caches.runtime_classes_by_name,
        )
        self._view.show(made)
        return made

    # News

    def _follow_specs(self, source: Source[Any]) -> None:
        """Hears of queues that come, go or change in more than their status."""

        def updated(old: Any, new: Any) -> None:
            if is_news(old, new):
                self._on_queue()

        source.add_handler(
            Handler(added=lambda _: self._on_queue(), updated=updated, deleted=lambda _: self._on_queue())
        )

    def _on_queue(self) -> None:
        self._are_queues_stale = True
        self._wake.set()

    def _on_place(self) -> None:
        self._are_places_stale = True
        self._wake.set()

    def _on_configuration(self) -> None:
        """Everything is counted anew."""
        self.admitter = self._make_admitter()
        self._are_queues_stale = self._are_places_stale = True
        for each in self._caches.workloads.cache:
            self.look_again(key_of(each))
        self._wake.set()
        if self._configured.policy.feasibility is Feasibility.REQUIRED:
            self._spawn(self._await_informers(), name="what placement follows")

    async def _await_informers(self) -> None:
        """What a new configuration has to be known for may be known only now."""
        await self._informers.wait_synced()
        self._on_cluster()

    def _on_cluster(self) -> None:
        """Nodes, devices or pods changed: who found no nodes may find some."""
        if self._misplaced:
            self._misplaced.clear()
            self._retry_all()

    def _spawn(self, work: Coroutine[Any, Any, None], *, name: str) -> None:
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def is_decided(self, key: str) -> bool:
        """Whether something was decided about a workload that is not written yet."""
        return self._writes.is_under_way(key)

    def parked_reason(self, of: workload.Workload) -> str | None:
        """Why a workload was parked without being tried."""
        queue = self.admitter.queues.get(self.admitter.queue_of(of) or "")
        key = workloadstate.key(of)
        if queue is None or queue.parked_reason(key) is None:
            return None
        self._retry_parked()
        return queue.parked_reason(key)

    def note(self, of: workload.Workload, devices: DeviceRequests | None) -> None:
        """Takes a workload for what it is: it holds quota, it waits, or neither."""
        key = workloadstate.key(of)
        if self.is_decided(key):
            return
        self._refresh()
        if workloadstate.has_reservation(of) and not workloadstate.is_finished(of):
            before = self.admitter.snapshot.holders.get(key)
            self.admitter.hold(of)
            after = self.admitter.snapshot.holders.get(key)
            if before is not None and after is not None and before.usage != after.usage:
                self._retry(after.cluster_queue)
            if self._configured.settings.blocks_admission:
                self._wake.set()
            self._follow_usage(of)
            self._tell_queues(of)
            return
        self._release(key)
        self._follow_usage(of)
        if workloadreconcile.is_admissible(of, self._configured.gates) and self._is_open(of):
            self.admitter.enqueue(of, wholeseconds.now(self._clock), devices=devices)
            self._wake.set()
        else:
            self.admitter.forget(key)
        self._tell_queues(of)

    def gone(self, of: workload.Workload) -> None:
        """A workload does not exist any more, or belongs into no queue."""
        key = workloadstate.key(of)
        self._release(key)
        self.admitter.forget(key)
        self._writes.forget(key)
        if self.admitter.ledger is not None:
            self.admitter.ledger.drop(key)
        self._tell_queues(of)

    def _follow_usage(self, of: workload.Workload) -> None:
        if self.admitter.ledger is not None:
            self.admitter.ledger.follow(of, wholeseconds.now(self._clock), in_use=self.admitter.in_use)

    def order_changed(self) -> None:
        """Others may be first in their queues now."""
        self._wake.set()

    def _is_open(self, of: workload.Workload) -> bool:
        local = self._caches.local_queue_of(of)
        return local is not None and local.spec.stop_policy not in _STOPPED

    def _release(self, key: str) -> None:
        info = self.admitter.snapshot.holders.get(key)
        if info is None:
            return
        self.admitter.release(key)
        self._retry(info.cluster_queue)

    def _retry(self, cluster_queue: str) -> None:
        """Who is parked gets another chance, in the next cycle: many are over at once, and one look does for all."""
        self._to_retry.add(cluster_queue)
        self._wake.set()

    def _retry_parked(self) -> None:
        if self._to_retry:
            names = [each for each in self._to_retry if each in self.admitter.queues]
            self._to_retry.clear()
            self.admitter.retry(names, wholeseconds.now(self._clock))

    def _tell_queues(self, of: workload.Workload) -> None:
        local = self._caches.local_queue_of(of)
        if local is not None:
            self.queue_changed(key_of(local))
            self.queue_changed(local.spec.cluster_queue)
        if of.status.admission is not None:
            self.queue_changed(of.status.admission.cluster_queue)

    # The loop

    async def run(self) -> None:
        """Admits until cancelled."""
        try:
            while True:
                await self._wake.wait()
                self._wake.clear()
                await self._cycles()
        finally:
            for task in self._tasks:
                task.cancel()

    async def _cycles(self) -> None:
        """Cycles until one changes nothing and none is left that was not tried."""
        tried: frozenset[str] = frozenset()
        while True:
            self._refresh()
            self._retry_parked()
            began = self._clock.monotonic()
            report = self.admitter.run_cycle(wholeseconds.now(self._clock))
            if report is None:
                return
            is_success = any(each.status is Status.ADMITTED for each in report.entries)
            self._measures.attempt(self._clock.monotonic() - began, is_success=is_success)
            self._carry_out(report)
            # Whoever was woken meanwhile is looked at first. Many end while decisions are written, and a cycle after
            # that finds room for all of them; one at a time, each would cost a look at every queue.
            await asyncio.sleep(0)
            await self._writes.catch_up()
            if is_success:
                tried = frozenset()
                continue
            heads = frozenset(each.info.key for each in report.entries)
            if heads <= tried:
                return
            tried |= heads

    def _refresh(self) -> None:
        """Brings the admitter up to date with queues and places."""
        if self._are_places_stale:
            self._are_places_stale = False
            self.admitter.set_places(self._caches.places)
            self.admitter.set_runtime_classes(self._caches.runtime_classes_by_name)
            if not self._are_queues_stale:
                self._retry_all()
        if self._are_queues_stale:
            self._are_queues_stale = False
            self._set_queues()

    def _set_queues(self) -> None:
        caches = self._caches
        queues = tuple(caches.cluster_queues.cache)
        readiness = {each.metadata.name: (each.spec, caches.readiness(each)) for each in queues}
        holders = [
            each
            for each in caches.workloads.cache
            if workloadstate.has_reservation(each)
            and not workloadstate.is_finished(each)
            and not self.is_decided(workloadstate.key(each))
        ]
        decided = [each for each in self._writes.under_way() if each.status.admission is not None]
        self.admitter.set_queues(
            queues,
            cohorts=caches.cohorts.cache,
            local_queues=caches.local_queues.cache,
            flavors=caches.flavors.cache,
            inactive=[name for name, (_, each) in readiness.items() if not each.is_active],
            holders=[*holders, *decided],
        )
        changed = [name for name, value in readiness.items() if self._readiness.get(name) != value]
        changed += [name for name in self._readiness if name not in readiness]
        self._readiness = readiness
        for name in changed:
            self._look_at_all_of(name)
            self.queue_changed(name)
        for local in caches.local_queues.cache:
            self.queue_changed(key_of(local))
            for each in caches.workloads.cache.by(BY_LOCAL_QUEUE, key_of(local)):
                if workloadstate.key(each) not in self.admitter.snapshot.holders:
                    self.look_again(key_of(each))
        self._retry_all()

    def _retry_all(self) -> None:
        now = wholeseconds.now(self._clock)
        for queue in self.admitter.queues.values():
            queue.retry(now)
        self._wake.set()

    def _look_at_all_of(self, cluster_queue: str) -> None:
        for each in self._caches.workloads.cache.by(BY_CLUSTER_QUEUE, cluster_queue):
            self.look_again(key_of(each))

    # Writing

    def _carry_out(self, report: CycleReport) -> None:
        now = wholeseconds.now(self._clock)
        entries = {each.info.key: each for each in report.entries}
        self._misplaced |= {key for key, each in entries.items() if each.quota_reason == PLACEMENT_FAILED}
        for key, after in report.workloads.items():
            if key not in entries:
                self._measures.displaced(report, after)
            self._writes.put(key, workloadwrites.with_times(after, now))
        for told in report.events:
            self._tell(told.key, told.type, told.reason, message=told.message)

    def _tell(self, key: str, kind: str, reason: str, *, message: str) -> None:
        namespace, _, name = key.partition("/")
        known = self._caches.workloads.cache.get(name, namespace=namespace)
        if known is not None:
            self._recorder.record(
                workload_reference(known),
                type=events.WARNING if kind == events.WARNING else events.NORMAL,
                reason=reason,
                message=message,
            )

    def _on_written(self, key: str) -> None:
        self.look_again(key)

    def _on_refused(self, key: str, pause: float) -> None:
        """Take back a decision about a workload, and reconcile it after a pause. What is stored counts again."""
        namespace, _, name = key.partition("/")
        stored = self._caches.workloads.cache.get(name, namespace=namespace)
        if stored is not None and workloadstate.has_reservation(stored) and not workloadstate.is_finished(stored):
            self.admitter.hold(stored)
        else:
            self._release(key)
        self.admitter.forget(key)
        if self.admitter.ledger is not None:
            self.admitter.ledger.drop(key)
        if pause:
            self.look_again_after(key, pause)
        else:
            self.look_again(key)


def workload_reference(of: workload.Workload) -> event.ObjectReference:
    """How events name a workload."""
    return event.ObjectReference(
        kind="Workload",
        namespace=of.metadata.namespace,
        name=of.metadata.name,
        uid=of.metadata.uid,
        api_version=f"{resources.GROUP}/{resources.VERSION}",
        resource_version=of.metadata.resource_version,
    )
