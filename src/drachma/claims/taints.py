"""Taints and tolerations, of nodes and of devices alike: whether a taint is tolerated, and what that leaves.

The allocator asks about devices, the scheduler about nodes, and the eviction controllers about both; the rule is the
same. Only the effects NoSchedule and NoExecute keep anything away; all others, known or not, do not. The operators
``Lt`` and ``Gt`` are behind a gate of upstream's that is off by default: they tolerate nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Protocol, TypeVar

NO_EXECUTE: Final = "NoExecute"
NO_SCHEDULE: Final = "NoSchedule"
PREFER_NO_SCHEDULE: Final = "PreferNoSchedule"

NOT_READY: Final = "node.kubernetes.io/not-ready"
UNREACHABLE: Final = "node.kubernetes.io/unreachable"
UNSCHEDULABLE: Final = "node.kubernetes.io/unschedulable"
OUT_OF_SERVICE: Final = "node.kubernetes.io/out-of-service"

_PREVENTING: Final = frozenset({NO_SCHEDULE, NO_EXECUTE})


class Taint(Protocol):
    """What a taint of a node and one of a device have in common."""

    @property
    def key(self) -> str: ...
    @property
    def value(self) -> str: ...
    @property
    def effect(self) -> str: ...


class Toleration(Protocol):
    """What a toleration of a pod and one of a device request have in common."""

    @property
    def key(self) -> str: ...
    @property
    def operator(self) -> str: ...
    @property
    def value(self) -> str: ...
    @property
    def effect(self) -> str: ...


_Taint = TypeVar("_Taint", bound=Taint)


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    """Whether the toleration covers the taint; an empty effect or key covers any."""
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator in ("", "Equal"):
        return toleration.value == taint.value
    return toleration.operator == "Exists"


def is_tolerated(taint: Taint, tolerations: Iterable[Toleration]) -> bool:
    """Whether some toleration covers the taint."""
    return any(tolerates(toleration, taint) for toleration in tolerations)


def preventing(taints: Iterable[_Taint], tolerations: tuple[Toleration, ...]) -> _Taint | None:
    """The first taint that keeps away who has these tolerations, if there is one."""
    for taint in taints:
        if taint.effect in _PREVENTING and not any(tolerates(toleration, taint) for toleration in tolerations):
            return taint
    return None
