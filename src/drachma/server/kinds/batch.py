"""Kinds of ``batch``: jobs and cron jobs."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Final

from drachma.api.gates import Gate
from drachma.server import documents, objectmeta
from drachma.server.kinds.core import podspec
from drachma.server.kinds.document import Document
from drachma.server.kinds.templated import TemplatedStrategy, WorkloadStrategy
from drachma.server.surface import age, cells, layout, resources, selectable
from drachma.server.surface.apisurface import Kind
from drachma.server.surface.strategy import Subject, Write
from drachma.validation import batch as rules
from drachma.validation.podspec import warnings
from drachma.values import names, quotation


class JobStrategy(WorkloadStrategy):
    """Strategy of jobs, which orphan their pods by default, as they did before there was a garbage collector."""

    def default_spec(self, spec: Document) -> None:
        super().default_spec(spec)
        if spec.get("completions") is None and spec.get("parallelism") is None:
            spec["completions"] = 1
        spec.setdefault("parallelism", 1)
        spec.setdefault("backoffLimit", 2**31 - 1 if spec.get("backoffLimitPerIndex") is not None else 6)
        spec.setdefault("completionMode", "NonIndexed")
        spec.setdefault("suspend", False)
        failure_policy = spec.get("podFailurePolicy")
        spec.setdefault("podReplacementPolicy", "TerminatingOrFailed" if failure_policy is None else "Failed")
        for rule in (failure_policy or {}).get("rules") or ():
            for pattern in rule.get("onPodConditions") or ():
                pattern["status"] = pattern.get("status") or "True"
        spec.setdefault("manualSelector", False)

    def default(self, content: Document, metadata: objectmeta.Metadata) -> None:
        own = ((content["spec"].get("template") or {}).get("metadata") or {}).get("labels")
        if own and not metadata.get("labels"):
            metadata["labels"] = own

    def prepare_update(self, content: Document, old: Mapping[str, Any], write: Write) -> None:
        super().prepare_update(content, old, write)
        if "scheduling" in content["spec"] and not self._schedules_groups() and "scheduling" not in old["spec"]:
            content["spec"] = _without_scheduling(content["spec"])

    def _schedules_groups(self) -> bool:
        return self._gates.on(Gate.WORKLOAD_WITH_JOB)

    def prepare_create(self, content: Document, metadata: objectmeta.Metadata, write: Write) -> None:
        content["status"] = {}
        if "scheduling" in content["spec"] and not self._schedules_groups():
            content["spec"] = _without_scheduling(content["spec"])
        template_labels = (content["spec"]["template"].get("metadata") or {}).get("labels")
        spec = content["spec"] = documents.copy(content["spec"])
        if spec.get("manualSelector"):
            return
        # The uid is among the labels, so that pods belong to this job and not to an earlier one of the same name.
        template = spec["template"].setdefault("metadata", {})
        own = template.setdefault("labels", {})
        for key in rules.JOB_NAME:
            own.setdefault(key, metadata.get("name", ""))
        for key in rules.CONTROLLER_UID:
            own.setdefault(key, metadata["uid"])
        selector = spec.setdefault("selector", {})
        selector.setdefault("matchLabels", {}).setdefault(rules.CONTROLLER_UID[1], metadata["uid"])
        if not metadata.get("labels") or metadata["labels"] is template_labels:
            # A job without labels gets the labels of its pods, including those that the selector matches.
            metadata["labels"] = dict(own)

    def warnings(self, content: Document, subject: Subject) -> Iterable[str]:
        problems = names.dns1123_label(subject.metadata.get("name", ""))
        if problems:
            yield (
                "metadata.name: this is used in Pod names and hostnames, which can result in surprising behavior; "
                f"a DNS label is recommended: [{' '.join(problems)}]"
            )
        yield from super().warnings(content, subject)


def _without_scheduling(spec: Document) -> Document:
    return {field: value for field, value in spec.items() if field != "scheduling"}


def _job_cells(job: Document, now: datetime) -> layout.Cells:
    spec, status = cells.part(job, "spec"), cells.part(job, "status")
    succeeded, requested = status.get("succeeded", 0), spec.get("completions")
    completions = f"{succeeded}/{1 if requested is None else requested}"
    if requested is None and spec.get("parallelism", 0) > 1:
        completions += f" of {spec['parallelism']}"
    start, end = age.parse(status.get("startTime")), age.parse(status.get("completionTime"))
    duration = age.words(((end or now) - start).total_seconds()) if start else ""
    since = cells.since_creation(job, now)
    return [cells.name(job), _state(job), completions, duration, since, *cells.template(job, absent="<none>")]


def _state(job: Document) -> str:
    conditions = cells.part(job, "status").get("conditions") or []
    true = {each.get("type") for each in conditions if each.get("status") == "True"}
    for condition in ("Complete", "Failed"):
        if condition in true:
            return condition
    if job["metadata"].get("deletionTimestamp"):
        return "Terminating"
    later_conditions = ("Suspended", "FailureTarget", "SuccessCriteriaMet")
    return next((condition for condition in later_conditions if condition in true), "Running")


def _succeeded(job: Mapping[str, Any]) -> str:
    return str(selectable.dig(job, ("status", "succeeded")) or 0)


def _unknown_job_field(field: str, _kind: str) -> str:
    return f"field label {quotation.quote(field)} not supported for Job"


JOB: Final = Kind(
    group="batch",
    versions=("v1",),
    plural="jobs",
    kind="Job",
    namespaced=True,
    categories=("all",),
    subresources=(resources.status(),),
    traits=resources.Traits(orphans_dependents=True),
    layout=layout.Layout(
        (
            layout.NAME,
            layout.text("Status", "The state of the job."),
            layout.text("Completions", "The numbers of succeeded and of required pods."),
            layout.text("Duration", "The duration of the job."),
            layout.AGE,
            *layout.CONTAINERS,
        ),
        _job_cells,
    ),
    selectable=selectable.Selectable(
        fields=frozenset({selectable.NAME, selectable.NAMESPACE, "status.successful"}),
        special={"status.successful": _succeeded},
        unknown=_unknown_job_field,
    ),
    rules=rules.KINDS["Job"],
    strategy=JobStrategy,
)


class CronJobStrategy(TemplatedStrategy):
    counts_generations = True

    def default_spec(self, spec: Document) -> None:
        if not spec.get("concurrencyPolicy"):
            spec["concurrencyPolicy"] = "Allow"
        spec.setdefault("suspend", False)
        spec.setdefault("successfulJobsHistoryLimit", 3)
        spec.setdefault("failedJobsHistoryLimit", 1)
        template = spec.setdefault("jobTemplate", {}).setdefault("spec", {}).setdefault("template", {})
        podspec.default(template.setdefault("spec", {}))

    def warnings(self, content: Document, subject: Subject) -> Iterable[str]:
        template = content["spec"]["jobTemplate"]["spec"]["template"]
        annotations = (template.get("metadata") or {}).get("annotations") or {}
        at, notes = rules.CRON_TEMPLATE.child("spec"), rules.CRON_TEMPLATE.child("metadata", "annotations")
        yield from warnings.find(template["spec"], at, annotations=annotations, notes=notes)


_SUSPENDED: Final = {True: "True", False: "False", None: "<unset>"}


def _cron_job_cells(cron_job: Document, now: datetime) -> layout.Cells:
    spec, status = cells.part(cron_job, "spec"), cells.part(cron_job, "status")
    last = status.get("lastScheduleTime")
    job_spec: dict[str, Any] = {"spec": cells.part(cells.part(spec, "jobTemplate"), "spec")}
    return [
        cells.name(cron_job),
        spec.get("schedule", ""),
        spec.get("timeZone") or "<none>",
        _SUSPENDED[spec.get("suspend")],
        len(status.get("active") or ()),
        age.since(last, now=now) if last else "<none>",
        cells.since_creation(cron_job, now),
        *cells.template(job_spec, absent="<none>"),
    ]


CRON_JOB: Final = Kind(
    group="batch",
    versions=("v1",),
    plural="cronjobs",
    kind="CronJob",
    namespaced=True,
    short_names=("cj",),
    categories=("all",),
    subresources=(resources.status(),),
    layout=layout.Layout(
        (
            layout.NAME,
            layout.text("Schedule", "The schedule in the format of cron."),
            layout.text("Timezone", "The time zone of the schedule."),
            layout.Column("Suspend", "boolean", description="True if no jobs are created."),
            layout.integer("Active", "The number of running jobs."),
            layout.text("Last Schedule", "The time since the last job was created."),
            layout.AGE,
            *layout.CONTAINERS,
        ),
        _cron_job_cells,
    ),
    rules=rules.KINDS["CronJob"],
    strategy=CronJobStrategy,
)
