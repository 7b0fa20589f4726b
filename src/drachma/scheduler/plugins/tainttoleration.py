"""TaintToleration: taints keep pods away that do not tolerate them, or make nodes less welcome."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from drachma.api import node as nodes
from drachma.api import pod
from drachma.scheduler import hints, podinfo, verdict
from drachma.scheduler.plugins.question import Preference, Question

_PREVENTING: Final = frozenset({"NoSchedule", "NoExecute"})
_DISCOURAGING: Final = "PreferNoSchedule"
_REJECTION: Final = verdict.Rejection(verdict.TAINT_TOLERATION, ("node(s) had untolerated taint(s)",))
_WEIGHT: Final = 3

Tolerations = tuple[pod.Toleration, ...]


def question(info: podinfo.PodInfo) -> Question:
    """What nodes are asked."""
    tolerations = info.pod.spec.tolerations
    return Question(
        (verdict.TAINT_TOLERATION, tolerations),
        lambda state: not is_prevented(state.node.spec.taints, tolerations),
        _REJECTION,
    )


def preference(info: podinfo.PodInfo) -> Preference:
    """How many taints that only discourage are not tolerated: the fewer the better."""
    tolerations = tuple(entry for entry in info.pod.spec.tolerations if entry.effect in ("", _DISCOURAGING))
    return Preference(
        ("discouraging", tolerations),
        lambda state: sum(
            taint.effect == _DISCOURAGING and not is_tolerated(taint, tolerations) for taint in state.node.spec.taints
        ),
        weight=_WEIGHT,
        less_is_better=True,
    )


def is_prevented(taints: Iterable[nodes.Taint], tolerations: Tolerations) -> bool:
    """Whether any taint keeps the pod away."""
    return any(taint.effect in _PREVENTING and not is_tolerated(taint, tolerations) for taint in taints)


def is_tolerated(taint: nodes.Taint, tolerations: Tolerations) -> bool:
    """Whether some toleration covers the taint; an empty effect or key covers any."""
    return any(_covers(toleration, taint) for toleration in tolerations)


def _covers(toleration: pod.Toleration, taint: nodes.Taint) -> bool:
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator in ("", "Equal"):
        return toleration.value == taint.value
    return toleration.operator == "Exists"


def _node_helps(waiting: pod.Pod, old: nodes.Node | None, new: nodes.Node) -> bool:
    tolerations = waiting.spec.tolerations
    was_prevented = old is None or is_prevented(old.spec.taints, tolerations)
    return was_prevented and not is_prevented(new.spec.taints, tolerations)


HINTS: Final = (
    hints.Hint(hints.Resource.NODE, hints.Action.ADD | hints.Action.UPDATE_NODE_TAINT, _node_helps),
    hints.Hint(hints.Resource.TARGET_POD, hints.Action.UPDATE_POD_TOLERATION, hints.always),
)
