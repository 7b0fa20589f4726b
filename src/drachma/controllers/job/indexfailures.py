"""Failures counted per index of a job, if it has a limit for that. Pure.

An annotation of a pod has the earlier failures of its index. So the last failed pod of an index is kept until the next
one is created: it passes the count on, and its end determines the pause.
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
    """Return the failed indexes, by the job's status and by pods, or None if failures are not counted by index."""
    limit = current.spec.backoff_limit_per_index
    if limit is None or not current.spec.is_indexed:
        return None
    completions = current.spec.completions or 0
    new = {
        index
        for each in pods
        if tally.is_tracked(each)
        and (index := indexes.pod_index(each)) is not None
        and _has_failed_for_good(current, each, limit)
    }
    return frozenset(each for each in indexes.parse(current.status.failed_indexes or "") | new if each < completions)


def last_failures(current: model.Job, counts: tally.Tally, *, finished: frozenset[int]) -> dict[int, pod.Pod]:
    """Return the last failed pod of each index that is to be retried and has no active pod."""
    if current.spec.backoff_limit_per_index is None:
        return {}
    settled = finished | {index for each in counts.active if (index := indexes.pod_index(each)) is not None}
    last: dict[int, pod.Pod] = {}
    for each in counts.tracked:
        index = indexes.pod_index(each)
        if index is None or index in settled or index >= (current.spec.completions or 0):
            continue
        if not tally.is_failed(each, current.spec):
            continue
        earlier = last.get(index)
        if earlier is None or _order(earlier) <= _order(each):
            last[index] = each
    return last


def marks(current: model.Job, replaced: pod.Pod | None) -> dict[str, str]:
    """Return the annotations of a new pod with the failures of its index."""
    if current.spec.backoff_limit_per_index is None:
        return {}
    failures, ignored = (_number(replaced, COUNT), _number(replaced, IGNORED_COUNT)) if replaced is not None else (0, 0)
    if replaced is not None:
        is_counted = failurepolicy.judge(current.spec.pod_failure_policy, replaced).is_counted
        failures, ignored = failures + is_counted, ignored + (not is_counted)
    return {COUNT: str(failures), **({IGNORED_COUNT: str(ignored)} if ignored else {})}


def due(candidates: Iterable[int], last: Mapping[int, pod.Pod], *, now: dt.datetime) -> tuple[list[int], float]:
    """Return the indexes whose pods may be created now, or if there are none, the seconds until the first."""
    at_once, waits = [], []
    for index in candidates:
        failed = last.get(index)
        seconds = 0.0 if failed is None else _failures(failed).remaining(now)
        if seconds:
            waits.append(seconds)
        else:
            at_once.append(index)
    return at_once, 0.0 if at_once else min(waits, default=0.0)


def _failures(last: pod.Pod) -> retries.Failures:
    return retries.Failures(_total(last) + 1, retries.finish_time(last))


def _has_failed_for_good(current: model.Job, pod: pod.Pod, limit: int) -> bool:
    if not tally.is_failed(pod, current.spec):
        return False
    verdict = failurepolicy.judge(current.spec.pod_failure_policy, pod)
    if verdict.action == failurepolicy.FAIL_INDEX:
        return True
    return verdict.is_counted and _number(pod, COUNT) >= limit


def _order(pod: pod.Pod) -> tuple[int, dt.datetime]:
    return _total(pod), retries.finish_time(pod)


def _total(pod: pod.Pod) -> int:
    return _number(pod, COUNT) + _number(pod, IGNORED_COUNT)


def _number(pod: pod.Pod, annotation: str) -> int:
    text = pod.metadata.annotations.get(annotation, "")
    return int(text) if text.isascii() and text.isdecimal() else 0
