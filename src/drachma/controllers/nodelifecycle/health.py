"""When nodes were last heard of: by a new heartbeat in their status, or by a renewed Lease.

Times are those at which this process noticed, so clocks that differ do no harm. Nodes that nobody speaks for, without
Lease and heartbeat, were made by hand and are nobody's business. Differs from upstream: there they become unknown after
a minute.
"""

import datetime as dt
from typing import Final

import msgspec

from drachma.api import lease, node
from drachma.controllers.nodelifecycle import nodetaints

_KUBELETS_CONDITIONS: Final = ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure")


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """For how many seconds a node may be silent, and a new one that has never said anything."""

    grace: float = 50.0
    startup_grace: float = 60.0


class _Sighting(msgspec.Struct):
    uid: str
    probed: float
    has_ready: bool
    heartbeat: dt.datetime | None
    renewed: str | None


class Monitor:
    """What is known about each node's signs of life."""

    def __init__(self, settings: Settings) -> None:
        self._settings: Final = settings
        self._sightings: Final[dict[str, _Sighting]] = {}

    def forget(self, name: str) -> None:
        self._sightings.pop(name, None)

    def start_over(self, *, now: float) -> None:
        """Gives all nodes their full time again."""
        for sighting in self._sightings.values():
            sighting.probed = now

    def is_overdue(self, of: node.Node, renewal: lease.Lease | None, *, now: float, today: dt.datetime) -> bool:
        """Whether a node has been silent for too long; ``today`` is the time of day at ``now``."""
        ready = nodetaints.ready(of)
        heartbeat = ready.last_heartbeat_time if ready is not None else None
        sighting = self._sightings.get(of.metadata.name)
        if sighting is None or sighting.uid != of.metadata.uid:
            # Another node of the same name may have come between two looks; it has all its time before it.
            probed = now
            if ready is None and of.metadata.creation_timestamp is not None:
                probed = now - (today - of.metadata.creation_timestamp).total_seconds()
            sighting = _Sighting(of.metadata.uid, probed, ready is not None, heartbeat, None)
            self._sightings[of.metadata.name] = sighting
        elif (sighting.has_ready, sighting.heartbeat) != (ready is not None, heartbeat):
            sighting.probed = now
        sighting.has_ready, sighting.heartbeat = ready is not None, heartbeat
        renewed = renewal.spec.renew_time if renewal is not None else None
        # Differs from upstream: a renewal whose time went back, as the clock of its node did, is a sign of life too.
        if renewed is not None and renewed != sighting.renewed:
            sighting.renewed, sighting.probed = renewed, now
        if sighting.renewed is None and renewal is None and heartbeat is None:
            return False
        grace = self._settings.grace if ready is not None else self._settings.startup_grace
        return now > sighting.probed + grace


def unknown_conditions(of: node.Node, *, now: dt.datetime) -> list[node.NodeCondition]:
    """The conditions that change when a node is no longer heard of; empty if it is known to be unreachable."""
    current = nodetaints.ready(of)
    if current is not None and current.status == "Unknown":
        return []
    changed = []
    since = now.replace(microsecond=0)
    known = {each.type: each for each in of.status.conditions}
    for kind in _KUBELETS_CONDITIONS:
        condition = known.get(kind)
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
                last_heartbeat_time=of.metadata.creation_timestamp
                if condition is None
                else condition.last_heartbeat_time,
                last_transition_time=since,
            )
        )
    return changed
