"""The controller: one look takes a stateful set as far as its order lets it.

Pods come in the order of their ordinals, each after those before it are ready, and go in the opposite one; sizes come
before updates. Where pods are managed side by side, only updates are held to what may be missing.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from drachma import errors
from drachma.api import labelselectors, pod, statefulset
from drachma.claims import podstate
from drachma.client import patches
from drachma.controllers import statuswrites
from drachma.controllers.statefulset import ordinals, podcontrol, progress
from drachma.controllers.workload import (
    adoption,
    expectations,
    history,
    members,
    readiness,
    templatehashes,
)
from drachma.runtime import Surroundings, cache, controller, informer, workqueue
from drachma.values import labels

WORKERS: Final = 5

_HASH: Final = "controller.kubernetes.io/hash"
_LONGEST_PREFIX: Final = 223

Set = statefulset.StatefulSet


class _Revisions(NamedTuple):
    """Those of a set: the one that all pods had last, and the one that they are to have."""

    current: history.Revision
    update: history.Revision
    collisions: int
    known: Sequence[history.Revision]


class _Wait(Exception):  # noqa: N818 - a signal, not an error
    """Nothing more can be done before a pod has come further."""


class StatefulSetController:
    """Keeps pods with names."""

    name: Final = "statefulset"

    def __init__(self, surroundings: Surroundings) -> None:
        pods = surroundings.informers.of(pod.Pod)
        sets = surroundings.informers.of(Set)
        self._client: Final = surroundings.client
        self._clock: Final = surroundings.clock
        self._sets: Final = sets.cache
        expected = expectations.Expectations(pods)
        self._adopter: Final = adoption.Adopter(surroundings.client, pod.Pod, expected=expected)
        self._control: Final = podcontrol.StatefulPodControl(surroundings, expected=expected)
        self._history: Final = history.History(surroundings)
        self._queue: Final[workqueue.Queue[cache.Key]] = workqueue.Queue(
            self.name, time=surroundings.clock, measured=surroundings.queues
        )
        sets.add_handler(informer.Handler(added=self._see, updated=lambda _, new: self._see(new), deleted=self._forget))
        self._members: Final = members.Members(pods, self._sets, kind=Set, selector=_selector, concern=self._queue.add)

    async def run(self) -> None:
        await controller.work(self._queue, self._reconcile, workers=WORKERS)

    # News

    def _see(self, of: Set) -> None:
        self._queue.add(cache.key_of(of))

    def _forget(self, of: Set) -> None:
        self._control.forget(of.metadata.uid)
        self._history.forget(of.metadata.uid)

    # Work

    async def _reconcile(self, key: cache.Key) -> controller.After | controller.Again | None:
        wanted = self._sets.get(key.name, namespace=key.namespace)
        if wanted is None:
            return None
        uid = wanted.metadata.uid
        if not self._control.is_up_to_date(uid) or not self._history.is_up_to_date(uid):
            return controller.AGAIN
        selector = _selector(wanted)
        known = await self._history.of(wanted, selector)
        pods = await self._adopter.claim(
            wanted,
            (*self._members.owned(wanted), *self._members.orphans(wanted)),
            matches=lambda each: selector.matches(each.metadata.labels) and ordinals.is_member(each, wanted),
        )
        revisions = await self._revisions(wanted, known)
        now = self._clock.utc()
        look = _Look(wanted, pods, revisions, control=self._control, now=now)
        try:
            if wanted.metadata.deletion_timestamp is None:
                await look.run()
        finally:
            await self._write_status(wanted, look.status())
            await self._truncate(wanted, pods, revisions)
        return _until_available(wanted, pods, now=now)

    async def _revisions(self, wanted: Set, known: Sequence[history.Revision]) -> _Revisions:
        """The revisions of a set, with one for its template."""
        data = history.content(wanted.spec.template)
        collisions = wanted.status.collision_count or 0
        equal = [each for each in known if each.data == data]
        if equal and equal[-1] == known[-1]:
            update = known[-1]
        elif equal:
            update = await self._history.renumber(wanted, equal[-1], history.newest(known) + 1)
        else:
            update, collisions = await self._new_revision(wanted, data, history.newest(known) + 1)
        current = next((each for each in known if each.metadata.name == wanted.status.current_revision), update)
        return _Revisions(current, update, collisions, known)

    async def _new_revision(self, wanted: Set, data: dict[str, Any], number: int) -> tuple[history.Revision, int]:
        collisions = wanted.status.collision_count or 0
        labels = (wanted.spec.template.get("metadata") or {}).get("labels") or {}
        while True:
            mark = templatehashes.content_hash(data, collisions)
            made = await self._history.create(
                wanted,
                data,
                name=f"{wanted.metadata.name[:_LONGEST_PREFIX]}-{mark}",
                number=number,
                marks={**labels, _HASH: mark},
            )
            if made is not None:
                return made, collisions
            collisions += 1

    async def _truncate(self, wanted: Set, pods: Sequence[pod.Pod], revisions: _Revisions) -> None:
        """Forgets the oldest revisions that nothing is of, and that are more than are to be kept."""
        limit = wanted.spec.revision_history_limit
        if limit is None:
            return
        live = {revisions.current.metadata.name, revisions.update.metadata.name, *map(ordinals.revision, pods)}
        idle = [each for each in revisions.known if each.metadata.name not in live]
        for each in idle[: max(len(idle) - limit, 0)]:
            await self._history.delete(each)

    async def _write_status(self, wanted: Set, content: dict[str, Any] | None) -> None:
        if content is None:
            return
        meant = patches.same(wanted)
        try:
            await statuswrites.update(self._client, Set, of=wanted.metadata, content=content, meant=meant)
        except errors.ObjectNotFoundError:
            return


class _Look:
    """One look at one set: what is done, and what the status says then."""

    def __init__(
        self,
        wanted: Set,
        pods: Sequence[pod.Pod],
        revisions: _Revisions,
        *,
        control: podcontrol.StatefulPodControl,
        now: dt.datetime,
    ) -> None:
        self._set: Final = wanted
        self._pods: Final = pods
        self._revisions: Final = revisions
        self._control: Final = control
        self._now: Final = now
        self._is_burst: Final = progress.is_burst(wanted)
        by_ordinal = {ordinals.ordinal(each): each for each in pods}
        self._replicas: Final = {number: by_ordinal.get(number) for number in ordinals.numbers(wanted)}
        self._condemned: Final = [
            by_ordinal[number] for number in sorted(by_ordinal, reverse=True) if number not in self._replicas
        ]
        self._replaced = 0

    def status(self) -> dict[str, Any] | None:
        revisions = self._revisions
        counted = progress.count(
            self._set,
            self._pods,
            current=revisions.current.metadata.name,
            update=revisions.update.metadata.name,
            collisions=revisions.collisions,
            now=self._now,
        )
        return progress.status(self._set, counted, replaced=self._replaced)

    async def run(self) -> None:
        """Does what can be done now."""
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
        """One after the other until one has to wait, or side by side."""
        if self._is_burst:
            await controller.slow_start(acts)
            return
        for act in acts:
            await act()

    def _wait(self) -> None:
        """Ends the look, where pods are managed in order."""
        if not self._is_burst:
            raise _Wait

    def _keeping(self, number: int) -> Callable[[], Any]:
        return lambda: self._keep(number)

    async def _keep(self, number: int) -> None:
        """Has a pod at an ordinal, as it should be."""
        known = self._replicas[number]
        if known is None:
            await self._make(number)
            return self._wait()
        if podstate.has_ended(known):
            if known.metadata.deletion_timestamp is None:
                await self._control.delete(self._set, known)
            return self._wait()
        if known.status.phase == "Pending":
            await self._control.create_claims(self._set, number)
            await self._control.own_claims(self._set, known)
        is_far_enough = progress.is_running_and_ready(known) and not progress.is_unavailable(
            known, self._set, now=self._now
        )
        if not is_far_enough:
            self._wait()
        if not ordinals.has_identity(known, self._set) or not self._control.owns_claims(self._set, known):
            await self._control.update(self._set, known)
        return None

    async def _make(self, number: int) -> None:
        if self._control.has_claims_of_earlier_pod(self._set, number):
            return
        is_current = ordinals.is_of_current(self._set, number)
        revision = self._revisions.current if is_current else self._revisions.update
        await self._control.create(
            self._set, number, template=history.template(revision), revision_name=revision.metadata.name
        )

    def _removing(self, of: pod.Pod) -> Callable[[], Any]:
        return lambda: self._remove(of)

    async def _remove(self, of: pod.Pod) -> None:
        """Takes away a pod that is too many; in order, others must be well, or it is the first that is not."""
        if of.metadata.deletion_timestamp is not None:
            return self._wait()
        is_well = progress.is_running_and_ready(of) and not progress.is_unavailable(of, self._set, now=self._now)
        if not is_well and of is not self._first_unwell():
            self._wait()
        await self._control.delete(self._set, of)
        return self._wait()

    def _first_unwell(self) -> pod.Pod | None:
        for each in (*self._replicas.values(), *reversed(self._condemned)):
            if progress.is_unavailable(each, self._set, now=self._now):
                return each
        return None

    async def _replace(self) -> None:
        """Deletes pods of other revisions, to be made anew."""
        if self._set.spec.update_strategy.type != ordinals.ROLLING:
            return
        update_revision = self._revisions.update.metadata.name
        replicas = tuple(self._replicas.values())
        for each in progress.outdated(self._set, replicas, update_revision=update_revision, now=self._now):
            await self._control.delete(self._set, each)
            self._replaced += 1


def _selector(of: Set) -> labels.Selector:
    return labelselectors.of(of.spec.selector)


def _until_available(wanted: Set, pods: Sequence[pod.Pod], *, now: dt.datetime) -> controller.After | None:
    seconds = readiness.until_available(pods, wanted.spec.min_ready_seconds, now=now)
    return None if seconds is None else controller.After(seconds)
