"""Workload slices: elastic jobs may change how many pods they have without waiting in their queue again.

A slice is a workload of such a job. There are two while a larger one waits to take the place of one that runs. What a
job and its slices have in common is counted here, whoever makes and finishes them.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from typing import TypeAlias

from drachma.queueing import workloadstate
from drachma.queueing.gates import Gate, Gates
from drachma.queueing.jobworkload import QueuedJob, WorkloadRecord
from drachma.queueing.kinds import workload

Counts: TypeAlias = Mapping[str, int]
"""How many pods there are, by pod set."""


def is_elastic(job: QueuedJob, gates: Gates) -> bool:
    """Whether a job asks for slices."""
    return gates.on(Gate.ELASTIC_JOBS) and job.annotations.get(workload.ELASTIC) == "true"


def unfinished(records: Iterable[WorkloadRecord]) -> list[WorkloadRecord]:
    """Slices that are not over, the oldest first; of two of one second that which the other replaces."""
    return sorted(
        (each for each in records if not workloadstate.is_finished(each.view)), key=functools.cmp_to_key(_compare)
    )


def _compare(one: WorkloadRecord, other: WorkloadRecord) -> int:
    mine, yours = one.view.metadata.creation_timestamp, other.view.metadata.creation_timestamp
    if mine != yours:
        return -1 if mine is None or (yours is not None and mine < yours) else 1
    return -1 if other.view.metadata.annotations.get(workload.REPLACES) == one.key else 1


def counts_of(job: QueuedJob, gates: Gates) -> Counts:
    """What a job asks for."""
    return {each["name"]: each.get("count", 0) for each in job.pod_sets(gates)}


def counts_in(record: WorkloadRecord) -> Counts:
    """What a slice has."""
    return {each.name: each.count for each in record.view.spec.pod_sets}


def is_smaller(new: Counts, old: Counts) -> bool:
    """Whether some pod sets have fewer pods, and none has more."""
    return new != old and all(count <= old.get(name, 0) for name, count in new.items())


def resized(record: WorkloadRecord, counts: Counts) -> WorkloadRecord:
    """A slice with other counts."""
    pod_sets = [{**each, "count": counts[each["name"]]} for each in record.document["spec"]["podSets"]]
    return record.with_spec(podSets=pod_sets)
