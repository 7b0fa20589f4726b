"""The scheduler: pops pods, decides, assumes, and has the rest written in the background.

Deciding is one step, so between two decisions nothing changes but what informers and binders report in between. A
decision that takes long is made in a thread, and changes that are reported meanwhile wait until it is carried out. A
pod that was placed is counted in the snapshot at once and bound later (:mod:`~drachma.scheduler.bindingcycle`). A pod
that fits nowhere goes back to the queue (:mod:`~drachma.scheduler.failures`).

Run it as a task next to the informers. It can be cancelled at any point: the next scheduler continues from what the API
shows.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Collection, Coroutine, Mapping, Sequence
from typing import Any, Final

from drachma.api import pod
from drachma.runtime import Surroundings, defects, events
from drachma.scheduler import (
    binder,
    bindingcycle,
    cycle,
    deliberation,
    failures,
    gatedpods,
    handlers,
    messages,
    metrics,
    neighbours,
    peers,
    podstatus,
    profiles,
    queue,
    recording,
    remedies,
)
from drachma.scheduler.cycle import gangsearch, groupreport, units
from drachma.scheduler.cycle.decision import Aborted
from drachma.scheduler.framework import eviction, handle, hints
from drachma.scheduler.framework.profile import Profile
from drachma.scheduler.settings import Settings
from drachma.scheduler.snapshot import Snapshot, gangs, podinfo

_log = logging.getLogger(__name__)

_GANG: Final = frozenset({hints.GANG_SCHEDULING})

_DECISIONS: Final = 16
"""Decisions in one turn of the event loop, at most. Their bindings are written together."""

_TURN_SECONDS: Final = 0.005
"""Time after which other tasks run, whatever the number of decisions."""


class Scheduler:
    """Schedules the pods of one ``schedulerName``, or of several with a profile each."""

    def __init__(
        self,
        surroundings: Surroundings,
        *,
        settings: Settings | None = None,
        profile: Profile | None = None,
        recorder: recording.Recorder | None = None,
    ) -> None:
        """``profile`` replaces the default profile. ``recorder`` records all decisions."""
        client, informers = surroundings.client, surroundings.informers
        clock, rng = surroundings.clock, surroundings.rng
        self._settings: Final = settings or Settings(gates=surroundings.gates)
        self._clock: Final = clock
        self._informers: Final = informers
        self._ready: Final = asyncio.Event()
        self._tasks: Final[set[asyncio.Task[None]]] = set()
        self.metrics: Final = metrics.Metrics(surroundings.registry, profiles=self._settings.names)
        self.snapshot: Final = Snapshot(self._settings.gates)
        # Announcements of peers change the snapshot directly, and checks of allocations read it at any time.
        has_others = self._settings.has_peers or self._settings.has_neighbours
        self._deliberation: Final = deliberation.Deliberation(clock.monotonic, has_thread=not has_others)
        plugins = profile or profiles.default(self._settings, clock=clock, rng=rng)
        self._units: Final = units.Units(
            cycle.Cycle(
                plugins,
                rng=rng,
                monotonic=clock.monotonic,
                observe=lambda point, seconds, profile: self.metrics.point(point, seconds, profile=profile),
                prefer=self._prefer,
            ),
            plugins,
            gates=self._settings.gates,
            gang_steps=self._settings.gang_steps,
        )
        self.queue: Final = queue.Queue(
            plugins.hints(self.snapshot),
            lambda waiting_pod: plugins.pre_enqueue(waiting_pod, self.snapshot),
            monotonic=clock.monotonic,
            pauses=self._settings.pauses,
            count=self.metrics.incoming,
            on_ready=self._ready.set,
            is_being_helped=lambda uid: self._remedies.is_helping(uid),
        )
        self.metrics.watch(self.queue, self.snapshot)
        # Not the recorder of the surroundings, which several schedulers of one name may share.
        self._recorder: Final = events.Recorder(client, component=self._settings.name, clock=clock, rng=rng)
        self._gated: Final = gatedpods.GatedPods(
            self.queue,
            lambda waiting_pod: plugins.pre_enqueue(waiting_pod, self.snapshot),
            plugin=hints.DYNAMIC_RESOURCES,
            recorder=self._recorder,
            clock=clock,
        )
        self._statuses: Final = podstatus.PodStatusWriter(client, clock=clock)
        self._group_statuses: Final = podstatus.PodGroupStatusWriter(client, clock=clock)
        self._peers: Final = (
            peers.Peers(
                client,
                informers,
                self.snapshot,
                self.queue,
                profile=plugins,
                settings=self._settings,
                clock=clock,
                rng=rng,
            )
            if self._settings.has_peers
            else None
        )
        self._neighbours: Final = (
            neighbours.Neighbours(
                client,
                informers,
                self.snapshot,
                name=self._settings.name,
                recorder=self._recorder,
                measures=self.metrics,
                clock=clock,
                spawn=self._spawn,
            )
            if self._settings.has_neighbours
            else None
        )
        plugin_handle = handle.Handle(
            self._settings.name,
            client,
            clock,
            rng,
            self._recorder,
            self.metrics,
            self._peers,
            self._neighbours or self._peers,
        )
        self._binder: Final = binder.Binder(
            plugin_handle,
            profile=plugins,
            binders=self._settings.binders,
            metrics=self.metrics,
            peers=self._peers,
        )
        self._remedies: Final = remedies.Remedies(self.queue, plugin_handle, spawn=self._spawn)
        self._failures: Final = failures.Failures(
            self.snapshot,
            self.queue,
            informers.of(pod.Pod),
            statuses=self._statuses,
            recorder=self._recorder,
            metrics=self.metrics,
            clock=clock,
            peers=self._peers,
        )
        self._binding: Final = bindingcycle.BindingCycle(
            self.snapshot,
            self.queue,
            binder=self._binder,
            deliberation=self._deliberation,
            failures=self._failures,
            recorder=self._recorder,
            metrics=self.metrics,
            clock=clock,
            spawn=self._spawn,
        )
        sources = self._deliberation.delay(informers)
        handlers.Handlers(self.snapshot, self.queue, settings=self._settings, peers=self._peers).register(sources)
        if self._neighbours is not None:
            self._neighbours.register()
        self._recording: Final = recorder
        if recorder is not None:
            recorder.attach(sources, self.snapshot)

    async def run(self) -> None:
        """Schedule until cancelled. The first decision waits until the informers are synced."""
        with contextlib.nullcontext() if self._recording is None else self._recording.open():
            await self._run()

    async def _run(self) -> None:
        await self._informers.wait_synced()
        self.snapshot.recount()
        count = len(self.snapshot.nodes)
        _log.debug("scheduler %s: %d nodes, %d pods wait", self._settings.name, count, len(self.queue))
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._recorder.run(), name="events of the scheduler")
                if self._peers is not None:
                    group.create_task(self._peers.run(), name="other schedulers")
                gated = defects.survive("pods that wait for claims", self._gated.run, clock=self._clock)
                group.create_task(gated, name="pods that wait for claims")
                group.create_task(self._schedule(), name="scheduling")
        finally:
            self._deliberation.close()
            for task in tuple(self._tasks):
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    async def settle(self) -> None:
        """Return once nothing is left to do without a change from outside: no pod to try, nothing to write."""
        while True:
            if self._tasks:
                await asyncio.wait(set(self._tasks))
            await self._statuses.flush()
            if not self._tasks and not self.queue.size(queue.Where.ACTIVE):
                return
            await asyncio.sleep(0)

    async def _schedule(self) -> None:
        if self._peers is not None:
            await self._peers.joined()
        most = 1 if self._peers is not None or self._neighbours is not None else _DECISIONS
        count, began = 0, self._clock.monotonic()
        while True:
            await self._binder.room()
            entry = self.queue.pop()
            if entry is None:
                await self._wait()
                count, began = 0, self._clock.monotonic()
                continue
            try:
                await self._attempt(entry)
            except Exception as error:
                # A defect that one pod shows must not end the process of all.
                defects.PROCESS.report("scheduler", entry.info.key)
                self._failures.failed([entry], _describe_defect(error), began=self._clock.monotonic())
            finally:
                self._deliberation.settle()
            count += 1
            if count >= most or self._clock.monotonic() - began >= _TURN_SECONDS:
                # Informers run, and binders write for all pods that were decided about since the last turn.
                await asyncio.sleep(0)
                count, began = 0, self._clock.monotonic()

    async def _wait(self) -> None:
        """Wait until a pod becomes active, or until the time at which the queue has one to activate."""
        self._ready.clear()
        until = self.queue.next_time()
        if until is None:
            await self._ready.wait()
            return
        tasks = {
            asyncio.ensure_future(self._ready.wait()),
            asyncio.ensure_future(self._clock.sleep(max(until - self._clock.monotonic(), 0.001))),
        }
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()

    def _prefer(self, nodes: int) -> int:
        return nodes if self._peers is None else self._peers.prefer(nodes)

    # One unit

    async def _attempt(self, entry: queue.QueuedPod) -> None:
        info = entry.info
        if info.pod.metadata.deletion_timestamp is not None:
            self._failures.skip(entry)
            return
        if self._peers is not None and self._peers.is_elsewhere(info.uid):
            self._failures.hold_back(entry, info.pod)
            return
        unit = self._units.unit(info, self.snapshot)
        entries: Sequence[queue.QueuedPod] = (entry,)
        if isinstance(unit.gang, gangs.Gang):
            entries = self._take_members(entry, unit.gang)
            unit = unit._replace(members=[each.info for each in entries])
        began = self._clock.monotonic()
        try:
            decision = await self._deliberation.decide(lambda: self._units.decide(unit, self.snapshot))
        except Exception as error:
            # A decision changes nothing, so all pods of the unit can be put back.
            defects.PROCESS.report("scheduler", info.key)
            self._failures.failed(entries, _describe_defect(error), began=began)
            return
        if isinstance(decision, gangsearch.Outcome):
            self.metrics.algorithm.observe(self._clock.monotonic() - began)
            if self._recording is not None:
                self._recording.decided(unit, decision)
        match decision:
            case gangsearch.Together():
                self._place(unit, entries, decision, began=began)
            case gangsearch.Short():
                await self._relieve(unit, entries, decision, began=began)
            case units.Gated():
                self._gate(entries, decision)
            case units.Refused(message=message) | Aborted(message=message):
                self._write_group(unit, status="False", reason=messages.SCHEDULER_ERROR, message=message)
                self._failures.failed(entries, message, began=began)

    def _take_members(self, entry: queue.QueuedPod, gang: gangs.Gang) -> Sequence[queue.QueuedPod]:
        """Take the other waiting pods of a gang out of the queue, and return all of them, most important first."""
        other_members = (self.queue.take(key, uid) for uid, key in gang.members.items() if uid != entry.info.uid)
        return sorted(
            [entry, *(each for each in other_members if each is not None)],
            key=lambda each: (-each.info.priority, each.info.key),
        )

    def _place(
        self, unit: units.Unit, entries: Sequence[queue.QueuedPod], decision: gangsearch.Together, *, began: float
    ) -> None:
        by_uid = {each.info.uid: each for each in entries}
        if decision.placements:
            self._binding.start([(by_uid[each.info.uid], each) for each in decision.placements], began=began)
            placed_uids = {each.info.uid for each in decision.placements}
            self._write_group(unit, status="True", reason=messages.SCHEDULED, among=placed_uids)
        for unfit in decision.surplus:
            rejectors = _GANG | unfit.diagnosis.plugins
            message = unfit.diagnosis.message()
            entry = by_uid[unfit.info.uid]
            self._failures.unschedulable(entry, message, rejectors=rejectors, nominated=None, began=began)

    async def _relieve(
        self, unit: units.Unit, entries: Sequence[queue.QueuedPod], short: gangsearch.Short, *, began: float
    ) -> None:
        """Put back pods that fit nowhere, and start what may help them."""
        is_evicting = unit.gang is not None and self._remedies.is_under_way(eviction.title(unit.preemptor))
        began_relief = self._clock.monotonic()
        relief = await self._deliberation.decide(
            lambda: self._units.relieve(unit, short, self.snapshot, is_evicting=is_evicting)
        )
        self._remedies.start(relief.remedies, unit.members)
        seconds, profile = self._clock.monotonic() - began_relief, unit.members[0].scheduler
        rejectors = frozenset(each for unfit in short.all_unfit for each in unfit.diagnosis.plugins)
        if unit.gang is None:
            if short.unfit is not None and short.unfit.diagnosis.node_count:
                self.metrics.preemption_attempts.inc()
            self.metrics.point("PostFilter", seconds, profile=profile)
        else:
            rejectors |= _GANG
            if not is_evicting:
                self.metrics.point("PodGroupPostFilter", seconds, profile=profile)
                self.metrics.workload_preemption("Success" if relief.has_room else "Unschedulable")
        message = " ".join(filter(None, (units.describe(unit, short), relief.message)))
        texts = None if short.report is None else groupreport.texts(short.report, relief.message)
        for entry in entries:
            nominated = _nominated(entry.info, relief.nodes)
            text = message if texts is None else texts.pods.get(entry.info.uid, message)
            self._failures.unschedulable(entry, text, rejectors=rejectors, nominated=nominated, began=began)
        if texts is not None:
            for key, text in texts.groups.items():
                self._write_condition(key, status="False", reason=messages.UNSCHEDULABLE, message=text)

    def _gate(self, entries: Sequence[queue.QueuedPod], gated: units.Gated) -> None:
        for each in entries:
            self._failures.put_back(
                each,
                reason=messages.UNSCHEDULABLE,
                message=gated.message,
                rejectors=_GANG,
                nominated=None,
                with_event=not gated.is_brief,
                is_silent=gated.is_silent,
            )

    def _write_group(
        self, unit: units.Unit, *, status: str, reason: str, message: str = "", among: Collection[str] | None = None
    ) -> None:
        """Write the outcome to the status of the unit's PodGroups, or of those with pods ``among`` these uids."""
        for leaf in unit.gang.leaves if isinstance(unit.gang, gangs.Gang) else ():
            if among is None or any(uid in among for uid in leaf.members):
                self._write_condition(leaf.key, status=status, reason=reason, message=message)

    def _write_condition(self, key: gangs.GangKey, *, status: str, reason: str, message: str) -> None:
        group = self.snapshot.gangs.group(key)
        if group is not None:
            work = self._group_statuses.write(group, status=status, reason=reason, message=message)
            self._spawn(work, f"status of pod group {group.metadata.namespace}/{group.metadata.name}")

    # Background tasks

    def _spawn(self, work: Coroutine[Any, Any, None], name: str) -> None:
        task = asyncio.create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.error("%s failed", task.get_name(), exc_info=error)


def _describe_defect(error: Exception) -> str:
    return f"the scheduler has a defect: {type(error).__name__}: {error}"


def _nominated(info: podinfo.PodInfo, nodes: Mapping[str, str] | None) -> str | None:
    return None if nodes is None else nodes.get(info.uid, "")
