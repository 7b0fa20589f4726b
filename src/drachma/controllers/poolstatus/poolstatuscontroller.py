"""The controller: answers each request once, and deletes old requests."""

import datetime as dt
from typing import Final

from drachma import errors
from drachma.api import devicetaintrule, resourceclaim, resourceslice
from drachma.api import gates as features
from drachma.api import resourcepoolstatusrequest as question
from drachma.client import patches
from drachma.controllers import objectwrites
from drachma.controllers.poolstatus import poolstatus
from drachma.runtime import Surroundings, controller, informer, workqueue

WORKERS: Final = 5
PERIOD: Final = 600.0
ANSWERED: Final = dt.timedelta(hours=1)
"""Time after which answered requests are deleted."""

PENDING: Final = dt.timedelta(hours=24)
"""Time after which other requests are deleted."""

_ENDS: Final = ("Complete", "Failed")


def is_over(request: question.ResourcePoolStatusRequest, now: dt.datetime) -> bool:
    """Return True if a request is old enough to be deleted."""
    since, stay = request.metadata.creation_timestamp, PENDING
    if request.status is not None:
        ends = [each.last_transition_time for each in request.status.conditions if each.type in _ENDS]
        since, stay = ends[0] if ends else since, ANSWERED
    return since is not None and now - since > stay


class ResourcePoolStatusController:
    """Answers and deletes requests."""

    name: Final = "resourcepoolstatusrequest"

    def __init__(self, surroundings: Surroundings) -> None:
        requests = surroundings.informers.of(question.ResourcePoolStatusRequest)
        self._client: Final = surroundings.client
        self._clock: Final = surroundings.clock
        self._requests: Final = requests.cache
        self._writer: Final = objectwrites.Writer(surroundings.client, requests)
        self._slices: Final = surroundings.informers.of(resourceslice.ResourceSlice).cache
        self._claims: Final = surroundings.informers.of(resourceclaim.ResourceClaim).cache
        has_rules = surroundings.gates.on(features.Gate.DEVICE_TAINT_RULES)
        self._rules: Final = surroundings.informers.of(devicetaintrule.DeviceTaintRule).cache if has_rules else ()
        self._queue: Final[workqueue.Queue[str]] = workqueue.Queue(
            self.name, clock=surroundings.clock, metrics=surroundings.queues
        )
        requests.add_handler(informer.Handler.on_write(self._enqueue))

    async def run(self) -> None:
        await controller.together(
            controller.work(self._queue, self._reconcile, workers=WORKERS),
            controller.every(PERIOD, self._clean, clock=self._clock, name=self.name),
        )

    def _enqueue(self, new: question.ResourcePoolStatusRequest) -> None:
        if new.status is None:
            self._queue.add(new.metadata.name)

    async def _reconcile(self, name: str) -> controller.Again | None:
        request = self._requests.get(name)
        if request is None or request.status is not None:
            return None
        cluster = poolstatus.Cluster(tuple(self._slices), self._claims, tuple(self._rules))
        status = poolstatus.answer(request.spec, cluster, self._clock.utc())
        if poolstatus.is_preliminary(status):
            # Differs from upstream: retried until the pool is complete, not five times.
            return controller.AGAIN
        try:
            await self._writer.update_status(request, status, only_if_unchanged=True)
        except errors.ObjectNotFoundError:
            return None
        return None

    async def _clean(self) -> None:
        now = self._clock.utc()
        for each in [each for each in self._requests if is_over(each, now)]:
            try:
                await self._client.delete(
                    question.ResourcePoolStatusRequest, each.metadata.name, preconditions=patches.same(each)
                )
            except (errors.ObjectNotFoundError, errors.ObjectConflictError):
                # Deleted already, perhaps replaced by another one.
                continue
