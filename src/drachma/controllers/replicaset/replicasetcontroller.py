"""The controller: creates and deletes pods until there are as many as a set specifies, and writes its status.

It decides on a cache, so it waits until the cache has seen its own writes. Matching orphans are adopted, pods that no
longer match are released.
"""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, ClassVar, Final

from drachma import errors
from drachma.api import labelselectors, pod, replicaset, replicationcontroller
from drachma.claims import conditions, ownership
from drachma.controllers import objectwrites
from drachma.controllers.workload import adoption, expectations, members, podcontrol, podtemplates, readiness
from drachma.runtime import Surroundings, cache, controller, events, informer, workqueue
from drachma.values import labels

WORKERS: Final = 5

Set = replicaset.ReplicaSet | replicationcontroller.ReplicationController
"""The two kinds with replicas; they differ only in their selectors."""


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
        self._adopter: Final = adoption.Adopter(surroundings.client, pod.Pod, expected_writes=self._expected)
        self._control: Final = podcontrol.PodControl(
            surroundings.client, expected_writes=self._expected, recorder=surroundings.recorder(self._component)
        )
        sets: informer.Informer[Any] = surroundings.informers.of(self._model)
        self._sets: Final[cache.Cache[Any]] = sets.cache
        self._writer: Final = objectwrites.Writer(surroundings.client, sets)
        self._queue: Final[workqueue.Queue[cache.Key]] = workqueue.Queue(
            self.name, clock=surroundings.clock, metrics=surroundings.queues
        )
        sets.add_handler(informer.Handler.on_write(self._enqueue, deleted=self._forget))
        self._members: Final = members.Members(
            pods, self._sets, kind=self._model, selector=_selector, enqueue=self._queue.add
        )

    async def run(self) -> None:
        await controller.work(self._queue, self._reconcile, workers=WORKERS)

    # Handlers

    def _enqueue(self, replica_set: Set) -> None:
        self._queue.add(cache.key_of(replica_set))

    def _forget(self, replica_set: Set) -> None:
        self._expected.forget(replica_set.metadata.uid)

    # Reconciling

    async def _reconcile(self, key: cache.Key) -> controller.After | controller.Again | None:
        replica_set: Set | None = self._sets.get(key.name, namespace=key.namespace)
        if replica_set is None:
            return None
        if not self._expected.are_met(replica_set.metadata.uid):
            return controller.AGAIN
        pods = await self._claim(replica_set)
        active = [each for each in pods if readiness.is_active(each)]
        failure = None
        try:
            if replica_set.metadata.deletion_timestamp is None:
                active = await self._manage(replica_set, active)
        except errors.RefusedError as error:
            failure = error
        await self._write_status(replica_set, active, pods, failure=failure)
        if failure is not None:
            raise failure
        return self._next_availability(replica_set, active)

    async def _claim(self, replica_set: Set) -> list[pod.Pod]:
        """Return the pods of a set, after it adopted matching orphans and released other pods."""
        selector = _selector(replica_set)
        # Finished orphans are not adopted, because they do not count.
        orphans = (each for each in self._members.orphans(replica_set) if readiness.is_active(each))
        return await self._adopter.claim(
            replica_set,
            (*self._members.owned(replica_set), *orphans),
            matches=lambda each: selector.matches(each.metadata.labels),
        )

    async def _manage(self, replica_set: Set, active: list[pod.Pod]) -> list[pod.Pod]:
        """Create or delete pods. Return the active ones afterwards."""
        shortage = (replica_set.spec.replicas if replica_set.spec.replicas is not None else 1) - len(active)
        owner, most = events.reference_to(replica_set), podcontrol.MOST_AT_ONCE
        if shortage > 0:
            document = podtemplates.pod_document(
                replica_set.spec.template,
                owner=ownership.reference(replica_set),
                namespace=replica_set.metadata.namespace,
            )
            await self._control.create(owner, [document] * min(shortage, most))
        elif shortage < 0:
            surplus = pods_to_delete(active, min(-shortage, most), related=self._related(replica_set, active))
            await self._control.delete(owner, surplus)
            uids = {each.metadata.uid for each in surplus}
            return [each for each in active if each.metadata.uid not in uids]
        return active

    def _related(self, replica_set: Set, active: Sequence[pod.Pod]) -> Sequence[pod.Pod]:
        """Return the pods of all sets that have the same owner."""
        owner = ownership.controller_of(replica_set)
        if owner is None:
            return active
        siblings = (
            each
            for each in self._sets.list_namespace(replica_set.metadata.namespace)
            if ownership.is_controlled_by(each.metadata, owner.uid)
        )
        return [one for each in siblings for one in self._members.owned(each)]

    # Status

    async def _write_status(
        self,
        replica_set: Set,
        active: Sequence[pod.Pod],
        pods: Sequence[pod.Pod],
        *,
        failure: errors.RefusedError | None,
    ) -> None:
        content = _status(replica_set, active, pods, now=self._clock.utc(), failure=failure)
        if content is None:
            return
        try:
            await self._writer.update_status(replica_set, content)
        except errors.ObjectNotFoundError:
            return

    def _next_availability(self, replica_set: Set, active: Sequence[pod.Pod]) -> controller.After | None:
        """Return the time until the next pod becomes available."""
        seconds = readiness.seconds_until_available(active, replica_set.spec.min_ready_seconds, now=self._clock.utc())
        return None if seconds is None else controller.After(seconds)


