"""The binding cycle: placed pods are counted in the snapshot at once, and bound in the background.

If a pod cannot be bound, everything that was written or counted for it is taken back, and the pod goes back to the
queue.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from typing import Final, TypeAlias

import msgspec

from drachma.runtime import cache, clock, defects, events
from drachma.scheduler import binder, deliberation, failures, messages, metrics, queue, remedies
from drachma.scheduler.cycle.decision import Placed
from drachma.scheduler.snapshot import Snapshot, assignment
from drachma.scheduler.snapshot.changes import Action, Change, Resource

_log = logging.getLogger(__name__)

_Attempt: TypeAlias = tuple[queue.QueuedPod, binder.Binding]


class BindingCycle:
    """Binds placed pods."""

    def __init__(
        self,
        snapshot: Snapshot,
        queue: queue.Queue,
        *,
        binder: binder.Binder,
        deliberation: deliberation.Deliberation,
        failures: failures.Failures,
        recorder: events.Recorder,
        metrics: metrics.Metrics,
        clock: clock.Clock,
        spawn: remedies.Spawn,
    ) -> None:
        self._snapshot: Final = snapshot
        self._queue: Final = queue
        self._binder: Final = binder
        self._deliberation: Final = deliberation
        self._failures: Final = failures
        self._recorder: Final = recorder
        self._metrics: Final = metrics
        self._clock: Final = clock
        self._spawn: Final = spawn

    def start(self, placed_pods: Iterable[tuple[queue.QueuedPod, Placed]], *, began: float) -> None:
        """Count pods and their devices, and start to bind the pods together."""
        reserving = self._clock.monotonic()
        attempts: list[_Attempt] = []
        for entry, placed in placed_pods:
            self._snapshot.bind(placed.assignment)
            self._snapshot.nominations.remove(placed.info.uid)
            attempts.append((entry, binder.Binding(placed)))
        profile = attempts[0][0].info.scheduler
        self._metrics.point("Reserve", self._clock.monotonic() - reserving, profile=profile)
        self._spawn(self._bind(attempts, began=began), f"binding of {attempts[0][0].info.key}")

    async def _bind(self, attempts: Sequence[_Attempt], *, began: float) -> None:
        problem: binder.BindingError | None = None
        try:
            await self._binder.bind([binding for _, binding in attempts])
        except binder.BindingError as error:
            problem = error
            await self._deliberation.settled()
        except Exception as error:
            # Without this the pods would count as placed, and never be tried again.
            defects.PROCESS.report("scheduler", f"binding of {attempts[0][0].info.key}")
            problem = binder.BindingError(f"the scheduler has a defect: {type(error).__name__}: {error}")
            await self._deliberation.settled()
        for entry, binding in attempts:
            if binding.is_bound:
                self._bound(entry, binding, began=began)
            else:
                await self._unbind(binding)
        if problem is None:
            return
        await self._deliberation.settled()
        # Only once everything is taken back: no other decision may count unbound pods of a gang as bound.
        unbound = [entry for entry, binding in attempts if not binding.is_bound]
        if isinstance(problem, binder.CollidedError):
            for entry in unbound:
                self._collided(entry, problem)
        else:
            self._failures.failed(unbound, str(problem), began=began)

    def _bound(self, entry: queue.QueuedPod, binding: binder.Binding, *, began: float) -> None:
        placed = binding.placed
        info = placed.info
        now = self._clock.monotonic()
        self._metrics.attempt(metrics.SCHEDULED, now - began, profile=info.scheduler)
        self._metrics.bound(entry.attempts, now - (entry.first_attempt or began))
        if entry.was_flushed:
            self._metrics.after_flush.inc()
        if not binding.has_event:
            text = messages.assigned(info.pod, node=placed.node)
            self._recorder.record(
                info.pod, type=events.NORMAL, reason=messages.SCHEDULED, message=text, component=info.scheduler
            )
        _log.debug("pod %s bound to node %s, one of %d feasible nodes", info.key, placed.node, placed.feasible)
        self._wake_sharers(placed.assignment.allocations)

    def _wake_sharers(self, allocations: Iterable[assignment.Allocation]) -> None:
        """Wake the pods that wait for claims which were in flight until now.

        The informer may have reported the allocation before the answer to the write came. Pods that were tried in
        between were rejected because the claim was in flight, and no other change would wake them.
        """
        for allocation in allocations:
            metadata = allocation.claim.metadata
            claim = self._snapshot.claims.get(metadata.namespace, metadata.name)
            if claim is not None:
                change = Change(Resource.RESOURCE_CLAIM, Action.UPDATE, allocation.claim, claim)
                self._queue.wake(change, claim=cache.key_of(claim))

    async def _unbind(self, binding: binder.Binding) -> None:
        """Take back everything that was done for a pod that could not be bound."""
        await self._binder.undo(binding)
        await self._deliberation.settled()
        placed = binding.placed
        info = placed.info
        if self._snapshot.unbind(placed.assignment):
            self._queue.wake(Change(Resource.ASSIGNED_POD, Action.DELETE, info.pod, None), but=info.uid)
        for allocation in placed.assignment.allocations:
            # The devices are free again, and pods that waited for the same claim can be tried.
            allocated_claim = msgspec.structs.replace(
                allocation.claim,
                status=msgspec.structs.replace(allocation.claim.status, allocation=allocation.result),
            )
            change = Change(Resource.RESOURCE_CLAIM, Action.UPDATE, allocated_claim, allocation.claim)
            self._queue.wake(change, but=info.uid)

    def _collided(self, entry: queue.QueuedPod, error: binder.CollidedError) -> None:
        """Try a pod again, at once unless another scheduler holds it: the pod itself is fine."""
        _log.debug("pod %s: %s", entry.info.key, error)
        current = self._failures.current(entry)
        if current is None:
            return
        if error.is_held:
            self._failures.hold_back(entry, current)
        else:
            self._queue.retry(entry, current=current)
