"""Workloads of jobs: their names, their construction from a job, and their comparison with it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from drachma.api import pod
from drachma.queueing.configuration.frameworks import GroupVersionKind
from drachma.queueing.configuration.gates import DEFAULT, Gate, Gates
from drachma.queueing.jobs.interface import (
    ConstructedWorkload,
    GenericJob,
    Session,
    WorkloadSource,
    controller_of,
    owner_reference,
    with_metadata,
)
from drachma.queueing.jobs.settings import QUEUE_LABEL
from drachma.queueing.kinds import decoding, workload
from drachma.queueing.lifecycle.workloadreconcile import IN_USE
from drachma.queueing.workloads import podsetinfo, workloadstate
from drachma.values import labels, names

Document: TypeAlias = Mapping[str, Any]

PREBUILT: Final = "kueue.x-k8s.io/prebuilt-workload-name"
"""Label or annotation with which a job names a workload that the user created for it."""
LIMIT_LABEL: Final = "kueue.x-k8s.io/max-exec-time-seconds"

_HASH_LENGTH: Final = 5
_PROVISIONING: Final = "provreq.kueue.x-k8s.io/"
_MAX_SECONDS: Final = 2**31 - 1


# Names


def workload_name(
    name: str, *, uid: str, kind: GroupVersionKind, gates: Gates = DEFAULT, generation: int | None = None
) -> str:
    """Return the name of an owner's workload, which fits into a label value unless the gate for that is off.

    Elastic jobs have a workload for each ``generation``.
    """
    longest = names.LABEL_LENGTH if gates.on(Gate.SHORT_WORKLOAD_NAMES) else names.SUBDOMAIN_LENGTH
    prefix = f"{kind.kind.lower()}-{name}"[: longest - 1 - _HASH_LENGTH]
    identity = [kind.kind, kind.group, name, uid]
    if generation is not None:
        identity.append(str(generation))
    digest = hashlib.sha1("\n".join(identity).encode(), usedforsecurity=False).hexdigest()
    return f"{prefix}-{digest[:_HASH_LENGTH]}"


def prebuilt_name(job_labels: Mapping[str, str], annotations: Mapping[str, str], gates: Gates) -> str:
    """Return the name of a job's prebuilt workload, or an empty text if it names none."""
    label, annotation = job_labels.get(PREBUILT, ""), annotations.get(PREBUILT, "")
    if gates.on(Gate.WORKLOAD_IDENTIFIER_ANNOTATIONS):
        return annotation or label
    return label or (annotation if len(annotation) > names.LABEL_LENGTH else "")


# Construction


def construct(
    job: WorkloadSource,
    session: Session,
    *,
    name: str,
    label_keys: Iterable[str] = (),
    annotation_keys: Iterable[str] = (),
) -> ConstructedWorkload:
    """Return a workload for a job, without an owner.

    Raises:
        ClassMissingError: the job's priority class does not exist.
        errors.InvalidValueError: an annotation of the job has a wrong value.
    """
    gates = session.gates
    pod_sets = job.pod_sets(gates)
    copied = frozenset(annotation_keys) if gates.on(Gate.CUSTOM_METRIC_LABELS) else frozenset()
    annotations = {
        key: value for key, value in job.annotations.items() if key.startswith(_PROVISIONING) or key in copied
    }
    if gates.on(Gate.ADMISSION_GATED_BY) and job.annotations.get(workload.ADMISSION_GATES):
        annotations[workload.ADMISSION_GATES] = job.annotations[workload.ADMISSION_GATES]
    class_ref, priority = session.environment.priorities.resolve(job.labels, pod_sets, pod_class=job.pod_priority_class)
    metadata = {
        "name": name,
        "namespace": job.namespace,
        "finalizers": [IN_USE],
        "labels": {key: job.labels[key] for key in label_keys if key in job.labels},
        "annotations": annotations,
    }
    spec = {
        "podSets": pod_sets,
        "priority": priority,
        "queueName": job.labels.get(QUEUE_LABEL, ""),
        "priorityClassRef": class_ref,
        "maximumExecutionTimeSeconds": seconds_limit(job),
    }
    present = {
        "metadata": {name: value for name, value in metadata.items() if value},
        "spec": {name: value for name, value in spec.items() if value not in ("", None)},
    }
    wl = decoding.decode(present, workload.Workload)
    return ConstructedWorkload(wl, pod_sets)


