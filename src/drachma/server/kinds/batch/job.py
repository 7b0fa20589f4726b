"""Jobs: pods that run until so many of them have succeeded."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Final

from drachma.api import job as jobs
from drachma.server import documents, objectmeta
from drachma.server.kinds.batch import workloadtypes
from drachma.server.kinds.core import podtypes
from drachma.server.kinds.document import Document
from drachma.server.kinds.workload import WorkloadStrategy
from drachma.server.schema import metatypes, notation
from drachma.server.surface import age, cells, layout, resources, selectable
from drachma.server.surface.apisurface import Kind
from drachma.server.surface.strategy import Subject, Write
from drachma.validation import job
from drachma.validation.fielderror import Errors
from drachma.values import names, quotation

_TYPES: Final = """\
Job: apiVersion=str kind=str metadata=ObjectMeta! spec=JobSpec! status=JobStatus!
JobCondition: lastProbeTime=Time! lastTransitionTime=Time! message=str reason=str status=str* type=str*
JobSchedulingConfiguration: disruptionMode=WorkloadPodGroupDisruptionMode
    resourceClaims={WorkloadPodGroupResourceClaim:name}~ schedulingConstraints=WorkloadPodGroupSchedulingConstraints
    schedulingPolicy=WorkloadPodGroupSchedulingPolicy
JobSpec: activeDeadlineSeconds=int64? backoffLimit=int32? backoffLimitPerIndex=int32? completionMode=str?
    completions=int32? managedBy=str? manualSelector=bool? maxFailedIndexes=int32? parallelism=int32?
    podFailurePolicy=PodFailurePolicy podReplacementPolicy=str? scheduling=JobSchedulingConfiguration
    selector=LabelSelector successPolicy=SuccessPolicy suspend=bool? template=PodTemplateSpec!*
    ttlSecondsAfterFinished=int32?
JobStatus: active=int32 completedIndexes=str completionTime=Time conditions=[JobCondition]~type failed=int32
    failedIndexes=str? ready=int32? startTime=Time succeeded=int32 terminating=int32?
    uncountedTerminatedPods=UncountedTerminatedPods
PodFailurePolicy: rules=[PodFailurePolicyRule]!*
PodFailurePolicyOnExitCodesRequirement: containerName=str? operator=str* values={int32}!*
PodFailurePolicyOnPodConditionsPattern: status=str!/ type=str*
PodFailurePolicyRule: action=str* onExitCodes=PodFailurePolicyOnExitCodesRequirement
    onPodConditions=[PodFailurePolicyOnPodConditionsPattern]
SuccessPolicy: rules=[SuccessPolicyRule]!*
SuccessPolicyRule: succeededCount=int32? succeededIndexes=str?
UncountedTerminatedPods: failed={str} succeeded={str}
"""
_NUMBERS: Final = """\
Job: metadata spec status
JobCondition: type status lastProbeTime lastTransitionTime reason message
JobSchedulingConfiguration: schedulingPolicy schedulingConstraints disruptionMode resourceClaims
JobSpec: parallelism? completions? activeDeadlineSeconds? selector manualSelector? template backoffLimit?
    ttlSecondsAfterFinished? completionMode suspend? podFailurePolicy backoffLimitPerIndex? maxFailedIndexes?
    podReplacementPolicy managedBy? successPolicy scheduling
JobStatus: conditions startTime completionTime active succeeded failed completedIndexes uncountedTerminatedPods ready?
    failedIndexes? terminating?
