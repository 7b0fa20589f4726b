"""Signs of life of nodes: new heartbeats in their status, or renewed Leases.

Times are those at which this process noticed them, so clocks that differ do no harm. Nodes without Lease and heartbeat
were created by hand and are ignored. Differs from upstream: there they become unknown after a minute.
"""

import datetime as dt
from collections.abc import Iterable
from typing import Final

import msgspec

from drachma.api import lease, node
from drachma.claims import conditions, taints

_KUBELETS_CONDITIONS: Final = ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure")


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds for which a node may be silent, and a new node that has never reported."""

    grace: float = 50.0
    startup_grace: float = 60.0


class _Sighting(msgspec.Struct):
    uid: str
    probed: float
    has_ready: bool
    heartbeat: dt.datetime | None
    renewed: str | None


class Monitor:
    """Signs of life of each node."""

    def __init__(self, settings: Settings) -> None:
        self._settings: Final = settings
        self._sightings: Final[dict[str, _Sighting]] = {}

    def forget(self, name: str) -> None:
        self._sightings.pop(name, None)

    def start_over(self, *, now: float) -> None:
        """Give all nodes their full time again."""
        for sighting in self._sightings.values():
            sighting.probed = now

    def is_overdue(self, node: node.Node, renewal: lease.Lease | None, *, now: float, today: dt.datetime) -> bool:
        """Return True if a node has been silent for too long; ``today`` is the time of day at ``now``."""
        ready = ready_condition(node)
        heartbeat = ready.last_heartbeat_time if ready is not None else None
        sighting = self._sightings.get(node.metadata.name)
        if sighting is None or sighting.uid != node.metadata.uid:
            # A new node of the same name has its full time.
            probed = now
            if ready is None and node.metadata.creation_timestamp is not None:
                probed = now - (today - node.metadata.creation_timestamp).total_seconds()
            sighting = _Sighting(node.metadata.uid, probed, ready is not None, heartbeat, None)
            self._sightings[node.metadata.name] = sighting
        elif (sighting.has_ready, sighting.heartbeat) != (ready is not None, heartbeat):
            sighting.probed = now
        sighting.has_ready, sighting.heartbeat = ready is not None, heartbeat
        renewed = renewal.spec.renew_time if renewal is not None else None
        # Differs from upstream: a renewal with an earlier time, from a clock that went back, is a sign of life too.
        if renewed is not None and renewed != sighting.renewed:
            sighting.renewed, sighting.probed = renewed, now
        if sighting.renewed is None and renewal is None and heartbeat is None:
            return False
        grace = self._settings.grace if ready is not None else self._settings.startup_grace
        return now > sighting.probed + grace


def unknown_conditions(host: node.Node, *, now: dt.datetime) -> list[node.NodeCondition]:
    """Return the conditions to change for a silent node; empty if it is marked as unreachable already."""
    current = ready_condition(host)
    if current is not None and current.status == "Unknown":
        return []
    changed = []
    conditions_by_type = {each.type: each for each in host.status.conditions}
    for kind in _KUBELETS_CONDITIONS:
        condition = conditions_by_type.get(kind)
        if condition is not None and condition.status == "Unknown":
            continue
        was_never_set = condition is None
        changed.append(
            node.NodeCondition(
                type=kind,
                status="Unknown",
                reason="NodeStatusNeverUpdated" if was_never_set else "NodeStatusUnknown",
                message="Kubelet never posted node status."
                if was_never_set
                else "Kubelet stopped posting node status.",
                last_heartbeat_time=host.metadata.creation_timestamp
                if condition is None
                else condition.last_heartbeat_time,
                last_transition_time=conditions.since(condition, "Unknown", now=now),
            )
        )
    return changed


# Taints


_BY_CONDITION: Final = {
    ("Ready", "False"): taints.NOT_READY,
    ("Ready", "Unknown"): taints.UNREACHABLE,
    ("MemoryPressure", "True"): "node.kubernetes.io/memory-pressure",
    ("DiskPressure", "True"): "node.kubernetes.io/disk-pressure",
    ("NetworkUnavailable", "True"): "node.kubernetes.io/network-unavailable",
    ("PIDPressure", "True"): "node.kubernetes.io/pid-pressure",
}
_OWN: Final = frozenset((*_BY_CONDITION.values(), taints.UNSCHEDULABLE))


def ready_condition(node: node.Node) -> node.NodeCondition | None:
    """Return the Ready condition of a node."""
    return conditions.find(node.status.conditions, "Ready")


def has_no_execute(node: node.Node, key: str) -> bool:
    """Return True if a node has a NoExecute taint with a key."""
    return any((taint.key, taint.effect) == (key, taints.NO_EXECUTE) for taint in node.spec.taints)


def scheduling_taints(node: node.Node, *, now: dt.datetime) -> tuple[node.Taint, ...] | None:
    """Return all taints of a node with NoSchedule taints that match its conditions, or None if they match already."""
    required_keys = {
        key for each in node.status.conditions if (key := _BY_CONDITION.get((each.type, each.status))) is not None
    }
    if node.spec.unschedulable:
        required_keys.add(taints.UNSCHEDULABLE)
    current_keys = {taint.key for taint in node.spec.taints if taint.effect == taints.NO_SCHEDULE and taint.key in _OWN}
    return swap_taints(
        node, add=required_keys - current_keys, remove=current_keys - required_keys, effect=taints.NO_SCHEDULE, now=now
    )


def swap_taints(
    host: node.Node, *, add: Iterable[str], remove: Iterable[str], effect: str, now: dt.datetime
) -> tuple[node.Taint, ...] | None:
    """Return all taints of a node with some of an effect added and removed, or None without a change."""
    removed = {(key, effect) for key in remove}
    retained = [taint for taint in host.spec.taints if (taint.key, taint.effect) not in removed]
    retained_keys = {(taint.key, taint.effect) for taint in retained}
    since = now.replace(microsecond=0)
    new = [
        node.Taint(key=key, effect=effect, time_added=since)
        for key in sorted(add)
        if (key, effect) not in retained_keys
    ]
    return (*retained, *new) if new or len(retained) < len(host.spec.taints) else None