def with_controller(wl: workload.Workload, job: GenericJob) -> workload.Workload:
    """Return a workload with a job as its controlling owner."""
    labels_after = dict(wl.metadata.labels)
    if not names.label_value(job.uid):
        labels_after[workload.JOB_UID_LABEL] = job.uid
    owner = owner_reference(job.kind, job.metadata, is_controller=True)
    return with_metadata(wl, labels=labels_after, owner_references=(*wl.metadata.owner_references, owner))


def seconds_limit(job: WorkloadSource) -> int | None:
    """Return the maximum execution time that a job's label sets, if any."""
    seconds = labels.parse_int64(job.labels.get(LIMIT_LABEL, ""))
    return seconds if seconds is not None and 0 < seconds <= _MAX_SECONDS else None


# Comparison


def is_equivalent(job: GenericJob, wl: workload.Workload, session: Session) -> bool:
    """Return True if a workload belongs to a job and has its pod sets, as they run or as they wait."""
    owner = controller_of(wl)
    if owner is None or owner.name != job.name:
        return False
    if session.gates.on(Gate.FINISH_ORPHANED_WORKLOADS) and owner.uid != job.uid:
        return False
    if wl.spec.maximum_execution_time_seconds != seconds_limit(job):
        return False
    job_sets = job.pod_sets(session.gates)
    waiting_sets = session.pod_sets(wl)
    with_tolerations = not workloadstate.is_admitted(wl)
    running_sets = _running_pod_sets(wl, waiting_sets, session)
    if running_sets is None:
        return _are_equal(job_sets, waiting_sets, with_tolerations=with_tolerations)
    return _are_equal(job_sets, running_sets, with_tolerations=with_tolerations) or (
        job.is_suspended and _are_equal(job_sets, waiting_sets, with_tolerations=with_tolerations)
    )


def _running_pod_sets(wl: workload.Workload, pod_sets: Sequence[Document], session: Session) -> list[Document] | None:
    """Return the pod sets with the changes of admission, or None if the workload cannot run with them."""
    if not workloadstate.has_reservation(wl):
        return None
    try:
        admitted = podsetinfo.admission_infos(wl, session.environment.flavors, session.gates)
        infos = {each.name: each for each in admitted}
        running_sets: list[Document] = []
        for pod_set in pod_sets:
            info = infos[pod_set["name"]]
            after = {**pod_set, "template": info.applied(pod_set.get("template", {}))}
            if pod_set.get("minCount") is not None and workloadstate.can_be_partial(wl):
                after["count"] = info.count
            running_sets.append(after)
    except (KeyError, podsetinfo.PodSetConflictError, podsetinfo.FlavorMissingError):
        return None
    return running_sets


def _are_equal(one: Sequence[Document], other: Sequence[Document], *, with_tolerations: bool) -> bool:
    return len(one) == len(other) and all(
        _comparable(mine, with_tolerations=with_tolerations) == _comparable(yours, with_tolerations=with_tolerations)
        for mine, yours in zip(one, other, strict=True)
    )


def _comparable(pod_set: Document, *, with_tolerations: bool) -> tuple[Any, ...]:
    """Return the parts of a pod set that must be equal; quantities compare as amounts."""
    spec = pod_set.get("template", {}).get("spec", {})
    containers = [
        (
            _without_empty({key: value for key, value in container.items() if key != "resources"}),
            decoding.decode(container.get("resources") or {}, pod.ResourceRequirements),
        )
        for field in ("initContainers", "containers")
        for container in ({"field": field}, *(spec.get(field) or ()))
    ]
    tolerations = _without_empty(spec.get("tolerations") or []) if with_tolerations else None
    return pod_set.get("count", 0), pod_set.get("minCount"), tolerations, containers


def _without_empty(value: Any) -> Any:
    """Return a value without empty fields, which may or may not be written."""
    if isinstance(value, Mapping):
        slim = {key: _without_empty(item) for key, item in value.items()}
        return {key: item for key, item in slim.items() if item not in ("", None, [], {})}
    if isinstance(value, list | tuple):
        return [_without_empty(item) for item in value]
    return value
