"""Cron jobs: jobs of one template, made again and again at certain times."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Final

from drachma.server.kinds.batch import job
from drachma.server.kinds.core import podspec, podtypes, references
from drachma.server.kinds.document import Document
from drachma.server.kinds.templated import TemplatedStrategy
from drachma.server.schema import metatypes, notation
from drachma.server.surface import age, cells, layout, resources
from drachma.server.surface.apisurface import Kind
from drachma.server.surface.strategy import Subject
from drachma.validation import cronjob
from drachma.validation.fielderror import Errors
from drachma.validation.podspec import warnings

_TYPES: Final = """\
CronJob: apiVersion=str kind=str metadata=ObjectMeta! spec=CronJobSpec!* status=CronJobStatus!
CronJobSpec: concurrencyPolicy=str failedJobsHistoryLimit=int32? jobTemplate=JobTemplateSpec!* schedule=str*
    startingDeadlineSeconds=int64? successfulJobsHistoryLimit=int32? suspend=bool? timeZone=str?
CronJobStatus: active=[ObjectReference] lastScheduleTime=Time lastSuccessfulTime=Time
JobTemplateSpec: metadata=ObjectMeta! spec=JobSpec!
"""
_NUMBERS: Final = """\
CronJob: metadata spec status
CronJobSpec: schedule startingDeadlineSeconds? concurrencyPolicy suspend? jobTemplate successfulJobsHistoryLimit?
    failedJobsHistoryLimit? timeZone?
CronJobStatus: active 4:lastScheduleTime lastSuccessfulTime
JobTemplateSpec: metadata spec
"""
_TEXTS: Final = """\
CronJob: Jobs of one template, made again and again at certain times.
CronJobSpec.schedule: When, in the notation of cron.
CronJobSpec.timeZone: Whose time that is; by default that of the controller.
CronJobSpec.concurrencyPolicy: What becomes of a job that still runs when the next is due.
CronJobSpec.jobTemplate: What the jobs look like.
"""
_PACKAGE: Final = notation.Types(
    "io.k8s.api.batch.v1",
    _TYPES,
    numbers=_NUMBERS,
    texts=_TEXTS,
    uses=(metatypes.META, references.REFERENCES, podtypes.PODS, job.PACKAGE),
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

    def check(self, content: Document, subject: Subject) -> Errors:
        yield from cronjob.check(content["spec"])

    def check_new(self, content: Document, subject: Subject) -> Errors:
        yield from cronjob.check_name(subject.metadata.get("name", ""))
        yield from cronjob.check_zone(content["spec"].get("timeZone"))

    def check_update(self, content: Document, old: Mapping[str, Any], subject: Subject) -> Errors:
        yield from cronjob.check_zone(content["spec"].get("timeZone"), old["spec"].get("timeZone"))

    def warnings(self, content: Document, subject: Subject) -> Iterable[str]:
        template = content["spec"]["jobTemplate"]["spec"]["template"]
        annotations = (template.get("metadata") or {}).get("annotations") or {}
        at, notes = cronjob.TEMPLATE.child("spec"), cronjob.TEMPLATE.child("metadata", "annotations")
        yield from warnings.find(template["spec"], at, annotations=annotations, notes=notes)


_SUSPENDED: Final = {True: "True", False: "False", None: "<unset>"}


def _cells(cron_job: Document, now: datetime) -> layout.Cells:
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


KIND: Final = Kind(
    group="batch",
    versions=("v1",),
    plural="cronjobs",
    kind="CronJob",
    namespaced=True,
    short_names=("cj",),
    categories=("all",),
    subresources=(resources.status(),),
    schemas={"v1": _PACKAGE.object("CronJob")},
    layout=layout.Layout(
        (
            layout.NAME,
            layout.text("Schedule", "When jobs are made."),
            layout.text("Timezone", "Whose time that is."),
            layout.Column("Suspend", "boolean", description="Whether no jobs are made for now."),
            layout.integer("Active", "How many jobs run."),
            layout.text("Last Schedule", "How long ago a job was made."),
            layout.AGE,
            *layout.CONTAINERS,
        ),
        _cells,
    ),
    strategy=CronJobStrategy,
)
