"""The controller: reconciles a job when it or one of its pods changes, and when its deadline comes."""

from collections.abc import Sequence
from typing import Final

from drachma import errors
from drachma.api import gates as features
from drachma.api import job, labelselectors, pod, podgroup
from drachma.claims import ownership
from drachma.controllers import objectwrites
from drachma.controllers.job import jobgroup, jobsync, model, podcontrol, retries, tally
from drachma.controllers.workload import adoption
from drachma.runtime import Surroundings, cache, controller, informer, workqueue

WORKERS: Final = 5
OWNER_INDEX: Final = "job controller: job"

_BEHIND_SECONDS: Final = 1.0
"""Seconds to wait for a cache that is behind, if no change of a pod comes before."""


def _job_of(pod: pod.Pod) -> str:
    """Return the name of the job that controls a pod, or an empty text."""
    if not pod.metadata.owner_references:
        return ""
    owner = ownership.controller_of(pod)
    is_job = owner is not None and (owner.kind, owner.api_version) == ("Job", "batch/v1")
    return owner.name if owner is not None and is_job else ""


def _owners(pod: pod.Pod) -> tuple[str, ...]:
    name = _job_of(pod)
    return (f"{pod.metadata.namespace}/{name}",) if name else ()


class JobController:
    """Runs jobs."""

    name: Final = "job"

    def __init__(self, surroundings: Surroundings) -> None:
        pods = surroundings.informers.of(pod.Pod)
        self._client: Final = surroundings.client
        self._clock: Final = surroundings.clock
        self._recorder: Final = surroundings.recorder("job-controller")
        self._metrics: Final = jobsync.JobMetrics(surroundings.registry)
        self._control: Final = podcontrol.PodControl(surroundings.client, pods, recorder=self._recorder)
        self._failures: Final[dict[str, retries.Failures]] = {}
        self._uids: Final[dict[cache.Key, str]] = {}
        self._pods: Final = pods.cache
        self._pods.add_index(OWNER_INDEX, _owners)
        self._pods.ensure_index(adoption.CONTROLLER, adoption.index_controller)
        jobs = surroundings.informers.of(job.Job)
        self._jobs: Final = jobs.cache
        self._writer: Final = objectwrites.Writer(surroundings.client, jobs, recorder=self._recorder)
        gates = surroundings.gates
        has_groups = gates.on(features.Gate.WORKLOAD_WITH_JOB) and gates.on(features.Gate.GENERIC_WORKLOAD)
        self._groups: Final = (
            jobgroup.JobGroups(surroundings.client, surroundings.informers.of(podgroup.PodGroup).cache)
            if has_groups
            else None
        )
        self._queue: Final[workqueue.Queue[cache.Key]] = workqueue.Queue(
            self.name,
            clock=surroundings.clock,
            metrics=surroundings.queues,
            retries=workqueue.Retries(initial=1.0, maximum=60.0),
        )
        jobs.add_handler(informer.Handler.on_change(self._handle_job))
        pods.add_handler(
            informer.Handler(added=self._handle_pod, updated=self._handle_update, deleted=self._handle_pod)
        )

    async def run(self) -> None:
        await controller.work(self._queue, self._reconcile, workers=WORKERS)

    # Handlers

    def _handle_job(self, new: job.Job) -> None:
        self._queue.add(cache.key_of(new))

    def _handle_update(self, old: pod.Pod, new: pod.Pod) -> None:
        if _job_of(old) != _job_of(new):
            self._handle_pod(old)
        self._handle_pod(new)

    def _handle_pod(self, new: pod.Pod) -> None:
        namespace = new.metadata.namespace
        name = _job_of(new)
        if name:
            self._queue.add(cache.Key(namespace, name))
        elif ownership.controller_of(new) is None:
            for each in self._jobs.list_namespace(namespace):
                if labelselectors.of(each.spec.selector).matches(new.metadata.labels):
                    self._handle_job(each)

    # Reconciling

    async def _reconcile(self, key: cache.Key) -> controller.After | None:
        pods = self._pods.by(OWNER_INDEX, str(key))
        entry = self._jobs.entry(key.name, namespace=key.namespace)
        uid = entry.object.metadata.uid if entry is not None else ""
        if self._uids.get(key, uid) != uid:
            self._forget(self._uids.pop(key))
        own = tuple(each for each in pods if _owner_uid(each) == uid)
        foreign_pods = [each for each in pods if _owner_uid(each) != uid and tally.is_tracked(each)]
        if foreign_pods:
            await self._release_pods_of_deleted_jobs(key, foreign_pods)
        if entry is None:
            return None
        self._uids[key] = uid
        current = entry.view(model.JOBS)
        if current.is_managed_elsewhere:
            return None
        if model.is_finished(current.status):
            await self._control.release(uid, own)
            self._forget(uid)
            return None
        if not self._control.is_up_to_date(uid):
            return controller.After(_BEHIND_SECONDS)
        orphans = self._pods.by(adoption.CONTROLLER, adoption.orphans_in(key.namespace))
        return await self._sync(entry, current, await self._control.claim(entry.object, (*own, *orphans)))

    async def _sync(
        self, entry: cache.Entry[job.Job], current: model.Job, pods: tuple[pod.Pod, ...]
    ) -> controller.After | None:
        uid = current.metadata.uid
        if self._groups is not None and not current.spec.suspend:
            group = await self._groups.ensure(entry)
            if group:
                self._control.groups[uid] = group
        look = jobsync.JobSync(
            entry,
            pods=pods,
            control=self._control,
            writer=self._writer,
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

    async def _release_pods_of_deleted_jobs(self, key: cache.Key, pods: Sequence[pod.Pod]) -> None:
        """Take the finalizer off pods whose job is gone, because no controller will count them any more.

        The server is asked: the cache of jobs may be behind that of pods.
        """
        try:
            current = await self._client.get(job.Job, key.name, namespace=key.namespace)
            uid = current.metadata.uid
        except errors.ObjectNotFoundError:
            uid = ""
        await self._control.release("", [each for each in pods if _owner_uid(each) != uid])

    def _forget(self, uid: str) -> None:
        self._failures.pop(uid, None)
        self._control.groups.pop(uid, None)
        self._control.forget(uid)


def _owner_uid(pod: pod.Pod) -> str:
    owner = ownership.controller_of(pod)
    return owner.uid if owner is not None else ""
