"""Failures counted for each index of a job by itself, where it has a limit for that. Pure.

A pod says how often its index failed before it. So the last failed pod of an index is kept until the next one is made:
it hands the count on, and its end says how long to wait.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping
from typing import Final

from drachma.api import pod
from drachma.controllers.job import failurepolicy, indexes, model, retries, tally

COUNT: Final = "batch.kubernetes.io/job-index-failure-count"
IGNORED_COUNT: Final = "batch.kubernetes.io/job-index-ignored-failure-count"


def failed_indexes(current: model.Job, pods: Iterable[pod.Pod]) -> frozenset[int] | None:
    """The indexes that have failed, by the job's status and by pods; None where failures are not counted by index."""
    limit = current.spec.backoff_limit_per_index
    if limit is None or not current.spec.is_indexed:
        return None
    completions = current.spec.completions or 0
    new = {
        index
        for each in pods
        if tally.is_tracked(each)
        and (index := indexes.of_pod(each)) is not None
        and _has_failed_for_good(current, each, limit)
    }
    return frozenset(each for each in indexes.parse(current.status.failed_indexes or "") | new if each < completions)


def last_failures(current: model.Job, counted: tally.Tally, *, finished: frozenset[int]) -> dict[int, pod.Pod]:
    """The last failed pod of each index that is to be tried again, and of which none is active."""
    if current.spec.backoff_limit_per_index is None:
        return {}
    settled = finished | {index for each in counted.active if (index := indexes.of_pod(each)) is not None}
    last: dict[int, pod.Pod] = {}
    for each in counted.tracked:
        index = indexes.of_pod(each)
        if index is None or index in settled or index >= (current.spec.completions or 0):
            continue
        if not tally.is_failed(each, current.spec):
            continue
        known = last.get(index)
        if known is None or _order(known) <= _order(each):
            last[index] = each
    return last


def marks(current: model.Job, replaced: pod.Pod | None) -> dict[str, str]:
    """What the annotations of a new pod say of the failures of its index."""
    if current.spec.backoff_limit_per_index is None:
        return {}
    counted, ignored = (_number(replaced, COUNT), _number(replaced, IGNORED_COUNT)) if replaced is not None else (0, 0)
    if replaced is not None:
        is_counted = failurepolicy.judge(current.spec.pod_failure_policy, replaced).is_counted
        counted, ignored = counted + is_counted, ignored + (not is_counted)
    return {COUNT: str(counted), **({IGNORED_COUNT: str(ignored)} if ignored else {})}


def due(wanted: Iterable[int], last: Mapping[int, pod.Pod], *, now: dt.datetime) -> tuple[list[int], float]:
    """The indexes whose pods may be made now; where there are none, how many seconds to wait for the first."""
    at_once, waits = [], []
    for index in wanted:
        failed = last.get(index)
        seconds = 0.0 if failed is None else _failures(failed).remaining(now)
        if seconds:
            waits.append(seconds)
        else:
            at_once.append(index)
    return at_once, 0.0 if at_once else min(waits, default=0.0)


def _failures(last: pod.Pod) -> retries.Failures:
    return retries.Failures(_total(last) + 1, retries.finish_time(last))


def _has_failed_for_good(current: model.Job, of: pod.Pod, limit: int) -> bool:
    if not tally.is_failed(of, current.spec):
        return False
    verdict = failurepolicy.judge(current.spec.pod_failure_policy, of)
    if verdict.action == failurepolicy.FAIL_INDEX:
        return True
    return verdict.is_counted and _number(of, COUNT) >= limit


def _order(of: pod.Pod) -> tuple[int, dt.datetime]:
    return _total(of), retries.finish_time(of)


def _total(of: pod.Pod) -> int:
    return _number(of, COUNT) + _number(of, IGNORED_COUNT)


def _number(of: pod.Pod, annotation: str) -> int:
    text = of.metadata.annotations.get(annotation, "")
    return int(text) if text.isascii() and text.isdecimal() else 0