class ReplicationManager(ReplicaSetController):
    """Keeps the number of pods of replication controllers, the predecessor of replica sets."""

    name: ClassVar[str] = "replicationmanager"
    _model: ClassVar[type[Set]] = replicationcontroller.ReplicationController
    _component: ClassVar[str] = "replication-controller"


def _selector(replica_set: Set) -> labels.Selector:
    """Return the selector of a set."""
    if isinstance(replica_set, replicationcontroller.ReplicationController):
        return labels.Selector.from_labels(replica_set.spec.selector) if replica_set.spec.selector else labels.NOTHING
    return labelselectors.of(replica_set.spec.selector)


def _status(
    replica_set: Set,
    active: Sequence[pod.Pod],
    pods: Sequence[pod.Pod],
    *,
    now: datetime,
    failure: errors.RefusedError | None,
) -> dict[str, Any] | None:
    """Return the new status of a set, or None if it is unchanged."""
    before = replica_set.status
    template_labels = (replica_set.spec.template.get("metadata") or {}).get("labels") or {}
    counts = {
        "replicas": len(active),
        "fullyLabeledReplicas": sum(template_labels.items() <= each.metadata.labels.items() for each in active),
        "readyReplicas": sum(map(readiness.is_ready, active)),
        "availableReplicas": sum(
            readiness.is_available(each, replica_set.spec.min_ready_seconds, now=now) for each in active
        ),
        "observedGeneration": int(replica_set.metadata.generation),
    }
    current = {
        "replicas": before.replicas,
        "fullyLabeledReplicas": before.fully_labeled_replicas,
        "readyReplicas": before.ready_replicas,
        "availableReplicas": before.available_replicas,
        "observedGeneration": before.observed_generation,
    }
    if isinstance(before, replicaset.ReplicaSetStatus):
        counts["terminatingReplicas"] = sum(each.metadata.deletion_timestamp is not None for each in pods)
        current["terminatingReplicas"] = before.terminating_replicas or 0
    had_failed = conditions.is_true(before.conditions, "ReplicaFailure")
    if counts == current and had_failed == (failure is not None):
        return None
    content: dict[str, Any] = dict(counts)
    if failure is not None:
        content["conditions"] = [
            conditions.document("ReplicaFailure", "True", reason="FailedCreate", message=str(failure), now=now)
        ]
    elif had_failed:
        content["conditions"] = None
    return content


# The pods to delete


_COST: Final = "controller.kubernetes.io/pod-deletion-cost"
_PHASES: Final = {"Pending": 0, "Unknown": 1, "Running": 2}
_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


def pods_to_delete(pods: Sequence[pod.Pod], count: int, *, related: Iterable[pod.Pod]) -> list[pod.Pod]:
    """Return ``count`` pods to delete, in upstream's order: unassigned, pending, not ready, low cost, crowded, young.

    ``related`` are the pods of all sets of the same owner: of several on one node, one goes first.
    """
    crowds = Counter(each.spec.node_name for each in related if readiness.is_active(each) and each.spec.node_name)
    return sorted(pods, key=lambda each: _worth(each, crowds))[:count]


def _worth(pod: pod.Pod, crowds: Counter[str]) -> tuple[Any, ...]:
    since = readiness.ready_since(pod)
    created = pod.metadata.creation_timestamp
    return (
        bool(pod.spec.node_name),
        _PHASES.get(pod.status.phase, 1),
        readiness.is_ready(pod),
        _cost(pod),
        -crowds[pod.spec.node_name],
        # The one that became ready last goes first, then the one created last.
        -((since or _EPOCH) - _EPOCH).total_seconds(),
        -((created or _EPOCH) - _EPOCH).total_seconds(),
        pod.metadata.name,
    )


def _cost(pod: pod.Pod) -> int:
    try:
        return int(pod.metadata.annotations.get(_COST, "0"))
    except ValueError:
        return 0
