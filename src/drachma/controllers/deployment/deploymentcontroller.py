"""The controller: keeps a ReplicaSet for a deployment's template, and moves pods to it step by step.

One reconcile takes one step: it creates a set, or changes the size of one. The controller of the sets creates and
deletes pods, and its status updates trigger the next step, until all pods have the template.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from drachma import errors
from drachma.api import deployment, labelselectors, pod, replicaset
from drachma.claims import ownership
from drachma.client import patches
from drachma.controllers import objectwrites
from drachma.controllers.deployment import deploymentstatus, revisions, rollout
from drachma.controllers.workload import adoption, expectations, members, readiness
from drachma.runtime import Surroundings, cache, controller, events, informer, workqueue
from drachma.values import labels

WORKERS: Final = 5

Deployment = deployment.Deployment
Set = replicaset.ReplicaSet


class DeploymentController:
    """Rolls out deployments."""

    name: Final = "deployment"

    def __init__(self, surroundings: Surroundings) -> None:
        self._client: Final = surroundings.client
        self._clock: Final = surroundings.clock
        self._recorder: Final = surroundings.recorder("deployment-controller")
        deployments = surroundings.informers.of(Deployment)
        self._informer: Final = surroundings.informers.of(Set)
        self._deployments: Final = deployments.cache
        self._writer: Final = objectwrites.Writer(surroundings.client, deployments, recorder=self._recorder)
        self._sets: Final = self._informer.cache
        self._pods: Final = surroundings.informers.of(pod.Pod).cache
        self._expected: Final = expectations.Expectations(self._informer)
        self._adopter: Final = adoption.Adopter(surroundings.client, Set, expected_writes=self._expected)
        self._queue: Final[workqueue.Queue[cache.Key]] = workqueue.Queue(
            self.name, clock=surroundings.clock, metrics=surroundings.queues
        )
        deployments.add_handler(informer.Handler.on_write(self._enqueue, deleted=self._forget))
        self._members: Final = members.Members(
            self._informer, self._deployments, kind=Deployment, selector=_selector, enqueue=self._queue.add
        )
        surroundings.informers.of(pod.Pod).add_handler(informer.Handler(deleted=self._handle_pod_go))

    async def run(self) -> None:
        await controller.work(self._queue, self._reconcile, workers=WORKERS)

    # Handlers

    def _enqueue(self, deployment: Deployment) -> None:
        self._queue.add(cache.key_of(deployment))

    def _forget(self, deployment: Deployment) -> None:
        self._expected.forget(deployment.metadata.uid)

    def _handle_pod_go(self, pod: pod.Pod) -> None:
        """Reconcile a deployment that recreates its pods: new ones wait until the last old one is gone."""
        owner = ownership.controller_of(pod)
        if owner is not None and owner.kind == "ReplicaSet":
            owning = self._sets.get(owner.name, namespace=pod.metadata.namespace)
            if owning is not None:
                self._members.enqueue_owners(owning)

    # Reconciling

    async def _reconcile(self, key: cache.Key) -> controller.After | controller.Again | None:
        deployment = self._deployments.get(key.name, namespace=key.namespace)
        if deployment is None:
            return None
        if not self._expected.are_met(deployment.metadata.uid):
            return controller.AGAIN
        sets = await self._claim(deployment)
        new = next((each for each in sets if revisions.has_template(each, deployment.spec.template)), None)
        old = [each for each in sets if each is not new]
        if deployment.metadata.deletion_timestamp is not None:
            await self._write_status(deployment, new, sets)
            return None
        is_created = False
        if not deployment.spec.paused:
            new, is_created = await self._new_set(deployment, new, old)
            sets = [*old, new] if new is not None else old
        await self._size(deployment, new, old)
        await self._write_status(deployment, new, sets, is_created=is_created)
        if new is not None and not deployment.spec.paused:
            await self._clean_up(deployment, old)
        seconds = deploymentstatus.deadline(deployment, now=self._clock.utc())
        return None if seconds is None else controller.After(seconds)

    async def _claim(self, deployment: Deployment) -> list[Set]:
        """Return the sets of a deployment, oldest first, after it adopted matching sets and released others."""
        selector = _selector(deployment)
        claimed = await self._adopter.claim(
            deployment,
            (*self._members.owned(deployment), *self._members.orphans(deployment)),
            matches=lambda each: selector.matches(each.metadata.labels),
        )
        return sorted(claimed, key=lambda each: (str(each.metadata.creation_timestamp), each.metadata.name))

    async def _new_set(self, deployment: Deployment, new: Set | None, old: Sequence[Set]) -> tuple[Set | None, bool]:
        """Return the set of the template, created if necessary, and whether it was created."""
        number = max(revisions.newest_revision(old) + 1, revisions.revision(new) if new is not None else 0)
        if new is None:
            if deployment.spec.strategy.type == "Recreate" and self._has_pods(old):
                return None, False
            created = await self._create(deployment, number, old)
            await self._mark(deployment, number)
            return created, True
        marks = revisions.marks(deployment, number, new.metadata.annotations)
        if marks != dict(new.metadata.annotations):
            new = await self._patch_set(deployment, new, {"metadata": {"annotations": marks}})
        await self._mark(deployment, number)
        return new, False

    async def _create(self, deployment: Deployment, number: int, old: Sequence[Set]) -> Set:
        bounds = rollout.bounds(deployment.spec)
        replicas = rollout.grow(bounds, rollout.Size("", 0, 0), [_size(each) for each in old])
        if deployment.spec.strategy.type != rollout.ROLLING:
            replicas = bounds.replicas
        document = revisions.new_set(deployment, number, replicas=replicas, most_pods=bounds.most)
        document["metadata"]["ownerReferences"] = [ownership.reference(deployment)]
        name = document["metadata"]["name"]
        try:
            created_document = await self._client.create_document(Set, document)
        except errors.ObjectExistsError:
            existing = await self._client.get(Set, name, namespace=deployment.metadata.namespace)
            if not ownership.is_controlled_by(existing.metadata, deployment.metadata.uid):
                await self._count_collision(deployment)
                raise
            return existing
        created = self._informer.observe(created_document)
        self._expected.note(deployment.metadata.uid, created.metadata.resource_version)
        if replicas:
            self._record_scaling(deployment, name, 0, replicas)
        return created

    async def _count_collision(self, deployment: Deployment) -> None:
        """Count a name collision, so that the next name is another one."""
        count = (deployment.status.collision_count or 0) + 1
        await self._patch_status(deployment, {"collisionCount": count})

    async def _mark(self, deployment: Deployment, number: int) -> None:
        if deployment.metadata.annotations.get(revisions.REVISION) == str(number):
            return
        await self._writer.annotate(deployment, {revisions.REVISION: str(number)})

    async def _size(self, deployment: Deployment, new: Set | None, old: Sequence[Set]) -> None:
        """Change the sizes of sets by one step."""
        bounds = rollout.bounds(deployment.spec)
        by_name = {each.metadata.name: each for each in (*old, *([new] if new is not None else ()))}
        for name, replicas in self._next_sizes(deployment, bounds, new, old).items():
            replica_set = by_name[name]
            before = replica_set.spec.replicas or 0
            marks = {revisions.DESIRED: str(bounds.replicas), revisions.MOST: str(bounds.most)}
            is_marked = marks.items() <= replica_set.metadata.annotations.items()
            if replicas == before and is_marked:
                continue
            await self._patch_set(
                deployment, replica_set, {"metadata": {"annotations": marks}, "spec": {"replicas": replicas}}
            )
            if replicas != before:
                self._record_scaling(deployment, name, before, replicas)

    def _next_sizes(
        self, deployment: Deployment, bounds: rollout.Bounds, new: Set | None, old: Sequence[Set]
    ) -> Mapping[str, int]:
        active = [each for each in (*old, *([new] if new is not None else ())) if each.spec.replicas]
        if deployment.spec.paused or self._is_resized(bounds, active):
            return _resized(bounds, new, old, active)
        if new is None:
            return {each.metadata.name: 0 for each in old if each.spec.replicas}
        if deployment.spec.strategy.type != rollout.ROLLING:
            sizes = {each.metadata.name: 0 for each in old if each.spec.replicas}
            return sizes if self._has_pods(old) else {**sizes, new.metadata.name: bounds.replicas}
        grown = rollout.grow(bounds, _size(new), [_size(each) for each in old])
        if grown != (new.spec.replicas or 0):
            return {new.metadata.name: grown}
        return rollout.shrink(bounds, _size(new), [_size(each) for each in old])

    def _is_resized(self, bounds: rollout.Bounds, active: Iterable[Set]) -> bool:
        """Return True if the number of replicas has changed since the sets were last scaled."""
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
            for each in self._pods.list_namespace(namespace)
        )

    async def _clean_up(self, deployment: Deployment, old: Sequence[Set]) -> None:
        """Delete the oldest empty sets beyond the history limit."""
        limit = deployment.spec.revision_history_limit
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

    async def _patch_set(self, deployment: Deployment, replica_set: Set, content: Mapping[str, Any]) -> Set:
        changed = await self._client.patch(
            Set,
            replica_set.metadata.name,
            patch=patches.merge(content, patches.same(replica_set)),
            namespace=replica_set.metadata.namespace,
        )
        self._expected.note(deployment.metadata.uid, changed.metadata.resource_version)
        return changed

    async def _write_status(
        self, deployment: Deployment, new: Set | None, sets: Sequence[Set], *, is_created: bool = False
    ) -> None:
        content = deploymentstatus.status(deployment, new, sets, now=self._clock.utc(), is_created=is_created)
        if not _is_status(deployment.status, content):
            await self._patch_status(deployment, content)

    async def _patch_status(self, deployment: Deployment, content: Mapping[str, Any]) -> None:
        try:
            await self._writer.update_status(deployment, content)
        except errors.ObjectNotFoundError:
            return

    def _record_scaling(self, deployment: Deployment, name: str, before: int, after: int) -> None:
        direction = "up" if after > before else "down"
        message = f"Scaled {direction} replica set {name} from {before} to {after}"
        self._recorder.record(deployment, type=events.NORMAL, reason="ScalingReplicaSet", message=message)


def _size(replica_set: Set) -> rollout.Size:
    return rollout.Size(
        replica_set.metadata.name,
        replica_set.spec.replicas or 0,
        replica_set.status.available_replicas,
        revisions.most(replica_set),
    )


def _resized(bounds: rollout.Bounds, new: Set | None, old: Sequence[Set], active: Sequence[Set]) -> Mapping[str, int]:
    """Return the sizes after the number of replicas changed: of the only set, or in proportion."""
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


def _selector(deployment: Deployment) -> labels.Selector:
    return labelselectors.of(deployment.spec.selector)


def _is_status(before: deployment.DeploymentStatus, content: Mapping[str, Any]) -> bool:
    """Return True if a status is unchanged."""
    counts = {
        "observedGeneration": before.observed_generation,
        "replicas": before.replicas,
        "updatedReplicas": before.updated_replicas,
        "readyReplicas": before.ready_replicas,
        "availableReplicas": before.available_replicas,
        "unavailableReplicas": before.unavailable_replicas,
        "terminatingReplicas": before.terminating_replicas or 0,
    }
    new_conditions = [(each["type"], each["status"], each["reason"], each["message"]) for each in content["conditions"]]
    old_conditions = [(each.type, each.status, each.reason, each.message) for each in before.conditions]
    return counts.items() <= content.items() and sorted(new_conditions) == sorted(old_conditions)
