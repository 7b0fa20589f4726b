"""Job of ``batch/v1`` as a GenericJob."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final

from msgspec import structs

from drachma.queueing.configuration import frameworks
from drachma.queueing.configuration.gates import Gate, Gates
from drachma.queueing.devices import groupclaims
from drachma.queueing.jobs import topologyrequest
from drachma.queueing.jobs.interface import Completion, ConstructedWorkload, Session, with_metadata
from drachma.queueing.jobs.suspendable import SuspendableJob
from drachma.queueing.workloads import podsetinfo
from drachma.queueing.workloads.podsetinfo import PodSetInfo

STOPPING: Final = "kueue.x-k8s.io/stopping"
MIN_PARALLELISM: Final = "kueue.x-k8s.io/job-min-parallelism"
SYNC_COMPLETIONS: Final = "kueue.x-k8s.io/job-completions-equal-parallelism"
_INDEX_LABEL: Final = "batch.kubernetes.io/job-completion-index"
_JOB_CONTROLLER_LABELS: Final = (
    "job-name",
    "controller-uid",
    "batch.kubernetes.io/job-name",
    "batch.kubernetes.io/controller-uid",
)
"""Labels that the Job controller sets on pod templates."""
_NOT_COPIED: Final = frozenset({"job-name", "controller-uid", "batch.kubernetes.io/controller-uid"})


class BatchJob(SuspendableJob):
    """A Job of ``batch/v1``."""

    kind: ClassVar = frameworks.KINDS[frameworks.BATCH_JOB]
    own_controller: ClassVar = "kubernetes.io/job-controller"

    @property
    def is_suspended(self) -> bool:
        return bool(self.spec.get("suspend")) and self.annotations.get(STOPPING) != "true"

    @property
    def is_active(self) -> bool:
        return bool(self.status.get("active"))

    @property
    def parallelism(self) -> int:
        """Maximum number of pods that run at once."""
        parallelism = self.spec.get("parallelism")
        return 1 if parallelism is None else parallelism

    @property
    def pods(self) -> int:
        """Number of pods that are admitted together."""
        completions = self.spec.get("completions")
        return self.parallelism if completions is None else min(self.parallelism, completions)

    @property
    def min_pods(self) -> int | None:
        """Minimum number of pods for partial admission, or None."""
        text = self.annotations.get(MIN_PARALLELISM, "")
        digits = text[1:] if text[:1] in ("-", "+") else text
        return int(text) if digits.isascii() and digits.isdigit() else None

    @property
    def completion(self) -> Completion | None:
        for condition in self.status.get("conditions") or ():
            if condition.get("type") in ("Complete", "Failed") and condition.get("status") == "True":
                return Completion(condition["type"] == "Complete", condition.get("message", ""))
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
        ended = self.status.get("succeeded") or 0
        if self.spec.get("completionMode") == "Indexed":
            ended = _count_indexes(
                completions, self.status.get("completedIndexes") or "", self.status.get("failedIndexes") or ""
            )
        if self.parallelism <= 1 or ended <= 0:
            return {}
        count = self.parallelism - max(completions - ended, 0)
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
            pod_set["topologyRequest"] = topologyrequest.build(annotations, gates, index_label=_INDEX_LABEL)
        return [pod_set]

    @property
    def group_claims(self) -> tuple[str, ...]:
        """Names of the claims that pods share in the group that is made for the job (KEP-5547)."""
        spec = self.spec.get("template", {}).get("spec") or {}
        if spec.get("schedulingGroup") or any(
            each.get("controller") for each in self.metadata.get("ownerReferences") or ()
        ):
            return ()
        group_entries = (self.spec.get("scheduling") or {}).get("resourceClaims") or ()
        return tuple(each["name"] for each in spec.get("resourceClaims") or () if each in group_entries)

    def construct_workload(self, session: Session) -> ConstructedWorkload:
        wl, pod_sets = super().construct_workload(session)
        if self.group_claims:
            names = groupclaims.annotation({podsetinfo.DEFAULT_POD_SET: self.group_claims})
            wl = with_metadata(wl, annotations={**wl.metadata.annotations, groupclaims.ANNOTATION: names})
        return ConstructedWorkload(wl, pod_sets)

    def start(self, infos: Sequence[PodSetInfo]) -> None:
        podsetinfo.check_count(infos, 1)
        (info,) = infos
        template = info.applied(self.spec.get("template", {}))
        self.set_spec(suspend=False)
        self._set_count(info.count)
        self.set_spec(template=template)

    def restore(self, infos: Sequence[PodSetInfo]) -> None:
        """Suspend the job, remove its start time and restore its pod template; without infos, keep the template."""
        is_suspended = self.is_suspended
        metadata = dict(self.metadata)
        annotations = {key: value for key, value in self.annotations.items() if key != STOPPING}
        metadata.pop("annotations", None)
        # The pods of a dispatched job are those of a cluster that no longer counts.
        stale_fields = ("startTime", "active", "ready") if self.is_dispatched else ("startTime",)
        status = {key: value for key, value in self.status.items() if key not in stale_fields}
        document = dict(self.document)
        document["metadata"] = {**metadata, "annotations": annotations} if annotations else metadata
        if status:
            document["status"] = status
        else:
            document.pop("status", None)
        self.document = document
        if not is_suspended:
            self.suspend()
        if infos:
            self._restore_template(infos[0])

    def _restore_template(self, info: PodSetInfo) -> None:
        template = self.spec.get("template", {})
        present = podsetinfo.template_info(template).labels
        controller_labels = {label: present[label] for label in _JOB_CONTROLLER_LABELS if label in present}
        info = structs.replace(info, labels={**info.labels, **controller_labels})
        self._set_count(info.count)
        self.set_spec(template=info.restored(template))

    def _set_count(self, count: int) -> None:
        """Set the parallelism of a job with partial admission, and its completions if they follow."""
        if self.min_pods is None:
            return
        self.set_spec(parallelism=count)
        if self.annotations.get(SYNC_COMPLETIONS) in topologyrequest.TRUE:
            self.set_spec(completions=count)


def _count_indexes(completions: int, *texts: str) -> int:
    """Return the number of indexes below ``completions`` in intervals such as ``1,3-5``."""
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
