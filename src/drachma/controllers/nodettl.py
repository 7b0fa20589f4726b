"""Time for which kubelets may cache secrets and config maps; the larger the cluster, the longer.

An annotation of each node has it. The bounds overlap, so that a cluster whose size varies around a bound does not
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
    """Sizes of a cluster for which a time in seconds is used."""

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
    """Return the index of the bounds for a size. The current ones are kept while the size is within them."""
    while size > BOUNDS[current].most:
        current += 1
    while size < BOUNDS[current].least:
        current -= 1
    return current


class NodeTimeToLive:
    """Annotates nodes with the time."""

    name: Final = "ttlcontroller"

    def __init__(self, surroundings: Surroundings) -> None:
        nodes = surroundings.informers.of(node.Node)
        self._client: Final = surroundings.client
        self._nodes: Final = nodes.cache
        self._current = 0
        self._queue: Final[workqueue.Queue[str]] = workqueue.Queue(
            self.name, clock=surroundings.clock, metrics=surroundings.queues
        )
        nodes.add_handler(
            informer.Handler(
                added=self._handle_size, updated=lambda _, new: self._enqueue(new), deleted=self._handle_size
            )
        )

    async def run(self) -> None:
        await controller.work(self._queue, self._annotate, workers=WORKERS)

    def _enqueue(self, node: node.Node) -> None:
        self._queue.add(node.metadata.name)

    def _handle_size(self, node: node.Node) -> None:
        before, self._current = self._current, step(self._current, len(self._nodes))
        for each in self._nodes if before != self._current else (node,):
            self._enqueue(each)

    async def _annotate(self, name: str) -> None:
        cached = self._nodes.get(name)
        seconds = str(BOUNDS[self._current].seconds)
        if cached is None or cached.metadata.annotations.get(ANNOTATION) == seconds:
            return
        patch = patches.strategic({"metadata": {"annotations": {ANNOTATION: seconds}}}, patches.same(cached))
        try:
            await self._client.patch(node.Node, name, patch=patch)
        except errors.ObjectNotFoundError:
            return
