"""NodeUnschedulable: cordoned nodes take no pods but those that tolerate it."""

from __future__ import annotations

from typing import Final

from drachma.api import node as nodes
from drachma.api import pod
from drachma.claims import taints
from drachma.scheduler import hints, podinfo, verdict
from drachma.scheduler.plugins.question import Question

_TAINT: Final = nodes.Taint(key=taints.UNSCHEDULABLE, effect=taints.NO_SCHEDULE)
_REJECTION: Final = verdict.Rejection(verdict.NODE_UNSCHEDULABLE, ("node(s) were unschedulable",))


def question(info: podinfo.PodInfo) -> Question | None:
    """What nodes are asked; None if the pod does not mind."""
    if taints.is_tolerated(_TAINT, info.pod.spec.tolerations):
        return None
    return Question(verdict.NODE_UNSCHEDULABLE, lambda state: not state.node.spec.unschedulable, _REJECTION)


def _node_helps(_waiting: pod.Pod, old: nodes.Node | None, new: nodes.Node) -> bool:
    return not new.spec.unschedulable and (old is None or bool(old.spec.unschedulable))


def _toleration_helps(_waiting: pod.Pod, _old: pod.Pod, new: pod.Pod) -> bool:
    return taints.is_tolerated(_TAINT, new.spec.tolerations)


HINTS: Final = (
    hints.Hint(hints.Resource.NODE, hints.Action.ADD | hints.Action.UPDATE_NODE_TAINT, _node_helps),
    hints.Hint(hints.Resource.TARGET_POD, hints.Action.UPDATE_POD_TOLERATION, _toleration_helps),
)
