"""The controller of StatefulSets and LeaderWorkerSets, which are queued through groups of their pods."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from drachma.api import meta, pod, statefulset
from drachma.client import target
from drachma.queueing.component import jobwrites, resources, workloadwrites
from drachma.queueing.component.activeconfiguration import ActiveConfiguration
from drachma.queueing.component.caches import BY_OWNER, Caches, owner_value
from drachma.queueing.component.jobwrites import JobWrites
from drachma.queueing.component.ownerreader import OwnerReader
from drachma.queueing.integrations import pods
from drachma.queueing.integrations.parentgroups import ParentReconciler
from drachma.queueing.integrations.parents import SET_NAME, GroupParent, LeaderWorkerSet, StatefulSet
from drachma.queueing.jobs.interface import Document, Reference
from drachma.queueing.jobs.settings import Owners
from drachma.queueing.kinds import workload
from drachma.runtime import Surroundings, controller, workqueue
from drachma.runtime.cache import Key, key_of
from drachma.runtime.informer import Handler

_WORKERS: Final = 4


class ParentKind(NamedTuple):
    """A kind of parents, and the resource that serves it."""

    model: type[GroupParent]
    resource: target.Target[Any]


ALL: Final = (
    ParentKind(StatefulSet, resources.STATEFUL_SETS),
    ParentKind(LeaderWorkerSet, resources.LEADER_WORKER_SETS),
)
"""Kinds that have a controller. Deployments need none: their pods are queued one by one."""


class ParentController:
    """Reconciles parents of one kind when they, their pods, their workloads or the configuration change."""

    def __init__(
        self,
        surroundings: Surroundings,
        caches: Caches,
        configured: ActiveConfiguration,
        *,
        writes: JobWrites,
        kind: ParentKind,
    ) -> None:
        name = kind.model.kind.kind.lower()
        self.name: Final = f"queued {name}"
        self._model: Final = kind.model
        self._clock: Final = surroundings.clock
        self._configured: Final = configured
        self._caches: Final = caches
        self._owners: Final = OwnerReader(surroundings.client)
        self._writes: Final = writes
        self._queue: Final[workqueue.Queue[Key]] = workqueue.Queue(
            f"kueue_{name}", clock=surroundings.clock, metrics=surroundings.queues
        )
        self._index: Final = f"queueing-{name}"
        self._parents: Final = surroundings.informers.of(kind.resource, with_documents=True)
        self._parents.add_handler(Handler.on_change(self._handle_parent))
        self._pods: Final = surroundings.informers.of(pod.Pod, with_documents=True)
        self._pods.cache.add_index(self._index, self._pod_index)
        self._pods.add_handler(Handler.on_write(self._handle_pod))
        self._sets: Final = surroundings.informers.of(resources.STATEFUL_SETS, with_documents=True)
        self._sets.add_handler(Handler(updated=lambda _, new: self._handle_set(new)))
        caches.workloads.add_handler(
            Handler(updated=lambda _, new: self._handle_workload(new), deleted=self._handle_workload)
        )
        configured.subscribe(self._handle_configuration)

    async def run(self) -> None:
        await controller.work(self._queue, self._reconcile, workers=_WORKERS)

    # Event handlers

    def _handle_parent(self, parent: meta.Object) -> None:
        self._queue.hasten(key_of(parent))

    def _handle_pod(self, subject: pod.Pod) -> None:
        name = self._parent_name(subject)
        if name:
            self._queue.hasten(Key(subject.metadata.namespace, name))

    def _handle_set(self, stateful_set: statefulset.StatefulSet) -> None:
        name = stateful_set.metadata.labels.get(SET_NAME)
        if name and self._model is LeaderWorkerSet:
            self._queue.hasten(Key(stateful_set.metadata.namespace, name))

    def _handle_workload(self, wl: workload.Workload) -> None:
        kind = self._model.kind
        for owner in wl.metadata.owner_references:
            if (owner.kind, owner.api_version) == (kind.kind, kind.api_version):
                self._queue.hasten(Key(wl.metadata.namespace, owner.name))

    def _handle_configuration(self) -> None:
        for each in self._parents.cache:
            self._handle_parent(each)

    def _parent_name(self, subject: pod.Pod) -> str:
        """Return the name of the parent of this kind that gates a pod, or an empty text."""
        metadata = subject.metadata
        if metadata.annotations.get(pods.PARENT) != self._model.framework:
            return ""
        owners = [
            {"apiVersion": each.api_version, "kind": each.kind, "name": each.name, "controller": each.controller}
            for each in metadata.owner_references
        ]
        return self._model.parent_name({"labels": metadata.labels, "ownerReferences": owners})

    def _pod_index(self, subject: pod.Pod) -> Sequence[str]:
        name = self._parent_name(subject)
        return (f"{subject.metadata.namespace}/{name}",) if name else ()

    # Reconcile

    async def _reconcile(self, key: Key) -> controller.After | controller.Again | None:
        settings = self._configured.jobs
        if self._model.framework not in settings.management.frameworks:
            return None
        entry = self._parents.cache.entry(key.name, namespace=key.namespace)
        if entry is None and await self._exists(key):
            # Its pods were seen first. The informer reports it soon, and then they are reconciled.
            return None
        document = None if entry is None else entry.document()
        parent = None if document is None else self._model(document)
        owners: Owners = {} if document is None else await self._owners.read(document, key.namespace)
        members = self._members(key)
        workloads = self._workloads(key, parent)
        reconciler = ParentReconciler(parent, members, self._stateful_sets(key))
        now = workloadwrites.current_time(self._clock)
        environment = self._caches.environment(key.namespace, workloads, owners)
        result = reconciler.reconcile(environment, now, settings=settings)
        references = {}
        if parent is not None and document is not None:
            references[parent.key] = jobwrites.document_reference(document)
        report = self._writes.report(references, result.events)
        await self._writes.write_workloads(workloads, result, report)
        for before in members:
            await self._writes.write_pod(before, reconciler.pods[before["metadata"]["name"]])
        self._writes.finish(report)
        return controller.AGAIN if result.error else None

    async def _exists(self, key: Key) -> bool:
        """Return True if the API server has the parent."""
        return bool(await self._owners.read_references([Reference(self._model.kind, key.namespace, key.name)]))

    def _members(self, key: Key) -> list[Document]:
        members = self._pods.cache.by(self._index, f"{key.namespace}/{key.name}")
        names = sorted(each.metadata.name for each in members)
        entries = (self._pods.cache.entry(name, namespace=key.namespace) for name in names)
        return [entry.document() for entry in entries if entry is not None]

    def _workloads(self, key: Key, parent: GroupParent | None) -> list[workload.Workload]:
        """Return the workloads of a parent: those that it owns, and those with the names that its workloads have."""
        cache = self._caches.workloads.cache
        owned = cache.by(BY_OWNER, owner_value(self._model.kind.kind, key.namespace, key.name))
        if parent is None:
            return list(owned)
        own = [each for each in owned if any(ref.uid == parent.uid for ref in each.metadata.owner_references)]
        names = [each.name for each in parent.workload_keys(self._configured.gates)]
        candidates = (cache.get(name, namespace=key.namespace) for name in names)
        return list({each.metadata.name: each for each in (*own, *candidates) if each is not None}.values())

    def _stateful_sets(self, key: Key) -> dict[str, Document]:
        """Return the StatefulSets that own pods of a parent, by name."""
        is_set = self._model is StatefulSet
        names = [
            each.metadata.name
            for each in self._sets.cache
            if each.metadata.namespace == key.namespace
            and (each.metadata.name if is_set else each.metadata.labels.get(SET_NAME)) == key.name
        ]
        entries = ((name, self._sets.cache.entry(name, namespace=key.namespace)) for name in names)
        return {name: entry.document() for name, entry in entries if entry is not None}
