"""Reasons of one new node: why a pod does not fit on it, apart from the reasons of all other nodes.

For claims that cannot be allocated, the reason names the request and what keeps its devices away.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

from drachma.allocator import explanation
from drachma.allocator.explanation import report, wording
from drachma.claims import podclaims
from drachma.scheduler.framework import hints
from drachma.simulate import simulation

_MOST_CAUSES: Final = 3


def reason(cluster: simulation.Simulation, waits: simulation.Waiting, node: str) -> str:
    """Return why a pod does not fit on a node; the scheduler's message if it says nothing about the node."""
    info = cluster.snapshot.nodes.find(node)
    if waits.unfit is None or info is None or waits.unfit.diagnosis.before is not None:
        return waits.reason
    rejections = [rejection for rejection, nodes in waits.unfit.diagnosis.rejections if nodes & info.bit]
    if not rejections:
        return waits.reason
    texts = [", ".join(rejection.reasons) for rejection in rejections]
    if any(rejection.plugin == hints.DYNAMIC_RESOURCES for rejection in rejections):
        texts += _device_causes(cluster, waits, node)
    return "; ".join(texts)


def _device_causes(cluster: simulation.Simulation, waits: simulation.Waiting, node: str) -> list[str]:
    """Return one text for each request that lacks devices on a node."""
    info = cluster.snapshot.nodes.find(node)
    assert info is not None
    claims = [
        each.claim
        for each in podclaims.resolve(waits.pod, cluster.snapshot.claims)
        if each.claim.status.allocation is None
    ]
    if not claims:
        return []
    explained = explanation.Explainer(cluster.snapshot.devices.allocator).explain(info.place, claims)
    return [
        f"request {way.name} wants {way.wanted} of class {way.class_name}: {_causes(way)}"
        for claim in explained.claims
        for request in claim.requests
        for way in request.alternatives
        if len(way.usable) < way.wanted
    ]


def _causes(way: report.AlternativeReport) -> str:
    if not way.considered:
        return "there are no devices at all"
    counts: Counter[str] = Counter()
    for each in way.obstacles:
        counts[wording.heading(each.cause)] += each.count
    causes = [f"{count} of {way.considered} {heading}" for heading, count in counts.most_common(_MOST_CAUSES)]
    return ", ".join(causes)
