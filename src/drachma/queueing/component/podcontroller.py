"""The controller of pods that are queued by themselves or in groups: lets them go, ends them, and lets them be gone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from drachma import errors
from drachma.api import pod
from drachma.queueing.component import wholeseconds
from drachma.queueing.component.activeconfiguration import ActiveConfiguration
from drachma.queueing.component.caches import Caches, owner_value
from drachma.queueing.component.jobcontext import JobContext
from drachma.queueing.component.jobwrites import JobWrites
from drachma.queueing.configuration.frameworks import POD
from drachma.queueing.jobs import podgroup, podreconcile
from drachma.queueing.jobs.podgroup import PodGroup
from drachma.queueing.kinds import workload
from drachma.runtime import Surroundings, controller, events, workqueue
from drachma.runtime.cache import Key
from drachma.runtime.informer import Handler

_WORKERS: Final = 4
_GROUPS: Final = "queueing-group"

Document = Mapping[str, Any]


class _Subject(NamedTuple):
    """A pod, or a group of them."""

    namespace: str
    name: str
    is_group: bool


class PodController:
    """Wakes up for pods that are marked as queued, and for their workloads."""

    name: Final = "queued pod"

    def __init__(
        self, surroundings: Surroundings, caches: Caches, configured: ActiveConfiguration, *, recorder: events.Recorder
    ) -> None:
        self._clock: Final = surroundings.clock
        self._configured: Final = configured
        self._context: Final = JobContext(surroundings.client, caches)
        self._writes: Final = JobWrites(surroundings, recorder)
        self._queue: Final[workqueue.Queue[_Subject]] = workqueue.Queue(
            "kueue_pod", time=surroundings.clock, measured=surroundings.queues
        )
        self._pods: Final = surroundings.informers.of(pod.Pod)
        self._pods.cache.add_index(_GROUPS, self._group_index)
        self._pods.add_handler(
            Handler(added=self._on_pod, updated=lambda _, new: self._on_pod(new), deleted=self._on_pod)
        )
        caches.workloads.add_handler(
            Handler(added=self._on_workload, updated=lambda _, new: self._on_workload(new), deleted=self._on_workload)
        )

    async def run(self) -> None:
        await controller.work(self._queue, self._reconcile, workers=_WORKERS)

    def _group_of(self, of: pod.Pod) -> str:
        document = {"metadata": {"labels": of.metadata.labels, "annotations": of.metadata.annotations}}
        return podgroup.group_name(document, self._configured.gates)

    def _group_index(self, of: pod.Pod) -> Sequence[str]:
        group = self._group_of(of) if _is_managed(of) else ""
        return (f"{of.metadata.namespace}/{group}",) if group else ()

    def _on_pod(self, of: pod.Pod) -> None:
        if _is_managed(of):
            group = self._group_of(of)
            self._queue.hasten(_Subject(of.metadata.namespace, group or of.metadata.name, bool(group)))

    def _on_workload(self, of: workload.Workload) -> None:
        for owner in of.metadata.owner_references:
            if (owner.kind, owner.api_version) == (PodGroup.kind.kind, PodGroup.kind.api_version):
                owned = self._pods.cache.get(owner.name, namespace=of.metadata.namespace)
                if owned is not None:
                    self._on_pod(owned)
                elif owner.controller:
                    self._queue.hasten(_Subject(of.metadata.namespace, owner.name, is_group=False))
                else:
                    self._queue.hasten(_Subject(of.metadata.namespace, of.metadata.name, is_group=True))

    async def _reconcile(self, of: _Subject) -> controller.After | controller.Again | None:
        settings = self._configured.jobs
        if POD not in settings.management.frameworks:
            return None
        pods = await self._documents(of)
        if of.is_group:
            records = await self._context.named({of.name}, of.namespace)
        else:
            owner = owner_value(PodGroup.kind.kind, of.namespace, of.name)
            first = pods[0] if pods else None
            records = await self._context.workloads(owner, of=first, namespace=of.namespace)
        around = await self._context.around(of.namespace, None, records)
        now = wholeseconds.now(self._clock)
        if of.is_group:
            outcome = podreconcile.reconcile_group(of.namespace, of.name, pods, around, now, settings=settings)
        else:
            outcome = podreconcile.reconcile_pod(of.name, pods[0] if pods else None, around, now, settings=settings)
        for before in pods:
            await self._write_pod(before, outcome.pods.get(before["metadata"]["name"]))
        await self._writes.workloads(records, outcome.workloads)
        objects = {podgroup.pod_key(each): each for each in pods} | {each.key: each.document for each in records}
        self._writes.tell(objects, outcome.events)
        if outcome.error:
            return controller.AGAIN
        rest = outcome.look_again_after.total_seconds()
        return controller.After(rest) if rest > 0 else None

    async def _documents(self, of: _Subject) -> list[Document]:
        names = [of.name]
        if of.is_group:
            names = sorted(each.metadata.name for each in self._pods.cache.by(_GROUPS, f"{of.namespace}/{of.name}"))
        documents = [await self._context.document(pod.Pod, Key(of.namespace, name)) for name in names]
        return [each for each in documents if each is not None]

    async def _write_pod(self, before: Document, after: Document | None) -> None:
        if after is None:
            after = {**before, "metadata": {**before["metadata"], "finalizers": []}}
        is_ended = bool(after["metadata"].get("deletionTimestamp")) and not before["metadata"].get("deletionTimestamp")
        if is_ended:
            metadata = {name: value for name, value in after["metadata"].items() if name != "deletionTimestamp"}
            after = {**after, "metadata": metadata}
        if after != before:
            try:
                await self._writes.document(pod.Pod, before, after)
            except errors.ObjectNotFoundError:
                return
        if is_ended:
            await self._writes.delete(pod.Pod, before)


def _is_managed(of: pod.Pod) -> bool:
    return of.metadata.labels.get(podgroup.FINALIZER) == "true"
