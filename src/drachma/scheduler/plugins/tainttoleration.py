"""TaintToleration: taints keep pods away that do not tolerate them, or make nodes less welcome."""

from __future__ import annotations

from typing import Final

from drachma.api import node as nodes
from drachma.api import pod
from drachma.claims import taints
from drachma.scheduler import hints, podinfo, verdict
from drachma.scheduler.plugins.question import Preference, Question

_REJECTION: Final = verdict.Rejection(verdict.TAINT_TOLERATION, ("node(s) had untolerated taint(s)",))
_WEIGHT: Final = 3


def question(info: podinfo.PodInfo) -> Question:
    """What nodes are asked."""
    tolerations = info.pod.spec.tolerations
    return Question(
        (verdict.TAINT_TOLERATION, tolerations),
        lambda state: taints.preventing(state.node.spec.taints, tolerations) is None,
        _REJECTION,
    )


def preference(info: podinfo.PodInfo) -> Preference:
    """How many taints that only discourage are not tolerated: the fewer the better."""
    tolerations = tuple(entry for entry in info.pod.spec.tolerations if entry.effect in ("", taints.PREFER_NO_SCHEDULE))
    return Preference(
        ("discouraging", tolerations),
        lambda state: sum(
            taint.effect == taints.PREFER_NO_SCHEDULE and not taints.is_tolerated(taint, tolerations)
            for taint in state.node.spec.taints
        ),
        weight=_WEIGHT,
        less_is_better=True,
    )


def _node_helps(waiting: pod.Pod, old: nodes.Node | None, new: nodes.Node) -> bool:
    tolerations = waiting.spec.tolerations
    was_prevented = old is None or taints.preventing(old.spec.taints, tolerations) is not None
    return was_prevented and taints.preventing(new.spec.taints, tolerations) is None


HINTS: Final = (
    hints.Hint(hints.Resource.NODE, hints.Action.ADD | hints.Action.UPDATE_NODE_TAINT, _node_helps),
    hints.Hint(hints.Resource.TARGET_POD, hints.Action.UPDATE_POD_TOLERATION, hints.always),
)
