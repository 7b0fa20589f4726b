"""A Job of ``batch/v1`` as queueing sees it: held back, started with what its workload was given, stopped, over."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final

from msgspec import structs

from drachma.queueing.configuration import frameworks
from drachma.queueing.configuration.gates import Gate, Gates
from drachma.queueing.jobs import topologyrequest
from drachma.queueing.jobs.jobdocument import Ending, JobDocument
from drachma.queueing.workloads import podsetinfo
from drachma.queueing.workloads.podsetinfo import PodSetInfo, of_template

STOPPING: Final = "kueue.x-k8s.io/stopping"
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


class BatchJob(JobDocument, frozen=True):
    """One Job."""

    kind: ClassVar = frameworks.KINDS[frameworks.BATCH_JOB]

    @property
    def is_suspended(self) -> bool:
        return bool(self.spec.get("suspend")) and self.annotations.get(STOPPING) != "true"

    @property
    def is_active(self) -> bool:
        return bool(self.status.get("active"))

    @property
    def parallelism(self) -> int:
        """How many pods run at once at most."""
        parallelism = self.spec.get("parallelism")
        return 1 if parallelism is None else parallelism

    @property
    def pods(self) -> int:
        """How many pods are admitted together."""
        completions = self.spec.get("completions")
        return self.parallelism if completions is None else min(self.parallelism, completions)

    @property
    def min_pods(self) -> int | None:
        """How few would do."""
        text = self.annotations.get(MIN_PARALLELISM, "")
        digits = text[1:] if text[:1] in ("-", "+") else text
        return int(text) if digits.isascii() and digits.isdigit() else None

    @property
    def ending(self) -> Ending | None:
        for condition in self.status.get("conditions") or ():
            if condition.get("type") in ("Complete", "Failed") and condition.get("status") == "True":
                return Ending(condition["type"] == "Complete", condition.get("message", ""))
        return None

    @property
    def are_pods_ready(self) -> bool:
        uncounted = (self.status.get("uncountedTerminatedPods") or {}).get("succeeded") or ()
        ready = self.status.get("ready") or 0
        return (self.status.get("succeeded") or 0) + ready + len(uncounted) >= self.pods

    @property
    def reclaimable_pods(self) -> Mapping[str, int]:
        completions = self.spec.get("completions")
        completions = self.parallelism if completions is None else completions
        over = self.status.get("succeeded") or 0
        if self.spec.get("completionMode") == "Indexed":
            over = _indexes(
                completions, self.status.get("completedIndexes") or "", self.status.get("failedIndexes") or ""
            )
        if self.parallelism <= 1 or over <= 0:
            return {}
        count = self.parallelism - max(completions - over, 0)
        return {podsetinfo.DEFAULT_POD_SET: count} if count > 0 else {}

    def pod_sets(self, gates: Gates) -> list[dict[str, Any]]:
        template = self.spec.get("template", {})
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

    def started(self, infos: Sequence[PodSetInfo]) -> BatchJob:
        podsetinfo.check_count(infos, 1)
        (info,) = infos
        after = self.with_spec(suspend=False)._with_count(info.count)
        return after.with_spec(template=info.applied(self.spec.get("template", {})))

    def stopped(self, infos: Sequence[PodSetInfo]) -> BatchJob:
        """Held back, its start forgotten, its pods as they were; without any infos: how they were is not known."""
        metadata = dict(self.metadata)
        annotations = {key: value for key, value in self.annotations.items() if key != STOPPING}
        metadata.pop("annotations", None)
        status = {key: value for key, value in self.status.items() if key != "startTime"}
        document = dict(self.document)
        document["metadata"] = {**metadata, "annotations": annotations} if annotations else metadata
        if status:
            document["status"] = status
        else:
            document.pop("status", None)
        after = BatchJob(document)
        after = after if self.is_suspended else after.suspended()
        return after._restored(infos[0]) if infos else after

    def _restored(self, info: PodSetInfo) -> BatchJob:
        template = self.spec.get("template", {})
        present = of_template(template).labels
        kept = {label: present[label] for label in _OF_JOB_CONTROLLER if label in present}
        info = structs.replace(info, labels={**info.labels, **kept})
        return self._with_count(info.count).with_spec(template=info.restored(template))

    def _with_count(self, count: int) -> BatchJob:
        if self.min_pods is None:
            return self
        after = self.with_spec(parallelism=count)
        return (
            after.with_spec(completions=count)
            if self.annotations.get(SYNC_COMPLETIONS) in topologyrequest.TRUE
            else after
        )


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
