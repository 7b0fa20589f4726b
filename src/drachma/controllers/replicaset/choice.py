"""Which pods go when there are too many: those that are missed least. Pure."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, Final

from drachma.api import pod
from drachma.controllers.workload import readiness

_COST: Final = "controller.kubernetes.io/pod-deletion-cost"
_PHASES: Final = {"Pending": 0, "Unknown": 1, "Running": 2}
_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


def superfluous(pods: Sequence[pod.Pod], count: int, *, related: Iterable[pod.Pod]) -> list[pod.Pod]:
    """So many of the pods, in upstream's order: without a node, not running, not ready, cheap, in a crowd, young.

    ``related`` are the pods of all sets of the same owner: where several of them share a node, one of them goes first.
    """
    crowds = Counter(each.spec.node_name for each in related if readiness.is_active(each) and each.spec.node_name)
    return sorted(pods, key=lambda each: _worth(each, crowds))[:count]


def _worth(of: pod.Pod, crowds: Counter[str]) -> tuple[Any, ...]:
    since = readiness.ready_since(of)
    created = of.metadata.creation_timestamp
    return (
        bool(of.spec.node_name),
        _PHASES.get(of.status.phase, 1),
        readiness.is_ready(of),
        _cost(of),
        -crowds[of.spec.node_name],
        # Of those that are ready the youngest goes, and then of those that were made.
        -((since or _EPOCH) - _EPOCH).total_seconds(),
        -((created or _EPOCH) - _EPOCH).total_seconds(),
        of.metadata.name,
    )


def _cost(of: pod.Pod) -> int:
    try:
        return int(of.metadata.annotations.get(_COST, "0"))
    except ValueError:
        return 0
