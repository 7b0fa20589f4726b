"""The controller of pods that are queued by themselves or in groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from drachma.api import pod
from drachma.queueing.component import jobwrites, workloadwrites
from drachma.queueing.component.activeconfiguration import ActiveConfiguration
from drachma.queueing.component.caches import Caches
from drachma.queueing.component.jobwrites import JobWrites
from drachma.queueing.component.workloadwriter import workload_reference
from drachma.queueing.configuration.frameworks import POD
from drachma.queueing.configuration.gates import Gate
from drachma.queueing.integrations import pods
from drachma.queueing.integrations.podgroup import PodGroup
from drachma.queueing.jobs import reconciler
from drachma.queueing.kinds import workload
from drachma.queueing.workloads import workloadstate
from drachma.runtime import Surroundings, controller, workqueue
from drachma.runtime.informer import Handler

_WORKERS: Final = 4
_GROUPS: Final = "queueing-group"

Document = Mapping[str, Any]


class _GroupKey(NamedTuple):
    """Key of a single pod or of a group of pods."""

    namespace: str
    name: str
    is_group: bool


class PodController:
    """Reconciles pods that carry Kueue's label when they or their workloads change."""

    name: Final = "queued pod"

    def __init__(
        self, surroundings: Surroundings, caches: Caches, configured: ActiveConfiguration, *, writes: JobWrites
    ) -> None:
        self._clock: Final = surroundings.clock
        self._configured: Final = configured
        self._caches: Final = caches
        self._writes: Final = writes
        self._queue: Final[workqueue.Queue[_GroupKey]] = workqueue.Queue(
            "kueue_pod", clock=surroundings.clock, metrics=surroundings.queues
        )
        self._pods: Final = surroundings.informers.of(pod.Pod, with_documents=True)
        self._pods.cache.add_index(_GROUPS, self._group_index)
        self._pods.add_handler(Handler.on_change(self._handle_pod))
        caches.workloads.add_handler(Handler.on_change(self._handle_workload))

    async def run(self) -> None:
        await controller.work(self._queue, self._reconcile, workers=_WORKERS)

    def _group_name(self, subject: pod.Pod) -> str:
        return pods.group_name(subject.metadata.labels, subject.metadata.annotations, self._configured.gates)

    def _group_index(self, subject: pod.Pod) -> Sequence[str]:
        group = self._group_name(subject) if _is_managed(subject) else ""
        return (f"{subject.metadata.namespace}/{group}",) if group else ()

    def _handle_pod(self, subject: pod.Pod) -> None:
        if _is_managed(subject):
            group = self._group_name(subject)
            self._queue.hasten(_GroupKey(subject.metadata.namespace, group or subject.metadata.name, bool(group)))

    def _handle_workload(self, wl: workload.Workload) -> None:
        namespace = wl.metadata.namespace
        for owner in wl.metadata.owner_references:
            if (owner.kind, owner.api_version) == (PodGroup.kind.kind, PodGroup.kind.api_version):
                owner_pod = self._pods.cache.get(owner.name, namespace=namespace)
                if owner_pod is not None:
                    self._handle_pod(owner_pod)
                elif owner.controller:
                    self._queue.hasten(_GroupKey(namespace, owner.name, is_group=False))
                else:
                    self._queue.hasten(_GroupKey(namespace, wl.metadata.name, is_group=True))

    async def _reconcile(self, key: _GroupKey) -> controller.After | controller.Again | None:
        settings = self._configured.jobs
        if POD not in settings.management.frameworks:
            return None
        documents = self._documents(key)
        if settings.management.only_pods_of_parents and documents and not pods.has_parent(documents[0]):
            return None
        now = workloadwrites.current_time(self._clock)
        group = PodGroup(
            key.namespace,
            key.name,
            documents,
            is_group=key.is_group,
            now=now,
            releases_early=settings.gates.on(Gate.FAST_QUOTA_RELEASE),
        )
        if key.is_group:
            wl = self._caches.workloads.cache.get(key.name, namespace=key.namespace)
            workloads = [] if wl is None else [wl]
        else:
            workloads = self._caches.job_workloads(group, owners={})
        environment = self._caches.environment(key.namespace, workloads, {})
        result = reconciler.reconcile(group, environment, now, settings=settings)
        for before in documents:
            await self._writes.write_pod(before, group.pods.get(before["metadata"]["name"]))
        references = {pods.key(each): jobwrites.document_reference(each) for each in documents}
        references |= {workloadstate.key(each): workload_reference(each) for each in workloads}
        report = self._writes.report(references, result.events)
        await self._writes.write_workloads(workloads, result, report)
        self._writes.finish(report)
        if result.error:
            return controller.AGAIN
        seconds = result.requeue_after.total_seconds()
        return controller.After(seconds) if seconds > 0 else None

    def _documents(self, key: _GroupKey) -> list[Document]:
        names = [key.name]
        if key.is_group:
            members = self._pods.cache.by(_GROUPS, f"{key.namespace}/{key.name}")
            names = sorted(each.metadata.name for each in members)
        entries = (self._pods.cache.entry(name, namespace=key.namespace) for name in names)
        return [entry.document() for entry in entries if entry is not None]


def _is_managed(subject: pod.Pod) -> bool:
    return subject.metadata.labels.get(pods.FINALIZER) == "true"
