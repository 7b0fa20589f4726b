"""The controller: makes and deletes pods until there are as many as a set wants, and keeps its status.

It decides on a cache, so it waits until the cache has seen what it wrote itself. Pods that match and belong to nobody
are adopted, pods that no longer match are let go.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, Final

from drachma import errors
from drachma.api import meta, pod, replicaset
from drachma.claims import conditions, ownership
from drachma.client import patches
from drachma.controllers import podwrites, statuswrites
from drachma.controllers.replicaset import choice, readiness
from drachma.runtime import Surroundings, cache, controller, events, informer, resourceversion, workqueue
from drachma.values import labels

WORKERS: Final = 5

_MOST_AT_ONCE: Final = 500
_OWNER_INDEX: Final = "replicaset-owner"
_KIND: Final = ("apps/v1", "ReplicaSet")

Set = replicaset.ReplicaSet


def selector_of(of: meta.LabelSelector | None) -> labels.Selector:
    """Which pods a selector of a workload means."""
    if of is None:
        return labels.NOTHING
    expressions = ((each.key, each.operator, each.values) for each in of.match_expressions)
    return labels.Selector.from_parts(of.match_labels, expressions)


class ReplicaSetController:
    """Keeps the number of pods."""

    name: Final = "replicaset"

    def __init__(self, surroundings: Surroundings) -> None:
        self._client: Final = surroundings.client
        self._clock: Final = surroundings.clock
        self._recorder: Final = surroundings.recorder("replicaset-controller")
        self._informer: Final = surroundings.informers.of(pod.Pod)
        self._pods: Final = self._informer.cache
        sets = surroundings.informers.of(Set)
        self._sets: Final = sets.cache
        self._pods.add_index(_OWNER_INDEX, _owner)
        self._written: Final[dict[str, int]] = {}
        self._queue: Final[workqueue.Queue[cache.Key]] = workqueue.Queue(
            self.name, time=surroundings.clock, measured=surroundings.queues
        )
        sets.add_handler(informer.Handler(added=self._see, updated=lambda _, new: self._see(new), deleted=self._forget))
        self._informer.add_handler(
            informer.Handler(added=self._see_pod, updated=self._see_change, deleted=self._see_pod)
        )

    async def run(self) -> None:
        await controller.work(self._queue, self._reconcile, workers=WORKERS)

    # News

    def _see(self, of: Set) -> None:
        self._queue.add(cache.key_of(of))

    def _forget(self, of: Set) -> None:
        self._written.pop(of.metadata.uid, None)

    def _see_change(self, old: pod.Pod, new: pod.Pod) -> None:
        self._see_pod(old)
        self._see_pod(new)

    def _see_pod(self, of: pod.Pod) -> None:
        owner = ownership.controller_of(of)
        if owner is not None:
            if (owner.api_version, owner.kind) == _KIND:
                self._queue.add(cache.Key(of.metadata.namespace, owner.name))
            return
        for each in self._sets.in_namespace(of.metadata.namespace):
            if selector_of(each.spec.selector).matches(of.metadata.labels):
                self._see(each)

    # Work

    async def _reconcile(self, key: cache.Key) -> controller.After | controller.Again | None:
        wanted = self._sets.get(key.name, namespace=key.namespace)
        if wanted is None:
            return None
        if self._written.get(wanted.metadata.uid, 0) > resourceversion.number(self._informer.resource_version):
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
        selector = selector_of(wanted.spec.selector)
        mine = []
        for each in self._pods.by(_OWNER_INDEX, wanted.metadata.uid):
            if selector.matches(each.metadata.labels):
                mine.append(each)
            elif wanted.metadata.deletion_timestamp is None:
                await self._release(wanted, each)
        if wanted.metadata.deletion_timestamp is not None:
            return mine
        for each in self._pods.in_namespace(wanted.metadata.namespace):
            is_orphan = ownership.controller_of(each) is None and readiness.is_active(each)
            if is_orphan and selector.matches(each.metadata.labels) and await self._adopt(wanted, each):
                mine.append(each)
        return mine

    async def _adopt(self, wanted: Set, orphan: pod.Pod) -> bool:
        owners = [*orphan.metadata.owner_references, owner_reference(wanted)]
        return await self._patch_owners(wanted, orphan, owners)

    async def _release(self, wanted: Set, former: pod.Pod) -> None:
        uid = wanted.metadata.uid
        await self._patch_owners(wanted, former, [each for each in former.metadata.owner_references if each.uid != uid])

    async def _patch_owners(self, wanted: Set, of: pod.Pod, owners: Sequence[Any]) -> bool:
        try:
            changed = await self._client.patch(
                pod.Pod,
                of.metadata.name,
                patch=patches.merge({"metadata": {"ownerReferences": list(owners)}}, patches.unchanged(of)),
                namespace=of.metadata.namespace,
            )
        except (errors.ObjectNotFoundError, errors.ObjectConflictError):
            return False
        self._note(wanted, changed.metadata.resource_version)
        return True

    async def _manage(self, wanted: Set, active: list[pod.Pod]) -> list[pod.Pod]:
        """Makes or deletes pods; those that are left."""
        missing = (wanted.spec.replicas if wanted.spec.replicas is not None else 1) - len(active)
        if missing > 0:
            await self._create(wanted, min(missing, _MOST_AT_ONCE))
        elif missing < 0:
            gone = choice.superfluous(active, min(-missing, _MOST_AT_ONCE), related=self._related(wanted, active))
            await controller.side_by_side([self._deleting(wanted, each) for each in gone])
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
        return [one for each in siblings for one in self._pods.by(_OWNER_INDEX, each.metadata.uid)]

    async def _create(self, wanted: Set, count: int) -> None:
        """Makes pods in growing batches, so that a refusal of all of them costs few requests."""
        made, size = 0, 1
        while made < count:
            batch = min(size, count - made)
            await controller.side_by_side([self._creating(wanted)] * batch)
            made, size = made + batch, size * 2

    def _creating(self, wanted: Set) -> Callable[[], Any]:
        async def create() -> None:
            try:
                made = await self._client.create_document(pod.Pod, pod_document(wanted))
            except errors.RefusedError as error:
                self._tell(wanted, events.WARNING, "FailedCreate", f"Error creating: {error}")
                raise
            self._note(wanted, made["metadata"]["resourceVersion"])
            self._tell(wanted, events.NORMAL, "SuccessfulCreate", f"Created pod: {made['metadata']['name']}")

        return create

    def _deleting(self, wanted: Set, of: pod.Pod) -> Callable[[], Any]:
        async def delete() -> None:
            try:
                if await podwrites.delete(self._client, of):
                    self._tell(wanted, events.NORMAL, "SuccessfulDelete", f"Deleted pod: {of.metadata.name}")
            except errors.RefusedError as error:
                self._tell(wanted, events.WARNING, "FailedDelete", f"Error deleting: {error}")
                raise

        return delete

    def _note(self, wanted: Set, resource_version: str) -> None:
        uid = wanted.metadata.uid
        self._written[uid] = max(self._written.get(uid, 0), resourceversion.number(resource_version))

    def _tell(self, wanted: Set, kind: events.Type, reason: str, message: str) -> None:
        self._recorder.record(wanted, type=kind, reason=reason, message=message)

    # Status

    async def _write_status(
        self, wanted: Set, active: Sequence[pod.Pod], pods: Sequence[pod.Pod], *, failure: errors.RefusedError | None
    ) -> None:
        content = _status(wanted, active, pods, now=self._clock.utc(), failure=failure)
        if content is None:
            return
        try:
            meant = patches.same(wanted)
            await statuswrites.update(self._client, Set, of=wanted.metadata, content=content, meant=meant)
        except errors.ObjectNotFoundError:
            return

    def _until_available(self, wanted: Set, active: Sequence[pod.Pod]) -> controller.After | None:
        """When the next pod has been ready for long enough."""
        seconds = wanted.spec.min_ready_seconds
        if not seconds:
            return None
        now = self._clock.utc()
        moments = [moment for each in active if (moment := readiness.available_from(each, seconds)) is not None]
        later = [moment for moment in moments if moment > now]
        return controller.After((min(later) - now).total_seconds()) if later else None


def pod_document(wanted: Set) -> dict[str, Any]:
    """A pod for a set, as it is created."""
    template = copy.deepcopy(dict(wanted.spec.template))
    metadata = template.get("metadata") or {}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "generateName": f"{wanted.metadata.name}-",
            "namespace": wanted.metadata.namespace,
            "labels": metadata.get("labels") or {},
            "annotations": metadata.get("annotations") or {},
            "finalizers": metadata.get("finalizers") or [],
            "ownerReferences": [owner_reference(wanted)],
        },
        "spec": template.get("spec") or {},
    }


def owner_reference(wanted: meta.Object, kind: str = "ReplicaSet") -> dict[str, Any]:
    """What an object says that a workload of apps/v1 made."""
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "name": wanted.metadata.name,
        "uid": wanted.metadata.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }


def _owner(of: pod.Pod) -> tuple[str, ...]:
    owner = ownership.controller_of(of)
    return (owner.uid,) if owner is not None and (owner.api_version, owner.kind) == _KIND else ()


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
        "terminatingReplicas": sum(each.metadata.deletion_timestamp is not None for each in pods),
        "observedGeneration": int(wanted.metadata.generation),
    }
    known = {
        "replicas": before.replicas,
        "fullyLabeledReplicas": before.fully_labeled_replicas,
        "readyReplicas": before.ready_replicas,
        "availableReplicas": before.available_replicas,
        "terminatingReplicas": before.terminating_replicas or 0,
        "observedGeneration": before.observed_generation,
    }
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
                "lastTransitionTime": now.strftime("%Y-%m-%dT%H:%M:%SZ"),
            }
        ]
    elif had_failed:
        content["conditions"] = None
    return content
