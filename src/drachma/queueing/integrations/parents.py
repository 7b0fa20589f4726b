"""Deployment, StatefulSet and LeaderWorkerSet: kinds that are queued through their pods.

Their pod templates name the parent in an annotation, so that the webhook of pods gates every pod. The pods of a
Deployment are queued one by one. The pods of a StatefulSet, and of each replica of a LeaderWorkerSet, are a group whose
workload exists before them; :mod:`podgroup` starts and stops the group.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final, NamedTuple

from drachma.queueing.configuration import frameworks
from drachma.queueing.configuration.frameworks import GroupVersionKind
from drachma.queueing.configuration.gates import Gate, Gates
from drachma.queueing.integrations import pods
from drachma.queueing.jobs import ancestry, construction, topologyrequest
from drachma.queueing.jobs.interface import Document
from drachma.queueing.jobs.settings import PRIORITY_LABEL, QUEUE_LABEL
from drachma.queueing.jobs.suspendable import JobDocument
from drachma.queueing.jobs.templatejob import Path, get_path, put_path
from drachma.queueing.kinds import multikueue
from drachma.queueing.topology import ungating
from drachma.queueing.workloads import podsetinfo

MOST_REPLICAS: Final = 1_000_000
SET_NAME: Final = "leaderworkerset.sigs.k8s.io/name"
"""Label of pods and StatefulSets with the name of their LeaderWorkerSet."""

_LEADER: Final = "leader"
_WORKER: Final = "worker"
_GROUP_INDEX: Final = "leaderworkerset.sigs.k8s.io/group-index"
_WORKER_INDEX: Final = "leaderworkerset.sigs.k8s.io/worker-index"
_LEADER_NAME: Final = "leaderworkerset.sigs.k8s.io/leader-name"
_SET_PREFIX: Final = "leaderworkerset.sigs.k8s.io"
_POD_INDEX: Final = "apps.kubernetes.io/pod-index"
_REVISION: Final = "controller-revision-hash"


class WorkloadKey(NamedTuple):
    """A workload of a parent: its name, and the replica that it is for."""

    name: str
    replica: int | None = None


class PodParent(JobDocument, ABC):
    """An object whose pods are queued."""

    kind: ClassVar[GroupVersionKind]
    framework: ClassVar[str]
    """Name of the kind in configurations, which is also the value of the annotation of its pods."""

    def __init__(self, document: Document) -> None:
        self.document = document

    @property
    def replicas(self) -> int:
        replicas = self.spec.get("replicas")
        return 1 if replicas is None else int(replicas)

    @property
    def is_suspended(self) -> bool:
        """True if no replica is ready."""
        return not self.status.get("readyReplicas")

    @property
    def template_paths(self) -> Sequence[Path]:
        """Places of the pod templates in the spec."""
        return (("template",),)

    @property
    def is_of_another_parent(self) -> bool:
        """True if the pods are queued as those of another kind."""
        return False

    def completed(self, gates: Gates) -> Document:
        """Return the object with pod templates whose pods are gated."""
        spec = self.spec
        for path in self.template_paths:
            spec = put_path(spec, path, self._completed_template(path, get_path(spec, path), gates))
        return {**self.document, "spec": spec}

    @abstractmethod
    def _completed_template(self, path: Path, template: Document, gates: Gates) -> Document:
        """Return a pod template with the annotations and labels that its pods need."""

    def _queue_labels(self) -> dict[str, str]:
        names = (QUEUE_LABEL, PRIORITY_LABEL)
        return {name: self.labels[name] for name in names if self.labels.get(name)}


class Deployment(PodParent):
    """A Deployment. Each of its pods has a workload of its own."""

    kind: ClassVar = frameworks.KINDS[frameworks.DEPLOYMENT]
    framework: ClassVar = frameworks.DEPLOYMENT

    def _completed_template(self, path: Path, template: Document, gates: Gates) -> Document:
        labels = {pods.FINALIZER: "true", **self._queue_labels()}
        return _with_metadata(template, labels=labels, annotations={pods.PARENT: self.framework})


class GroupParent(PodParent):
    """A parent with a workload for all of its pods, or for the pods of each replica."""

    @abstractmethod
    def workload_keys(self, gates: Gates) -> Sequence[WorkloadKey]:
        """Return the workloads that the parent needs."""

    copies_labels: ClassVar[bool]
    """True if workloads get the labels that the configuration names."""

    @abstractmethod
    def pod_sets(self, gates: Gates) -> list[dict[str, Any]]:
        """Return the pod sets of a workload. Raises errors.InvalidValueError for wrong annotations."""

    @abstractmethod
    def completed_pod(self, pod: Document, gates: Gates) -> Document:
        """Return a pod as a member of its group, with the queue of the parent."""

    @staticmethod
    @abstractmethod
    def parent_name(pod_metadata: Document) -> str:
        """Return the name of the parent of a pod, or an empty text."""

    @property
    def is_copy(self) -> bool:
        """True if another cluster dispatched the parent, and its workloads, to this one."""
        return multikueue.ORIGIN in self.labels

    def workload_name(self, gates: Gates, index: str = "") -> str:
        """Return the name of a workload and of its group of pods."""
        name = f"{self.name}-{index}" if index else self.name
        uid = self.annotations.get(multikueue.ORIGIN_UID, self.uid) if self.is_copy else self.uid
        return construction.workload_name(name, uid=uid, kind=self.kind, gates=gates)


class StatefulSet(GroupParent):
    """A StatefulSet. All of its pods are one group, which is admitted before they exist."""

    kind: ClassVar = frameworks.KINDS[frameworks.STATEFUL_SET]
    framework: ClassVar = frameworks.STATEFUL_SET
    copies_labels: ClassVar = False

    @property
    def is_of_another_parent(self) -> bool:
        """True if the template names another kind, such as the LeaderWorkerSet that the set was made for."""
        annotations = _template_metadata(self.spec.get("template"), "annotations")
        return annotations.get(pods.PARENT, self.framework) != self.framework

    def workload_keys(self, gates: Gates) -> Sequence[WorkloadKey]:
        return [WorkloadKey(self.workload_name(gates))]

    def _completed_template(self, path: Path, template: Document, gates: Gates) -> Document:
        return _with_metadata(template, labels={}, annotations={pods.PARENT: self.framework})

    def pod_sets(self, gates: Gates) -> list[dict[str, Any]]:
        template = self.spec.get("template") or {}
        return [_pod_set(podsetinfo.DEFAULT_POD_SET, self.replicas, template, gates, _POD_INDEX, with_metadata=False)]

    def completed_pod(self, pod: Document, gates: Gates) -> Document:
        group = self.workload_name(gates)
        metadata = pod["metadata"]
        present = pods.group_name(metadata.get("labels") or {}, metadata.get("annotations") or {}, gates)
        if present == group:
            queue = self.labels.get(QUEUE_LABEL)
            return _with_metadata(pod, labels={QUEUE_LABEL: queue} if queue else {}, annotations={})
        annotations = {
            pods.TOTAL: str(self.replicas),
            pods.FAST: "true",
            pods.SERVING: "true",
            pods.INDEX_LABEL_ANNOTATION: _POD_INDEX,
            pods.ROLE: podsetinfo.DEFAULT_POD_SET,
        }
        return _add_to_group(pod, group, gates, labels=self._queue_labels(), annotations=annotations)

    @staticmethod
    def parent_name(pod_metadata: Document) -> str:
        owner = ancestry.controller({"metadata": pod_metadata}) or {}
        is_set = (owner.get("apiVersion"), owner.get("kind")) == ("apps/v1", "StatefulSet")
        return str(owner["name"]) if is_set else ""


class LeaderWorkerSet(GroupParent):
    """A LeaderWorkerSet. The pods of each replica are one group."""

    kind: ClassVar = frameworks.KINDS[frameworks.LEADER_WORKER_SET]
    framework: ClassVar = frameworks.LEADER_WORKER_SET
    copies_labels: ClassVar = True

    @property
    def _template(self) -> Document:
        return self.spec.get("leaderWorkerTemplate") or {}

    @property
    def size(self) -> int:
        """Number of pods of a replica."""
        size = self._template.get("size")
        return 1 if size is None else int(size)

    @property
    def template_paths(self) -> Sequence[Path]:
        leader = [("leaderWorkerTemplate", "leaderTemplate")] if self._template.get("leaderTemplate") else []
        return [*leader, ("leaderWorkerTemplate", "workerTemplate")]

    def workload_keys(self, gates: Gates) -> Sequence[WorkloadKey]:
        count = self.replicas
        # Replicas beyond the spec are new ones of a rolling update. After a scale-down the status lags behind.
        if self._is_surging and int(self.status.get("replicas") or 0) > count:
            count = int(self.status["replicas"])
        return [WorkloadKey(self.workload_name(gates, str(index)), index) for index in range(count)]

    @property
    def _is_surging(self) -> bool:
        rolling = (self.spec.get("rolloutStrategy") or {}).get("rollingUpdateConfiguration")
        surge = (rolling or {}).get("maxSurge") or 0
        has_surge = isinstance(surge, int) and surge > 0
        return has_surge and int(self.status.get("updatedReplicas") or 0) < self.replicas

    def _completed_template(self, path: Path, template: Document, gates: Gates) -> Document:
        annotations = {pods.PARENT: self.framework, pods.SERVING: "true"}
        has_leader = len(self.template_paths) > 1
        is_worker = path[-1] == "workerTemplate" and has_leader
        is_grouped = topologyrequest.GROUP_NAME in _template_metadata(template, "annotations")
        if gates.on(Gate.TAS) and is_worker and not is_grouped:
            annotations[ungating.INDEX_OFFSET] = "1"
        return _with_metadata(template, labels=self._queue_labels(), annotations=annotations)

    def pod_sets(self, gates: Gates) -> list[dict[str, Any]]:
        workers = self._template.get("workerTemplate") or {}
        leader = self._template.get("leaderTemplate")
        if not leader:
            return [_pod_set(podsetinfo.DEFAULT_POD_SET, self.size, workers, gates, _WORKER_INDEX)]
        return [
            _pod_set(_LEADER, 1, leader, gates),
            _pod_set(_WORKER, self.size - 1, workers, gates, _WORKER_INDEX),
        ]

    def completed_pod(self, pod: Document, gates: Gates) -> Document:
        labels = pod["metadata"].get("labels") or {}
        queue = self.labels.get(QUEUE_LABEL)
        queue_label = {QUEUE_LABEL: queue} if queue and pods.is_gated(pod) else {}
        if pods.FINALIZER in labels:
            return _with_metadata(pod, labels=queue_label, annotations={})
        if _GROUP_INDEX not in labels:
            return pod
        role = podsetinfo.DEFAULT_POD_SET
        if self._template.get("leaderTemplate"):
            role = _WORKER if _LEADER_NAME in (pod["metadata"].get("annotations") or {}) else _LEADER
        annotations = {pods.TOTAL: str(self.size), pods.ROLE: role}
        group = self.workload_name(gates, labels[_GROUP_INDEX])
        return _add_to_group(pod, group, gates, labels=queue_label, annotations=annotations)

    @staticmethod
    def parent_name(pod_metadata: Document) -> str:
        return str((pod_metadata.get("labels") or {}).get(SET_NAME, ""))


def is_outdated(pod: Document, stateful_set: Document) -> bool:
    """Return True if a pod has the old revision of a StatefulSet that is being updated."""
    status = stateful_set.get("status") or {}
    current, updated = status.get("currentRevision", ""), status.get("updateRevision", "")
    return bool(current != updated and current == (pod["metadata"].get("labels") or {}).get(_REVISION, ""))


def _pod_set(
    name: str,
    count: int,
    template: Document,
    gates: Gates,
    index_label: str | None = None,
    *,
    with_metadata: bool = True,
) -> dict[str, Any]:
    metadata = {
        field: {key: value for key, value in values.items() if not _is_dropped(key)}
        for field, values in (template.get("metadata") or {}).items()
        if isinstance(values, Mapping)
    }
    metadata = {field: values for field, values in metadata.items() if values and with_metadata}
    part = {"metadata": metadata} if metadata else {}
    pod_set: dict[str, Any] = {
        "name": name,
        "count": count,
        "template": podsetinfo.sanitized({**part, "spec": template.get("spec") or {}}),
    }
    if gates.on(Gate.TAS):
        annotations = _template_metadata(template, "annotations")
        pod_set["topologyRequest"] = topologyrequest.build(annotations, gates, index_label=index_label)
    return pod_set


def _is_dropped(key: str) -> bool:
    """Return True for labels and annotations of LeaderWorkerSets that differ between replicas."""
    return key.startswith(_SET_PREFIX) and key != SET_NAME


def _template_metadata(template: Document | None, field: str) -> Mapping[str, str]:
    return ((template or {}).get("metadata") or {}).get(field) or {}


def _add_to_group(
    pod: Document, group: str, gates: Gates, *, labels: Mapping[str, str], annotations: Mapping[str, str]
) -> Document:
    """Return a pod as a member of a group whose workload exists."""
    names = {pods.GROUP: group, construction.PREBUILT: group}
    is_annotated = gates.on(Gate.WORKLOAD_IDENTIFIER_ANNOTATIONS)
    return _with_metadata(
        pod,
        labels={pods.FINALIZER: "true", **labels, **({} if is_annotated else names)},
        annotations={**annotations, **(names if is_annotated else {})},
    )


def _with_metadata(document: Document, *, labels: Mapping[str, str], annotations: Mapping[str, str]) -> Document:
    """Return an object or pod template with further labels and annotations."""
    metadata = dict(document.get("metadata") or {})
    for field, added in (("labels", labels), ("annotations", annotations)):
        if added:
            metadata[field] = {**(metadata.get(field) or {}), **added}
    return {**document, "metadata": metadata} if metadata != (document.get("metadata") or {}) else document
