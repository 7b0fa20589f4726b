"""The controller of Jobs: holds them back, gives them workloads, starts and stops them with what those were given."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from drachma.api import job
from drachma.queueing import jobreconcile
from drachma.queueing.batchjob import BatchJob
from drachma.queueing.component import resources, wholeseconds
from drachma.queueing.component.activeconfiguration import ActiveConfiguration
from drachma.queueing.component.caches import BY_OWNER, Caches, owner_value
from drachma.queueing.component.jobcontext import JobContext
from drachma.queueing.component.jobwrites import JobWrites
from drachma.queueing.frameworks import BATCH_JOB
from drachma.queueing.jobworkload import QUEUE_LABEL
from drachma.queueing.kinds import workload
from drachma.runtime import Surroundings, controller, events, workqueue
from drachma.runtime.cache import Key, key_of
from drachma.runtime.informer import Handler

_WORKERS: Final = 8
_KIND: Final = BatchJob.kind


class JobController:
    """Wakes up for Jobs that are queued and for their workloads."""

    name: Final = "queued job"

    def __init__(
        self, surroundings: Surroundings, caches: Caches, configured: ActiveConfiguration, *, recorder: events.Recorder
    ) -> None:
        self._clock: Final = surroundings.clock
        self._configured: Final = configured
        self._caches: Final = caches
        self._context: Final = JobContext(surroundings.client, caches)
        self._writes: Final = JobWrites(surroundings.client, recorder, time=surroundings.clock)
        self._queue: Final[workqueue.Queue[Key]] = workqueue.Queue(
            "kueue_job", time=surroundings.clock, measured=surroundings.queues
        )
        self._jobs: Final = surroundings.informers.of(job.Job)
        self._jobs.add_handler(
            Handler(added=self._on_job, updated=lambda _, new: self._on_job(new), deleted=self._on_job)
        )
        caches.workloads.add_handler(
            Handler(added=self._on_workload, updated=lambda _, new: self._on_workload(new), deleted=self._on_workload)
        )
        configured.subscribe(self._on_configuration)

    async def run(self) -> None:
        await controller.work(self._queue, self._reconcile, workers=_WORKERS)

    def _on_job(self, of: job.Job) -> None:
        metadata = of.metadata
        is_queued = bool(metadata.labels.get(QUEUE_LABEL)) or self._configured.jobs.management.without_queue_name
        if is_queued or self._caches.workloads.cache.by(BY_OWNER, self._owner(key_of(of))):
            self._queue.hasten(key_of(of))

    def _on_workload(self, of: workload.Workload) -> None:
        for owner in of.metadata.owner_references:
            if (owner.kind, owner.api_version) == (_KIND.kind, _KIND.api_version):
                self._queue.hasten(Key(of.metadata.namespace, owner.name))

    def _on_configuration(self) -> None:
        for each in self._jobs.cache:
            self._on_job(each)

    @staticmethod
    def _owner(key: Key) -> str:
        return owner_value(_KIND.kind, key.namespace, key.name)

    async def _reconcile(self, key: Key) -> controller.After | controller.Again | None:
        settings = self._configured.jobs
        if BATCH_JOB not in settings.management.frameworks:
            return None
        before = await self._context.document(resources.JOBS, key)
        records = await self._context.workloads(self._owner(key), of=before, namespace=key.namespace)
        around = await self._context.around(key.namespace, before, records)
        outcome = jobreconcile.reconcile(
            key.name,
            None if before is None else BatchJob(before),
            around,
            wholeseconds.now(self._clock),
            settings=settings,
        )
        if before is not None:
            await self._write_job(before, outcome.job)
        await self._writes.workloads(records, outcome.workloads)
        self._writes.tell(_references(before), outcome.events)
        if outcome.error:
            return controller.AGAIN
        rest = outcome.look_again_after.total_seconds()
        return controller.After(rest) if rest > 0 else None

    async def _write_job(self, before: Mapping[str, Any], after: Mapping[str, Any] | None) -> None:
        if after is None:
            await self._writes.delete(resources.JOBS, before)
            return
        was_running = not before["spec"].get("suspend")
        if was_running and after["spec"].get("suspend") and after["spec"] != {**before["spec"], "suspend": True}:
            # A Job takes back labels and tolerations only once it is held back and its start is forgotten.
            held_back = {**before, "spec": {**before["spec"], "suspend": True}}
            before = await self._writes.document(resources.JOBS, before, held_back)
            unstarted = {**before, "status": after.get("status") or {}}
            before = await self._writes.document(resources.JOBS, before, unstarted)
        await self._writes.document(resources.JOBS, before, after)


def _references(of: Mapping[str, Any] | None) -> Mapping[str, Mapping[str, Any]]:
    """The object that events of a job are about, by the key that they name."""
    return {} if of is None else {BatchJob(of).key: of}
