"""NodeUnschedulable: cordoned nodes accept only pods that tolerate it."""

from __future__ import annotations

from typing import Final

from drachma.api import node as nodes
from drachma.api import pod
from drachma.claims import taints
from drachma.scheduler.framework import cyclestate, hints, plugin, verdict
from drachma.scheduler.framework.plugin import Filtered
from drachma.scheduler.snapshot import Snapshot

_NAME: Final = "NodeUnschedulable"
_TAINT: Final = nodes.Taint(key=taints.UNSCHEDULABLE, effect=taints.NO_SCHEDULE)
_REJECTION: Final = verdict.Rejection(_NAME, ("node(s) were unschedulable",))


class NodeUnschedulable:
    """The plugin."""

    name: Final = _NAME

    def filter(self, cycle: cyclestate.CycleState, alive: int) -> Filtered:
        """Return the nodes that are not cordoned, or all nodes if the pod tolerates it."""
        cordoned = cycle.snapshot.nodes.cordoned & alive
        if not cordoned or taints.is_tolerated(_TAINT, cycle.pod.pod.spec.tolerations):
            return alive, ()
        return plugin.split(alive, ~cordoned, rejection=_REJECTION)

    def is_local(self, _cycle: cyclestate.CycleState) -> bool:
        """Return True: only the node and its pods are read."""
        return True

    def hints(self, _snapshot: Snapshot) -> tuple[hints.Hint, ...]:
        """Return the changes that can help."""
        return _HINTS


def _node_helps(_waiting: pod.Pod, old: nodes.Node | None, new: nodes.Node) -> bool:
    return not new.spec.unschedulable and (old is None or bool(old.spec.unschedulable))


def _toleration_helps(_waiting: pod.Pod, _old: pod.Pod, new: pod.Pod) -> bool:
    return taints.is_tolerated(_TAINT, new.spec.tolerations)


_HINTS: Final = (
    hints.Hint(hints.Resource.NODE, hints.Action.ADD | hints.Action.UPDATE_NODE_TAINT, _node_helps),
    hints.Hint(hints.Resource.TARGET_POD, hints.Action.UPDATE_POD_TOLERATION, _toleration_helps),
)
