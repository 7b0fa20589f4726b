"""JobSet of ``jobset.x-k8s.io`` as a GenericJob: one pod set for each replicated job."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, Final

from drachma.queueing.configuration import frameworks
from drachma.queueing.jobs.interface import Completion, Document
from drachma.queueing.jobs.templatejob import TemplateJob, TemplateSlot

_POD_INDEX: Final = "batch.kubernetes.io/job-completion-index"
_JOB_INDEX: Final = "jobset.sigs.k8s.io/job-index"


class JobSet(TemplateJob):
    """A JobSet."""

    kind: ClassVar = frameworks.KINDS[frameworks.JOB_SET]
    own_controller: ClassVar = "jobset.sigs.k8s.io/jobset-controller"

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
    def slots(self) -> list[TemplateSlot]:
        return [
            TemplateSlot(
                pod_set=_pod_set_name(each),
                path=("replicatedJobs", position, "template", "spec", "template"),
                pods=_replicas(each) * _pods_per_replica(each),
                index_label=_POD_INDEX,
                sub_group_label=_JOB_INDEX,
                sub_groups=_replicas(each),
            )
            for position, each in enumerate(self._jobs)
        ]


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
