"""Pods that were to be evicted and were not: after two minutes their condition says so no more."""

import datetime as dt
from typing import Final

from drachma import errors
from drachma.api import pod
from drachma.claims import conditions, podstate, wellknown
from drachma.controllers import podwrites
from drachma.runtime import Surroundings, cache, controller, informer, workqueue

TIMEOUT: Final = dt.timedelta(minutes=2)

_BY_KUBELET: Final = "TerminationByKubelet"
"""Why a node ends a pod, which may take it as long as it likes."""


class StaleConditions:
    """Takes the condition back that pods keep although nobody has deleted them."""

    name: Final = "stale_pod_disruption"

    def __init__(self, surroundings: Surroundings) -> None:
        pods = surroundings.informers.of(pod.Pod)
        self._client: Final = surroundings.client
        self._clock: Final = surroundings.clock
        self._pods: Final = pods.cache
        self._queue: Final[workqueue.Queue[cache.Key]] = workqueue.Queue(
            self.name, time=surroundings.clock, measured=surroundings.queues
        )
        pods.add_handler(informer.Handler(added=self._see, updated=lambda _, new: self._see(new)))

    async def run(self) -> None:
        await controller.work(self._queue, self._reconcile, workers=1)

    def _see(self, new: pod.Pod) -> None:
        if _condition(new) is not None:
            self._queue.add(cache.key_of(new))

    async def _reconcile(self, key: cache.Key) -> controller.After | None:
        current = self._pods.get(key.name, namespace=key.namespace)
        condition = _condition(current) if current is not None else None
        if current is None or condition is None:
            return None
        now = self._clock.utc()
        since = condition.last_transition_time or now
        left = (since + TIMEOUT - now).total_seconds()
        if left > 0:
            return controller.After(left)
        taken = {
            "type": wellknown.DISRUPTION_TARGET,
            "status": "False",
            "reason": None,
            "message": None,
            "lastTransitionTime": conditions.since(condition, "False", now=now),
        }
        try:
            await podwrites.write_status(self._client, current, {"conditions": [taken]})
        except errors.ObjectNotFoundError:
            return None
        return None


def _condition(of: pod.Pod) -> pod.PodCondition | None:
    """The condition of a pod that may have to be taken back."""
    if of.metadata.deletion_timestamp is not None or podstate.has_ended(of):
        return None
    condition = conditions.find(of.status.conditions, wellknown.DISRUPTION_TARGET)
    if condition is None or condition.status != "True" or condition.reason == _BY_KUBELET:
        return None
    return condition
