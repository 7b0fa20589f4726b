"""The admission loop: runs cycles while a workload may be admitted, and writes their decisions in the background.

A decision counts before it is written (:mod:`decisionwrites`): the next cycle is based on it. A decision that cannot be
written is revoked, and its workload is reconciled again. All state follows from objects, so a new process arrives at
the same state.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from datetime import datetime
from typing import Any, Final

from drachma.allocator import Features
from drachma.queueing.admission.admitter import Admitter, CycleReport
from drachma.queueing.admission.entry import Status
from drachma.queueing.admission.feasibility import PLACEMENT_FAILED, Placement
from drachma.queueing.admission.topologyplacement import needs_second_pass
from drachma.queueing.component import resources, workloadwrites
from drachma.queueing.component.activeconfiguration import ActiveConfiguration
from drachma.queueing.component.caches import (
    Caches,
    call_on_change,
    key_of,
)
from drachma.queueing.component.decisionwrites import DecisionWrites
from drachma.queueing.component.deviceview import DeviceView
from drachma.queueing.component.nodefollower import NodeFollower
from drachma.queueing.component.pendingview import PendingView
from drachma.queueing.component.queuefollower import QueueFollower
from drachma.queueing.component.queuemeasures import QueueMeasures
from drachma.queueing.component.statusrequests import StatusRequests
from drachma.queueing.component.workloadwriter import workload_reference
from drachma.queueing.component.workloadwrites import WorkloadLocks
from drachma.queueing.configuration.queueingpolicy import Feasibility
from drachma.queueing.devices.requests import DeviceRequests
from drachma.queueing.kinds import clusterqueue, workload
from drachma.queueing.lifecycle import workloadreconcile
from drachma.queueing.workloads import workloadstate
from drachma.runtime import Surroundings, defects, events, workqueue

_PAUSE_SECONDS: Final = 10.0
"""Time before admission starts again after it failed unexpectedly."""

_STOPPED: Final = (clusterqueue.HOLD, clusterqueue.HOLD_AND_DRAIN)


class Admission:
    """The loop, and the admitter that it runs."""

    name: Final = "admission"

    def __init__(
        self,
        surroundings: Surroundings,
        caches: Caches,
        configured: ActiveConfiguration,
        *,
        recorder: events.Recorder,
        measures: QueueMeasures,
        workloads: workqueue.Queue[str],
        statuses: StatusRequests,
        locks: WorkloadLocks,
        placement: Placement | None = None,
        view: PendingView | None = None,
    ) -> None:
        """``workloads`` is the work queue of the workload controller; ``statuses`` has the queues to report."""
        self._informers: Final = surroundings.informers
        self._placement: Final = placement
        self._features: Final = Features.of(surroundings.gates)
        self._devices: DeviceView | None = None
        """Devices that places on topologies must have, once the policy has required it."""
        self._misplaced: set[str] = set()
        """Workloads that quota would admit and whose pods find no nodes, since they were last tried."""
        self._clock: Final = surroundings.clock
        self._caches: Final = caches
        self._configured: Final = configured
        self._recorder: Final = recorder
        self._measures: Final = measures
        self._view: Final = view or PendingView()
        self.admitter = self._make_admitter()
        self._workloads: Final = workloads
        self._statuses: Final = statuses
        self._wake: Final = asyncio.Event()
        self._writes: Final = DecisionWrites(
            surroundings.client,
            caches.workloads,
            recorder=recorder,
            locks=locks,
            observe=surroundings.informers.of(resources.WORKLOADS, with_documents=True).observe,
            sleep=surroundings.clock.sleep,
            spawn=self._spawn,
            on_written=self._handle_written,
            on_refused=self._handle_refused,
        )
        self._tasks: Final[set[asyncio.Task[None]]] = set()
        self._are_places_stale = True
        self._to_retry: set[str] = set()
        """Cluster queues in which quota became free since the last cycle."""
        self._nodes: Final = NodeFollower(caches, admitter=lambda: self.admitter, on_room=self._handle_room)
        self._second_pass: datetime | None = None
        """Time of the next second pass that a task waits for."""
        self._queues: Final = QueueFollower(
            caches,
            admitter=lambda: self.admitter,
            writes=self._writes,
            workloads=workloads,
            statuses=statuses,
            clock=surroundings.clock,
            on_change=self._wake.set,
        )
        for place in (caches.namespaces, caches.limit_ranges, caches.runtime_classes):
            call_on_change(place, self._handle_place)
        configured.subscribe(self._handle_configuration)

    def _make_admitter(self) -> Admitter:
        placement = self._placement
        if self._configured.policy.feasibility is not Feasibility.REQUIRED:
            placement = None
        if placement is not None:
            placement.follow(self._handle_cluster)
            if self._devices is None:
                self._devices = DeviceView(self._caches, self._features)
        admitter = Admitter(
            placement=placement,
            devices=self._devices.inventory if placement is not None and self._devices is not None else None,
            settings=self._configured.settings,
            counting=self._configured.counting,
            runtime_classes=self._caches.runtime_classes_by_name,
        )
        self._view.show(admitter)
        return admitter

    # Event handlers

    def _handle_room(self) -> None:
        """Retry workloads that found no places on a topology."""
        self._to_retry.update(self.admitter.topology_queues())
        self._wake.set()

    def _handle_place(self) -> None:
        self._are_places_stale = True
        self._wake.set()

    def _handle_configuration(self) -> None:
        """Rebuild the admitter and reconcile all workloads."""
        self.admitter = self._make_admitter()
        self._are_places_stale = True
        self._queues.expire()
        for each in self._caches.workloads.cache:
            self._workloads.hasten(key_of(each))
        self._wake.set()
        if self._configured.policy.feasibility is Feasibility.REQUIRED:
            self._spawn(self._await_informers(), name="what placement follows")

    async def _await_informers(self) -> None:
        """Retry after the informers that a new configuration needs are synced."""
        await self._informers.wait_synced()
        self._handle_cluster()

    def _handle_cluster(self) -> None:
        """Retry workloads whose pods found no nodes, because nodes, devices or pods have changed."""
        if self._misplaced:
            self._misplaced.clear()
            self._retry_all()

    def _spawn(self, work: Coroutine[Any, Any, None], *, name: str) -> None:
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def is_decided(self, key: str) -> bool:
        """Return True if a decision about a workload is not written yet."""
        return self._writes.is_under_way(key)

    def parked_reason(self, wl: workload.Workload) -> str | None:
        """Return the reason why a workload was parked without being tried."""
        queue = self.admitter.queues.get(self.admitter.queue_of(wl) or "")
        key = workloadstate.key(wl)
        if queue is None or queue.parked_reason(key) is None:
            return None
        self._retry_parked()
        return queue.parked_reason(key)

    def update(self, wl: workload.Workload, devices: DeviceRequests | None) -> None:
        """Update the admitter with a workload: it holds quota, it is pending, or neither."""
        key = workloadstate.key(wl)
        if self.is_decided(key):
            return
        self._refresh()
        if workloadstate.has_reservation(wl) and not workloadstate.is_finished(wl):
            before = self.admitter.snapshot.holders.get(key)
            self.admitter.hold(wl)
            after = self.admitter.snapshot.holders.get(key)
            if before is not None and after is not None and before.usage != after.usage:
                self._retry(after.cluster_queue)
            if self._configured.settings.blocks_admission:
                self._wake.set()
            if needs_second_pass(wl):
                self.admitter.second_passes.put(key, workloadwrites.current_time(self._clock))
                self._await_second_pass()
            else:
                self.admitter.second_passes.drop(key)
            self._follow_usage(wl)
            self._request_statuses(wl)
            return
        self._release(key)
        self._follow_usage(wl)
        if workloadreconcile.is_admissible(wl, self._configured.gates) and self._is_open(wl):
            self.admitter.enqueue(wl, workloadwrites.current_time(self._clock), devices=devices)
            self._wake.set()
        else:
            self.admitter.forget(key)
        self._request_statuses(wl)

    def remove(self, wl: workload.Workload) -> None:
        """Remove a workload that is gone or belongs to no queue."""
        key = workloadstate.key(wl)
        self._release(key)
        self.admitter.forget(key)
        self._writes.forget(key)
        if self.admitter.ledger is not None:
            self.admitter.ledger.drop(key)
        self._request_statuses(wl)

    def _follow_usage(self, wl: workload.Workload) -> None:
        if self.admitter.ledger is not None:
            self.admitter.ledger.follow(
                wl, workloadwrites.current_time(self._clock), in_use=self.admitter.local_queue_usage
            )

    def wake(self) -> None:
        """Run a cycle, because the order of a queue has changed."""
        self._wake.set()

    def _is_open(self, wl: workload.Workload) -> bool:
        local = self._caches.local_queue_of(wl)
        return local is not None and local.spec.stop_policy not in _STOPPED

    def _release(self, key: str) -> None:
        info = self.admitter.snapshot.holders.get(key)
        if info is None:
            return
        self.admitter.second_passes.drop(key)
        self.admitter.release(key)
        self._retry(info.cluster_queue)

    def _retry(self, cluster_queue: str) -> None:
        """Retry parked workloads in the next cycle: many workloads end at once, and one pass serves all."""
        self._to_retry.add(cluster_queue)
        self._wake.set()

    def _retry_parked(self) -> None:
        if self._to_retry:
            names = [each for each in self._to_retry if each in self.admitter.queues]
            self._to_retry.clear()
            self.admitter.retry(names, workloadwrites.current_time(self._clock))

    def _request_statuses(self, wl: workload.Workload) -> None:
        local = self._caches.local_queue_of(wl)
        if local is not None:
            self._statuses.add(key_of(local))
            self._statuses.add(local.spec.cluster_queue)
        if wl.status.admission is not None:
            self._statuses.add(wl.status.admission.cluster_queue)

    # The loop

    async def run(self) -> None:
        """Run admission until cancelled."""
        try:
            while True:
                await self._wake.wait()
                self._wake.clear()
                try:
                    await self._cycles()
                except Exception:
                    # A defect that one object shows must not end the process, which may be that of the API server.
                    defects.PROCESS.report("admission", f"starts again in {_PAUSE_SECONDS:g} seconds")
                    await self._clock.sleep(_PAUSE_SECONDS)
                    self._queues.are_all_stale = True
                    self._wake.set()
        finally:
            for task in self._tasks:
                task.cancel()

    async def _cycles(self) -> None:
        """Run cycles until one changes nothing and every head was tried."""
        tried: frozenset[str] = frozenset()
        while True:
            self._refresh()
            self._retry_parked()
            began = self._clock.monotonic()
            report = self.admitter.run_cycle(workloadwrites.current_time(self._clock))
            self._await_second_pass()
            if report is None:
                return
            is_success = any(each.status is Status.ADMITTED for each in report.entries)
            self._measures.count_cycle(self._clock.monotonic() - began, is_success=is_success)
            self._carry_out(report)
            # Reconcile the workloads that were added meanwhile first. Many workloads end while decisions are written,
            # and one cycle after that admits into all of the freed quota.
            await asyncio.sleep(0)
            await self._writes.catch_up()
            if is_success:
                tried = frozenset()
                continue
            heads = frozenset(each.info.key for each in report.entries)
            if heads <= tried:
                return
            tried |= heads

    def _await_second_pass(self) -> None:
        """Wake the loop when the next second pass is due."""
        next_pass = self.admitter.second_passes.next_due
        if next_pass is None or (self._second_pass is not None and self._second_pass <= next_pass):
            return
        self._second_pass = next_pass
        self._spawn(self._wake_at(next_pass), name="second pass")

    async def _wake_at(self, moment: datetime) -> None:
        await self._clock.sleep(max(0.0, (moment - self._clock.utc()).total_seconds()))
        if self._second_pass == moment:
            self._second_pass = None
        self._wake.set()

    def _refresh(self) -> None:
        """Update the admitter with changed queues and namespaces."""
        if self._are_places_stale:
            self._are_places_stale = False
            self.admitter.set_places(self._caches.places)
            self.admitter.set_runtime_classes(self._caches.runtime_classes_by_name)
            self._retry_all()
        if self._queues.are_all_stale:
            self._nodes.fill()
        self._queues.refresh()

    def _retry_all(self) -> None:
        now = workloadwrites.current_time(self._clock)
        for queue in self.admitter.queues.values():
            queue.retry(now)
        self._wake.set()

    # Writes

    def _carry_out(self, report: CycleReport) -> None:
        now = workloadwrites.current_time(self._clock)
        entries = {each.info.key: each for each in report.entries}
        self._misplaced |= {key for key, each in entries.items() if each.quota_reason == PLACEMENT_FAILED}
        for key, after in report.workloads.items():
            if key not in entries:
                self._measures.count_displaced(report, after)
            self._writes.put(key, workloadwrites.with_times(after, now))
        for each in report.events:
            self._record(each.key, each.type, each.reason, message=each.message)

    def _record(self, key: str, kind: str, reason: str, *, message: str) -> None:
        namespace, _, name = key.partition("/")
        wl = self._caches.workloads.cache.get(name, namespace=namespace)
        if wl is not None:
            self._recorder.record(
                workload_reference(wl),
                type=events.WARNING if kind == events.WARNING else events.NORMAL,
                reason=reason,
                message=message,
            )

    def _handle_written(self, key: str) -> None:
        self._workloads.hasten(key)

    def _handle_refused(self, key: str, pause: float) -> None:
        """Revoke a decision, and reconcile its workload after a pause. The stored workload counts again."""
        namespace, _, name = key.partition("/")
        wl = self._caches.workloads.cache.get(name, namespace=namespace)
        if wl is not None and workloadstate.has_reservation(wl) and not workloadstate.is_finished(wl):
            self.admitter.hold(wl)
        else:
            self._release(key)
        self.admitter.forget(key)
        if self.admitter.ledger is not None:
            self.admitter.ledger.drop(key)
        if pause:
            self._workloads.add_after(key, pause)
        else:
            self._workloads.hasten(key)