PodFailurePolicy: rules
PodFailurePolicyOnExitCodesRequirement: containerName? operator values
PodFailurePolicyOnPodConditionsPattern: type status
PodFailurePolicyRule: action onExitCodes onPodConditions
SuccessPolicy: rules
SuccessPolicyRule: succeededIndexes? succeededCount?
UncountedTerminatedPods: succeeded failed
"""
_TEXTS: Final = """\
Job: Pods that run until so many of them have succeeded.
JobSpec.template: What the pods look like.
JobSpec.completions: How many pods must succeed.
JobSpec.parallelism: How many pods run at once.
"""
PACKAGE: Final = notation.Types(
    "io.k8s.api.batch.v1",
    _TYPES,
    numbers=_NUMBERS,
    texts=_TEXTS,
    docs=(jobs,),
    uses=(metatypes.META, podtypes.PODS, workloadtypes.WORKLOADS),
)


class JobStrategy(WorkloadStrategy):
    """Jobs leave their pods behind by default, as they did before there was a garbage collector."""

    def default_spec(self, spec: Document) -> None:
        super().default_spec(spec)
        if spec.get("completions") is None and spec.get("parallelism") is None:
            spec["completions"] = 1
        spec.setdefault("parallelism", 1)
        spec.setdefault("backoffLimit", 2**31 - 1 if spec.get("backoffLimitPerIndex") is not None else 6)
        spec.setdefault("completionMode", "NonIndexed")
        spec.setdefault("suspend", False)
        spec.setdefault("podReplacementPolicy", "Failed" if spec.get("podFailurePolicy") else "TerminatingOrFailed")
        spec.setdefault("manualSelector", False)

    def default(self, content: Document, metadata: objectmeta.Metadata) -> None:
        own = ((content["spec"].get("template") or {}).get("metadata") or {}).get("labels")
        if own and not metadata.get("labels"):
            metadata["labels"] = own

    def prepare_create(self, content: Document, metadata: objectmeta.Metadata, write: Write) -> None:
        content["status"] = {}
        given = (content["spec"]["template"].get("metadata") or {}).get("labels")
        spec = content["spec"] = documents.copy(content["spec"])
        if spec.get("manualSelector"):
            return
        # Pods must belong to this job and no other of the same name, so its uid is among their labels.
        template = spec["template"].setdefault("metadata", {})
        own = template.setdefault("labels", {})
        for key in job.JOB_NAME:
            own.setdefault(key, metadata.get("name", ""))
        for key in job.CONTROLLER_UID:
            own.setdefault(key, metadata["uid"])
        selector = spec.setdefault("selector", {})
        selector.setdefault("matchLabels", {}).setdefault(job.CONTROLLER_UID[1], metadata["uid"])
        if not metadata.get("labels") or metadata["labels"] is given:
            # A job without labels has those of its pods, also the ones that tie them to it.
            metadata["labels"] = dict(own)

    def check(self, content: Document, subject: Subject) -> Errors:
        yield from ()

    def check_new(self, content: Document, subject: Subject) -> Errors:
        yield from job.check(content, subject.metadata)

    def check_update(self, content: Document, old: Mapping[str, Any], subject: Subject) -> Errors:
        yield from job.check_spec(content["spec"])
        yield from job.check_update(content, old)
        yield from job.check_name(content["spec"], subject.metadata)

    def check_status(self, content: Document, old: Mapping[str, Any], subject: Subject) -> Errors:
        yield from job.check_status(content, old)

    def warnings(self, content: Document, subject: Subject) -> Iterable[str]:
        problems = names.dns1123_label(subject.metadata.get("name", ""))
        if problems:
            yield (
                "metadata.name: this is used in Pod names and hostnames, which can result in surprising behavior; "
                f"a DNS label is recommended: [{' '.join(problems)}]"
            )
        yield from super().warnings(content, subject)


def _cells(job: Document, now: datetime) -> layout.Cells:
    spec, status = cells.part(job, "spec"), cells.part(job, "status")
    succeeded, wanted = status.get("succeeded", 0), spec.get("completions")
    completions = f"{succeeded}/{1 if wanted is None else wanted}"
    if wanted is None and spec.get("parallelism", 0) > 1:
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
    rest = ("Suspended", "FailureTarget", "SuccessCriteriaMet")
    return next((condition for condition in rest if condition in true), "Running")


def _succeeded(job: Mapping[str, Any]) -> str:
    return str(selectable.dig(job, ("status", "succeeded")) or 0)


def _unknown(field: str, _kind: str) -> str:
    return f"field label {quotation.quote(field)} not supported for Job"


KIND: Final = Kind(
    group="batch",
    versions=("v1",),
    plural="jobs",
    kind="Job",
    namespaced=True,
    categories=("all",),
    subresources=(resources.status(),),
    schemas={"v1": PACKAGE.object("Job")},
    traits=resources.Traits(orphans_dependents=True),
    layout=layout.Layout(
        (
            layout.NAME,
            layout.text("Status", "How far the job is."),
            layout.text("Completions", "How many pods succeeded, of how many."),
            layout.text("Duration", "How long the job ran or has been running."),
            layout.AGE,
            *layout.CONTAINERS,
        ),
        _cells,
    ),
    selectable=selectable.Selectable(
        fields=frozenset({selectable.NAME, selectable.NAMESPACE, "status.successful"}),
        special={"status.successful": _succeeded},
        unknown=_unknown,
    ),
    strategy=JobStrategy,
)
