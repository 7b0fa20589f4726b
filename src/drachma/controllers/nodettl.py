"""How long kubelets may rely on what they know of secrets and config maps: longer, the larger the cluster.

An annotation of each node says it. The bounds overlap, so that a cluster that grows and shrinks around one does not
rewrite all nodes each time.
"""

from typing import Final, NamedTuple

from drachma import errors
from drachma.api import node
from drachma.client import patches
from drachma.runtime import Surroundings, controller, informer, workqueue

WORKERS: Final = 5
ANNOTATION: Final = "node.alpha.kubernetes.io/ttl"


class Bounds(NamedTuple):
    """Up to which size, and down to which, a time in seconds stands."""

    least: int
    most: float
    seconds: int


BOUNDS: Final = (
    Bounds(0, 100, 0),
    Bounds(90, 500, 15),
    Bounds(450, 1000, 30),
    Bounds(900, 2000, 60),
    Bounds(1800, float("inf"), 300),
)


def step(current: int, size: int) -> int:
    """The position of the bounds that stand for a size, where the current ones still do if they can."""
    while size > BOUNDS[current].most:
        current += 1
    while size < BOUNDS[current].least:
        current -= 1
    return current


class NodeTimeToLive:
    """Annotates nodes."""

    name: Final = "ttlcontroller"

    def __init__(self, surroundings: Surroundings) -> None:
        nodes = surroundings.informers.of(node.Node)
        self._client: Final = surroundings.client
        self._nodes: Final = nodes.cache
        self._current = 0
        self._queue: Final[workqueue.Queue[str]] = workqueue.Queue(
            self.name, time=surroundings.clock, measured=surroundings.queues
        )
        nodes.add_handler(
            informer.Handler(added=self._see_size, updated=lambda _, new: self._see(new), deleted=self._see_size)
        )

    async def run(self) -> None:
        await controller.work(self._queue, self._annotate, workers=WORKERS)

    def _see(self, of: node.Node) -> None:
        self._queue.add(of.metadata.name)

    def _see_size(self, of: node.Node) -> None:
        before, self._current = self._current, step(self._current, len(self._nodes))
        for each in self._nodes if before != self._current else (of,):
            self._see(each)

    async def _annotate(self, name: str) -> None:
        known = self._nodes.get(name)
        seconds = str(BOUNDS[self._current].seconds)
        if known is None or known.metadata.annotations.get(ANNOTATION) == seconds:
            return
        patch = patches.strategic({"metadata": {"annotations": {ANNOTATION: seconds}}}, patches.same(known))
        try:
            await self._client.patch(node.Node, name, patch=patch)
        except errors.ObjectNotFoundError:
            return
