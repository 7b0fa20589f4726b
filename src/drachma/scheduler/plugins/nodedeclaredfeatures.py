"""NodeDeclaredFeatures: a pod that needs features of the kubelet goes to nodes that declare them."""

from __future__ import annotations

import functools
from typing import Final

from drachma.api import node as nodes
from drachma.api import pod
from drachma.claims import podfeatures
from drachma.scheduler.framework import cyclestate, hints, plugin, verdict
from drachma.scheduler.framework.plugin import Filtered
from drachma.scheduler.snapshot import Snapshot, nodeinfo

_NAME: Final = "NodeDeclaredFeatures"
_REJECTION: Final = verdict.Rejection(_NAME, ("node(s) didn't match Pod's required features",))


class NodeDeclaredFeatures:
    """The plugin."""

    name: Final = _NAME

    def filter(self, cycle: cyclestate.CycleState, alive: int) -> Filtered:
        """Return the nodes that declare all features that the pod needs."""
        needed = podfeatures.needed_by(cycle.pod.pod)
        if not needed:
            return alive, ()
        ask = functools.partial(_declares, needed)
        classes = cycle.snapshot.nodes.properties.classes(("declares all", needed), ask, among=alive)
        return plugin.split(alive, classes.get(True, 0), rejection=_REJECTION)

    def is_local(self, _cycle: cyclestate.CycleState) -> bool:
        """Return True: only the node and its pods are read."""
        return True

    def hints(self, _snapshot: Snapshot) -> tuple[hints.Hint, ...]:
        """Return the changes that can help."""
        return _HINTS


def _declares(needed: frozenset[str], info: nodeinfo.NodeInfo) -> bool:
    return needed.issubset(info.place.declared_features)


def _node_helps(waiting_pod: pod.Pod, _old: nodes.Node | None, new: nodes.Node) -> bool:
    return podfeatures.needed_by(waiting_pod) <= frozenset(new.status.declared_features)


_HINTS: Final = (
    hints.Hint(hints.Resource.NODE, hints.Action.ADD | hints.Action.UPDATE_NODE_DECLARED_FEATURE, _node_helps),
)
