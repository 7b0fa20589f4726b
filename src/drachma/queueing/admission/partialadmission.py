"""Partial admission: fewer pods than asked for, as many as fit."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from typing import TypeVar

from drachma.queueing.kinds import workload

_FirstT = TypeVar("_FirstT")
_SecondT = TypeVar("_SecondT")


def reduce(
    pod_sets: Sequence[workload.PodSet], attempt: Callable[[list[int]], tuple[_FirstT, _SecondT | None]]
) -> tuple[_FirstT, _SecondT] | None:
    """The attempt with the most pods that succeeds; None if none does.

    All pod sets shrink together, from their counts to their minimum counts. As upstream it is found by bisection: the
    numbers below one that fits are taken to fit too.
    """
    counts = [int(each.count) for each in pod_sets]
    slack = [each.count - (each.count if each.min_count is None else each.min_count) for each in pod_sets]
    total = sum(slack)
    if total == 0:
        return None
    last: tuple[int, _FirstT, _SecondT] | None = None

    def fits(step: int) -> bool:
        nonlocal last
        first, second = attempt([count - spare * step // total for count, spare in zip(counts, slack, strict=True)])
        if second is None:
            return False
        last = (step, first, second)
        return True

    step = bisect_left(range(total + 1), x=True, key=fits)
    if last is None or last[0] != step:
        return None
    return last[1], last[2]
