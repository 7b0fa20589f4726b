"""NodePorts: pods on a node cannot share a host port."""

from __future__ import annotations

import functools
from typing import Final

from drachma.accounting import ledger, ports
from drachma.api import pod
from drachma.scheduler.framework import cyclestate, hints, plugin, verdict
from drachma.scheduler.framework.plugin import Filtered
from drachma.scheduler.snapshot import Snapshot, assignment, nodeinfo

_NAME: Final = "NodePorts"
_REJECTION: Final = verdict.Rejection(
    _NAME, ("node(s) didn't have free ports for the requested pod ports",), is_resolvable=True
)


class NodePorts:
    """The plugin."""

    name: Final = _NAME

    def filter(self, cycle: cyclestate.CycleState, alive: int) -> Filtered:
        """Return the nodes on which the pod's ports are free."""
        requested = cycle.pod.demand.ports
        nodes = cycle.snapshot.nodes
        in_use = alive & nodes.with_ports
        if not requested or not in_use:
            return alive, ()
        classes = nodes.resources.classes((_NAME, requested), functools.partial(_fits, requested), among=in_use)
        return plugin.split(alive, classes.get(True, 0) | ~in_use, rejection=_REJECTION)

    def is_local(self, _cycle: cyclestate.CycleState) -> bool:
        """Return True: only the node and its pods are read."""
        return True

    def still_fits(self, planned: assignment.Assignment, account: ledger.Ledger) -> bool:
        """Return True if the pod's ports are free."""
        return _are_free(planned.demand.ports, account)

    def hints(self, _snapshot: Snapshot) -> tuple[hints.Hint, ...]:
        """Return the changes that can help."""
        return _HINTS


def _are_free(requested: tuple[ports.HostPort, ...], account: ledger.Ledger) -> bool:
    return not requested or not account.used_ports or ports.are_free(requested, account.used_ports)


def _fits(requested: tuple[ports.HostPort, ...], info: nodeinfo.NodeInfo) -> bool:
    return _are_free(requested, info.ledger)


def _deletion_helps(waiting_pod: pod.Pod, old: pod.Pod, _new: None) -> bool:
    return not ports.are_free(ports.host_ports(waiting_pod), ports.host_ports(old))


_HINTS: Final = (
    hints.Hint(hints.Resource.ASSIGNED_POD, hints.Action.DELETE, _deletion_helps),
    hints.Hint(hints.Resource.NODE, hints.Action.ADD, hints.always),
)
