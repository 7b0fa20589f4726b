"""The workload of a job: made of it, compared with it, and given its priority."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Protocol

import msgspec

from drachma import errors
from drachma.api import meta, pod
from drachma.queueing.configuration.frameworks import GroupVersionKind
from drachma.queueing.configuration.gates import Gate, Gates
from drachma.queueing.jobs import workloadnames
from drachma.queueing.jobs.jobdocument import Ending
from drachma.queueing.kinds import decoding, workload
from drachma.queueing.lifecycle.workloadreconcile import IN_USE
from drachma.queueing.workloads import podsetinfo, workloadstate
from drachma.queueing.workloads.podsetinfo import Flavors, PodSetInfo
from drachma.values import labels, names, quotation

Document = Mapping[str, Any]

API_VERSION: Final = "kueue.x-k8s.io/v1beta2"
QUEUE_LABEL: Final = "kueue.x-k8s.io/queue-name"
PRIORITY_LABEL: Final = "kueue.x-k8s.io/priority-class"
GROUP: Final = "kueue.x-k8s.io"
WORKLOAD_PRIORITY: Final = "WorkloadPriorityClass"
LIMIT_LABEL: Final = "kueue.x-k8s.io/max-exec-time-seconds"
_PROVISIONING: Final = "provreq.kueue.x-k8s.io/"
_MOST_SECONDS: Final = 2**31 - 1


class QueuedJob(Protocol):
    """Something that waits for a workload of its own."""

    @property
    def kind(self) -> GroupVersionKind: ...
    @property
    def metadata(self) -> Document: ...
    @property
    def name(self) -> str: ...
    @property
    def uid(self) -> str: ...
    @property
    def key(self) -> str: ...
    @property
    def labels(self) -> Mapping[str, str]: ...
    @property
    def annotations(self) -> Mapping[str, str]: ...
    @property
    def is_suspended(self) -> bool: ...
    @property
    def is_active(self) -> bool: ...
    @property
    def are_pods_ready(self) -> bool: ...
    @property
    def ending(self) -> Ending | None: ...
    @property
    def reclaimable_pods(self) -> Mapping[str, int]: ...

    def pod_sets(self, gates: Gates) -> list[dict[str, Any]]:
        """Its pods, as pod sets of a workload."""
        ...


class ClassMissingError(errors.DrachmaError):
    """A priority class does not exist."""


class Priorities(msgspec.Struct, frozen=True):
    """Priority classes by name: Kueue's own, and those of pods."""

    of_workloads: Mapping[str, int] = {}
    of_pods: Mapping[str, int] = {}
    defaults: Sequence[str] = ()
    """Names of those that pods without a class get; the lowest counts."""

    def of(self, job: QueuedJob, pod_sets: Sequence[Document]) -> tuple[dict[str, str] | None, int]:
        """Where a job's priority comes from, and which it is; a ClassMissingError if the class is not there."""
        name = job.labels.get(PRIORITY_LABEL, "")
        if name:
            if name not in self.of_workloads:
                raise ClassMissingError(f"workloadpriorityclasses.kueue.x-k8s.io {quotation.quote(name)} not found")
            ref = {"group": GROUP, "kind": WORKLOAD_PRIORITY, "name": name}
            return ref, self.of_workloads[name]
        named = (each.get("template", {}).get("spec", {}).get("priorityClassName") for each in pod_sets)
        name = next(filter(None, named), "") or min(self.defaults, key=lambda each: self.of_pods[each], default="")
        if not name:
            return None, 0
        if name not in self.of_pods:
            raise ClassMissingError(f"priorityclasses.scheduling.k8s.io {quotation.quote(name)} not found")
        return {"group": "scheduling.k8s.io", "kind": "PriorityClass", "name": name}, self.of_pods[name]


