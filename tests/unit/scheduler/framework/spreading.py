"""Plugin that is not in the product: spreads pods of an app over zones, as PodTopologySpread does.

It shows what adding a plugin takes: this module, and one line in a profile.
"""

from __future__ import annotations

import functools
from typing import Final

from drachma.scheduler.framework import cyclestate, plugin, scoring, verdict
from drachma.scheduler.snapshot import nodeinfo

_REJECTION: Final = verdict.Rejection(
    "SpreadOverZones", ("node(s) didn't match pod topology spread constraints",), is_resolvable=True
)
_APP: Final = "app"
_ZONES: Final = cyclestate.Key[dict[int, int]]("nodes by pods in their zone")


class SpreadOverZones:
    """Pods with the same label ``app`` differ by at most one between zones."""

    name: Final = "SpreadOverZones"

    def pre_filter(self, cycle: cyclestate.CycleState) -> plugin.PreFilterResult:
        return plugin.ALL_NODES if _APP in cycle.pod.pod.metadata.labels else plugin.SKIP

    def filter(self, cycle: cyclestate.CycleState, alive: int) -> plugin.Filtered:
        app = cycle.pod.pod.metadata.labels[_APP]
        nodes = cycle.snapshot.nodes
        zones = nodes.properties.classes("zone", _zone, among=nodes.all_nodes)
        counts = dict.fromkeys(zones, 0)
        pods = nodes.resources.classes(("pods", app), functools.partial(_count, app), among=nodes.all_nodes)
        for zone, members in zones.items():
            for count, same in pods.items():
                counts[zone] += count * (members & same & nodes.all_nodes).bit_count()
        fewest = min(counts.values())
        by_count: dict[int, int] = {}
        for zone, members in zones.items():
            by_count[counts[zone]] = by_count.get(counts[zone], 0) | members
        cycle.write(_ZONES, by_count)
        return plugin.split(alive, by_count.get(fewest, 0), rejection=_REJECTION)

    def score(self, cycle: cyclestate.CycleState, passing: int) -> plugin.Scores:
        by_count = cycle.find(_ZONES)
        return {} if by_count is None else scoring.normalize(by_count, among=passing, less_is_better=True)


def _zone(info: nodeinfo.NodeInfo) -> str:
    return info.node.metadata.labels.get("zone", "")


def _count(app: str, info: nodeinfo.NodeInfo) -> int:
    return sum(booking.pod.metadata.labels.get(_APP) == app for booking in info.ledger.bookings.values())
