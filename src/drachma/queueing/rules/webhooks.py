"""The table of Kueue's webhooks: their kinds, defaults and rules.

An API server with queueing in its process calls them as functions before an object is written, other API servers call
them over HTTPS.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec
from msgspec import structs

from drachma.queueing.configuration import frameworks
from drachma.queueing.configuration.frameworks import GroupVersionKind
from drachma.queueing.configuration.gates import Gate, Gates
from drachma.queueing.integrations import models
from drachma.queueing.integrations.jobset import JobSet
from drachma.queueing.integrations.parents import Deployment, LeaderWorkerSet, PodParent, StatefulSet
from drachma.queueing.integrations.ray import RayCluster, RayJob, RayService
from drachma.queueing.jobs.interface import Reference
from drachma.queueing.jobs.settings import JobSettings
from drachma.queueing.jobs.suspendable import SuspendableJob
from drachma.queueing.kinds import clusterqueue, decoding, resourceflavor, workload
from drachma.queueing.lifecycle.workloadreconcile import IN_USE
from drachma.queueing.rules import jobrules, jobwebhooks, parentrules, queuerules, rayrules, workloadrules
from drachma.queueing.rules.jobwebhooks import Place
from drachma.validation.fielderror import FieldError

Document: TypeAlias = Mapping[str, Any]


_FINALIZED: Final = frozenset({"ClusterQueue", "ResourceFlavor"})
"""Kinds whose objects get a finalizer, so that they stay while they are used."""


class Circumstances(NamedTuple):
    """Input of an answer in addition to the object; the place is looked up only if it is needed."""

    gates: Gates
    jobs: JobSettings
    place: Callable[[], Place]
    subresource: str = ""


Completed: TypeAlias = Callable[[Document, Circumstances], dict[str, Any] | None]
References: TypeAlias = Callable[[Document], Sequence[Reference]]
Problems: TypeAlias = Callable[[Document, Document | None, Circumstances], tuple[FieldError, ...]]


def _no_references(_document: Document) -> Sequence[Reference]:
    return ()


class Webhook(msgspec.Struct, frozen=True, kw_only=True):
    """Webhooks of one kind."""

    kind: GroupVersionKind
    problems: Problems
    completed: Completed | None = None
    framework: str = ""
    """Name of the kind in configurations, if it is a kind of jobs."""
    with_status: bool = False
    """True if writes of the status are checked too."""
    mutates_updates: bool = False
    """True if changed objects get defaults too."""
    references: References = _no_references
    """Returns the objects that the checks of an object depend on."""
    reads_names: bool = True
    """False if names, messages and times in an object do not matter to the rules, apart from their form."""

    @property
    def singular(self) -> str:
        return self.kind.kind.lower()

    @property
    def plural(self) -> str:
        return f"{self.singular}s"

    @property
    def place(self) -> str:
        """Last part of the paths at which Kueue serves the webhooks."""
        return f"{self.kind.group.replace('.', '-')}-{self.kind.version}-{self.singular}"

    def complete(self, document: Document, around: Circumstances) -> dict[str, Any] | None:
        """Return a new object with its defaults, or None if nothing changes."""
        if self.completed is None or not self._is_queued(around):
            return None
        return self.completed(document, around)

    def check(self, document: Document, old: Document | None, around: Circumstances) -> tuple[FieldError, ...]:
        """Return the problems of an object that is created, or changed from ``old``."""
        if not self._is_queued(around) or (self.framework and around.subresource):
            return ()
        return self.problems(document, old, around)

    def _is_queued(self, around: Circumstances) -> bool:
        return not self.framework or self.framework in around.jobs.management.frameworks


def complete_queue(document: Document, gates: Gates) -> dict[str, Any] | None:
    """Return a new object of ``kueue.x-k8s.io`` with its defaults, or None if it has them."""
    metadata = document["metadata"]
    finalizers = metadata.get("finalizers") or []
    if document["kind"] in _FINALIZED and IN_USE not in finalizers:
        return {**document, "metadata": {**metadata, "finalizers": [*finalizers, IN_USE]}}
    if document["kind"] == "Workload" and not gates.on(Gate.PARTIAL_ADMISSION):
        pod_sets = document.get("spec", {}).get("podSets") or []
        if any("minCount" in each for each in pod_sets):
            without_minimum = [{name: value for name, value in each.items() if name != "minCount"} for each in pod_sets]
            return {**document, "spec": {**document["spec"], "podSets": without_minimum}}
    return None


def queue_problems(document: Document, old: Document | None, gates: Gates) -> tuple[FieldError, ...]:
    """Return the problems of an object of ``kueue.x-k8s.io`` that is created, or changed from ``old``."""
    return _CHECKS[document["kind"]](document, old, gates)


def _check_queue(new: Document, old: Document | None, gates: Gates) -> tuple[FieldError, ...]:
    before = None if old is None else decoding.decode(old, clusterqueue.ClusterQueue)
    return queuerules.check_queue(decoding.decode(new, clusterqueue.ClusterQueue), before, gates=gates)


def _check_cohort(new: Document, _old: Document | None, _gates: Gates) -> tuple[FieldError, ...]:
    return queuerules.check_cohort(decoding.decode(new, clusterqueue.Cohort))


def _check_flavor(new: Document, _old: Document | None, _gates: Gates) -> tuple[FieldError, ...]:
    return queuerules.check_flavor(decoding.decode(new, resourceflavor.ResourceFlavor))


def _check_workload(new: Document, old: Document | None, gates: Gates) -> tuple[FieldError, ...]:
    if old is None:
        return workloadrules.check(decoding.decode(new, workload.Workload), gates=gates)
    before = decoding.decode(old, workload.Workload)
    if new.get("spec") is old.get("spec") and new["metadata"].get("annotations") == old["metadata"].get("annotations"):
        # Most writes change the status only, which is then all that has to be decoded.
        status = decoding.decode(new.get("status") or {}, workload.WorkloadStatus)
        after = structs.replace(before, status=status)
    else:
        after = decoding.decode(new, workload.Workload)
    return workloadrules.check(after, before, gates=gates)


_CHECKS: Final[Mapping[str, Callable[[Document, Document | None, Gates], tuple[FieldError, ...]]]] = {
    "ClusterQueue": _check_queue,
    "Cohort": _check_cohort,
    "ResourceFlavor": _check_flavor,
    "Workload": _check_workload,
}


def _completed_queue(document: Document, around: Circumstances) -> dict[str, Any] | None:
    return complete_queue(document, around.gates)


def _problems_of_queue(document: Document, old: Document | None, around: Circumstances) -> tuple[FieldError, ...]:
    return queue_problems(document, old, around.gates)


def _completed_batch_job(document: Document, around: Circumstances) -> dict[str, Any] | None:
    return jobwebhooks.completed_batch_job(document, around.place(), around.jobs)


def _completed_job(document: Document, around: Circumstances) -> dict[str, Any] | None:
    return jobwebhooks.completed_job(document, around.place(), around.jobs, model=JobSet)


def _job_problems(document: Document, old: Document | None, around: Circumstances) -> tuple[FieldError, ...]:
    return jobrules.job_problems(document, old, around.jobs.gates, has_default_queue=around.place().has_default_queue)


def _job_set_problems(document: Document, old: Document | None, around: Circumstances) -> tuple[FieldError, ...]:
    return jobrules.job_set_problems(
        document, old, around.jobs.gates, has_default_queue=around.place().has_default_queue
    )


def _completed_pod(document: Document, around: Circumstances) -> dict[str, Any] | None:
    return jobwebhooks.completed_pod(document, around.place(), around.jobs)


def _pod_problems(document: Document, old: Document | None, around: Circumstances) -> tuple[FieldError, ...]:
    return jobrules.pod_problems(document, old, around.jobs.gates, has_default_queue=around.place().has_default_queue)


def _installed_job_webhook(framework: str, model: type[SuspendableJob]) -> Webhook:
    def completed(document: Document, around: Circumstances) -> dict[str, Any] | None:
        return jobwebhooks.completed_installed_job(document, around.place(), around.jobs, model=model)

    def problems(document: Document, old: Document | None, around: Circumstances) -> tuple[FieldError, ...]:
        place = around.place()
        related = {
            (each.kind.api_version, each.kind.kind, each.name): stored
            for each in model.references(document)
            if (stored := place.owner(each.kind.api_version, each.kind.kind, each.name)) is not None
        }
        job = model(document, related)
        gates, has_default_queue = around.jobs.gates, place.has_default_queue
        if isinstance(job, RayCluster | RayJob | RayService):
            manages_all = around.jobs.management.without_queue_name
            return rayrules.ray_problems(job, old, gates, has_default_queue=has_default_queue, manages_all=manages_all)
        return jobrules.installed_job_problems(job, old, gates, has_default_queue=has_default_queue)

    return _job_webhook(framework, completed, problems, references=model.references)


def _parent_webhook(model: type[PodParent]) -> Webhook:
    def completed(document: Document, around: Circumstances) -> dict[str, Any] | None:
        return jobwebhooks.completed_parent(document, around.place(), around.jobs, model=model)

    def problems(document: Document, old: Document | None, around: Circumstances) -> tuple[FieldError, ...]:
        parent, place = model(document), around.place()
        return parentrules.problems(
            parent,
            None if old is None else model(old),
            around.jobs.gates,
            is_managed=jobwebhooks.is_managed_parent(parent, place, around.jobs),
            find_workload=place.workload,
        )

    return _job_webhook(model.framework, completed, problems, mutates_updates=True)


def _kueue_webhook(
    kind: str, completed: Completed | None = _completed_queue, *, with_status: bool = False, reads_names: bool = True
) -> Webhook:
    return Webhook(
        kind=GroupVersionKind("kueue.x-k8s.io", "v1beta2", kind),
        problems=_problems_of_queue,
        completed=completed,
        with_status=with_status,
        reads_names=reads_names,
    )


def _job_webhook(
    framework: str,
    completed: Completed,
    problems: Problems,
    *,
    references: References = _no_references,
    mutates_updates: bool = False,
) -> Webhook:
    return Webhook(
        kind=frameworks.KINDS[framework],
        problems=problems,
        completed=completed,
        framework=framework,
        references=references,
        mutates_updates=mutates_updates,
    )


ALL: Final = (
    _kueue_webhook("ClusterQueue"),
    _kueue_webhook("Cohort", None),
    _kueue_webhook("ResourceFlavor"),
    _kueue_webhook("Workload", with_status=True, reads_names=False),
    _job_webhook(frameworks.BATCH_JOB, _completed_batch_job, _job_problems),
    _job_webhook(frameworks.JOB_SET, _completed_job, _job_set_problems),
    _job_webhook(frameworks.POD, _completed_pod, _pod_problems),
    *(_installed_job_webhook(name, model) for name, model in models.ALL.items()),
    *map(_parent_webhook, (Deployment, StatefulSet, LeaderWorkerSet)),
)
"""Order in which a write passes the webhooks."""
