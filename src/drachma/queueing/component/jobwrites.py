"""Writes after the reconcile of a job: the job's documents, its workloads, and events about them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from drachma import errors
from drachma.api import event, pod
from drachma.client import patches, target, transactions
from drachma.queueing.component import resources, workloadwrites
from drachma.queueing.component.caches import Caches
from drachma.queueing.component.workloadwrites import WorkloadLocks
from drachma.queueing.integrations import pods
from drachma.queueing.jobs.interface import without_finalizer
from drachma.queueing.jobs.reconciler import ReconcileResult
from drachma.queueing.kinds import decoding, workload
from drachma.queueing.workloads import workloadstate
from drachma.queueing.workloads.workloadevents import Event
from drachma.runtime import Surroundings, events

Document = Mapping[str, Any]

_SERVER_FIELDS: Final = frozenset({"managedFields", "resourceVersion", "generation", "uid", "creationTimestamp"})


class Report:
    """Events about one reconcile, which are written with its first change."""

    def __init__(self, reported: Sequence[event.Event] = ()) -> None:
        self._reported = reported

    def take(self) -> Sequence[event.Event]:
        """Return the events, the first time that it is called."""
        reported, self._reported = self._reported, ()
        return reported


class JobWrites:
    """Writes with the resource versions that the reconcile has read; the next reconcile settles conflicts."""

    def __init__(
        self,
        surroundings: Surroundings,
        recorder: events.Recorder,
        *,
        caches: Caches,
        locks: WorkloadLocks,
    ) -> None:
        self._client: Final = surroundings.client
        self._informers: Final = surroundings.informers
        self._observe: Final = surroundings.informers.of(resources.WORKLOADS, with_documents=True).observe
        self._recorder: Final = recorder
        self._clock: Final = surroundings.clock
        self._locks: Final = locks
        self._pod_sets: Final = caches.pod_sets
        self._workloads: Final = caches.workloads

    # Documents

    async def update(self, kind: target.Of[Any], before: Document, after: Document, report: Report) -> Document:
        """Patch metadata and spec of a stored document, then its status, and return the stored document."""
        current = before
        main = workloadwrites.difference(_without_status(before), _without_status(after))
        if main:
            current = await self._patch(kind, current, main, report)
        status = workloadwrites.difference(before.get("status") or {}, after.get("status") or {})
        if status:
            current = await self._patch(kind, current, {"status": status}, report, subresource="status")
        return current

    async def _patch(
        self, kind: target.Of[Any], current: Document, content: Document, report: Report, *, subresource: str = ""
    ) -> Document:
        metadata = current["metadata"]
        unchanged = patches.Preconditions(uid=metadata["uid"], resource_version=metadata["resourceVersion"])
        change = transactions.PatchStored(
            kind,
            metadata["name"],
            patches.merge(content, unchanged),
            namespace=metadata.get("namespace", ""),
            subresource=subresource,
        )
        patched = await self._recorder.patch(change, reported=report.take())
        self._informers.observe(kind, patched)
        document: Document = msgspec.json.decode(patched.source.data)
        return document

    async def delete(self, kind: target.Of[Any], namespace: str, name: str, *, uid: str) -> None:
        """Delete an object and, in the background, its dependents."""
        with contextlib.suppress(errors.ObjectNotFoundError):
            await self._client.delete(
                kind,
                name,
                namespace=namespace,
                preconditions=patches.Preconditions(uid=uid),
                propagation="Background",
            )

    async def write_pod(self, before: Document, after: Document | None) -> None:
        """Write a pod, and delete it if its new state has a deletion timestamp; None removes its finalizers."""
        if after is None:
            after = {**before, "metadata": {**before["metadata"], "finalizers": []}}
        is_deleted = pods.is_deleted(after) and not pods.is_deleted(before)
        if is_deleted:
            metadata = {name: value for name, value in after["metadata"].items() if name != "deletionTimestamp"}
            after = {**after, "metadata": metadata}
        if after != before:
            try:
                await self.update(pod.Pod, before, after, Report())
            except errors.ObjectNotFoundError:
                return
        if is_deleted:
            metadata = before["metadata"]
            await self.delete(pod.Pod, metadata["namespace"], metadata["name"], uid=metadata["uid"])

    # Workloads

    async def write_workloads(
        self,
        before: Sequence[workload.Workload],
        result: ReconcileResult,
        report: Report,
        *,
        complete: Callable[[workload.Workload], workload.Workload] = lambda wl: wl,
    ) -> None:
        """Create, patch and delete the workloads of a job. ``complete`` adds the first status of new workloads."""
        stored_by_key = {workloadstate.key(each): each for each in before}
        for key, after in result.workloads.items():
            old = stored_by_key.get(key)
            if old is None:
                await self._create(complete(after), result.new_pod_sets[key], report)
            elif after is not old:
                async with self._locks.hold(key):
                    self._check_unchanged(old)
                    await self._update_workload(old, after, result.new_pod_sets.get(key), report)
        for key, old in stored_by_key.items():
            if key not in result.workloads:
                await self._remove(old)

    def _check_unchanged(self, wl: workload.Workload) -> None:
        """Raise ObjectConflictError if the cache has another version, which makes the write pointless."""
        cached = self._workloads.cache.get(wl.metadata.name, namespace=wl.metadata.namespace)
        if cached is not None and cached.metadata.resource_version != wl.metadata.resource_version:
            raise errors.ObjectConflictError({"message": f"workload {workloadstate.key(wl)}: has changed meanwhile"})

    async def _create(self, wl: workload.Workload, pod_sets: Sequence[Document], report: Report) -> None:
        document = decoding.document(wl)
        status = document.pop("status", None)
        document["spec"] = {**document["spec"], "podSets": list(pod_sets)}
        head = {"apiVersion": f"{resources.GROUP}/{resources.VERSION}", "kind": resources.WORKLOADS.kind}
        changes: list[transactions.DocumentChange] = [
            transactions.CreateDocument(resources.WORKLOADS, {**head, **document})
        ]
        if status:
            metadata = wl.metadata
            patch = patches.merge({"status": status})
            changes.append(
                transactions.PatchStored(
                    resources.WORKLOADS, metadata.name, patch, namespace=metadata.namespace, subresource="status"
                )
            )
        self._observe(await self._recorder.write(*changes, reported=report.take()))

    async def _update_workload(
        self,
        before: workload.Workload,
        after: workload.Workload,
        pod_sets: Sequence[Document] | None,
        report: Report,
    ) -> None:
        if after.metadata.deletion_timestamp is not None and before.metadata.deletion_timestamp is None:
            await self._remove(before)
            return
        if pod_sets is not None and pod_sets == self._pod_sets(before):
            pod_sets = None
        current = before
        main = workloadwrites.object_change(before, after, pod_sets)
        if main:
            current = await self._patch_workload(current, main, report)
        dated = workloadwrites.with_times(after, workloadwrites.current_time(self._clock))
        status = workloadwrites.status_change(before, dated)
        if status:
            await self._patch_workload(current, {"status": status}, report, subresource="status")

    async def _patch_workload(
        self, wl: workload.Workload, content: Document, report: Report, *, subresource: str = ""
    ) -> workload.Workload:
        reported = report.take()
        return self._observe(
            await workloadwrites.patch(self._recorder, wl, content, subresource=subresource, reported=reported)
        )

    async def _remove(self, wl: workload.Workload) -> None:
        change = workloadwrites.object_change(wl, without_finalizer(wl))
        if change:
            try:
                await self._patch_workload(wl, change, Report())
            except errors.ObjectNotFoundError:
                return
        metadata = wl.metadata
        if metadata.deletion_timestamp is None:
            await self.delete(resources.WORKLOADS, metadata.namespace, metadata.name, uid=metadata.uid)

    # Events

    def report(self, references: Mapping[str, event.ObjectReference], recorded: Iterable[Event]) -> Report:
        """Return a report with events about objects, by the keys that the events name."""
        return Report(
            [
                self._recorder.event(
                    reference,
                    type=events.WARNING if each.type == events.WARNING else events.NORMAL,
                    reason=each.reason,
                    message=each.message,
                )
                for each in recorded
                if (reference := references.get(each.key)) is not None
            ]
        )

    def finish(self, report: Report) -> None:
        """Write the events of a reconcile that has changed nothing."""
        self._recorder.put(report.take())


def document_reference(document: Document) -> event.ObjectReference:
    """Return the reference to an object that events about it have."""
    metadata = document["metadata"]
    return event.ObjectReference(
        kind=document["kind"],
        namespace=metadata.get("namespace", ""),
        name=metadata["name"],
        uid=metadata.get("uid", ""),
        api_version=document["apiVersion"],
        resource_version=metadata.get("resourceVersion", ""),
    )


def _without_status(document: Document) -> dict[str, Any]:
    remainder = {name: value for name, value in document.items() if name != "status"}
    remainder["metadata"] = {name: value for name, value in document["metadata"].items() if name not in _SERVER_FIELDS}
    return remainder
