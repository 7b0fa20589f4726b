"""TaintToleration: taints reject pods that do not tolerate them, or make nodes less preferred."""

from __future__ import annotations

import functools
from typing import Final, NamedTuple

from drachma.api import node as nodes
from drachma.api import pod
from drachma.claims import taints
from drachma.scheduler.framework import cyclestate, hints, plugin, scoring, verdict
from drachma.scheduler.framework.plugin import Filtered, Scores
from drachma.scheduler.snapshot import Snapshot, nodeinfo

_NAME: Final = "TaintToleration"
_REJECTION: Final = verdict.Rejection(_NAME, ("node(s) had untolerated taint(s)",))

_Tolerations = tuple[pod.Toleration, ...]


class _Taints(NamedTuple):
    """Effect of a node's taints on a pod."""

    is_welcome: bool
    discouraging: int = 0
    """Number of PreferNoSchedule taints that are not tolerated."""


_DISCOURAGING: Final = cyclestate.Key[Scores]("nodes by taints that discourage")


class TaintToleration:
    """The plugin."""

    name: Final = _NAME

    def filter(self, cycle: cyclestate.CycleState, alive: int) -> Filtered:
        """Return the nodes without a taint that rejects the pod."""
        nodes = cycle.snapshot.nodes
        tainted = nodes.tainted & alive
        if not tainted:
            return alive, ()
        tolerations = cycle.pod.pod.spec.tolerations
        classes = nodes.properties.classes((_NAME, tolerations), functools.partial(_judge, tolerations), among=tainted)
        discouraging = {0: alive & ~tainted}
        for meaning, nodes_alike in classes.items():
            same = nodes_alike & tainted
            if meaning.is_welcome and same:
                discouraging[meaning.discouraging] = discouraging.get(meaning.discouraging, 0) | same
        cycle.write(_DISCOURAGING, discouraging)
        return plugin.split(alive, functools.reduce(int.__or__, discouraging.values()), rejection=_REJECTION)

    def is_local(self, _cycle: cyclestate.CycleState) -> bool:
        """Return True: only the node and its pods are read."""
        return True

    def score(self, cycle: cyclestate.CycleState, passing: int) -> Scores:
        """Score nodes higher for fewer PreferNoSchedule taints that are not tolerated."""
        discouraging = cycle.find(_DISCOURAGING)
        if discouraging is None or len(discouraging) < 2:
            return {}
        return scoring.normalize(discouraging, among=passing, less_is_better=True)

    def hints(self, _snapshot: Snapshot) -> tuple[hints.Hint, ...]:
        """Return the changes that can help."""
        return _HINTS


def _judge(tolerations: _Tolerations, info: nodeinfo.NodeInfo) -> _Taints:
    if taints.first_untolerated(info.node.spec.taints, tolerations) is not None:
        return _Taints(is_welcome=False)
    discouraging = sum(
        taint.effect == taints.PREFER_NO_SCHEDULE and not taints.is_tolerated(taint, tolerations)
        for taint in info.node.spec.taints
    )
    return _Taints(is_welcome=True, discouraging=discouraging)


def _node_helps(waiting_pod: pod.Pod, old: nodes.Node | None, new: nodes.Node) -> bool:
    tolerations = waiting_pod.spec.tolerations
    was_prevented = old is None or taints.first_untolerated(old.spec.taints, tolerations) is not None
    return was_prevented and taints.first_untolerated(new.spec.taints, tolerations) is None


_HINTS: Final = (
    hints.Hint(hints.Resource.NODE, hints.Action.ADD | hints.Action.UPDATE_NODE_TAINT, _node_helps),
    hints.Hint(hints.Resource.TARGET_POD, hints.Action.UPDATE_POD_TOLERATION, hints.always),
)