class WorkloadRecord(msgspec.Struct, frozen=True):
    """A workload as it is stored, and as this package sees it."""

    document: Document
    view: workload.Workload

    @classmethod
    def of(cls, document: Document) -> WorkloadRecord:
        """A stored workload."""
        return cls(document, decoding.decode(document, workload.Workload))

    @property
    def key(self) -> str:
        return workloadstate.key(self.view)

    @property
    def controller(self) -> meta.OwnerReference | None:
        """Whose workload it is."""
        return next((each for each in self.view.metadata.owner_references if each.controller), None)

    @property
    def pod_set_infos(self) -> tuple[PodSetInfo, ...]:
        """What the pods of its sets have before anything is added to them."""
        return tuple(
            podsetinfo.of_template(each.get("template", {}), name=each.get("name", ""), count=each.get("count", 0))
            for each in self._pod_sets
        )

    @property
    def _pod_sets(self) -> Sequence[Document]:
        return self.document.get("spec", {}).get("podSets") or ()

    def with_status(self, view: workload.Workload) -> WorkloadRecord:
        """With the status of a view."""
        if view is self.view:
            return self
        return WorkloadRecord.of({**self.document, "status": decoding.document(view.status)})

    def with_spec(self, **fields: Any) -> WorkloadRecord:
        """With fields of the spec set; None takes one away."""
        spec = {key: value for key, value in {**self.document["spec"], **fields}.items() if value is not None}
        return WorkloadRecord.of({**self.document, "spec": spec})

    def with_metadata(self, **fields: Any) -> WorkloadRecord:
        """With fields of the metadata set; empty ones are taken away."""
        metadata = {key: value for key, value in {**self.document["metadata"], **fields}.items() if value}
        return WorkloadRecord.of({**self.document, "metadata": metadata})

    def without_finalizer(self) -> WorkloadRecord:
        """Free to go."""
        finalizers = self.view.metadata.finalizers
        return self.with_metadata(finalizers=[each for each in finalizers if each != IN_USE])

    def owned_by(self, job: QueuedJob) -> WorkloadRecord:
        """As the workload of a job."""
        metadata = self.document["metadata"]
        labels_after = dict(metadata.get("labels") or {})
        if not names.label_value(job.uid):
            labels_after[workload.JOB_UID_LABEL] = job.uid
        owner = {**reference(job.kind, job.metadata), "controller": True, "blockOwnerDeletion": True}
        owners = [*(metadata.get("ownerReferences") or ()), owner]
        return self.with_metadata(labels=labels_after, ownerReferences=owners)


def make(
    job: QueuedJob,
    *,
    name: str = "",
    priorities: Priorities,
    gates: Gates,
    label_keys: Iterable[str] = (),
    annotation_keys: Iterable[str] = (),
) -> WorkloadRecord:
    """The workload that a job is to have, owned by nobody yet.

    Raises ClassMissingError if its priority class is not there, and InvalidValueError if annotations are wrong.
    """
    pod_sets = job.pod_sets(gates)
    copied = frozenset(annotation_keys) if gates.on(Gate.CUSTOM_METRIC_LABELS) else frozenset()
    annotations = {
        key: value for key, value in job.annotations.items() if key.startswith(_PROVISIONING) or key in copied
    }
    if gates.on(Gate.ADMISSION_GATED_BY) and job.annotations.get(workload.ADMISSION_GATES):
        annotations[workload.ADMISSION_GATES] = job.annotations[workload.ADMISSION_GATES]
    ref, priority = priorities.of(job, pod_sets)
    spec: dict[str, Any] = {"podSets": pod_sets, "priority": priority}
    if queue := job.labels.get(QUEUE_LABEL):
        spec["queueName"] = queue
    if ref is not None:
        spec["priorityClassRef"] = ref
    limit = seconds_limit(job)
    if limit is not None:
        spec["maximumExecutionTimeSeconds"] = limit
    metadata = {
        "name": name or workloadnames.for_owner(job.name, uid=job.uid, kind=job.kind, gates=gates),
        "namespace": job.metadata.get("namespace", ""),
        "finalizers": [IN_USE],
        "labels": {key: job.labels[key] for key in label_keys if key in job.labels},
        "annotations": annotations,
    }
    document = {"apiVersion": API_VERSION, "kind": "Workload", "metadata": metadata, "spec": spec}
    return WorkloadRecord.of(document)


