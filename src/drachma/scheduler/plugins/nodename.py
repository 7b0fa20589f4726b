"""NodeName: a pod that names its node can only go there."""

from __future__ import annotations

from typing import Final

from drachma.scheduler.framework import cyclestate, hints, plugin, verdict
from drachma.scheduler.framework.plugin import Filtered
from drachma.scheduler.snapshot import Snapshot

_NAME: Final = "NodeName"
_REJECTION: Final = verdict.Rejection(_NAME, ("node(s) didn't match the requested node name",))
_HINTS: Final = (hints.Hint(hints.Resource.NODE, hints.Action.ADD, hints.always),)


class NodeName:
    """The plugin."""

    name: Final = _NAME

    def filter(self, cycle: cyclestate.CycleState, alive: int) -> Filtered:
        """Return the node that the pod names, or all nodes if it names none."""
        node = cycle.pod.pod.spec.node_name
        if not node:
            return alive, ()
        return plugin.split(alive, cycle.snapshot.nodes.named(frozenset({node})), rejection=_REJECTION)

    def is_local(self, _cycle: cyclestate.CycleState) -> bool:
        """Return True: only the node and its pods are read."""
        return True

    def hints(self, _snapshot: Snapshot) -> tuple[hints.Hint, ...]:
        """Return the changes that can help."""
        return _HINTS
