"""NodeName: a pod that names its node can only go there."""

from __future__ import annotations

from typing import Final

from drachma.scheduler import hints, podinfo, verdict
from drachma.scheduler.plugins.question import Question

_REJECTION: Final = verdict.Rejection(verdict.NODE_NAME, ("node(s) didn't match the requested node name",))

HINTS: Final = (hints.Hint(hints.Resource.NODE, hints.Action.ADD, hints.always),)


def question(info: podinfo.PodInfo) -> Question | None:
    """What nodes are asked; None if the pod names no node."""
    name = info.pod.spec.node_name
    if not name:
        return None
    return Question((verdict.NODE_NAME, name), lambda state: state.name == name, _REJECTION)
