"""The controller: one reconcile takes a stateful set as far as its order allows.

Pods are created in the order of their ordinals, each after those before it are ready, and deleted in reverse order;
scaling comes before updates. With parallel management, only updates wait for available pods.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from drachma import errors
from drachma.api import labelselectors, pod, statefulset
from drachma.claims import podstate
from drachma.controllers import objectwrites
from drachma.controllers.statefulset import ordinals, podcontrol, progress
from drachma.controllers.workload import adoption, expectations, history, members, podtemplates, readiness
from drachma.runtime import Surroundings, cache, controller, informer, workqueue
from drachma.values import labels

WORKERS: Final = 5

_HASH: Final = "controller.kubernetes.io/hash"
_LONGEST_PREFIX: Final = 223

Set = statefulset.StatefulSet


class _Revisions(NamedTuple):
    """Revisions of a set: the one that all pods had last, and the one of the template."""

    current: history.Revision
    update: history.Revision
    collisions: int
    known: Sequence[history.Revision]


class _Wait(Exception):  # noqa: N818 - a signal, not an error
    """Nothing more can be done before a pod makes progress."""


class StatefulSetController:
    """Keeps pods with stable names."""

    name: Final = "statefulset"

    def __init__(self, surroundings: Surroundings) -> None:
        pods = surroundings.informers.of(pod.Pod)
        sets = surroundings.informers.of(Set)
        self._client: Final = surroundings.client
        self._clock: Final = surroundings.clock
        self._sets: Final = sets.cache
        self._writer: Final = objectwrites.Writer(surroundings.client, sets)
        expected_writes = expectations.Expectations(pods)
        self._adopter: Final = adoption.Adopter(surroundings.client, pod.Pod, expected_writes=expected_writes)
        self._control: Final = podcontrol.StatefulPodControl(surroundings, expected_writes=expected_writes)
        self._history: Final = history.History(surroundings)
        self._queue: Final[workqueue.Queue[cache.Key]] = workqueue.Queue(
            self.name, clock=surroundings.clock, metrics=surroundings.queues
        )
        sets.add_handler(informer.Handler.on_write(self._enqueue, deleted=self._forget))
        self._members: Final = members.Members(pods, self._sets, kind=Set, selector=_selector, enqueue=self._queue.add)

    async def run(self) -> None:
        await controller.work(self._queue, self._reconcile, workers=WORKERS)

    # Handlers

    def _enqueue(self, stateful_set: Set) -> None:
        self._queue.add(cache.key_of(stateful_set))

    def _forget(self, stateful_set: Set) -> None:
        self._control.forget(stateful_set.metadata.uid)
        self._history.forget(stateful_set.metadata.uid)

    # Reconciling

    async def _reconcile(self, key: cache.Key) -> controller.After | controller.Again | None:
        stateful_set = self._sets.get(key.name, namespace=key.namespace)
        if stateful_set is None:
            return None
        uid = stateful_set.metadata.uid
        if not self._control.is_up_to_date(uid) or not self._history.is_up_to_date(uid):
            return controller.AGAIN
        selector = _selector(stateful_set)
        all_revisions = await self._history.of(stateful_set, selector)
        pods = await self._adopter.claim(
            stateful_set,
            (*self._members.owned(stateful_set), *self._members.orphans(stateful_set)),
            matches=lambda each: selector.matches(each.metadata.labels) and ordinals.is_member(each, stateful_set),
        )
        revisions = await self._revisions(stateful_set, all_revisions)
        now = self._clock.utc()
        sync = _Sync(stateful_set, pods, revisions, control=self._control, now=now)
        try:
            if stateful_set.metadata.deletion_timestamp is None:
                await sync.run()
        finally:
            await self._write_status(stateful_set, sync.status())
            await self._truncate(stateful_set, pods, revisions)
        return _next_availability(stateful_set, pods, now=now)

    async def _revisions(self, stateful_set: Set, all_revisions: Sequence[history.Revision]) -> _Revisions:
        """Return the revisions of a set, including that of its template."""
        data = history.content(stateful_set.spec.template)
        collisions = stateful_set.status.collision_count or 0
        equal = [each for each in all_revisions if each.data == data]
        if equal and equal[-1] == all_revisions[-1]:
            update = all_revisions[-1]
        elif equal:
            update = await self._history.renumber(stateful_set, equal[-1], history.newest(all_revisions) + 1)
        else:
            update, collisions = await self._new_revision(stateful_set, data, history.newest(all_revisions) + 1)
        current = next(
            (each for each in all_revisions if each.metadata.name == stateful_set.status.current_revision), update
        )
        return _Revisions(current, update, collisions, all_revisions)

    async def _new_revision(self, stateful_set: Set, data: dict[str, Any], number: int) -> tuple[history.Revision, int]:
        collisions = stateful_set.status.collision_count or 0
        labels = (stateful_set.spec.template.get("metadata") or {}).get("labels") or {}
        while True:
            mark = podtemplates.content_hash(data, collisions)
            created = await self._history.create(
                stateful_set,
                data,
                name=f"{stateful_set.metadata.name[:_LONGEST_PREFIX]}-{mark}",
                number=number,
                marks={**labels, _HASH: mark},
            )
            if created is not None:
                return created, collisions
            collisions += 1

    async def _truncate(self, stateful_set: Set, pods: Sequence[pod.Pod], revisions: _Revisions) -> None:
        """Delete the oldest revisions that no pod has, beyond the history limit."""
        limit = stateful_set.spec.revision_history_limit
        if limit is None:
            return
        live = {revisions.current.metadata.name, revisions.update.metadata.name, *map(ordinals.revision, pods)}
        idle = [each for each in revisions.known if each.metadata.name not in live]
        for each in idle[: max(len(idle) - limit, 0)]:
            await self._history.delete(each)

    async def _write_status(self, stateful_set: Set, content: dict[str, Any] | None) -> None:
        if content is None:
            return
        try:
            await self._writer.update_status(stateful_set, content)
        except errors.ObjectNotFoundError:
            return


class _Sync:
    """One reconcile of a set: its actions and the resulting status."""

    def __init__(
        self,
        stateful_set: Set,
        pods: Sequence[pod.Pod],
        revisions: _Revisions,
        *,
        control: podcontrol.StatefulPodControl,
        now: dt.datetime,
    ) -> None:
        self._set: Final = stateful_set
        self._pods: Final = pods
        self._revisions: Final = revisions
        self._control: Final = control
        self._now: Final = now
        self._is_burst: Final = progress.is_burst(stateful_set)
        by_ordinal = {ordinals.ordinal(each): each for each in pods}
        self._replicas: Final = {number: by_ordinal.get(number) for number in ordinals.numbers(stateful_set)}
        self._condemned: Final = [
            by_ordinal[number] for number in sorted(by_ordinal, reverse=True) if number not in self._replicas
        ]
        self._replaced = 0

    def status(self) -> dict[str, Any] | None:
        revisions = self._revisions
        counts = progress.count(
            self._set,
            self._pods,
            current=revisions.current.metadata.name,
            update=revisions.update.metadata.name,
            collisions=revisions.collisions,
            now=self._now,
        )
        return progress.status(self._set, counts, replaced=self._replaced)

    async def run(self) -> None:
        """Do everything that can be done now."""
        try:
            await self._all([self._keeping(number) for number in self._replicas])
            for each in self._condemned:
                if not self._control.owns_claims(self._set, each):
                    await self._control.own_claims(self._set, each)
            await self._all([self._removing(each) for each in self._condemned])
            await self._replace()
        except _Wait:
            return

    async def _all(self, acts: Sequence[Callable[[], Any]]) -> None:
        """Run actions one after the other until one has to wait, or concurrently."""
        if self._is_burst:
            await controller.slow_start(acts)
            return
        for act in acts:
            await act()

    def _wait(self) -> None:
        """End the reconcile if pods are managed in order."""
        if not self._is_burst:
            raise _Wait

    def _keeping(self, number: int) -> Callable[[], Any]:
        return lambda: self._keep(number)

    async def _keep(self, number: int) -> None:
        """Reconcile the pod of an ordinal."""
        replica = self._replicas[number]
        if replica is None:
            await self._make(number)
            return self._wait()
        if podstate.has_ended(replica):
            if replica.metadata.deletion_timestamp is None:
                await self._control.delete(self._set, replica)
            return self._wait()
        if replica.status.phase == "Pending":
            await self._control.create_claims(self._set, number)
            await self._control.own_claims(self._set, replica)
        is_far_enough = progress.is_running_and_ready(replica) and not progress.is_unavailable(
            replica, self._set, now=self._now
        )
        if not is_far_enough:
            self._wait()
        if not ordinals.has_identity(replica, self._set) or not self._control.owns_claims(self._set, replica):
            await self._control.update(self._set, replica)
        return None

    async def _make(self, number: int) -> None:
        if self._control.has_claims_of_earlier_pod(self._set, number):
            return
        is_current = ordinals.is_of_current(self._set, number)
        revision = self._revisions.current if is_current else self._revisions.update
        await self._control.create(
            self._set, number, template=history.template(revision), revision_name=revision.metadata.name
        )

    def _removing(self, pod: pod.Pod) -> Callable[[], Any]:
        return lambda: self._remove(pod)

    async def _remove(self, pod: pod.Pod) -> None:
        """Delete a surplus pod. In order, all others must be healthy, or it is the first unhealthy one."""
        if pod.metadata.deletion_timestamp is not None:
            return self._wait()
        is_well = progress.is_running_and_ready(pod) and not progress.is_unavailable(pod, self._set, now=self._now)
        if not is_well and pod is not self._first_unwell():
            self._wait()
        await self._control.delete(self._set, pod)
        return self._wait()

    def _first_unwell(self) -> pod.Pod | None:
        for each in (*self._replicas.values(), *reversed(self._condemned)):
            if progress.is_unavailable(each, self._set, now=self._now):
                return each
        return None

    async def _replace(self) -> None:
        """Delete pods of other revisions, which are then created again."""
        if self._set.spec.update_strategy.type != ordinals.ROLLING:
            return
        update_revision = self._revisions.update.metadata.name
        replicas = tuple(self._replicas.values())
        for each in progress.outdated(self._set, replicas, update_revision=update_revision, now=self._now):
            await self._control.delete(self._set, each)
            self._replaced += 1


def _selector(stateful_set: Set) -> labels.Selector:
    return labelselectors.of(stateful_set.spec.selector)


def _next_availability(stateful_set: Set, pods: Sequence[pod.Pod], *, now: dt.datetime) -> controller.After | None:
    seconds = readiness.seconds_until_available(pods, stateful_set.spec.min_ready_seconds, now=now)
    return None if seconds is None else controller.After(seconds)
