"""Taint eviction: pods leave nodes that have a NoExecute taint, at once or after the time that they tolerate it.

A pod must tolerate all taints. Then the shortest toleration counts, from the time at which this controller first saw
the taints. A pod that tolerates all of them for ever stays.
"""

from collections.abc import Iterator
from typing import Final

import msgspec

from drachma.api import node, pod
from drachma.claims import taints
from drachma.controllers import podeviction
from drachma.runtime import Surroundings, cache, controller, informer, workqueue

WORKERS: Final = 8
POD_INDEX: Final = "taint eviction: node"

_WORDING: Final = podeviction.Wording(
    taints="node",
    event_reason="TaintManagerEviction",
    condition_reason="DeletionByTaintManager",
    condition_message="Taint manager: deleting due to NoExecute taint",
)


class _Eviction(msgspec.Struct, frozen=True):
    """A pod to evict, the time at which the taints were seen, and the time of its eviction."""

    uid: str
    since: float
    at: float


class NodeTaintEviction:
    """Evicts pods from tainted nodes."""

    name: Final = "taint-eviction-controller"

    def __init__(self, surroundings: Surroundings) -> None:
        self._clock: Final = surroundings.clock
        self._evictor: Final = podeviction.PodEvictor(surroundings, self.name, wording=_WORDING)
        self._nodes: Final = surroundings.informers.of(node.Node).cache
        self._pods: Final = surroundings.informers.of(pod.Pod).cache
        self._pods.add_index(POD_INDEX, lambda each: (each.spec.node_name,) if each.spec.node_name else ())
        self._queue: Final[workqueue.Queue[cache.Key]] = workqueue.Queue(
            "noexec_taint_pod", clock=surroundings.clock, metrics=surroundings.queues
        )
        self._evictions: Final[dict[cache.Key, _Eviction]] = {}
        surroundings.informers.of(node.Node).add_handler(
            informer.Handler(added=self._handle_node, updated=self._handle_node_update)
        )
        surroundings.informers.of(pod.Pod).add_handler(
            informer.Handler(added=self._decide, updated=self._handle_pod_update, deleted=self._handle_pod_deletion)
        )

    async def run(self) -> None:
        await controller.work(self._queue, self._evict, workers=WORKERS)

    # Handlers

    def _handle_node(self, new: node.Node) -> None:
        for each in self._pods.by(POD_INDEX, new.metadata.name):
            self._decide(each)

    def _handle_node_update(self, old: node.Node, new: node.Node) -> None:
        if tuple(_no_execute(old)) != tuple(_no_execute(new)):
            self._handle_node(new)

    def _handle_pod_update(self, old: pod.Pod, new: pod.Pod) -> None:
        if (old.spec.node_name, old.spec.tolerations) != (new.spec.node_name, new.spec.tolerations):
            self._decide(new)

    def _handle_pod_deletion(self, pod: pod.Pod) -> None:
        self._evictions.pop(cache.key_of(pod), None)

    def _decide(self, pod: pod.Pod) -> None:
        """Set, change or cancel the eviction time of a pod."""
        on = self._nodes.get(pod.spec.node_name) if pod.spec.node_name else None
        if not self._evictions and (on is None or not on.spec.taints):
            return
        key = cache.key_of(pod)
        tolerated = _tolerated_seconds(pod, tuple(_no_execute(on)) if on is not None else ())
        if tolerated is None:
            if self._evictions.pop(key, None) is not None:
                pod_id = podeviction.PodID(key.namespace, key.name, pod.metadata.uid)
                self._evictor.tell(pod_id, f"Cancelling deletion of Pod {key}")
            return
        now = self._clock.monotonic()
        earlier = self._evictions.get(key)
        since = earlier.since if earlier is not None and earlier.uid == pod.metadata.uid else now
        pod_eviction = _Eviction(pod.metadata.uid, since, since + tolerated)
        self._evictions[key] = pod_eviction
        self._queue.add_after(key, pod_eviction.at - now)

    # Evicting

    async def _evict(self, key: cache.Key) -> controller.After | None:
        pod_eviction = self._evictions.get(key)
        if pod_eviction is None:
            return None
        seconds = pod_eviction.at - self._clock.monotonic()
        if seconds > 0:
            return controller.After(seconds)
        message = f"Marking for deletion Pod {key}"
        pod_id = podeviction.PodID(key.namespace, key.name, pod_eviction.uid)
        outcome = await self._evictor.delete(pod_id, message=message)
        if self._evictions.get(key) == pod_eviction:
            del self._evictions[key]
        if outcome is podeviction.EvictionResult.DELETED:
            self._evictor.count(self._clock.monotonic() - pod_eviction.at)
        return None


def _no_execute(node: node.Node) -> Iterator[node.Taint]:
    return (taint for taint in node.spec.taints if taint.effect == taints.NO_EXECUTE)


def _tolerated_seconds(pod: pod.Pod, in_force: tuple[node.Taint, ...]) -> int | None:
    """Return the seconds for which a pod tolerates taints, or None for ever."""
    if not in_force:
        return None
    shortest: int | None = None
    for taint in in_force:
        # The first toleration that matches a taint decides, as upstream.
        toleration = next((each for each in pod.spec.tolerations if taints.tolerates(each, taint)), None)
        if toleration is None:
            return 0
        if toleration.toleration_seconds is not None:
            seconds = max(toleration.toleration_seconds, 0)
            shortest = seconds if shortest is None else min(shortest, seconds)
    return shortest
