"""The controller of jobs of one kind: holds them back, gives them workloads, starts and stops them by those."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from drachma.api import meta
from drachma.client import target
from drachma.queueing.component import resources, wholeseconds
from drachma.queueing.component.activeconfiguration import ActiveConfiguration
from drachma.queueing.component.caches import BY_OWNER, Caches, owner_value
from drachma.queueing.component.jobcontext import JobContext
from drachma.queueing.component.jobwrites import JobWrites
from drachma.queueing.configuration.frameworks import BATCH_JOB, JOB_SET
from drachma.queueing.jobs import jobreconcile
from drachma.queueing.jobs.batchjob import STOPPING, BatchJob
from drachma.queueing.jobs.jobdocument import JobDocument
from drachma.queueing.jobs.jobset import JobSet
from drachma.queueing.jobs.jobworkload import QUEUE_LABEL
from drachma.queueing.kinds import workload
from drachma.runtime import Surroundings, controller, events, workqueue
from drachma.runtime.cache import Key, key_of
from drachma.runtime.informer import Handler

_WORKERS: Final = 8


class JobKind(NamedTuple):
    """A kind of jobs that are one document each, and where they are served."""

    framework: str
    model: type[JobDocument]
    resource: target.Target[Any]
    restores_late: bool = False
    """Whether one takes back labels and tolerations only once it is held back and its start is forgotten."""


JOBS: Final = JobKind(BATCH_JOB, BatchJob, resources.JOBS, restores_late=True)
JOB_SETS: Final = JobKind(JOB_SET, JobSet, resources.JOB_SETS)


class JobController:
    """Wakes up for jobs that are queued and for their workloads."""

    def __init__(
        self,
        surroundings: Surroundings,
        caches: Caches,
        configured: ActiveConfiguration,
        *,
        recorder: events.Recorder,
        kind: JobKind,
    ) -> None:
        self.name: Final = f"queued {kind.model.kind.kind.lower()}"
        self._kind: Final = kind
        self._clock: Final = surroundings.clock
        self._configured: Final = configured
        self._caches: Final = caches
        self._context: Final = JobContext(surroundings.client, caches)
        self._writes: Final = JobWrites(surroundings, recorder)
        self._queue: Final[workqueue.Queue[Key]] = workqueue.Queue(
            f"kueue_{kind.model.kind.kind.lower()}", time=surroundings.clock, measured=surroundings.queues
        )
        self._jobs: Final = surroundings.informers.of(kind.resource)
        self._jobs.add_handler(
            Handler(added=self._on_job, updated=lambda _, new: self._on_job(new), deleted=self._on_job)
        )
        caches.workloads.add_handler(
            Handler(added=self._on_workload, updated=lambda _, new: self._on_workload(new), deleted=self._on_workload)
        )
        configured.subscribe(self._on_configuration)

    async def run(self) -> None:
        await controller.work(self._queue, self._reconcile, workers=_WORKERS)

    def _on_job(self, of: meta.Object) -> None:
        metadata = of.metadata
        is_queued = bool(metadata.labels.get(QUEUE_LABEL)) or self._configured.jobs.management.without_queue_name
        if is_queued or self._caches.workloads.cache.by(BY_OWNER, self._owner(key_of(of))):
            self._queue.hasten(key_of(of))

    def _on_workload(self, of: workload.Workload) -> None:
        for owner in of.metadata.owner_references:
            if (owner.kind, owner.api_version) == (self._kind.model.kind.kind, self._kind.model.kind.api_version):
                self._queue.hasten(Key(of.metadata.namespace, owner.name))

    def _on_configuration(self) -> None:
        for each in self._jobs.cache:
            self._on_job(each)

    def _owner(self, key: Key) -> str:
        return owner_value(self._kind.model.kind.kind, key.namespace, key.name)

    async def _reconcile(self, key: Key) -> controller.After | controller.Again | None:
        settings = self._configured.jobs
        if self._kind.framework not in settings.management.frameworks:
            return None
        before = await self._context.document(self._kind.resource, key)
        records = await self._context.workloads(self._owner(key), of=before, namespace=key.namespace)
        around = await self._context.around(key.namespace, before, records)
        outcome = jobreconcile.reconcile(
            key.name,
            None if before is None else self._kind.model(before),
            around,
            wholeseconds.now(self._clock),
            settings=settings,
            kind=self._kind.model.kind,
        )
        if before is not None and not await self._write_job(before, outcome.job):
            return None
        await self._writes.workloads(records, outcome.workloads)
        self._writes.tell({} if before is None else {self._kind.model(before).key: before}, outcome.events)
        if outcome.error:
            return controller.AGAIN
        rest = outcome.look_again_after.total_seconds()
        return controller.After(rest) if rest > 0 else None

    async def _write_job(self, before: Mapping[str, Any], after: Mapping[str, Any] | None) -> bool:
        """Makes a job what it is to be; whether it is, or only when its pods are gone."""
        resource = self._kind.resource
        if after is None:
            await self._writes.delete(resource, before)
            return True
        if self._kind.restores_late and after["spec"].get("suspend"):
            before = await self._hold_back(before, after)
            if before["spec"] != after["spec"] and (before.get("status") or {}).get("active"):
                return False
        await self._writes.document(resource, before, after)
        return True

    async def _hold_back(self, before: Mapping[str, Any], after: Mapping[str, Any]) -> Mapping[str, Any]:
        """What comes before its template is as it was: API servers take that of jobs without pods and a start."""
        if after["spec"] == {**before["spec"], "suspend": True}:
            return before
        resource = self._kind.resource
        if not before["spec"].get("suspend"):
            annotations = {**(before["metadata"].get("annotations") or {}), STOPPING: "true"}
            held_back = {
                **before,
                "metadata": {**before["metadata"], "annotations": annotations},
                "spec": {**before["spec"], "suspend": True},
            }
            before = await self._writes.document(resource, before, held_back)
        return await self._writes.document(resource, before, {**before, "status": after.get("status") or {}})
