"""NodePorts: pods that want the same port of a node cannot share it."""

from __future__ import annotations

from typing import Final

from drachma.accounting import ledger, ports
from drachma.api import pod
from drachma.scheduler import hints, verdict

REJECTION: Final = verdict.Rejection(
    verdict.NODE_PORTS, ("node(s) didn't have free ports for the requested pod ports",), is_resolvable=True
)


def fits(wanted: tuple[ports.HostPort, ...], account: ledger.Ledger) -> bool:
    """Whether the node has the ports left."""
    return not wanted or not account.used_ports or ports.are_free(wanted, account.used_ports)


def _deletion_helps(waiting: pod.Pod, old: pod.Pod, _new: None) -> bool:
    return not ports.are_free(ports.wanted(waiting), ports.wanted(old))


HINTS: Final = (
    hints.Hint(hints.Resource.ASSIGNED_POD, hints.Action.DELETE, _deletion_helps),
    hints.Hint(hints.Resource.NODE, hints.Action.ADD, hints.always),
)
