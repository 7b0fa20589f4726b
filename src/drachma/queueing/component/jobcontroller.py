"""The controller of jobs of one kind that are one document each, such as Jobs and JobSets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from drachma import errors
from drachma.api import meta
from drachma.client import target
from drachma.queueing.component import jobwrites, resources, workloadwrites
from drachma.queueing.component.activeconfiguration import ActiveConfiguration
from drachma.queueing.component.caches import BY_OWNER, Caches, owner_value
from drachma.queueing.component.jobwrites import JobWrites, Report
from drachma.queueing.component.ownerreader import OwnerReader
from drachma.queueing.configuration.frameworks import BATCH_JOB, JOB_SET
from drachma.queueing.integrations import models
from drachma.queueing.integrations.batchjob import STOPPING, BatchJob
from drachma.queueing.integrations.jobset import JobSet
from drachma.queueing.jobs import reconciler
from drachma.queueing.jobs.settings import QUEUE_LABEL, Owners
from drachma.queueing.jobs.suspendable import SuspendableJob
from drachma.queueing.kinds import workload
from drachma.runtime import Surroundings, controller, workqueue
from drachma.runtime.cache import Key, key_of
from drachma.runtime.informer import Handler

_WORKERS: Final = 8
_TRAIN_JOB: Final = "trainer.kubeflow.org/trainjob"


class JobKind(NamedTuple):
    """A kind of jobs, and the resource that serves it."""

    framework: str
    model: type[SuspendableJob]
    resource: target.Target[Any]
    starts_late: bool = False
    """True if the job's controller accepts changes of its pods only before the job is resumed."""
    restores_late: bool = False
    """True if API servers allow changes of the pod template only while the job is suspended and has no start time."""


JOBS: Final = JobKind(BATCH_JOB, BatchJob, resources.JOBS, restores_late=True)
JOB_SETS: Final = JobKind(JOB_SET, JobSet, resources.JOB_SETS)
ALL: Final = (
    JOBS,
    JOB_SETS,
    *(
        JobKind(name, model, resources.INSTALLED_JOBS[name], starts_late=name == _TRAIN_JOB)
        for name, model in models.ALL.items()
    ),
)
"""Kinds that have a controller; a new kind of jobs is added here."""


