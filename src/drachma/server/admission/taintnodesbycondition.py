"""TaintNodesByCondition: a new node takes no pods before somebody has seen that it is ready."""

from typing import Any, Final

from drachma.claims import taints
from drachma.server.admission.proposal import Proposal

NODES: Final = frozenset({"nodes"})

_TAINT: Final = {"key": taints.NOT_READY, "effect": taints.NO_SCHEDULE}


def admit(proposal: Proposal) -> None:
    """Adds the taint, which the node lifecycle controller takes off; a node that comes with it keeps its own."""
    subject = proposal.subject
    spec: dict[str, Any] = subject.content.get("spec") or {}
    own: list[dict[str, Any]] = spec.get("taints") or []
    if not any((each.get("key"), each.get("effect")) == (_TAINT["key"], _TAINT["effect"]) for each in own):
        subject.content = {**subject.content, "spec": {**spec, "taints": [*own, dict(_TAINT)]}}
