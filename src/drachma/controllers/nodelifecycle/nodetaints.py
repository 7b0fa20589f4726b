"""Which taints a node must have because of its conditions. Pure."""

import datetime as dt
from collections.abc import Iterable
from typing import Final

from drachma.api import node
from drachma.claims import conditions, taints

_BY_CONDITION: Final = {
    ("Ready", "False"): taints.NOT_READY,
    ("Ready", "Unknown"): taints.UNREACHABLE,
    ("MemoryPressure", "True"): "node.kubernetes.io/memory-pressure",
    ("DiskPressure", "True"): "node.kubernetes.io/disk-pressure",
    ("NetworkUnavailable", "True"): "node.kubernetes.io/network-unavailable",
    ("PIDPressure", "True"): "node.kubernetes.io/pid-pressure",
}
_OWN: Final = frozenset((*_BY_CONDITION.values(), taints.UNSCHEDULABLE))


def ready(of: node.Node) -> node.NodeCondition | None:
    """The condition that says whether a node is ready."""
    return conditions.find(of.status.conditions, "Ready")


def has_no_execute(of: node.Node, key: str) -> bool:
    """Whether a node has a taint that drives pods off."""
    return any((taint.key, taint.effect) == (key, taints.NO_EXECUTE) for taint in of.spec.taints)


def for_scheduling(of: node.Node, *, now: dt.datetime) -> tuple[node.Taint, ...] | None:
    """All taints of a node after those with effect NoSchedule follow its conditions; None if they do."""
    wanted = {key for each in of.status.conditions if (key := _BY_CONDITION.get((each.type, each.status))) is not None}
    if of.spec.unschedulable:
        wanted.add(taints.UNSCHEDULABLE)
    known = {taint.key for taint in of.spec.taints if taint.effect == taints.NO_SCHEDULE and taint.key in _OWN}
    return swapped(of, add=wanted - known, remove=known - wanted, effect=taints.NO_SCHEDULE, now=now)


def swapped(
    of: node.Node, *, add: Iterable[str], remove: Iterable[str], effect: str, now: dt.datetime
) -> tuple[node.Taint, ...] | None:
    """All taints of a node after some of an effect come and others go; None if that changes nothing."""
    gone = {(key, effect) for key in remove}
    kept = [taint for taint in of.spec.taints if (taint.key, taint.effect) not in gone]
    known = {(taint.key, taint.effect) for taint in kept}
    since = now.replace(microsecond=0)
    new = [node.Taint(key=key, effect=effect, time_added=since) for key in sorted(add) if (key, effect) not in known]
    return (*kept, *new) if new or len(kept) < len(of.spec.taints) else None
