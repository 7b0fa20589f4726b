"""A JobSet of ``jobset.x-k8s.io`` as queueing sees it: a pod set for each of its replicated jobs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final

from drachma.queueing.configuration import frameworks
from drachma.queueing.configuration.gates import Gate, Gates
from drachma.queueing.jobs import topologyrequest
from drachma.queueing.jobs.jobdocument import Document, Ending, JobDocument
from drachma.queueing.workloads import podsetinfo
from drachma.queueing.workloads.podsetinfo import PodSetInfo

_POD_INDEX: Final = "batch.kubernetes.io/job-completion-index"
_JOB_INDEX: Final = "jobset.sigs.k8s.io/job-index"


class JobSet(JobDocument, frozen=True):
    """One JobSet."""

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
    def ending(self) -> Ending | None:
        conditions = {each["type"]: each for each in self.status.get("conditions") or () if each["status"] == "True"}
        for kind, is_success in (("Completed", True), ("Failed", False)):
            if kind in conditions:
                return Ending(is_success, conditions[kind].get("message", ""))
        return None

    @property
    def reclaimable_pods(self) -> Mapping[str, int]:
        succeeded = {each["name"]: each.get("succeeded") or 0 for each in self._statuses}
        return {
            _pod_set_name(each): succeeded[each["name"]] * _pods_of_one(each)
            for each in self._jobs
            if 0 < succeeded.get(each["name"], 0) <= _replicas(each)
        }

    def pod_sets(self, gates: Gates) -> list[dict[str, Any]]:
        return [_pod_set(each, gates) for each in self._jobs]

    def started(self, infos: Sequence[PodSetInfo]) -> JobSet:
        podsetinfo.check_count(infos, len(self._jobs))
        after = [
            _with_template(each, info.applied(_template(each))) for each, info in zip(self._jobs, infos, strict=True)
        ]
        return self.with_spec(suspend=False, replicatedJobs=after)

    def stopped(self, infos: Sequence[PodSetInfo]) -> JobSet:
        if self.is_suspended:
            return self
        if len(infos) != len(self._jobs):
            return self.suspended()
        after = [
            _with_template(each, info.restored(_template(each))) for each, info in zip(self._jobs, infos, strict=True)
        ]
        return self.with_spec(suspend=True, replicatedJobs=after)


def _pod_set_name(of: Document) -> str:
    return str(of["name"]).lower()


def _replicas(of: Document) -> int:
    replicas = of.get("replicas")
    return 1 if replicas is None else int(replicas)


def _pods_of_one(of: Document) -> int:
    """How many pods one job runs at once."""
    spec = of["template"].get("spec", {})
    parallelism = spec.get("parallelism")
    parallelism = 1 if parallelism is None else int(parallelism)
    completions = spec.get("completions")
    return parallelism if completions is None else min(parallelism, int(completions))


def _template(of: Document) -> Document:
    template: Document = of["template"].get("spec", {}).get("template", {})
    return template


def _with_template(of: Document, template: Document) -> dict[str, Any]:
    job = of["template"]
    return {**of, "template": {**job, "spec": {**job.get("spec", {}), "template": template}}}


def _pod_set(of: Document, gates: Gates) -> dict[str, Any]:
    template = _template(of)
    metadata = template.get("metadata") or {}
    pod_set: dict[str, Any] = {
        "name": _pod_set_name(of),
        "count": _replicas(of) * _pods_of_one(of),
        "template": podsetinfo.sanitized(
            {**({"metadata": metadata} if metadata else {}), "spec": template.get("spec", {})}
        ),
    }
    if gates.on(Gate.TAS):
        request = topologyrequest.of_annotations(metadata.get("annotations") or {}, index_label=_POD_INDEX)
        pod_set["topologyRequest"] = {**request, "subGroupIndexLabel": _JOB_INDEX, "subGroupCount": _replicas(of)}
    return pod_set
