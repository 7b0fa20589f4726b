"""JobSet of ``jobset.x-k8s.io`` as a GenericJob: one pod set for each replicated job."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final

from drachma.queueing.configuration import frameworks
from drachma.queueing.configuration.gates import Gate, Gates
from drachma.queueing.jobs import topologyrequest
from drachma.queueing.jobs.interface import Completion, Document
from drachma.queueing.jobs.suspendable import SuspendableJob
from drachma.queueing.workloads import podsetinfo
from drachma.queueing.workloads.podsetinfo import PodSetInfo

_POD_INDEX: Final = "batch.kubernetes.io/job-completion-index"
_JOB_INDEX: Final = "jobset.sigs.k8s.io/job-index"


class JobSet(SuspendableJob):
    """A JobSet."""

    kind: ClassVar = frameworks.KINDS[frameworks.JOB_SET]

    @property
    def _jobs(self) -> Sequence[Document]:
        return self.spec.get("replicatedJobs") or ()

    @property
    def _statuses(self) -> Sequence[Document]:
        return self.status.get("replicatedJobsStatus") or ()

    @property
    def is_active(self) -> bool:
        return any(each.get("active") for each in self._statuses)

    @property
    def are_pods_ready(self) -> bool:
        ready = sum((each.get("ready") or 0) + (each.get("succeeded") or 0) for each in self._statuses)
        return ready == sum(map(_replicas, self._jobs))

    @property
    def completion(self) -> Completion | None:
        conditions = {each["type"]: each for each in self.status.get("conditions") or () if each["status"] == "True"}
        for kind, is_success in (("Completed", True), ("Failed", False)):
            if kind in conditions:
                return Completion(is_success, conditions[kind].get("message", ""))
        return None

    @property
    def reclaimable_pods(self) -> Mapping[str, int]:
        succeeded = {each["name"]: each.get("succeeded") or 0 for each in self._statuses}
        return {
            _pod_set_name(each): succeeded[each["name"]] * _pods_per_replica(each)
            for each in self._jobs
            if 0 < succeeded.get(each["name"], 0) <= _replicas(each)
        }

    @property
    def templates(self) -> list[Document]:
        """Pod templates of the replicated jobs, in their order."""
        return [_template(each) for each in self._jobs]

    def pod_sets(self, gates: Gates) -> list[dict[str, Any]]:
        return [_pod_set(each, gates) for each in self._jobs]

    def start(self, infos: Sequence[PodSetInfo]) -> None:
        podsetinfo.check_count(infos, len(self._jobs))
        jobs = [
            _with_template(each, info.applied(_template(each))) for each, info in zip(self._jobs, infos, strict=True)
        ]
        self.set_spec(suspend=False, replicatedJobs=jobs)

    def restore(self, infos: Sequence[PodSetInfo]) -> None:
        if self.is_suspended:
            return
        if len(infos) != len(self._jobs):
            self.suspend()
            return
        jobs = [
            _with_template(each, info.restored(_template(each))) for each, info in zip(self._jobs, infos, strict=True)
        ]
        self.set_spec(suspend=True, replicatedJobs=jobs)


def _pod_set_name(replicated: Document) -> str:
    return str(replicated["name"]).lower()


def _replicas(replicated: Document) -> int:
    replicas = replicated.get("replicas")
    return 1 if replicas is None else int(replicas)


def _pods_per_replica(replicated: Document) -> int:
    """Return the number of pods that one replica runs at once."""
    spec = replicated["template"].get("spec", {})
    parallelism = spec.get("parallelism")
    parallelism = 1 if parallelism is None else int(parallelism)
    completions = spec.get("completions")
    return parallelism if completions is None else min(parallelism, int(completions))


def _template(replicated: Document) -> Document:
    template: Document = replicated["template"].get("spec", {}).get("template", {})
    return template


def _with_template(replicated: Document, template: Document) -> dict[str, Any]:
    job = replicated["template"]
    return {**replicated, "template": {**job, "spec": {**job.get("spec", {}), "template": template}}}


def _pod_set(replicated: Document, gates: Gates) -> dict[str, Any]:
    template = _template(replicated)
    metadata = template.get("metadata") or {}
    pod_set: dict[str, Any] = {
        "name": _pod_set_name(replicated),
        "count": _replicas(replicated) * _pods_per_replica(replicated),
        "template": podsetinfo.sanitized(
            {**({"metadata": metadata} if metadata else {}), "spec": template.get("spec", {})}
        ),
    }
    if gates.on(Gate.TAS):
        pod_set["topologyRequest"] = topologyrequest.build(
            metadata.get("annotations") or {},
            gates,
            index_label=_POD_INDEX,
            sub_group_index_label=_JOB_INDEX,
            sub_group_count=_replicas(replicated),
        )
    return pod_set
