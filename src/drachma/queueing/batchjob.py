"""A Job of ``batch/v1`` as queueing sees it: held back, started with what its workload was given, stopped, over.

It is a document, of which every field is kept that is not changed here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final

import msgspec
from msgspec import structs

from drachma.queueing import frameworks, podsetinfo, topologyrequest
from drachma.queueing.gates import Gate, Gates
from drachma.queueing.podsetinfo import PodSetInfo, of_template

Document = Mapping[str, Any]

_STOPPING: Final = "kueue.x-k8s.io/stopping"
MIN_PARALLELISM: Final = "kueue.x-k8s.io/job-min-parallelism"
SYNC_COMPLETIONS: Final = "kueue.x-k8s.io/job-completions-equal-parallelism"
_INDEX_LABEL: Final = "batch.kubernetes.io/job-completion-index"
_OF_JOB_CONTROLLER: Final = (
    "job-name",
    "controller-uid",
    "batch.kubernetes.io/job-name",
    "batch.kubernetes.io/controller-uid",
)
"""Labels that the Job controller sets on templates."""
_NOT_COPIED: Final = frozenset({"job-name", "controller-uid", "batch.kubernetes.io/controller-uid"})


class Ending(msgspec.Struct, frozen=True):
    """How a job ended."""

    is_success: bool
    message: str


class BatchJob(msgspec.Struct, frozen=True):
    """One Job."""

    kind: ClassVar = frameworks.KINDS[frameworks.BATCH_JOB]

    document: Document

    @property
    def metadata(self) -> Document:
        metadata: Document = self.document.get("metadata", {})
        return metadata

    @property
    def name(self) -> str:
        return str(self.metadata.get("name", ""))

    @property
    def uid(self) -> str:
        return str(self.metadata.get("uid", ""))

    @property
    def key(self) -> str:
        return f"{self.metadata.get('namespace', '')}/{self.name}"

    @property
    def labels(self) -> Mapping[str, str]:
        return self.metadata.get("labels") or {}

    @property
    def annotations(self) -> Mapping[str, str]:
        return self.metadata.get("annotations") or {}

    @property
    def _spec(self) -> Document:
        spec: Document = self.document.get("spec", {})
        return spec

    @property
    def _status(self) -> Document:
        return self.document.get("status") or {}

    @property
    def is_suspended(self) -> bool:
        return bool(self._spec.get("suspend")) and self.annotations.get(_STOPPING) != "true"

    @property
    def is_active(self) -> bool:
        """Whether it has pods."""
        return bool(self._status.get("active"))

    @property
    def parallelism(self) -> int:
        """How many pods run at once at most."""
        parallelism = self._spec.get("parallelism")
        return 1 if parallelism is None else parallelism

    @property
    def pods(self) -> int:
        """How many pods are admitted together."""
        completions = self._spec.get("completions")
        return self.parallelism if completions is None else min(self.parallelism, completions)

    @property
    def min_pods(self) -> int | None:
        """How few would do."""
        text = self.annotations.get(MIN_PARALLELISM, "")
        digits = text[1:] if text[:1] in ("-", "+") else text
        return int(text) if digits.isascii() and digits.isdigit() else None

    @property
    def ending(self) -> Ending | None:
        """How it ended, if it did."""
        for condition in self._status.get("conditions") or ():
            if condition.get("type") in ("Complete", "Failed") and condition.get("status") == "True":
                return Ending(condition["type"] == "Complete", condition.get("message", ""))
        return None

    @property
    def are_pods_ready(self) -> bool:
        """Whether all pods are ready, or did what they had to."""
        uncounted = (self._status.get("uncountedTerminatedPods") or {}).get("succeeded") or ()
        ready = self._status.get("ready") or 0
        return (self._status.get("succeeded") or 0) + ready + len(uncounted) >= self.pods

    @property
    def reclaimable_pods(self) -> Mapping[str, int]:
        """How many of the pods need their quota no more, by pod set."""
        completions = self._spec.get("completions")
        completions = self.parallelism if completions is None else completions
        over = self._status.get("succeeded") or 0
        if self._spec.get("completionMode") == "Indexed":
            over = _indexes(
                completions, self._status.get("completedIndexes") or "", self._status.get("failedIndexes") or ""
            )
        if self.parallelism <= 1 or over <= 0:
            return {}
        count = self.parallelism - max(completions - over, 0)
        return {podsetinfo.DEFAULT_POD_SET: count} if count > 0 else {}

    def pod_sets(self, gates: Gates) -> list[dict[str, Any]]:
        """Its pods, as the pod set of a workload; an InvalidValueError where annotations are wrong."""
        template = self._spec.get("template", {})
        metadata = dict(template.get("metadata") or {})
        labels = {key: value for key, value in (metadata.pop("labels", None) or {}).items() if key not in _NOT_COPIED}
        if labels:
            metadata["labels"] = labels
        template = {**({"metadata": metadata} if metadata else {}), "spec": template.get("spec", {})}
        pod_set: dict[str, Any] = {
            "name": podsetinfo.DEFAULT_POD_SET,
            "count": self.pods,
            "template": podsetinfo.sanitized(template),
        }
        if self.min_pods is not None and gates.on(Gate.PARTIAL_ADMISSION):
            pod_set["minCount"] = self.min_pods
        if gates.on(Gate.TAS):
            annotations = metadata.get("annotations") or {}
            pod_set["topologyRequest"] = topologyrequest.of_annotations(annotations, index_label=_INDEX_LABEL)
        return [pod_set]

    def suspended(self) -> BatchJob:
        """Held back."""
        return self._with_spec(suspend=True)

    def started(self, info: PodSetInfo) -> BatchJob:
        """Let go, with what its pods are to get; a PodSetConflictError where they have something else."""
        after = self._with_spec(suspend=False)._with_count(info.count)
        return after._with_spec(template=info.applied(self._spec.get("template", {})))

    def stopped(self, info: PodSetInfo | None) -> BatchJob:
        """Held back, its start forgotten, its pods as they were; None: how they were is not known."""
        metadata = dict(self.metadata)
        annotations = {key: value for key, value in self.annotations.items() if key != _STOPPING}
        metadata.pop("annotations", None)
        status = {key: value for key, value in self._status.items() if key != "startTime"}
        document = dict(self.document)
        document["metadata"] = {**metadata, "annotations": annotations} if annotations else metadata
        if status:
            document["status"] = status
        else:
            document.pop("status", None)
        after = BatchJob(document)
        after = after if self.is_suspended else after.suspended()
        return after if info is None else after._restored(info)

    def _restored(self, info: PodSetInfo) -> BatchJob:
        template = self._spec.get("template", {})
        present = of_template(template).labels
        kept = {label: present[label] for label in _OF_JOB_CONTROLLER if label in present}
        info = structs.replace(info, labels={**info.labels, **kept})
        return self._with_count(info.count)._with_spec(template=info.restored(template))

    def _with_count(self, count: int) -> BatchJob:
        if self.min_pods is None:
            return self
        after = self._with_spec(parallelism=count)
        return (
            after._with_spec(completions=count)
            if self.annotations.get(SYNC_COMPLETIONS) in topologyrequest.TRUE
            else after
        )

    def _with_spec(self, **fields: Any) -> BatchJob:
        return BatchJob({**self.document, "spec": {**self._spec, **fields}})


def _indexes(completions: int, *texts: str) -> int:
    """How many indexes below the number of completions are in intervals such as ``1,3-5``."""
    intervals = sorted(
        (first, min(last, completions - 1))
        for text in texts
        for part in text.split(",")
        for first, last in _interval(part)
    )
    count, end = 0, -1
    for first, last in intervals:
        count += max(last - max(first, end + 1) + 1, 0)
        end = max(end, last)
    return count


def _interval(text: str) -> Sequence[tuple[int, int]]:
    first, dash, last = text.partition("-")
    bounds = (first, last) if dash else (first, first)
    if not all(bound.isascii() and bound.isdigit() for bound in bounds):
        return ()
    return ((int(bounds[0]), int(bounds[1])),) if int(bounds[0]) <= int(bounds[1]) else ()
