"""Explanations as text and as documents."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any, Final

from drachma.queueing.explanation.preemptionverdict import Verdict
from drachma.queueing.explanation.remedies import Increase, Remedy
from drachma.queueing.explanation.shortage import Holding, Level, Shortage
from drachma.queueing.explanation.workloadexplanation import LocalQueueUsage, Outcome, WorkloadExplanation
from drachma.queueing.workloads.requests import FlavorResource

_MOST_NAMES: Final = 8

_HEADLINES: Final = {
    Outcome.FINISHED: "is finished",
    Outcome.ADMITTED: "is admitted",
    Outcome.QUOTA_RESERVED: "has quota, and waits for admission checks",
    Outcome.FITS: "would be admitted if it were its turn",
    Outcome.PREEMPTS: "would preempt others",
    Outcome.DOES_NOT_FIT: "does not fit",
    Outcome.NOT_QUEUED: "is in no queue",
}
_BEYOND: Final = {
    Outcome.ADMITTED: "whether its pods find nodes, drachma explain pod NAME says of each",
    Outcome.FITS: "that is what quota says; whether its pods would find nodes is not looked at",
}
"""Limits of an answer that readers may overlook: queues know nothing about nodes."""
_KINDS: Final = {"ClusterQueue": "cluster queue", "Cohort": "cohort"}
_FIELDS: Final = {"nominalQuota": "nominal quota", "borrowingLimit": "borrowing limit", "lendingLimit": "lending limit"}


def render(explanation: WorkloadExplanation) -> str:
    """Return the explanation as lines of text; long lists are truncated."""
    return "\n".join(_lines(explanation))


def _lines(explanation: WorkloadExplanation) -> Iterator[str]:
    headline = f"workload {explanation.workload}: {_HEADLINES[explanation.outcome]}"
    yield f"{headline}: {explanation.message}" if explanation.message else headline
    if explanation.position:
        position = f"number {explanation.position} of {explanation.waiting}"
        queue = f"cluster queue {explanation.cluster_queue} ({explanation.path})"
        yield f"  {position} in {queue}, by local queue {explanation.local_queue}"
        if explanation.before:
            ahead = _listed(f"{each.workload} (priority {each.priority})" for each in explanation.before)
            yield f"  before it: {ahead}"
            if explanation.past_usage:
                turns = _listed(f"{each.local_queue} {each.usage:.3g}" for each in explanation.past_usage)
                yield f"  local queues take turns by past usage: {turns}"
            if explanation.strategy == "StrictFIFO":
                yield "  order is strict: these must be admitted first"
    elif explanation.cluster_queue:
        yield f"  cluster queue {explanation.cluster_queue}, by local queue {explanation.local_queue}"
    if explanation.outcome in _BEYOND:
        yield f"  {_BEYOND[explanation.outcome]}"
    for unsuitable in explanation.unsuitable:
        yield f"  pod set {unsuitable.pod_set}: {unsuitable.reason}"
    for shortage in explanation.shortages:
        yield from _shortage(explanation, shortage)
    targets = [each for each in explanation.verdicts if each.is_target]
    spared = [each for each in explanation.verdicts if not each.is_target]
    if targets:
        yield f"  would be preempted: {_listed(f'{each.workload} ({each.reason})' for each in targets)}"
    if spared:
        yield "  would not be preempted:"
        yield from _spared(spared)
    if explanation.remedies:
        yield "  would help, each by itself:"
        for remedy in explanation.remedies:
            yield f"    {_remedy(explanation, remedy)}"


def _shortage(explanation: WorkloadExplanation, shortage: Shortage) -> Iterator[str]:
    def show(amount: int) -> str:
        return explanation.settings.show(shortage.key.resource, amount)

    resource, flavor = shortage.key.resource, shortage.key.flavor
    free = f"{show(max(0, shortage.available))} can be had, {show(shortage.missing)} short"
    yield f"  pod set {shortage.pod_set}, flavor {flavor}: {resource}: needs {show(shortage.request)}, {free}"
    if shortage.request > shortage.potential:
        yield f"    there would be {show(shortage.potential)} if nothing else ran"
    for level in shortage.levels:
        yield f"    {_level(explanation, level, shortage.key)}"
    last = shortage.levels[-1]
    limit = "borrowing limit" if shortage.limit == "borrowingLimit" else "quota"
    yield f"    the limit is the {limit} of {_KINDS[last.kind]} {last.name}"
    for reserve in shortage.reserves:
        yield (
            f"    {_KINDS[reserve.kind]} {reserve.name} has {show(reserve.amount)} left, and does not lend it: "
            f"its lending limit is {show(reserve.lending_limit)}"
        )
    by_queue: dict[str, list[Holding]] = {}
    for each in shortage.holdings:
        by_queue.setdefault(each.queue, []).append(each)
    for queue, holdings in by_queue.items():
        total = show(sum(each.amount for each in holdings))
        names = _listed(f"{each.workload} {show(each.amount)}" for each in holdings)
        yield f"    {total} in use by cluster queue {queue}: {names}"


def _level(explanation: WorkloadExplanation, level: Level, key: FlavorResource) -> str:
    def show(amount: int) -> str:
        return explanation.settings.show(key.resource, amount)

    text = f"{_KINDS[level.kind]} {level.name}: uses {show(level.used)} of {show(level.quota)}"
    if level.quota != level.nominal:
        text += f" ({show(level.nominal)} its own)"
    if level.borrowing_limit is not None:
        text += f", may borrow {show(level.borrowing_limit)}"
    if level.lending_limit is not None:
        text += f", lends {show(level.lending_limit)}"
    return text


def _spared(spared: Iterable[Verdict]) -> Iterator[str]:
    """Return holders grouped by the reason that protects them."""
    by_reason: dict[str, list[str]] = {}
    for each in spared:
        by_reason.setdefault(each.reason, []).append(f"{each.workload} in {each.queue}")
    for reason, names in by_reason.items():
        yield f"    {_listed(names)}: {reason}"


def _remedy(explanation: WorkloadExplanation, remedy: Remedy) -> str:
    if remedy.is_waiting:
        return f"waiting until {_listed(remedy.endings)}, evicted already, gave back what they have"
    if remedy.endings:
        return f"the end of {_listed(remedy.endings)}"
    return ", and ".join(_increase(explanation, each) for each in remedy.increases)


def _increase(explanation: WorkloadExplanation, increase: Increase) -> str:
    resource, flavor = increase.key.resource, increase.key.flavor
    amount, value = (
        explanation.settings.show(resource, increase.amount),
        explanation.settings.show(resource, increase.value),
    )
    where = f"{_FIELDS[increase.field]} of {_KINDS[increase.kind]} {increase.name}"
    return f"{amount} more {resource} of flavor {flavor} as {where} ({value} then)"


def _listed(names: Iterable[str]) -> str:
    listed = list(names)
    more = len(listed) - _MOST_NAMES
    return ", ".join(listed[:_MOST_NAMES]) + (f" and {more} more" if more > 0 else "")


# Documents


def _past_usage(usage: LocalQueueUsage) -> dict[str, Any]:
    # JSON has no infinity, which is the past usage of a local queue without weight.
    return {"localQueue": usage.local_queue, "usage": usage.usage if math.isfinite(usage.usage) else None}


def to_document(explanation: WorkloadExplanation) -> dict[str, Any]:
    """Return the whole explanation as a document."""

    def show(key: FlavorResource, amount: int | None) -> str | None:
        return None if amount is None else explanation.settings.show(key.resource, amount)

    return {
        "workload": explanation.workload,
        "outcome": str(explanation.outcome),
        "message": explanation.message,
        "localQueue": explanation.local_queue,
        "clusterQueue": explanation.cluster_queue,
        "path": explanation.path,
        "position": explanation.position,
        "waiting": explanation.waiting,
        "before": [{"workload": each.workload, "priority": each.priority} for each in explanation.before],
        **({"pastUsage": [_past_usage(each) for each in explanation.past_usage]} if explanation.past_usage else {}),
        "unsuitable": [{"podSet": each.pod_set, "reason": each.reason} for each in explanation.unsuitable],
        "shortages": [
            {
                "podSet": each.pod_set,
                "flavor": each.key.flavor,
                "resource": each.key.resource,
                "request": show(each.key, each.request),
                "available": show(each.key, max(0, each.available)),
                "missing": show(each.key, each.missing),
                "potential": show(each.key, each.potential),
                "limit": {"of": each.levels[-1].name, "field": each.limit},
                "levels": [
                    {
                        "kind": level.kind,
                        "name": level.name,
                        "nominal": show(each.key, level.nominal),
                        "quota": show(each.key, level.quota),
                        "used": show(each.key, level.used),
                        "borrowingLimit": show(each.key, level.borrowing_limit),
                        "lendingLimit": show(each.key, level.lending_limit),
                    }
                    for level in each.levels
                ],
                "notLent": [
                    {"kind": reserve.kind, "name": reserve.name, "amount": show(each.key, reserve.amount)}
                    for reserve in each.reserves
                ],
                "holders": [
                    {
                        "workload": holding.workload,
                        "clusterQueue": holding.queue,
                        "priority": holding.priority,
                        "amount": show(each.key, holding.amount),
                    }
                    for holding in each.holdings
                ],
            }
            for each in explanation.shortages
        ],
        "preemption": [
            {
                "workload": each.workload,
                "clusterQueue": each.queue,
                "priority": each.priority,
                "isPreempted": each.is_target,
                "reason": each.reason,
            }
            for each in explanation.verdicts
        ],
        "remedies": [
            {
                "increases": [
                    {
                        "kind": change.kind,
                        "name": change.name,
                        "flavor": change.key.flavor,
                        "resource": change.key.resource,
                        "field": change.field,
                        "amount": show(change.key, change.amount),
                        "value": show(change.key, change.value),
                    }
                    for change in each.increases
                ],
                "endings": list(each.endings),
                "isWaiting": each.is_waiting,
            }
            for each in explanation.remedies
        ],
    }
