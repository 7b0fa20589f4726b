"""Controller that deletes finished jobs with their pods after the time that they specify."""

import datetime as dt
from typing import Final

import prometheus_client

from drachma import errors
from drachma.api import job
from drachma.client import patches
from drachma.controllers.job import model
from drachma.runtime import Surroundings, cache, controller, informer, workqueue

WORKERS: Final = 5


class TimeToLive:
    """Deletes finished jobs when their time has come."""

    name: Final = "ttl_jobs_to_delete"

    def __init__(self, surroundings: Surroundings) -> None:
        self._client: Final = surroundings.client
        self._clock: Final = surroundings.clock
        self._jobs: Final = surroundings.informers.of(job.Job).cache
        self._queue: Final[workqueue.Queue[cache.Key]] = workqueue.Queue(
            self.name, clock=surroundings.clock, metrics=surroundings.queues
        )
        self._delays: Final = prometheus_client.Histogram(
            "ttl_after_finished_controller_job_deletion_duration_seconds",
            "Delay between the time to live of a finished job and its deletion.",
            buckets=tuple(0.1 * 2**exponent for exponent in range(14)),
            registry=surroundings.registry,
        )
        surroundings.informers.of(job.Job).add_handler(informer.Handler.on_write(self._enqueue))

    async def run(self) -> None:
        await controller.work(self._queue, self._reconcile, workers=WORKERS)

    def _enqueue(self, job: job.Job) -> None:
        if _end(job) is not None:
            self._queue.add(cache.key_of(job))

    async def _reconcile(self, key: cache.Key) -> controller.After | None:
        cached = self._jobs.get(key.name, namespace=key.namespace)
        seconds = self._left(cached)
        if cached is None or seconds is None:
            return None
        if seconds > 0:
            return controller.After(seconds)
        # Read the job again: the cache may miss a longer time to live.
        try:
            fresh = await self._client.get(job.Job, key.name, namespace=key.namespace)
        except errors.ObjectNotFoundError:
            return None
        seconds = self._left(fresh)
        if seconds is None or seconds > 0:
            return controller.After(seconds) if seconds is not None else None
        await self._client.delete(
            job.Job, key.name, namespace=key.namespace, preconditions=patches.same(fresh), propagation="Foreground"
        )
        self._delays.observe(-seconds)
        return None

    def _left(self, job: job.Job | None) -> float | None:
        """Return the seconds until a job is deleted, or None if it may stay."""
        end = _end(job) if job is not None else None
        return (end - self._clock.utc()).total_seconds() if end is not None else None


def _end(job: job.Job) -> dt.datetime | None:
    seconds = job.spec.ttl_seconds_after_finished
    if seconds is None or job.metadata.deletion_timestamp is not None:
        return None
    for kind in (model.COMPLETE, model.FAILED):
        condition = model.condition(job.status, kind)
        if condition is not None and condition.last_transition_time is not None:
            return condition.last_transition_time + dt.timedelta(seconds=seconds)
    return None
