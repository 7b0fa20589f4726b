"""Pod shapes: what pods ask of nodes as such (name, labels, taints), worked out once for all pods that ask the same.

Pods made from one template have one shape. A decision filters and scores nodes by it; what is left of nodes, and what
devices they have, is not part of it.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Final

from drachma.scheduler import cluster, nodeclass, podinfo, verdict
from drachma.scheduler.plugins import nodeaffinity, nodename, nodeunschedulable, tainttoleration
from drachma.scheduler.plugins.question import Preference

_FILTERS: Final = (nodename.question, nodeunschedulable.question, tainttoleration.question, nodeaffinity.question)
_PREFERENCES: Final = (tainttoleration.preference, nodeaffinity.preference)
_PASSES: Final = -1
_REMEMBERED: Final = 512

Scored = tuple[Preference, nodeclass.NodeClasses[cluster.NodeState, int]]
"""A preference, and the nodes by what it gives them."""


class PodShape:
    """What some pods ask of nodes."""

    __slots__ = ("_classes", "_info", "_nodes", "_preferences", "_questions", "named")

    def __init__(self, info: podinfo.PodInfo, nodes: cluster.Cluster) -> None:
        """``info`` is one of the pods."""
        self.named = nodeaffinity.named_nodes(info)
        """The nodes that are required by name; a rejection where that makes no sense, None where any name will do."""
        self._info = info
        self._nodes = nodes
        self._questions = [question for make in _FILTERS if (question := make(info)) is not None]
        self._classes = nodeclass.NodeClasses(self._first_rejection, nodes.shapes)
        self._preferences: Sequence[Scored] | None = None

    def filter(self, alive: int, rejections: list[tuple[verdict.Rejection, int]]) -> int:
        """The nodes that would do, of those given; the others go to ``rejections``, by plugins in their order."""
        masks = self._classes.settle(self._nodes.nodes, alive)
        passing = masks.get(_PASSES, 0) & alive
        if passing != alive:
            for number, question in enumerate(self._questions):
                rejected = masks.get(number, 0) & alive
                if rejected:
                    rejections.append((question.rejection, rejected))
        return passing

    def preferences(self) -> Sequence[Scored]:
        """What nodes are scored by; AbortError where that cannot be told."""
        if self._preferences is None:
            made = [preference for make in _PREFERENCES if (preference := make(self._info)) is not None]
            self._preferences = [(each, nodeclass.NodeClasses(each.score, self._nodes.shapes)) for each in made]
        return self._preferences

    def _first_rejection(self, state: cluster.NodeState) -> int:
        for number, question in enumerate(self._questions):
            if not question.passes(state):
                return number
        return _PASSES


class PodShapes:
    """The shapes seen lately."""

    def __init__(self, nodes: cluster.Cluster) -> None:
        self._nodes: Final = nodes
        self._shapes: Final[dict[Hashable, PodShape]] = {}

    def of(self, info: podinfo.PodInfo) -> PodShape:
        """The shape of a pod."""
        spec = info.pod.spec
        affinity = None if spec.affinity is None else spec.affinity.node_affinity
        labels = tuple(sorted(spec.node_selector.items())) if spec.node_selector else ()
        key = (spec.node_name, spec.tolerations, labels, affinity)
        found = self._shapes.pop(key, None)
        if found is None:
            found = PodShape(info, self._nodes)
            # What was not asked for the longest time is at the front.
            if len(self._shapes) >= _REMEMBERED:
                del self._shapes[next(iter(self._shapes))]
        self._shapes[key] = found
        return found