def seconds_limit(job: QueuedJob) -> int | None:
    """How long a job may run, if it says so."""
    seconds = labels.parse_int64(job.labels.get(LIMIT_LABEL, ""))
    return seconds if seconds is not None and 0 < seconds <= _MOST_SECONDS else None


def is_equivalent(job: QueuedJob, record: WorkloadRecord, *, flavors: Flavors, gates: Gates) -> bool:
    """Whether a workload is that of a job as the job is now, running or held back."""
    owner = record.controller
    if owner is None or owner.name != job.name:
        return False
    if gates.on(Gate.FINISH_ORPHANED_WORKLOADS) and owner.uid != job.uid:
        return False
    if record.view.spec.maximum_execution_time_seconds != seconds_limit(job):
        return False
    asked = job.pod_sets(gates)
    with_tolerations = not workloadstate.is_admitted(record.view)
    waiting: Sequence[Document] = record.document.get("spec", {}).get("podSets") or ()
    running = _running(record, waiting, flavors=flavors, gates=gates)
    if running is None:
        return _alike(asked, waiting, with_tolerations=with_tolerations)
    return _alike(asked, running, with_tolerations=with_tolerations) or (
        job.is_suspended and _alike(asked, waiting, with_tolerations=with_tolerations)
    )


def _running(
    record: WorkloadRecord, pod_sets: Sequence[Document], *, flavors: Flavors, gates: Gates
) -> list[Document] | None:
    """The pod sets as they are while they run; None if they cannot."""
    if not workloadstate.has_reservation(record.view):
        return None
    try:
        infos = {each.name: each for each in podsetinfo.of_admission(record.view, flavors, gates)}
        running: list[Document] = []
        for pod_set in pod_sets:
            info = infos[pod_set["name"]]
            after = {**pod_set, "template": info.applied(pod_set.get("template", {}))}
            if pod_set.get("minCount") is not None and workloadstate.can_be_partial(record.view):
                after["count"] = info.count
            running.append(after)
    except (KeyError, podsetinfo.PodSetConflictError, podsetinfo.FlavorMissingError):
        return None
    return running


def _alike(one: Sequence[Document], other: Sequence[Document], *, with_tolerations: bool) -> bool:
    return len(one) == len(other) and all(
        _shape(mine, with_tolerations=with_tolerations) == _shape(yours, with_tolerations=with_tolerations)
        for mine, yours in zip(one, other, strict=True)
    )


def _shape(pod_set: Document, *, with_tolerations: bool) -> tuple[Any, ...]:
    """What two pod sets have to have in common; quantities compare as amounts."""
    spec = pod_set.get("template", {}).get("spec", {})
    containers = [
        (
            _compact({key: value for key, value in container.items() if key != "resources"}),
            decoding.decode(container.get("resources") or {}, pod.ResourceRequirements),
        )
        for field in ("initContainers", "containers")
        for container in ({"field": field}, *(spec.get(field) or ()))
    ]
    tolerations = _compact(spec.get("tolerations") or []) if with_tolerations else None
    return pod_set.get("count", 0), pod_set.get("minCount"), tolerations, containers


def _compact(value: Any) -> Any:
    """Without what is empty, which may or may not be written."""
    if isinstance(value, Mapping):
        slim = {key: _compact(item) for key, item in value.items()}
        return {key: item for key, item in slim.items() if item not in ("", None, [], {})}
    if isinstance(value, list | tuple):
        return [_compact(item) for item in value]
    return value


def reference(kind: GroupVersionKind, metadata: Document) -> dict[str, Any]:
    """How an owner is named in what it owns."""
    return {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "name": metadata["name"],
        "uid": metadata.get("uid", ""),
    }
