"""The end of jobs: deleted with their pods so many seconds after they finished, where they ask for that."""

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
            self.name, time=surroundings.clock, measured=surroundings.queues
        )
        self._delays: Final = prometheus_client.Histogram(
            "ttl_after_finished_controller_job_deletion_duration_seconds",
            "How long after its time a finished job was deleted.",
            buckets=tuple(0.1 * 2**exponent for exponent in range(14)),
            registry=surroundings.registry,
        )
        surroundings.informers.of(job.Job).add_handler(
            informer.Handler(added=self._see, updated=lambda _, new: self._see(new))
        )

    async def run(self) -> None:
        await controller.work(self._queue, self._reconcile, workers=WORKERS)

    def _see(self, known: job.Job) -> None:
        if _end(known) is not None:
            self._queue.add(cache.key_of(known))

    async def _reconcile(self, key: cache.Key) -> controller.After | None:
        known = self._jobs.get(key.name, namespace=key.namespace)
        left = self._left(known)
        if known is None or left is None:
            return None
        if left > 0:
            return controller.After(left)
        # The cache may be behind somebody who has just given the job more time.
        try:
            fresh = await self._client.get(job.Job, key.name, namespace=key.namespace)
        except errors.ObjectNotFoundError:
            return None
        left = self._left(fresh)
        if left is None or left > 0:
            return controller.After(left) if left is not None else None
        await self._client.delete(
            job.Job, key.name, namespace=key.namespace, preconditions=patches.same(fresh), propagation="Foreground"
        )
        self._delays.observe(-left)
        return None

    def _left(self, known: job.Job | None) -> float | None:
        """The seconds that a job has left; None if it may stay."""
        end = _end(known) if known is not None else None
        return (end - self._clock.utc()).total_seconds() if end is not None else None


def _end(known: job.Job) -> dt.datetime | None:
    seconds = known.spec.ttl_seconds_after_finished
    if seconds is None or known.metadata.deletion_timestamp is not None:
        return None
    for kind in (model.COMPLETE, model.FAILED):
        condition = model.condition(known.status, kind)
        if condition is not None and condition.last_transition_time is not None:
            return condition.last_transition_time + dt.timedelta(seconds=seconds)
    return None
