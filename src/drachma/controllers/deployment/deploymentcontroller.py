"""The controller: has a ReplicaSet for a deployment's template, and moves pods to it step by step.

One look takes one step: a set is made, or sized anew. The sets' own controller makes and deletes pods, and what it
reports is looked at again, until all pods are of the template.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from drachma import errors
from drachma.api import deployment, labelselectors, pod, replicaset
from drachma.claims import ownership
from drachma.client import patches
from drachma.controllers import statuswrites
from drachma.controllers.deployment import deploymentstatus, revisions, rollout
from drachma.controllers.workload import adoption, expectations, members, readiness
from drachma.runtime import Surroundings, cache, controller, events, informer, workqueue
from drachma.values import labels

WORKERS: Final = 5

Deployment = deployment.Deployment
Set = replicaset.ReplicaSet


class DeploymentController:
    """Rolls deployments out."""

    name: Final = "deployment"

    def __init__(self, surroundings: Surroundings) -> None:
        self._client: Final = surroundings.client
        self._clock: Final = surroundings.clock
        self._recorder: Final = surroundings.recorder("deployment-controller")
        deployments = surroundings.informers.of(Deployment)
        self._informer: Final = surroundings.informers.of(Set)
        self._deployments: Final = deployments.cache
        self._sets: Final = self._informer.cache
        self._pods: Final = surroundings.informers.of(pod.Pod).cache
        self._expected: Final = expectations.Expectations(self._informer)
        self._adopter: Final = adoption.Adopter(surroundings.client, Set, expected=self._expected)
        self._queue: Final[workqueue.Queue[cache.Key]] = workqueue.Queue(
            self.name, time=surroundings.clock, measured=surroundings.queues
        )
        deployments.add_handler(
            informer.Handler(added=self._see, updated=lambda _, new: self._see(new), deleted=self._forget)
        )
        self._members: Final = members.Members(
            self._informer, self._deployments, kind=Deployment, selector=_selector, concern=self._queue.add
        )
        surroundings.informers.of(pod.Pod).add_handler(informer.Handler(deleted=self._see_pod_go))

    async def run(self) -> None:
        await controller.work(self._queue, self._reconcile, workers=WORKERS)

    # News

    def _see(self, of: Deployment) -> None:
        self._queue.add(cache.key_of(of))

    def _forget(self, of: Deployment) -> None:
        self._expected.forget(of.metadata.uid)

    def _see_pod_go(self, of: pod.Pod) -> None:
        """Where pods are not replaced one by one, the new ones wait until the last old one is gone."""
        owner = ownership.controller_of(of)
        if owner is not None and owner.kind == "ReplicaSet":
            owning = self._sets.get(owner.name, namespace=of.metadata.namespace)
            if owning is not None:
                self._members.heard(owning)

    # Work

    async def _reconcile(self, key: cache.Key) -> controller.After | controller.Again | None:
        wanted = self._deployments.get(key.name, namespace=key.namespace)
        if wanted is None:
            return None
        if not self._expected.are_met(wanted.metadata.uid):
            return controller.AGAIN
        sets = await self._claim(wanted)
        new = next((each for each in sets if revisions.is_of_template(each, wanted.spec.template)), None)
        old = [each for each in sets if each is not new]
        if wanted.metadata.deletion_timestamp is not None:
            await self._write_status(wanted, new, sets)
            return None
        is_created = False
        if not wanted.spec.paused:
            new, is_created = await self._new_set(wanted, new, old)
            sets = [*old, new] if new is not None else old
        await self._size(wanted, new, old)
        await self._write_status(wanted, new, sets, is_created=is_created)
        if new is not None and not wanted.spec.paused:
            await self._clean_up(wanted, old)
        seconds = deploymentstatus.deadline(wanted, now=self._clock.utc())
        return None if seconds is None else controller.After(seconds)

    async def _claim(self, wanted: Deployment) -> list[Set]:
        """The sets of a deployment, oldest first, after it adopted those that match and let go of those that do not."""
        selector = _selector(wanted)
        claimed = await self._adopter.claim(
            wanted,
            (*self._members.owned(wanted), *self._members.orphans(wanted)),
            matches=lambda each: selector.matches(each.metadata.labels),
        )
        return sorted(claimed, key=lambda each: (str(each.metadata.creation_timestamp), each.metadata.name))

    async def _new_set(self, wanted: Deployment, new: Set | None, old: Sequence[Set]) -> tuple[Set | None, bool]:
        """The set of the template, made where there is none; whether it was."""
        number = max(revisions.newest_revision(old) + 1, revisions.revision(new) if new is not None else 0)
        if new is None:
            if wanted.spec.strategy.type == "Recreate" and self._has_pods(old):
                return None, False
            made = await self._create(wanted, number, old)
            await self._mark(wanted, number)
            return made, True
        marks = revisions.marks(wanted, number, new.metadata.annotations)
        if marks != dict(new.metadata.annotations):
            new = await self._patch_set(wanted, new, {"metadata": {"annotations": marks}})
        await self._mark(wanted, number)
        return new, False

    async def _create(self, wanted: Deployment, number: int, old: Sequence[Set]) -> Set:
        bounds = rollout.bounds(wanted.spec)
        replicas = rollout.grow(bounds, rollout.Size("", 0, 0), [_size(each) for each in old])
        if wanted.spec.strategy.type != rollout.ROLLING:
            replicas = bounds.replicas
        document = revisions.new_set(wanted, number, replicas=replicas, most_pods=bounds.most)
        document["metadata"]["ownerReferences"] = [ownership.reference(wanted)]
        name = document["metadata"]["name"]
        try:
            await self._client.create_document(Set, document)
        except errors.ObjectExistsError:
            existing = await self._client.get(Set, name, namespace=wanted.metadata.namespace)
            if not ownership.is_controlled_by(existing.metadata, wanted.metadata.uid):
                await self._count_collision(wanted)
                raise
            return existing
        made = await self._client.get(Set, name, namespace=wanted.metadata.namespace)
        self._expected.note(wanted.metadata.uid, made.metadata.resource_version)
        if replicas:
            self._tell_scaled(wanted, name, 0, replicas)
        return made

    async def _count_collision(self, wanted: Deployment) -> None:
        """Somebody else has the name: the next one is another."""
        count = (wanted.status.collision_count or 0) + 1
        await self._patch_status(wanted, {"collisionCount": count})

    async def _mark(self, wanted: Deployment, number: int) -> None:
        if wanted.metadata.annotations.get(revisions.REVISION) == str(number):
            return
        # As a whole: upstream's role lets this controller update deployments and not patch them.
        document = await self._client.get_document(
            Deployment, wanted.metadata.name, namespace=wanted.metadata.namespace
        )
        metadata = document["metadata"]
        metadata["uid"] = wanted.metadata.uid
        metadata["annotations"] = {**metadata.get("annotations", {}), revisions.REVISION: str(number)}
        await self._client.update_document(Deployment, document)

    async def _size(self, wanted: Deployment, new: Set | None, old: Sequence[Set]) -> None:
        """Sizes sets anew, by one step."""
        bounds = rollout.bounds(wanted.spec)
        by_name = {each.metadata.name: each for each in (*old, *([new] if new is not None else ()))}
        for name, replicas in self._next_sizes(wanted, bounds, new, old).items():
            of = by_name[name]
            before = of.spec.replicas or 0
            marks = {revisions.DESIRED: str(bounds.replicas), revisions.MOST: str(bounds.most)}
            is_marked = marks.items() <= of.metadata.annotations.items()
            if replicas == before and is_marked:
                continue
            await self._patch_set(wanted, of, {"metadata": {"annotations": marks}, "spec": {"replicas": replicas}})
            if replicas != before:
                self._tell_scaled(wanted, name, before, replicas)

    def _next_sizes(
        self, wanted: Deployment, bounds: rollout.Bounds, new: Set | None, old: Sequence[Set]
    ) -> Mapping[str, int]:
        active = [each for each in (*old, *([new] if new is not None else ())) if each.spec.replicas]
        if wanted.spec.paused or self._is_resized(bounds, active):
            return _resized(bounds, new, old, active)
        if new is None:
            return {each.metadata.name: 0 for each in old if each.spec.replicas}
        if wanted.spec.strategy.type != rollout.ROLLING:
            sizes = {each.metadata.name: 0 for each in old if each.spec.replicas}
            return sizes if self._has_pods(old) else {**sizes, new.metadata.name: bounds.replicas}
        grown = rollout.grow(bounds, _size(new), [_size(each) for each in old])
        if grown != (new.spec.replicas or 0):
            return {new.metadata.name: grown}
        return rollout.shrink(bounds, _size(new), [_size(each) for each in old])

    def _is_resized(self, bounds: rollout.Bounds, active: Iterable[Set]) -> bool:
        """Whether the wanted number is another than when sets were last sized."""
        return any(
            each.metadata.annotations.get(revisions.DESIRED, str(bounds.replicas)) != str(bounds.replicas)
            for each in active
        )

    def _has_pods(self, old: Iterable[Set]) -> bool:
        uids = {each.metadata.uid for each in old}
        if not uids:
            return False
        namespace = next(iter(old)).metadata.namespace
        return any(
            (owner := ownership.controller_of(each)) is not None
            and owner.uid in uids
            and (readiness.is_active(each) or each.metadata.deletion_timestamp is not None)
            for each in self._pods.in_namespace(namespace)
        )

    async def _clean_up(self, wanted: Deployment, old: Sequence[Set]) -> None:
        """Deletes old sets that are empty and more than are to be kept, the oldest first."""
        limit = wanted.spec.revision_history_limit
        if limit is None:
            return
        idle = [
            each
            for each in sorted(old, key=revisions.revision)
            if not each.spec.replicas
            and not each.status.replicas
            and each.status.observed_generation >= each.metadata.generation
            and each.metadata.deletion_timestamp is None
        ]
        for each in idle[: max(len(idle) - limit, 0)]:
            try:
                await self._client.delete(
                    Set,
                    each.metadata.name,
                    namespace=each.metadata.namespace,
                    preconditions=patches.same(each),
                    propagation="Background",
                )
            except (errors.ObjectNotFoundError, errors.ObjectConflictError):
                continue

    # Writing

    async def _patch_set(self, wanted: Deployment, of: Set, content: Mapping[str, Any]) -> Set:
        changed = await self._client.patch(
            Set,
            of.metadata.name,
            patch=patches.merge(content, patches.same(of)),
            namespace=of.metadata.namespace,
        )
        self._expected.note(wanted.metadata.uid, changed.metadata.resource_version)
        return changed

    async def _write_status(
        self, wanted: Deployment, new: Set | None, sets: Sequence[Set], *, is_created: bool = False
    ) -> None:
        content = deploymentstatus.status(wanted, new, sets, now=self._clock.utc(), is_created=is_created)
        if not _is_status(wanted.status, content):
            await self._patch_status(wanted, content)

    async def _patch_status(self, wanted: Deployment, content: Mapping[str, Any]) -> None:
        try:
            meant = patches.same(wanted)
            await statuswrites.update(self._client, Deployment, of=wanted.metadata, content=content, meant=meant)
        except errors.ObjectNotFoundError:
            return

    def _tell_scaled(self, wanted: Deployment, name: str, before: int, after: int) -> None:
        direction = "up" if after > before else "down"
        message = f"Scaled {direction} replica set {name} from {before} to {after}"
        self._recorder.record(wanted, type=events.NORMAL, reason="ScalingReplicaSet", message=message)


def _size(of: Set) -> rollout.Size:
    return rollout.Size(of.metadata.name, of.spec.replicas or 0, of.status.available_replicas, revisions.most(of))


def _resized(bounds: rollout.Bounds, new: Set | None, old: Sequence[Set], active: Sequence[Set]) -> Mapping[str, int]:
    """The sizes after the wanted number changed: of the only set, or in shares."""
    if len(active) <= 1:
        only = active[0] if active else new
        return {} if only is None else {only.metadata.name: bounds.replicas}
    is_done = (
        new is not None
        and (new.spec.replicas or 0) == bounds.replicas
        and new.status.available_replicas == bounds.replicas
    )
    if is_done:
        return {each.metadata.name: 0 for each in old if each.spec.replicas}
    return rollout.share_out(bounds, [_size(each) for each in (*old, *([new] if new is not None else ()))])


def _selector(of: Deployment) -> labels.Selector:
    return labelselectors.of(of.spec.selector)


def _is_status(before: deployment.DeploymentStatus, content: Mapping[str, Any]) -> bool:
    """Whether a status is there already."""
    counts = {
        "observedGeneration": before.observed_generation,
        "replicas": before.replicas,
        "updatedReplicas": before.updated_replicas,
        "readyReplicas": before.ready_replicas,
        "availableReplicas": before.available_replicas,
        "unavailableReplicas": before.unavailable_replicas,
        "terminatingReplicas": before.terminating_replicas or 0,
    }
    shown = [(each["type"], each["status"], each["reason"], each["message"]) for each in content["conditions"]]
    known = [(each.type, each.status, each.reason, each.message) for each in before.conditions]
    return counts.items() <= content.items() and sorted(shown) == sorted(known)