class JobController:
    """Reconciles jobs when they, their workloads or the configuration change."""

    def __init__(
        self,
        surroundings: Surroundings,
        caches: Caches,
        configured: ActiveConfiguration,
        *,
        writes: JobWrites,
        kind: JobKind,
    ) -> None:
        self.name: Final = f"queued {kind.model.kind.kind.lower()}"
        self._kind: Final = kind
        self._client: Final = surroundings.client
        self._clock: Final = surroundings.clock
        self._configured: Final = configured
        self._caches: Final = caches
        self._owners: Final = OwnerReader(surroundings.client)
        self._writes: Final = writes
        self._queue: Final[workqueue.Queue[Key]] = workqueue.Queue(
            f"kueue_{kind.model.kind.kind.lower()}", clock=surroundings.clock, metrics=surroundings.queues
        )
        self._jobs: Final = surroundings.informers.of(kind.resource, with_documents=True)
        self._jobs.add_handler(Handler.on_change(self._handle_job))
        caches.workloads.add_handler(Handler.on_change(self._handle_workload))
        configured.subscribe(self._handle_configuration)

    async def run(self) -> None:
        await controller.work(self._queue, self._reconcile, workers=_WORKERS)

    def _handle_job(self, job: meta.Object) -> None:
        has_queue = bool(job.metadata.labels.get(QUEUE_LABEL))
        is_queued = has_queue or self._configured.jobs.management.without_queue_name
        if is_queued or self._caches.workloads.cache.by(BY_OWNER, self._owner(key_of(job))):
            self._queue.hasten(key_of(job))

    def _handle_workload(self, wl: workload.Workload) -> None:
        for owner in wl.metadata.owner_references:
            if (owner.kind, owner.api_version) == (self._kind.model.kind.kind, self._kind.model.kind.api_version):
                self._queue.hasten(Key(wl.metadata.namespace, owner.name))

    def _handle_configuration(self) -> None:
        for each in self._jobs.cache:
            self._handle_job(each)

    def _owner(self, key: Key) -> str:
        return owner_value(self._kind.model.kind.kind, key.namespace, key.name)

    async def _reconcile(self, key: Key) -> controller.After | controller.Again | None:
        settings = self._configured.jobs
        if self._kind.framework not in settings.management.frameworks:
            return None
        entry = self._jobs.cache.entry(key.name, namespace=key.namespace)
        if entry is None:
            if not await self._is_gone(key):
                return controller.AGAIN
            before, job = None, self._kind.model.missing(key.namespace, key.name)
            owners: Owners = {}
        else:
            before = entry.document()
            related = await self._owners.read_references(self._kind.model.references(before))
            job = self._kind.model(before, related)
            owners = await self._owners.read(before, key.namespace)
        workloads = self._caches.job_workloads(job, owners=owners)
        environment = self._caches.environment(key.namespace, workloads, owners)
        now = workloadwrites.current_time(self._clock)
        result = reconciler.reconcile(job, environment, now, settings=settings)
        references = {} if before is None else {job.key: jobwrites.document_reference(before)}
        report = self._writes.report(references, result.events)
        if before is not None and not await self._write_job(before, None if job.is_gone else job.document, report):
            return None
        await self._writes.write_workloads(
            workloads,
            result,
            report,
            complete=lambda wl: reconciler.initial_workload(wl, job, now, settings=settings),
        )
        self._writes.finish(report)
        if result.error:
            return controller.AGAIN
        seconds = result.requeue_after.total_seconds()
        return controller.After(seconds) if seconds > 0 else None

    async def _is_gone(self, key: Key) -> bool:
        """Ask the API server whether a job is gone that has workloads: they are finished for good if it is."""
        if not self._caches.workloads.cache.by(BY_OWNER, self._owner(key)):
            return True
        try:
            await self._client.get(self._kind.resource, key.name, namespace=key.namespace)
        except errors.ObjectNotFoundError:
            return True
        return False

    async def _write_job(self, before: Mapping[str, Any], after: Mapping[str, Any] | None, report: Report) -> bool:
        """Write a job. Return False if its template can be restored only after its pods are gone."""
        resource = self._kind.resource
        if after is None:
            metadata = before["metadata"]
            await self._writes.delete(resource, metadata["namespace"], metadata["name"], uid=metadata["uid"])
            return True
        if self._kind.restores_late and after["spec"].get("suspend"):
            before = await self._suspend_first(before, after, report)
            if not _differs_in_suspend_only(before, after) and (before.get("status") or {}).get("active"):
                return False
        if self._kind.starts_late and before["spec"].get("suspend") and not after["spec"].get("suspend"):
            prepared = {**after, "spec": {**after["spec"], "suspend": True}}
            before = await self._writes.update(resource, before, prepared, report)
        await self._writes.update(resource, before, after, report)
        return True

    async def _suspend_first(
        self, before: Mapping[str, Any], after: Mapping[str, Any], report: Report
    ) -> Mapping[str, Any]:
        """Suspend a job and remove its start time, before its template is restored, and return the stored job.

        A job that never started and keeps its template needs no such steps.
        """
        if _differs_in_suspend_only(before, after) and not (before.get("status") or {}).get("startTime"):
            return before
        resource = self._kind.resource
        if not before["spec"].get("suspend"):
            annotations = {**(before["metadata"].get("annotations") or {}), STOPPING: "true"}
            suspended = {
                **before,
                "metadata": {**before["metadata"], "annotations": annotations},
                "spec": {**before["spec"], "suspend": True},
            }
            before = await self._writes.update(resource, before, suspended, report)
        stopped = {**before, "status": after.get("status") or {}}
        return await self._writes.update(resource, before, stopped, report)


def _differs_in_suspend_only(before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    """Return True if a suspended job has the spec that it had before, apart from ``suspend``."""
    suspended: bool = after["spec"] == {**before["spec"], "suspend": True}
    return suspended
