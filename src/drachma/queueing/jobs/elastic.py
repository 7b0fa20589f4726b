"""Elastic jobs, which change their number of pods without being stopped: workload slices and gated pods.

A slice is one of the workloads of an elastic job. There are two while a larger slice waits to replace the running one.
All slices that follow each other carry the name of the first, and so do their pods. New pods of a larger job have a
scheduling gate, which is removed as far as the running slice has quota for them.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple, TypeAlias

from drachma import errors
from drachma.api import pod
from drachma.queueing.admission import preemption
from drachma.queueing.configuration.gates import Gate, Gates
from drachma.queueing.kinds import workload
from drachma.queueing.workloads import podsetinfo, workloadstate

Document: TypeAlias = Mapping[str, Any]
Counts: TypeAlias = Mapping[str, int]
"""Number of pods by pod set."""

GATE: Final = "kueue.x-k8s.io/elastic-job"

_TERMINATED: Final = ("Succeeded", "Failed")
_BEGINNING: Final = datetime.min.replace(tzinfo=UTC)


class RetiredSlice(NamedTuple):
    """A slice to finish, with the reason and message of its Finished condition."""

    workload: workload.Workload
    reason: str
    message: str


class TooManySlicesError(errors.DrachmaError):
    """A job has more slices than a running one and its replacement."""


def is_elastic(annotations: Mapping[str, str], gates: Gates) -> bool:
    """Return True if the annotations of a job ask for slices."""
    return gates.on(Gate.ELASTIC_JOBS) and annotations.get(workload.ELASTIC) == "true"


# Slices


def unfinished(slices: Iterable[workload.Workload]) -> list[workload.Workload]:
    """Return the slices that are not finished, oldest first."""
    return sorted((each for each in slices if not workloadstate.is_finished(each)), key=_age)


def active(slices: Iterable[workload.Workload]) -> workload.Workload | None:
    """Return the latest slice that holds quota and keeps it; its counts limit the pods that may run."""
    candidates = (
        each
        for each in slices
        if workloadstate.has_reservation(each)
        and not workloadstate.is_finished(each)
        and not workloadstate.is_evicted(each)
    )
    return max(candidates, key=_age, default=None)


def select_slice(slices: Sequence[workload.Workload]) -> tuple[workload.Workload | None, list[RetiredSlice]]:
    """Return the slice that follows the job, and the slices to finish; ``slices`` are ordered by age.

    The running slice and its replacement stay, and the replacement follows the job. Evicted slices give up their quota.
    """
    replacements: dict[str, workload.Workload] = {}
    for each in slices:
        key = each.metadata.annotations.get(workload.REPLACES)
        if key is not None and not workloadstate.is_evicted(each):
            rival = replacements.get(key)
            if rival is None or (workloadstate.has_reservation(each) and not workloadstate.has_reservation(rival)):
                replacements[key] = each
    staying = [each for each in slices if not workloadstate.is_evicted(each)]
    running_slice = None
    for each in staying:
        successor = replacements.get(workloadstate.key(each))
        if workloadstate.has_reservation(each) and (successor is None or not workloadstate.has_reservation(successor)):
            running_slice = each
    selected = running_slice or (staying[-1] if staying else None)
    if running_slice is not None and (successor := replacements.get(workloadstate.key(running_slice))) is not None:
        selected = successor
    retired = [
        RetiredSlice(each, preemption.SLICE_REPLACED, "Replaced to accommodate a new workload slice")
        if workloadstate.key(each) in replacements
        else RetiredSlice(each, "OutOfSync", "The workload slice is out of sync with its parent job")
        for each in slices
        if each is not selected and each is not running_slice
    ]
    return selected, retired


def slice_annotations(name: str, slices: Sequence[workload.Workload]) -> dict[str, str]:
    """Return the annotations of a new slice next to the unfinished ``slices`` of its job.

    Raises:
        TooManySlicesError: one of the slices replaces another already.
    """
    annotations = {workload.ELASTIC: "true", workload.SLICE_NAME: name}
    if len(slices) > 1:
        raise TooManySlicesError(f"unexpected workload-slices count: {len(slices)}")
    for each in slices:
        annotations[workload.REPLACES] = workloadstate.key(each)
        annotations[workload.SLICE_NAME] = workloadstate.slice_name(each)
    return annotations


def job_counts(pod_sets: Iterable[Document]) -> Counts:
    """Return the counts that a job requests, from its pod sets."""
    return {each["name"]: each.get("count", 0) for each in pod_sets}


def slice_counts(wl: workload.Workload) -> Counts:
    """Return the counts of a slice."""
    return {each.name: each.count for each in wl.spec.pod_sets}


def is_smaller(new: Counts, old: Counts) -> bool:
    """Return True if some pod sets have fewer pods and none has more."""
    return new != old and all(count <= old.get(name, 0) for name, count in new.items())


def _age(wl: workload.Workload) -> tuple[datetime, str]:
    return wl.metadata.creation_timestamp or _BEGINNING, wl.metadata.uid


# Pods


def slice_name(subject: pod.Pod) -> str:
    """Return the slice name that a pod carries, or an empty text if it belongs to no slice."""
    annotations = subject.metadata.annotations
    return annotations.get(workload.SLICE_NAME) or annotations.get(podsetinfo.WORKLOAD_ANNOTATION, "")


def is_gated(subject: pod.Pod) -> bool:
    """Return True if a pod has the gate of elastic jobs."""
    return any(each.name == GATE for each in subject.spec.scheduling_gates)


def with_gate(template: Document) -> Document:
    """Return a pod template with the gate of elastic jobs."""
    spec = template.get("spec", {})
    gates = spec.get("schedulingGates") or []
    if any(each.get("name") == GATE for each in gates):
        return template
    return {**template, "spec": {**spec, "schedulingGates": [*gates, {"name": GATE}]}}


def pods_to_ungate(wl: workload.Workload, pods: Iterable[pod.Pod]) -> list[pod.Pod]:
    """Return the gated pods that a workload has quota for, by name; pods that run count first."""
    room = Counter({each.name: int(each.count) for each in wl.spec.pod_sets})
    gated: defaultdict[str, list[pod.Pod]] = defaultdict(list)
    for each in pods:
        name = each.metadata.labels.get(podsetinfo.POD_SET_LABEL, "")
        if each.status.phase in _TERMINATED:
            continue
        if is_gated(each):
            gated[name].append(each)
        else:
            room[name] -= 1
    return [
        each
        for name, pod_set_pods in sorted(gated.items())
        for each in sorted(pod_set_pods, key=lambda each: each.metadata.name)[: max(room[name], 0)]
    ]
