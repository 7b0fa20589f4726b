"""The scheduler: pops pods, decides, assumes, and has the rest written in the background.

Deciding is one step, so between two decisions nothing moves but what informers and binders report in between. A
decision that takes long is made in a thread, and changes that are reported meanwhile wait for its end. A pod that was
decided is counted in the snapshot at once and written later; if that fails it is uncounted, whatever was written is
taken back, and it goes back to the queue.

Run it as a task next to the informers; cancelling it ends it at any point, and another one takes up from what the API
shows.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from typing import Any, Final, TypeAlias

import msgspec

from drachma.api import pod
from drachma.client import protocol
from drachma.runtime import Surroundings, events
from drachma.scheduler import (
    binder,
    bindings,
    cycle,
    deliberation,
    evictor,
    gangpreemption,
    gangsearch,
    handlers,
    messages,
    metrics,
    peers,
    podgroupstatus,
    podstatus,
    profiles,
    queue,
    recording,
    remedies,
    settings,
)
from drachma.scheduler.decision import Aborted, Placed, Unfit
from drachma.scheduler.framework import profile, remedy
from drachma.scheduler.plugins import gangscheduling
from drachma.scheduler.plugins.dynamicresources import claimwriter
from drachma.scheduler.snapshot import Snapshot, gangs, podinfo
from drachma.scheduler.snapshot.changes import Action, Change, Resource

_log = logging.getLogger(__name__)

_GANG: Final = frozenset({gangscheduling.NAME})
_Attempt: TypeAlias = tuple[queue.QueuedPod, bindings.Binding]


class Scheduler:
    """Schedules the pods of one ``schedulerName``."""

    def __init__(
        self,
        surroundings: Surroundings,
        *,
        chosen: settings.Settings | None = None,
        plugins: profile.Profile | None = None,
        recorder: recording.Recorder | None = None,
    ) -> None:
        """``plugins`` take the place of the default profile; ``recorder`` hears of all decisions."""
        client, shared = surroundings.client, surroundings.informers
        self._settings: Final = chosen or settings.Settings(gates=surroundings.gates)
        self._clock: Final = surroundings.clock
        self._chance: Final = surroundings.chance
        self._informers: Final = shared
        self._pods: Final = shared.of(pod.Pod)
        self._ready: Final = asyncio.Event()
        self._tasks: Final[set[asyncio.Task[None]]] = set()
        enabled = self._settings.gates
        self.metrics: Final = metrics.Metrics(
            surroundings.registry,
            profile=self._settings.name,
        )
        self.snapshot: Final = Snapshot(enabled)
        # What other schedulers announce changes the snapshot by ways of its own.
        self._deliberation: Final = deliberation.Deliberation(
            self._clock.monotonic, has_thread=not self._settings.has_peers
        )
        self._profile: Final = plugins or profiles.default(self._settings, time=self._clock, chance=self._chance)
        self._cycle: Final = cycle.Cycle(
            self._profile,
            chance=self._chance,
            monotonic=self._clock.monotonic,
            observe=self.metrics.point,
            favoured=self._favoured,
        )
        self.queue: Final = queue.Queue(
            self._profile.hints(self.snapshot),
            lambda waiting: self._profile.pre_enqueue(waiting, self.snapshot),
            monotonic=self._clock.monotonic,
            pauses=self._settings.pauses,
            count=self.metrics.incoming,
            wakened=self._ready.set,
        )
        self.metrics.watch(self.queue, self.snapshot)
        # Not that of its surroundings: several schedulers of one name may be in the same.
        self._recorder: Final = events.Recorder(
            client, component=self._settings.name, time=self._clock, chance=self._chance
        )
        self._statuses: Final = podstatus.PodStatusWriter(client, time=self._clock)
        self._groups: Final = podgroupstatus.PodGroupStatusWriter(client, time=self._clock)
        self._peers: Final = self._make_peers(client) if self._settings.has_peers else None
        self._binder: Final = binder.Binder(
            client,
            plugins=self._profile,
            chosen=self._settings,
            time=self._clock,
            chance=self._chance,
            recorder=self._recorder,
            measured=self.metrics,
            others=self._peers,
        )
        self._remedies: Final = remedies.Remedies(
            self.queue,
            writer=claimwriter.ClaimWriter(
                client,
                time=self._clock,
                chance=self._chance,
                with_timestamps=enabled.binding_conditions,
            ),
            evicting=evictor.Evictor(client, time=self._clock, recorder=self._recorder),
            measured=self.metrics,
            spawn=self._spawn,
            scheduler=self._settings.name,
            others=self._peers,
        )
        sources = self._deliberation.delay(shared)
        handlers.Handlers(self.snapshot, self.queue, chosen=self._settings, others=self._peers).register(sources)
        self._recording: Final = recorder
        if recorder is not None:
            recorder.attach(sources, self.snapshot)

    def _make_peers(self, client: protocol.Client) -> peers.Peers:
        return peers.Peers(
            client,
            self._informers,
            self.snapshot,
            self.queue,
            chosen=self._settings,
            time=self._clock,
            chance=self._chance,
        )

    async def run(self) -> None:
        """Schedules until cancelled; begins once the informers have everything."""
        with contextlib.nullcontext() if self._recording is None else self._recording.open():
            await self._run()

    async def _run(self) -> None:
        await self._informers.wait_synced()
        self.snapshot.recount()
        count = len(self.snapshot.nodes)
        _log.info("scheduler %s: %d nodes, %d pods wait", self._settings.name, count, len(self.queue))
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._recorder.run(), name="events of the scheduler")
                if self._peers is not None:
                    group.create_task(self._peers.run(), name="other schedulers")
                group.create_task(self._schedule(), name="scheduling")
        finally:
            self._deliberation.close()
            for task in tuple(self._tasks):
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    async def settle(self) -> None:
        """Returns once nothing can be done without a change from outside: no pod to try, nothing to write."""
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
        while True:
            await self._binder.room()
            entry = self.queue.pop()
            if entry is None:
                await self._wait()
                continue
            try:
                await self._attempt(entry)
            finally:
                self._deliberation.settle()
            # Informers and binders get their turn between any two decisions.
            await asyncio.sleep(0)

    async def _wait(self) -> None:
        self._ready.clear()
        until = self.queue.next_time()
        if until is None:
            await self._ready.wait()
            return
        waiting = {
            asyncio.ensure_future(self._ready.wait()),
            asyncio.ensure_future(self._clock.sleep(max(until - self._clock.monotonic(), 0.001))),
        }
        try:
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in waiting:
                task.cancel()

    def _favoured(self, nodes: int) -> int:
        return nodes if self._peers is None else self._peers.favoured(nodes)

    # One pod

    async def _attempt(self, entry: queue.QueuedPod) -> None:
        info = entry.info
        if info.pod.metadata.deletion_timestamp is not None:
            text = f"skip schedule deleting pod: {info.key}"
            self._recorder.record(info.pod, type=events.WARNING, reason="FailedScheduling", message=text)
            return
        if self._peers is not None and self._peers.is_elsewhere(info.uid):
            self.queue.put_back(entry, rejectors=frozenset(), current=info.pod)
            return
        gang = self.snapshot.gangs.of(info.pod) if self._settings.has_gangs else None
        match gang:
            case gangs.Undefined(problem=problem):
                self._return(entry, reason=messages.UNSCHEDULABLE, text=problem, rejectors=_GANG, nominated=None)
            case gangs.Gang() if (needed := self.snapshot.missing(gang)) > 1:
                await self._attempt_gang(entry, gang, needed=needed)
            case _:
                await self._attempt_alone(entry)

    async def _attempt_alone(self, entry: queue.QueuedPod) -> None:
        began = self._clock.monotonic()
        decided = await self._deliberation.decide(lambda: self._cycle.decide(entry.info, self.snapshot))
        self.metrics.algorithm.observe(self._clock.monotonic() - began)
        if self._recording is not None:
            self._recording.decided(decided)
        match decided:
            case Placed():
                self._assume([(entry, decided)], began=began)
            case Unfit():
                await self._unfit(entry, decided, began=began)
            case Aborted():
                self._failed(entry, decided.message, began=began)

    def _assume(self, decided: Iterable[tuple[queue.QueuedPod, Placed]], *, began: float) -> None:
        """Count pods and their devices, and have them written together."""
        reserving = self._clock.monotonic()
        attempts: list[_Attempt] = []
        for entry, placed in decided:
            self.snapshot.bind(placed.assignment)
            self.snapshot.nominations.remove(placed.info.uid)
            attempts.append((entry, bindings.Binding(placed)))
        self.metrics.point("Reserve", self._clock.monotonic() - reserving)
        self._spawn(self._bind(attempts, began=began), f"binding of {attempts[0][0].info.key}")

    async def _bind(self, attempts: Sequence[_Attempt], *, began: float) -> None:
        problem: bindings.BindingError | None = None
        try:
            await self._binder.bind([binding for _, binding in attempts])
        except bindings.BindingError as error:
            problem = error
            await self._deliberation.settled()
        for entry, binding in attempts:
            if binding.is_bound:
                self._bound(entry, binding, began=began)
            else:
                await self._unbind(binding)
        if problem is None:
            return
        await self._deliberation.settled()
        # Not before all is taken back: of a gang, nobody may take those for bound that are not.
        for entry, binding in attempts:
            if binding.is_bound:
                continue
            if isinstance(problem, bindings.CollidedError):
                self._collided(entry, problem)
            else:
                self._failed(entry, str(problem), began=began)

    def _bound(self, entry: queue.QueuedPod, binding: bindings.Binding, *, began: float) -> None:
        placed = binding.placed
        info = placed.info
        now = self._clock.monotonic()
        self.metrics.attempt(metrics.SCHEDULED, now - began)
        self.metrics.bound(entry.attempts, now - (entry.first_attempt or began))
        if entry.was_flushed:
            self.metrics.after_flush.inc()
        if not binding.is_told:
            text = messages.assigned(info.pod, node=placed.node)
            self._recorder.record(info.pod, type=events.NORMAL, reason=messages.SCHEDULED, message=text)
        _log.debug("pod %s bound to node %s, %d nodes would have done", info.key, placed.node, placed.feasible)

    async def _unbind(self, binding: bindings.Binding) -> None:
        """Take back all that was done for a pod that could not be bound."""
        await self._binder.undo(binding)
        await self._deliberation.settled()
        placed = binding.placed
        info = placed.info
        if self.snapshot.unbind(placed.assignment):
            self.queue.wake(Change(Resource.ASSIGNED_POD, Action.DELETE, info.pod, None), but=info.uid)
        for allocation in placed.assignment.allocations:
            # Its devices are free again, and whoever waited for the very claim can have a try.
            held = msgspec.structs.replace(
                allocation.claim,
                status=msgspec.structs.replace(allocation.claim.status, allocation=allocation.result),
            )
            self.queue.wake(Change(Resource.RESOURCE_CLAIM, Action.UPDATE, held, allocation.claim), but=info.uid)

    def _collided(self, entry: queue.QueuedPod, error: bindings.CollidedError) -> None:
        """Try a pod again, at once unless another scheduler has it: nothing about the pod itself is wrong."""
        _log.debug("pod %s: %s", entry.info.key, error)
        current = self._current(entry)
        if current is None:
            return
        if error.is_held:
            self.queue.put_back(entry, rejectors=frozenset(), current=current)
        else:
            self.queue.retry(entry, current=current)

    async def _unfit(self, entry: queue.QueuedPod, unfit: Unfit, *, began: float) -> None:
        info = unfit.info
        began_after = self._clock.monotonic()
        tried = await self._deliberation.decide(lambda: self._profile.post_filter(unfit.cycle, unfit.diagnosis))
        if unfit.diagnosis.node_count:
            self.metrics.preemption_attempts.inc()
        for proposed in tried.remedies:
            self._remedies.apply(proposed, info)
        self.metrics.point("PostFilter", self._clock.monotonic() - began_after)
        self.metrics.attempt(metrics.UNSCHEDULABLE, self._clock.monotonic() - began)
        nominated: str | None = None
        if tried.node:
            nominated = tried.node
            self._nominate(info, nominated)
        elif tried.is_hopeless:
            nominated = ""
            self.snapshot.nominations.remove(info.uid)
        text = unfit.diagnosis.message(tried.message)
        _log.debug("pod %s: %s", info.key, text)
        self._return(
            entry,
            reason=messages.UNSCHEDULABLE,
            text=text,
            rejectors=unfit.diagnosis.plugins,
            nominated=nominated,
        )

    # A gang

    async def _attempt_gang(self, entry: queue.QueuedPod, gang: gangs.Gang, *, needed: int) -> None:
        """Find nodes for a pod and all others of its gang that wait, at least so many, or for none of them."""
        fellows = [self.queue.take(key, uid) for uid, key in gang.members.items() if uid != entry.info.uid]
        entries = sorted(
            [entry, *(each for each in fellows if each is not None)],
            key=lambda each: (-each.info.priority, each.info.key),
        )
        began = self._clock.monotonic()
        if len(entries) < needed:
            text = messages.few(gang, needed - len(entries))
            for each in entries:
                # Most often claims of the others are being made at this very moment: that is not worth an event.
                self._return(
                    each,
                    reason=messages.UNSCHEDULABLE,
                    text=text,
                    rejectors=_GANG,
                    nominated=None,
                    with_event=False,
                )
            return
        infos = [each.info for each in entries]
        residents = filter(None, map(self.snapshot.nodes.resident, gang.members))
        problem = gangs.disagreement(gang, [*(info.pod for info in infos), *residents])
        if problem:
            self._gang_failed(gang, entries, problem, began=began)
            return
        search = functools.partial(
            gangsearch.search, self._cycle, members=infos, needed=needed, steps=self._settings.gang_steps
        )
        decided = await self._deliberation.decide(lambda: search(self.snapshot))
        self.metrics.algorithm.observe(self._clock.monotonic() - began)
        if self._recording is not None:
            self._recording.decided_together(infos, decided, needed=needed)
        by_uid = {each.info.uid: each for each in entries}
        match decided:
            case gangsearch.Together(placements=placements, left=left):
                # Decided on a fork, carried out on what is real.
                real = [each._replace(cycle=each.cycle.on(self.snapshot)) for each in placements]
                self._assume([(by_uid[each.info.uid], each) for each in real], began=began)
                self._tell_group(gang, status="True", reason=messages.SCHEDULED)
                for unfit in left:
                    self._gang_waits([by_uid[unfit.info.uid]], unfit.diagnosis.message(), unfit, began=began)
            case gangsearch.Short():
                await self._free_claims(decided.unfit.info)
                tell = functools.partial(messages.short, gang, needed, len(entries))
                tried = await self._preempt_for(gang, infos, search=search, tell=tell)
                text = f"{tell(decided)} {tried.message}"
                self._gang_waits(entries, text, decided.unfit, began=began, nodes=tried.nodes)
                self._tell_group(gang, status="False", reason=messages.UNSCHEDULABLE, message=text)
            case Aborted(message=message):
                self._gang_failed(gang, entries, message, began=began)

    async def _preempt_for(
        self,
        gang: gangs.Gang,
        infos: Sequence[podinfo.PodInfo],
        *,
        search: gangpreemption.Search,
        tell: Callable[[gangsearch.Short], str],
    ) -> gangpreemption.Room | gangpreemption.NoRoom:
        """Have less important pods evicted if that makes room for all pods of a gang, and keep nodes for these."""
        group = self.snapshot.gangs.group(gang.key)
        preemptor = remedy.Preemptor(*(("gang", str(gang.key)) if group is None else ("podgroup", group.metadata.uid)))
        if self._remedies.is_making_room(preemptor):
            return gangpreemption.NoRoom(gangpreemption.UNDER_WAY, is_under_way=True)
        began = self._clock.monotonic()
        tried = await self._deliberation.decide(
            lambda: gangpreemption.preempt(self._cycle, self.snapshot, infos, gang=gang, search=search, tell=tell)
        )
        self.metrics.point("PodGroupPostFilter", self._clock.monotonic() - began)
        self.metrics.workload_preemption("Success" if isinstance(tried, gangpreemption.Room) else "Unschedulable")
        if isinstance(tried, gangpreemption.Room):
            self._remedies.make_room(tried.eviction, preemptor, [info.key for info in infos])
        return tried

    def _gang_waits(
        self,
        entries: Iterable[queue.QueuedPod],
        text: str,
        unfit: Unfit,
        *,
        began: float,
        nodes: Mapping[str, str] | None = None,
    ) -> None:
        """Put pods of a gang back; ``nodes`` are those that are kept for them, by uid, where that changes."""
        rejectors = _GANG | unfit.diagnosis.plugins
        for entry in entries:
            info = entry.info
            _log.debug("pod %s: %s", info.key, text)
            self.metrics.attempt(metrics.UNSCHEDULABLE, self._clock.monotonic() - began)
            node = None if nodes is None else nodes.get(info.uid, "")
            if node:
                self._nominate(info, node)
            elif node is not None:
                self.snapshot.nominations.remove(info.uid)
            self._return(entry, reason=messages.UNSCHEDULABLE, text=text, rejectors=rejectors, nominated=node)

    def _gang_failed(self, gang: gangs.Gang, entries: Iterable[queue.QueuedPod], message: str, *, began: float) -> None:
        self._tell_group(gang, status="False", reason=messages.SCHEDULER_ERROR, message=message)
        for each in entries:
            self._failed(each, message, began=began)

    def _tell_group(self, gang: gangs.Gang, *, status: str, reason: str, message: str = "") -> None:
        """Have the object that says what the gang is, where there is one, say how far it is."""
        group = self.snapshot.gangs.group(gang.key)
        if group is not None:
            work = self._groups.write(group, status=status, reason=reason, message=message)
            self._spawn(work, f"status of pod group {gang.key}")

    async def _free_claims(self, info: podinfo.PodInfo) -> None:
        """Free claims that are in a pod's way and that nobody uses; whom to evict is decided for the whole gang."""
        alone = await self._deliberation.decide(lambda: self._cycle.decide(info, self.snapshot))
        if isinstance(alone, Unfit):
            unfit = alone
            tried = await self._deliberation.decide(lambda: self._profile.post_filter(unfit.cycle, unfit.diagnosis))
            for proposed in tried.remedies:
                if not isinstance(proposed, remedy.Eviction):
                    self._remedies.apply(proposed, info)

    # What becomes of pods that were tried

    def _nominate(self, info: podinfo.PodInfo, node: str) -> None:
        """Keep a node for a pod; less important pods that it was kept for have to look elsewhere."""
        nominations = self.snapshot.nominations
        for other in nominations.behind(info, node):
            nominations.remove(other.uid)
            self.queue.activate(other.key)
        nominations.put(info, node)

    def _failed(self, entry: queue.QueuedPod, message: str, *, began: float) -> None:
        self.metrics.attempt(metrics.ERROR, self._clock.monotonic() - began)
        _log.warning("pod %s: %s", entry.info.key, message)
        self.snapshot.nominations.remove(entry.info.uid)
        self._return(
            entry,
            reason=messages.SCHEDULER_ERROR,
            text=message,
            rejectors=frozenset(),
            nominated="",
        )

    def _return(
        self,
        entry: queue.QueuedPod,
        *,
        reason: str,
        text: str,
        rejectors: frozenset[str],
        nominated: str | None,
        with_event: bool = True,
    ) -> None:
        """Put a pod back, and say why it was not scheduled; nothing of that if it is gone or bound by now."""
        current = self._current(entry)
        if current is None:
            self.snapshot.nominations.remove(entry.info.uid)
            return
        self.queue.put_back(entry, rejectors=rejectors, current=current)
        if with_event:
            note = messages.note(text)
            self._recorder.record(current, type=events.WARNING, reason="FailedScheduling", message=note)
        self._statuses.submit(podstatus.Message(current, reason, text, nominated))

    def _current(self, entry: queue.QueuedPod) -> pod.Pod | None:
        """The newest state of a pod; None if it is gone, bound, or another scheduler's to look after by now."""
        key = entry.info.key
        current = self._pods.cache.get(key.name, namespace=key.namespace)
        if current is None or current.metadata.uid != entry.info.uid or current.spec.node_name:
            return None
        return current if self._peers is None or self._peers.is_responsible(current) else None

    def _spawn(self, work: Coroutine[Any, Any, None], name: str) -> None:
        task = asyncio.create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.error("%s failed", task.get_name(), exc_info=error)
