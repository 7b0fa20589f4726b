"""Taint eviction: pods leave nodes that have a NoExecute taint, at once or after as long as they tolerate it.

All taints must be tolerated; then the shortest of the tolerations counts, from when the taints were first seen here. A
pod that tolerates all of them for ever stays.
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


class _Due(msgspec.Struct, frozen=True):
    """Which pod has to go, and between when the taints were seen and its end."""

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
            "noexec_taint_pod", time=surroundings.clock, measured=surroundings.queues
        )
        self._due: Final[dict[cache.Key, _Due]] = {}
        surroundings.informers.of(node.Node).add_handler(
            informer.Handler(added=self._see_node, updated=self._see_changed_node)
        )
        surroundings.informers.of(pod.Pod).add_handler(
            informer.Handler(added=self._decide, updated=self._see_changed_pod, deleted=self._lose_pod)
        )

    async def run(self) -> None:
        await controller.work(self._queue, self._evict, workers=WORKERS)

    # News

    def _see_node(self, new: node.Node) -> None:
        for each in self._pods.by(POD_INDEX, new.metadata.name):
            self._decide(each)

    def _see_changed_node(self, old: node.Node, new: node.Node) -> None:
        if tuple(_no_execute(old)) != tuple(_no_execute(new)):
            self._see_node(new)

    def _see_changed_pod(self, old: pod.Pod, new: pod.Pod) -> None:
        if (old.spec.node_name, old.spec.tolerations) != (new.spec.node_name, new.spec.tolerations):
            self._decide(new)

    def _lose_pod(self, gone: pod.Pod) -> None:
        self._due.pop(cache.key_of(gone), None)

    def _decide(self, of: pod.Pod) -> None:
        """Sets, changes or cancels the time at which a pod has to go."""
        on = self._nodes.get(of.spec.node_name) if of.spec.node_name else None
        if not self._due and (on is None or not on.spec.taints):
            return
        key = cache.key_of(of)
        tolerated = _tolerated_seconds(of, tuple(_no_execute(on)) if on is not None else ())
        if tolerated is None:
            if self._due.pop(key, None) is not None:
                self._evictor.tell(podeviction.PodID(*key, of.metadata.uid), f"Cancelling deletion of Pod {key}")
            return
        now = self._clock.monotonic()
        earlier = self._due.get(key)
        since = earlier.since if earlier is not None and earlier.uid == of.metadata.uid else now
        due = _Due(of.metadata.uid, since, since + tolerated)
        self._due[key] = due
        self._queue.add_after(key, due.at - now)

    # Evicting

    async def _evict(self, key: cache.Key) -> controller.After | None:
        due = self._due.get(key)
        if due is None:
            return None
        left = due.at - self._clock.monotonic()
        if left > 0:
            return controller.After(left)
        message = f"Marking for deletion Pod {key}"
        outcome = await self._evictor.delete(podeviction.PodID(*key, due.uid), message=message)
        if self._due.get(key) == due:
            del self._due[key]
        if outcome is podeviction.Outcome.DELETED:
            self._evictor.count(self._clock.monotonic() - due.at)
        return None


def _no_execute(of: node.Node) -> Iterator[node.Taint]:
    return (taint for taint in of.spec.taints if taint.effect == taints.NO_EXECUTE)


def _tolerated_seconds(of: pod.Pod, in_force: tuple[node.Taint, ...]) -> int | None:
    """For how long a pod may stay where these taints are; None for ever."""
    if not in_force:
        return None
    shortest: int | None = None
    for taint in in_force:
        # The first that matches speaks for a taint, as upstream has it.
        toleration = next((each for each in of.spec.tolerations if taints.tolerates(each, taint)), None)
        if toleration is None:
            return 0
        if toleration.toleration_seconds is not None:
            seconds = max(toleration.toleration_seconds, 0)
            shortest = seconds if shortest is None else min(shortest, seconds)
    return shortest
