"""NodePorts: pods that want the same port of a node cannot share it."""

from __future__ import annotations

import functools
from typing import Final

from drachma.accounting import ledger, ports
from drachma.api import pod
from drachma.scheduler.framework import cyclestate, hints, plugin, verdict
from drachma.scheduler.framework.plugin import Filtered
from drachma.scheduler.snapshot import Snapshot, nodeinfo

_NAME: Final = "NodePorts"
_REJECTION: Final = verdict.Rejection(
    _NAME, ("node(s) didn't have free ports for the requested pod ports",), is_resolvable=True
)


class NodePorts:
    """The plugin."""

    name: Final = _NAME

    def filter(self, cycle: cyclestate.CycleState, alive: int) -> Filtered:
        """The nodes that have the pod's ports left."""
        requested = cycle.pod.demand.ports
        nodes = cycle.snapshot.nodes
        in_use = alive & nodes.with_ports
        if not requested or not in_use:
            return alive, ()
        classes = nodes.resources.classes((_NAME, requested), functools.partial(_fits, requested), among=in_use)
        return plugin.split(alive, classes.get(True, 0) | ~in_use, rejection=_REJECTION)

    def hints(self, _snapshot: Snapshot) -> tuple[hints.Hint, ...]:
        """The changes that can help."""
        return _HINTS


def fits(requested: tuple[ports.HostPort, ...], account: ledger.Ledger) -> bool:
    """Whether a node has the ports left."""
    return not requested or not account.used_ports or ports.are_free(requested, account.used_ports)


def _fits(requested: tuple[ports.HostPort, ...], info: nodeinfo.NodeInfo) -> bool:
    return fits(requested, info.ledger)


def _deletion_helps(waiting: pod.Pod, old: pod.Pod, _new: None) -> bool:
    return not ports.are_free(ports.wanted(waiting), ports.wanted(old))


_HINTS: Final = (
    hints.Hint(hints.Resource.ASSIGNED_POD, hints.Action.DELETE, _deletion_helps),
    hints.Hint(hints.Resource.NODE, hints.Action.ADD, hints.always),
)
