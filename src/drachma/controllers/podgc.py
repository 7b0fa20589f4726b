"""The pod garbage collector: ends pods that no kubelet will end, and deletes finished pods beyond a threshold.

Four kinds of pods: finished ones beyond a threshold, the oldest first; pods on nodes that no longer exist, after a
quarantine and a check with the server; pods being deleted on a node that is out of service; pods being deleted that
never had a node.
"""

from collections.abc import Callable, Iterable
from typing import Any, Final

import prometheus_client

from drachma import errors
from drachma.api import node, pod
from drachma.claims import conditions, podstate, taints
from drachma.controllers import objectwrites
from drachma.runtime import Surroundings, controller

PERIOD_SECONDS: Final = 20.0
QUARANTINE_SECONDS: Final = 40.0
TERMINATED_THRESHOLD: Final = 12500

_ALIVE: Final = ("Pending", "Running", "Unknown")


class PodGarbageCollector:
    """Checks all pods every 20 seconds."""

    name: Final = "pod_garbage_collector"

    def __init__(self, surroundings: Surroundings, *, terminated_threshold: int = TERMINATED_THRESHOLD) -> None:
        self._client: Final = surroundings.client
        self._clock: Final = surroundings.clock
        self._threshold: Final = terminated_threshold
        self._pods: Final = surroundings.informers.of(pod.Pod).cache
        self._nodes: Final = surroundings.informers.of(node.Node).cache
        self._missing_since: Final[dict[str, float]] = {}
        labels = ("namespace", "reason")
        self._deletions: Final = prometheus_client.Counter(
            "pod_gc_collector_force_delete_pods_total",
            "Pods that were deleted by force.",
            labels,
            registry=surroundings.registry,
        )
        self._failures: Final = prometheus_client.Counter(
            "pod_gc_collector_force_delete_pod_errors_total",
            "Pods that could not be deleted by force.",
            labels,
            registry=surroundings.registry,
        )

    async def run(self) -> None:
        await controller.every(PERIOD_SECONDS, self._collect, clock=self._clock, name=self.name)

    async def _collect(self) -> None:
        pods = tuple(self._pods)
        if self._threshold > 0:
            ended = sorted((each for each in pods if each.status.phase not in _ALIVE), key=_order)
            await self._end(ended[: max(len(ended) - self._threshold, 0)], reason="terminated")
        terminating = [each for each in pods if each.metadata.deletion_timestamp is not None]
        lost = [each for each in terminating if self._is_out_of_service(each.spec.node_name)]
        await self._end(sorted(lost, key=_order), reason="out-of-service")
        deleted_nodes = await self._gone_nodes({each.spec.node_name for each in pods} - {""})
        orphaned = [each for each in pods if each.spec.node_name in deleted_nodes]
        await self._end(orphaned, reason="orphaned", message="PodGC: node no longer exists")
        await self._end([each for each in terminating if not each.spec.node_name], reason="unscheduled")

    def _is_out_of_service(self, name: str) -> bool:
        cached = self._nodes.get(name)
        if cached is None:
            return False
        is_ready = conditions.is_true(cached.status.conditions, "Ready")
        return not is_ready and any(taint.key == taints.OUT_OF_SERVICE for taint in cached.spec.taints)

    async def _gone_nodes(self, used: set[str]) -> set[str]:
        """Return the nodes that do not exist: missing for a while, and unknown to the server."""
        now = self._clock.monotonic()
        unknown_names = {name for name in used if self._nodes.get(name) is None}
        for name in self._missing_since.keys() - unknown_names:
            del self._missing_since[name]
        deleted_nodes = set()
        for name in unknown_names:
            since = self._missing_since.setdefault(name, now)
            if now - since >= QUARANTINE_SECONDS and not await self._exists(name):
                deleted_nodes.add(name)
        return deleted_nodes

    async def _exists(self, name: str) -> bool:
        try:
            await self._client.get(node.Node, name)
        except errors.ObjectNotFoundError:
            return False
        return True

    async def _end(self, pods: Iterable[pod.Pod], *, reason: str, message: str = "") -> None:
        def act_on(each: pod.Pod) -> Callable[[], Any]:
            return lambda: self._end_one(each, reason=reason, message=message)

        await controller.side_by_side(map(act_on, pods))

    async def _end_one(self, pod: pod.Pod, *, reason: str, message: str) -> None:
        labels = (pod.metadata.namespace, reason)
        self._deletions.labels(*labels).inc()
        try:
            if not podstate.has_ended(pod):
                await objectwrites.write_pod_status(self._client, pod, self._failed(pod, message))
            await objectwrites.delete_pod(self._client, pod, grace_period_seconds=0)
        except errors.ObjectNotFoundError:
            return
        except errors.DrachmaError:
            self._failures.labels(*labels).inc()
            raise

    def _failed(self, pod: pod.Pod, message: str) -> dict[str, Any]:
        """Set the phase of a pod to Failed, because no kubelet can do it."""
        status: dict[str, Any] = {"phase": "Failed", "observedGeneration": pod.metadata.generation}
        if message:
            why = podstate.disruption_target(pod, reason="DeletionByPodGC", message=message, now=self._clock.utc())
            status["conditions"] = [why] if why is not None else []
        return status


def _order(pod: pod.Pod) -> tuple[bool, Any, str]:
    """Return a sort key: evicted pods first, then by age, then by name."""
    is_evicted = pod.status.phase == "Failed" and pod.status.reason == "Evicted"
    return not is_evicted, pod.metadata.creation_timestamp, pod.metadata.name
