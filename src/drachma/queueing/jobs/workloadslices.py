"""Workload slices: elastic jobs change how many pods they have without being stopped.

A slice is a workload of such a job. There are two while a larger one waits to take the place of the one that runs;
pods beyond those of the one that runs are held back by a gate until then (:mod:`elasticpods`). All
slices of a job that follow each other have the name of the first one, which their pods have too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Final, NamedTuple, TypeAlias

from drachma import errors
from drachma.queueing.admission import preemption
from drachma.queueing.configuration.gates import Gate, Gates
from drachma.queueing.jobs.jobworkload import QueuedJob, WorkloadRecord
from drachma.queueing.kinds import workload
from drachma.queueing.workloads import workloadstate

Counts: TypeAlias = Mapping[str, int]
"""How many pods there are, by pod set."""

_BEGINNING: Final = datetime.min.replace(tzinfo=UTC)


class Retired(NamedTuple):
    """A slice that is over, and why."""

    record: WorkloadRecord
    reason: str
    message: str


class TooManySlicesError(errors.DrachmaError):
    """There are more slices than one that runs and one that replaces it."""


def is_elastic(job: QueuedJob, gates: Gates) -> bool:
    """Whether a job asks for slices."""
    return gates.on(Gate.ELASTIC_JOBS) and job.annotations.get(workload.ELASTIC) == "true"


def unfinished(records: Iterable[WorkloadRecord]) -> list[WorkloadRecord]:
    """Slices that are not over, the oldest first."""
    return sorted(
        (each for each in records if not workloadstate.is_finished(each.view)), key=lambda each: _age(each.view)
    )


def active(slices: Iterable[workload.Workload]) -> workload.Workload | None:
    """The latest slice that has quota and keeps it: its counts are what may run."""
    running = (
        each
        for each in slices
        if workloadstate.has_reservation(each)
        and not workloadstate.is_finished(each)
        and not workloadstate.is_evicted(each)
    )
    return max(running, key=_age, default=None)


def chosen(slices: Sequence[WorkloadRecord]) -> tuple[WorkloadRecord | None, list[Retired]]:
    """Of several slices, in their order, the one that follows the job; and those that are over.

    The one that runs and the one that is to replace it stay; the latter follows the job. Evicted ones give up quota.
    """
    replacements: dict[str, WorkloadRecord] = {}
    for each in slices:
        key = each.view.metadata.annotations.get(workload.REPLACES)
        if key is not None and not _is_evicted(each):
            rival = replacements.get(key)
            if rival is None or (_has_quota(each) and not _has_quota(rival)):
                replacements[key] = each
    staying = [each for each in slices if not _is_evicted(each)]
    running = None
    for each in staying:
        successor = replacements.get(each.key)
        if _has_quota(each) and (successor is None or not _has_quota(successor)):
            running = each
    selected = running or (staying[-1] if staying else None)
    if running is not None and (successor := replacements.get(running.key)) is not None:
        selected = successor
    retired = [
        Retired(each, preemption.SLICE_REPLACED, "Replaced to accommodate a new workload slice")
        if each.key in replacements
        else Retired(each, "OutOfSync", "The workload slice is out of sync with its parent job")
        for each in slices
        if each is not selected and each is not running
    ]
    return selected, retired


def annotations_for(name: str, slices: Sequence[WorkloadRecord]) -> dict[str, str]:
    """What a new slice says of itself, beside those that are not over.

    Raises:
        TooManySlicesError: one of them replaces another already.
    """
    made = {workload.ELASTIC: "true", workload.SLICE_NAME: name}
    if len(slices) > 1:
        raise TooManySlicesError(f"unexpected workload-slices count: {len(slices)}")
    for each in slices:
        made[workload.REPLACES] = each.key
        made[workload.SLICE_NAME] = workloadstate.slice_name(each.view)
    return made


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


def _age(of: workload.Workload) -> tuple[datetime, str]:
    return of.metadata.creation_timestamp or _BEGINNING, of.metadata.uid


def _has_quota(record: WorkloadRecord) -> bool:
    return workloadstate.has_reservation(record.view)


def _is_evicted(record: WorkloadRecord) -> bool:
    return workloadstate.is_evicted(record.view)
