"""The controller: makes and deletes pods until there are as many as a set wants, and keeps its status.

It decides on a cache, so it waits until the cache has seen what it wrote itself. Pods that match and belong to nobody
are adopted, pods that no longer match are let go.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, ClassVar, Final

from drachma import errors
from drachma.api import labelselectors, meta, pod, replicaset, replicationcontroller
from drachma.claims import conditions, ownership
from drachma.client import patches
from drachma.controllers import statuswrites
from drachma.controllers.replicaset import choice
from drachma.controllers.workload import adoption, expectations, members, podcontrol, podtemplates, readiness
from drachma.runtime import Surroundings, cache, controller, events, informer, workqueue
from drachma.values import labels

WORKERS: Final = 5

Set = replicaset.ReplicaSet | replicationcontroller.ReplicationController
"""What wants so many pods: both say so in the same words, but for how they select them."""


class ReplicaSetController:
    """Keeps the number of pods of replica sets."""

    name: ClassVar[str] = "replicaset"
    _model: ClassVar[type[Set]] = replicaset.ReplicaSet
    _component: ClassVar[str] = "replicaset-controller"

    def __init__(self, surroundings: Surroundings) -> None:
        self._client: Final = surroundings.client
        self._clock: Final = surroundings.clock
        pods = surroundings.informers.of(pod.Pod)
        self._expected: Final = expectations.Expectations(pods)
        self._adopter: Final = adoption.Adopter(surroundings.client, pod.Pod, expected=self._expected)
        self._control: Final = podcontrol.PodControl(
            surroundings.client, expected=self._expected, recorder=surroundings.recorder(self._component)
        )
        sets: informer.Informer[Any] = surroundings.informers.of(self._model)
        self._sets: Final[cache.Cache[Any]] = sets.cache
        self._queue: Final[workqueue.Queue[cache.Key]] = workqueue.Queue(
            self.name, time=surroundings.clock, measured=surroundings.queues
        )
        sets.add_handler(informer.Handler(added=self._see, updated=lambda _, new: self._see(new), deleted=self._forget))
        self._members: Final = members.Members(
            pods, self._sets, kind=self._model, selector=_selector, concern=self._queue.add
        )

    async def run(self) -> None:
        await controller.work(self._queue, self._reconcile, workers=WORKERS)

    # News

    def _see(self, of: Set) -> None:
        self._queue.add(cache.key_of(of))

    def _forget(self, of: Set) -> None:
        self._expected.forget(of.metadata.uid)

    # Work

    async def _reconcile(self, key: cache.Key) -> controller.After | controller.Again | None:
        wanted: Set | None = self._sets.get(key.name, namespace=key.namespace)
        if wanted is None:
            return None
        if not self._expected.are_met(wanted.metadata.uid):
            return controller.AGAIN
        pods = await self._claim(wanted)
        active = [each for each in pods if readiness.is_active(each)]
        failure = None
        try:
            if wanted.metadata.deletion_timestamp is None:
                active = await self._manage(wanted, active)
        except errors.RefusedError as error:
            failure = error
        await self._write_status(wanted, active, pods, failure=failure)
        if failure is not None:
            raise failure
        return self._until_available(wanted, active)

    async def _claim(self, wanted: Set) -> list[pod.Pod]:
        """The pods of a set, after it adopted those that match and let go of those that do not."""
        selector = _selector(wanted)
        # Pods without an owner that have ended are left alone: nothing would come of adopting them.
        orphans = (each for each in self._members.orphans(wanted) if readiness.is_active(each))
        return await self._adopter.claim(
            wanted,
            (*self._members.owned(wanted), *orphans),
            matches=lambda each: selector.matches(each.metadata.labels),
        )

    async def _manage(self, wanted: Set, active: list[pod.Pod]) -> list[pod.Pod]:
        """Makes or deletes pods; those that are left."""
        missing = (wanted.spec.replicas if wanted.spec.replicas is not None else 1) - len(active)
        owner, most = events.reference_to(wanted), podcontrol.MOST_AT_ONCE
        if missing > 0:
            document = podtemplates.pod_document(
                wanted.spec.template, owner=ownership.reference(wanted), namespace=wanted.metadata.namespace
            )
            await self._control.create(owner, [document] * min(missing, most))
        elif missing < 0:
            gone = choice.superfluous(active, min(-missing, most), related=self._related(wanted, active))
            await self._control.delete(owner, gone)
            uids = {each.metadata.uid for each in gone}
            return [each for each in active if each.metadata.uid not in uids]
        return active

    def _related(self, wanted: Set, active: Sequence[pod.Pod]) -> Sequence[pod.Pod]:
        """The pods of all sets that have the same owner."""
        owner = ownership.controller_of(wanted)
        if owner is None:
            return active
        siblings = (
            each
            for each in self._sets.in_namespace(wanted.metadata.namespace)
            if ownership.is_controlled_by(each.metadata, owner.uid)
        )
        return [one for each in siblings for one in self._members.owned(each)]

    # Status

    async def _write_status(
        self, wanted: Set, active: Sequence[pod.Pod], pods: Sequence[pod.Pod], *, failure: errors.RefusedError | None
    ) -> None:
        content = _status(wanted, active, pods, now=self._clock.utc(), failure=failure)
        if content is None:
            return
        try:
            meant = patches.same(wanted)
            await statuswrites.update(self._client, self._model, of=wanted.metadata, content=content, meant=meant)
        except errors.ObjectNotFoundError:
            return

    def _until_available(self, wanted: Set, active: Sequence[pod.Pod]) -> controller.After | None:
        """When the next pod has been ready for long enough."""
        seconds = readiness.until_available(active, wanted.spec.min_ready_seconds, now=self._clock.utc())
        return None if seconds is None else controller.After(seconds)


class ReplicationManager(ReplicaSetController):
    """The same for replication controllers, which came before sets."""

    name: ClassVar[str] = "replicationmanager"
    _model: ClassVar[type[Set]] = replicationcontroller.ReplicationController
    _component: ClassVar[str] = "replication-controller"


def _selector(of: Set) -> labels.Selector:
    """Which pods belong to a set."""
    if isinstance(of, replicationcontroller.ReplicationController):
        return labels.Selector.from_labels(of.spec.selector) if of.spec.selector else labels.NOTHING
    return labelselectors.of(of.spec.selector)


def _status(
    wanted: Set,
    active: Sequence[pod.Pod],
    pods: Sequence[pod.Pod],
    *,
    now: datetime,
    failure: errors.RefusedError | None,
) -> dict[str, Any] | None:
    """The status that a set is to have; None where it has it."""
    before = wanted.status
    template_labels = (wanted.spec.template.get("metadata") or {}).get("labels") or {}
    counts = {
        "replicas": len(active),
        "fullyLabeledReplicas": sum(template_labels.items() <= each.metadata.labels.items() for each in active),
        "readyReplicas": sum(map(readiness.is_ready, active)),
        "availableReplicas": sum(
            readiness.is_available(each, wanted.spec.min_ready_seconds, now=now) for each in active
        ),
        "observedGeneration": int(wanted.metadata.generation),
    }
    known = {
        "replicas": before.replicas,
        "fullyLabeledReplicas": before.fully_labeled_replicas,
        "readyReplicas": before.ready_replicas,
        "availableReplicas": before.available_replicas,
        "observedGeneration": before.observed_generation,
    }
    if isinstance(before, replicaset.ReplicaSetStatus):
        counts["terminatingReplicas"] = sum(each.metadata.deletion_timestamp is not None for each in pods)
        known["terminatingReplicas"] = before.terminating_replicas or 0
    had_failed = conditions.is_true(before.conditions, "ReplicaFailure")
    if counts == known and had_failed == (failure is not None):
        return None
    content: dict[str, Any] = dict(counts)
    if failure is not None:
        content["conditions"] = [
            {
                "type": "ReplicaFailure",
                "status": "True",
                "reason": "FailedCreate",
                "message": str(failure),
                "lastTransitionTime": meta.time_text(now),
            }
        ]
    elif had_failed:
        content["conditions"] = None
    return content
