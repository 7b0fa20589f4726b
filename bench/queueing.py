"""Admission in process: cycles on 100 queues in 10 cohorts until 10,000 waiting workloads are admitted.

There are two set-ups: everything fits at once, and everything that is admitted is over before the next cycle. What one
cycle costs is shown for several numbers of queues. Nothing is written; for the whole of it see
:mod:`bench.queueload`.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

from bench.timing import table
from drachma.queueing.admission.admitter import Admitter
from drachma.queueing.kinds import clusterqueue, decoding, localqueue, resourceflavor, workload
from drachma.queueing.workloads import admissibility

_NOW = datetime(2026, 1, 1, tzinfo=UTC)
_QUEUES = 100
_COHORTS = 10
_NAMESPACE = "default"
_CYCLES = 5


def _admitter(*, nominal: str, borrowing: str | None, queues: int = _QUEUES) -> Admitter:
    quota: dict[str, Any] = {"name": "cpu", "nominalQuota": nominal}
    if borrowing is not None:
        quota["borrowingLimit"] = borrowing
    spec = {
        "namespaceSelector": {},
        "preemption": {"reclaimWithinCohort": "Any", "withinClusterQueue": "LowerPriority"},
        "resourceGroups": [{"coveredResources": ["cpu"], "flavors": [{"name": "default", "resources": [quota]}]}],
    }
    admitter = Admitter()
    admitter.set_places({_NAMESPACE: admissibility.Place()})
    admitter.set_queues(
        [
            decoding.decode(
                {"metadata": {"name": f"cq-{number}"}, "spec": {**spec, "cohortName": f"cohort-{number % _COHORTS}"}},
                clusterqueue.ClusterQueue,
            )
            for number in range(queues)
        ],
        local_queues=[
            decoding.decode(
                {
                    "metadata": {"name": f"lq-{number}", "namespace": _NAMESPACE},
                    "spec": {"clusterQueue": f"cq-{number}"},
                },
                localqueue.LocalQueue,
            )
            for number in range(queues)
        ],
        flavors=[decoding.decode({"metadata": {"name": "default"}}, resourceflavor.ResourceFlavor)],
    )
    return admitter


def _workload(number: int, *, cpu: int, priority: int, queues: int = _QUEUES) -> workload.Workload:
    container = {"name": "c", "resources": {"requests": {"cpu": str(cpu)}}}
    return decoding.decode(
        {
            "metadata": {
                "name": f"wl-{number}",
                "namespace": _NAMESPACE,
                "uid": f"uid-{number}",
                "creationTimestamp": (_NOW + timedelta(seconds=number)).isoformat(),
            },
            "spec": {
                "queueName": f"lq-{number % queues}",
                "priority": priority,
                "podSets": [{"name": "main", "count": 1, "template": {"spec": {"containers": [container]}}}],
            },
        },
        workload.Workload,
    )


def _run(name: str, admitter: Admitter, workloads: Iterable[workload.Workload], *, finishes: bool) -> tuple[str, ...]:
    for each in workloads:
        admitter.enqueue(each, _NOW)
    start, cycles, admitted, longest = time.process_time(), 0, 0, 0.0
    while True:
        began = time.process_time()
        report = admitter.run_cycle(_NOW)
        longest = max(longest, time.process_time() - began)
        over = [entry.info.key for entry in report.entries if entry.admission is not None] if report else []
        if not over:
            break
        cycles += 1
        admitted += len(over)
        if finishes:
            for key in over:
                admitter.release(key)
            for number in range(_COHORTS):
                admitter.retry([f"cq-{number}"], _NOW)
    spent = time.process_time() - start
    return name, f"{admitted:,}", f"{cycles:,}", f"{spent:.2f} s", f"{admitted / spent:,.0f}", f"{longest * 1e3:.0f} ms"


def _small(number: int) -> workload.Workload:
    return _workload(number, cpu=1, priority=50)


def _mixed(number: int) -> workload.Workload:
    kind = number * 7 % 10
    if kind < 7:
        return _small(number)
    return _workload(number, cpu=5, priority=100) if kind < 9 else _workload(number, cpu=20, priority=200)


def _cycle(queues: int) -> tuple[str, ...]:
    """What a cycle costs in which each of so many queues has somebody to admit."""
    admitter = _admitter(nominal="100000", borrowing=None, queues=queues)
    for number in range(queues * _CYCLES):
        admitter.enqueue(_workload(number, cpu=1, priority=50, queues=queues), _NOW)
    spent = []
    for _ in range(_CYCLES):
        began = time.process_time()
        admitter.run_cycle(_NOW)
        spent.append(time.process_time() - began)
    least = min(spent)
    return f"{queues:,}", f"{least * 1e3:.1f} ms", f"{least / queues * 1e6:.0f} us"


def main() -> None:
    numbers = range(10_000)
    table(
        f"admission of {len(numbers):,} workloads, {_QUEUES} queues, {_COHORTS} cohorts",
        ("set-up", "admitted", "cycles", "CPU", "per CPU s", "longest cycle"),
        [
            _run("all fits", _admitter(nominal="100000", borrowing=None), map(_small, numbers), finishes=False),
            _run("turnover", _admitter(nominal="20", borrowing="100"), map(_mixed, numbers), finishes=True),
        ],
    )
    sizes = (10, 100, 1000, 2000)
    table("one cycle that admits from every queue", ("queues", "CPU", "per queue"), [_cycle(size) for size in sizes])


if __name__ == "__main__":
    main()
