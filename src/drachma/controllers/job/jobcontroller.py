"""The controller: looks at a job when it or one of its pods changes, and when time runs out for it."""

from typing import Any, Final

import msgspec

from drachma import errors
from drachma.api import hooks, job, labelselectors, pod
from drachma.claims import ownership
from drachma.controllers.job import jobmetrics, jobsync, model, podcontrol, retries
from drachma.controllers.workload import adoption
from drachma.runtime import Surroundings, cache, controller, informer, workqueue

WORKERS: Final = 5
OWNER_INDEX: Final = "job controller: job"

_BEHIND_SECONDS: Final = 1.0
"""How long to wait for a cache that is behind, should no news of pods wake the job before."""


def _job_of(of: pod.Pod) -> str:
    """The name of the job that controls a pod, empty if none does."""
    if not of.metadata.owner_references:
        return ""
    owner = ownership.controller_of(of)
    is_job = owner is not None and (owner.kind, owner.api_version) == ("Job", "batch/v1")
    return owner.name if owner is not None and is_job else ""


def _owners(of: pod.Pod) -> tuple[str, ...]:
    name = _job_of(of)
    return (f"{of.metadata.namespace}/{name}",) if name else ()


class JobController:
    """Runs jobs."""

    name: Final = "job"

    def __init__(self, surroundings: Surroundings) -> None:
        pods = surroundings.informers.of(pod.Pod)
        self._client: Final = surroundings.client
        self._clock: Final = surroundings.clock
        self._recorder: Final = surroundings.recorder("job-controller")
        self._metrics: Final = jobmetrics.JobMetrics(surroundings.registry)
        self._control: Final = podcontrol.PodControl(surroundings.client, pods, recorder=self._recorder)
        self._failures: Final[dict[str, retries.Failures]] = {}
        self._uids: Final[dict[cache.Key, str]] = {}
        self._pods: Final = pods.cache
        self._pods.add_index(OWNER_INDEX, _owners)
        self._pods.ensure_index(adoption.ORPHANS, adoption.orphans_of)
        jobs = surroundings.informers.of(job.Job)
        self._jobs: Final = jobs.cache
        self._queue: Final[workqueue.Queue[cache.Key]] = workqueue.Queue(
            self.name,
            time=surroundings.clock,
            measured=surroundings.queues,
            retries=workqueue.Retries(initial=1.0, maximum=60.0),
        )
        jobs.add_handler(
            informer.Handler(added=self._see_job, updated=lambda _, new: self._see_job(new), deleted=self._see_job)
        )
        pods.add_handler(informer.Handler(added=self._see_pod, updated=self._see_change, deleted=self._see_pod))

    async def run(self) -> None:
        await controller.work(self._queue, self._reconcile, workers=WORKERS)

    # News

    def _see_job(self, new: job.Job) -> None:
        self._queue.add(cache.key_of(new))

    def _see_change(self, old: pod.Pod, new: pod.Pod) -> None:
        if _job_of(old) != _job_of(new):
            self._see_pod(old)
        self._see_pod(new)

    def _see_pod(self, new: pod.Pod) -> None:
        namespace = new.metadata.namespace
        name = _job_of(new)
        if name:
            self._queue.add(cache.Key(namespace, name))
        elif ownership.controller_of(new) is None:
            for each in self._jobs.in_namespace(namespace):
                if labelselectors.of(each.spec.selector).matches(new.metadata.labels):
                    self._see_job(each)

    # Work

    async def _reconcile(self, key: cache.Key) -> controller.After | None:
        # Pods first: whatever job they name has existed before it is asked for.
        pods = self._pods.by(OWNER_INDEX, str(key))
        document = await self._read(key)
        uid = document["metadata"]["uid"] if document is not None else ""
        if self._uids.get(key, uid) != uid:
            self._forget(self._uids.pop(key))
        own = tuple(each for each in pods if _owner_uid(each) == uid)
        # Nobody will count the pods of a job that is gone.
        await self._control.release(uid, [each for each in pods if _owner_uid(each) != uid])
        if document is None:
            return None
        self._uids[key] = uid
        current = model.read(document)
        if current.is_managed_elsewhere:
            return None
        if model.is_finished(current.status):
            await self._control.release(uid, own)
            self._forget(uid)
            return None
        if not self._control.is_up_to_date(uid):
            return controller.After(_BEHIND_SECONDS)
        orphans = self._pods.by(adoption.ORPHANS, key.namespace)
        owner = msgspec.convert(document, job.Job, dec_hook=hooks.decode)
        return await self._look_at(document, current, await self._control.claim(owner, (*own, *orphans)))

    async def _look_at(
        self, document: dict[str, Any], current: model.Job, pods: tuple[pod.Pod, ...]
    ) -> controller.After | None:
        uid = current.metadata.uid
        look = jobsync.JobSync(
            self._client,
            document,
            pods=pods,
            control=self._control,
            recorder=self._recorder,
            metrics=self._metrics,
            now=self._clock.utc(),
        )
        result = "error"
        try:
            self._failures[uid] = await look.run(self._failures.get(uid, retries.Failures()))
            result = "success"
        finally:
            self._metrics.count_sync(current.mode, result=result)
        return controller.After(look.wait) if look.wait is not None else None

    async def _read(self, key: cache.Key) -> dict[str, Any] | None:
        try:
            return await self._client.get_document(job.Job, key.name, namespace=key.namespace)
        except errors.ObjectNotFoundError:
            return None

    def _forget(self, uid: str) -> None:
        self._failures.pop(uid, None)
        self._control.forget(uid)


def _owner_uid(of: pod.Pod) -> str:
    owner = ownership.controller_of(of)
    return owner.uid if owner is not None else ""
