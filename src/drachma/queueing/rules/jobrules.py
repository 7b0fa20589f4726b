"""Rules of Kueue's webhooks for Jobs, JobSets and pods.

They have Kueue's order and messages.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeAlias

from msgspec import structs

from drachma import errors
from drachma.queueing.configuration import frameworks
from drachma.queueing.configuration.gates import Gate, Gates
from drachma.queueing.integrations import podgroup, pods
from drachma.queueing.integrations.batchjob import MIN_PARALLELISM, SYNC_COMPLETIONS, BatchJob
from drachma.queueing.integrations.jobset import JobSet
from drachma.queueing.integrations.kubeflow import JAXJob, KubeflowJob, MPIJob
from drachma.queueing.integrations.trainjob import TrainJob
from drachma.queueing.jobs import construction, topologyrequest
from drachma.queueing.jobs.interface import RetryError
from drachma.queueing.jobs.settings import PRIORITY_LABEL, QUEUE_LABEL
from drachma.queueing.jobs.suspendable import SuspendableJob
from drachma.queueing.jobs.templatejob import TemplateJob, TemplateSlot
from drachma.queueing.kinds import workload
from drachma.queueing.rules import topologyrules, workloadrules
from drachma.validation import fielderror
from drachma.validation.fielderror import Errors, FieldError
from drachma.validation.path import METADATA, SPEC, Path
from drachma.values import labels, names, quotation

Document: TypeAlias = Mapping[str, Any]

_LABELS: Final = METADATA.child("labels")
_ANNOTATIONS: Final = METADATA.child("annotations")
_ELASTIC_PATH: Final = _ANNOTATIONS.key(workload.ELASTIC)
_ELASTIC_KINDS: Final = frozenset({frameworks.BATCH_JOB})
_TEMPLATE_ANNOTATIONS: Final = SPEC.child("template", "metadata", "annotations")
_IMMUTABLE: Final = "field is immutable"
_INTEGER_DIGITS: Final = frozenset("0123456789")


def job_problems(
    document: Document, old: Document | None, gates: Gates, *, has_default_queue: bool
) -> tuple[FieldError, ...]:
    """Return the problems of a Job that is created, or changed from ``old``."""
    job, before = BatchJob(document), None if old is None else BatchJob(old)
    problems = [*_common(document, frameworks.BATCH_JOB, gates)]
    if before is None or _annotation(document, MIN_PARALLELISM) != _annotation(before.document, MIN_PARALLELISM):
        problems += _partial(job, gates)
    problems += _synced_completions(job)
    if before is not None:
        suspended = (job.is_suspended, before.is_suspended)
        changes = _Changes(
            document, before.document, suspended, frameworks.BATCH_JOB, has_default_queue=has_default_queue
        )
        problems += changes.problems(gates)
        problems += _partial_changes(job, before)
    if gates.on(Gate.TAS):
        problems += _job_topology(job, gates)
    return tuple(problems)


def job_set_problems(
    document: Document, old: Document | None, gates: Gates, *, has_default_queue: bool
) -> tuple[FieldError, ...]:
    """Return the problems of a JobSet that is created, or changed from ``old``."""
    problems: list[FieldError] = []
    if old is not None:
        suspended = (JobSet(document).is_suspended, JobSet(old).is_suspended)
        changes = _Changes(document, old, suspended, frameworks.JOB_SET, has_default_queue=has_default_queue)
        problems += changes.problems(gates)
    problems += _common(document, frameworks.JOB_SET, gates)
    if gates.on(Gate.TAS):
        problems += _job_set_topology(JobSet(document), gates)
    return tuple(problems)


def installed_job_problems(
    job: SuspendableJob, old: Document | None, gates: Gates, *, has_default_queue: bool
) -> tuple[FieldError, ...]:
    """Return the problems of a job of another project that is created, or changed from ``old``."""
    problems: list[FieldError] = []
    if old is not None:
        problems += change_problems(job, old, gates, has_default_queue=has_default_queue)
    if old is None or isinstance(job, MPIJob | TrainJob):
        # Kueue's webhook of the other kinds does not check again what it has accepted.
        problems += common_problems(job, gates)
    if gates.on(Gate.TAS) and isinstance(job, TemplateJob) and job.checks_topology:
        problems += _template_topology(job, gates)
    if gates.on(Gate.TAS) and isinstance(job, TrainJob):
        problems += _train_job_topology(job, gates)
    return tuple(sorted(problems, key=lambda each: each.field) if isinstance(job, MPIJob) else problems)


def change_problems(job: SuspendableJob, old: Document, gates: Gates, *, has_default_queue: bool) -> Errors:
    """Return the problems of the change of a job from ``old``."""
    suspended = (job.is_suspended, type(job)(old).is_suspended)
    changes = _Changes(job.document, old, suspended, _framework(job), has_default_queue=has_default_queue)
    return changes.problems(gates)


def common_problems(job: SuspendableJob, gates: Gates) -> Errors:
    """Return the problems of a job in what all kinds of jobs have."""
    return _common(job.document, _framework(job), gates)


def _framework(job: SuspendableJob) -> str:
    return next(name for name, kind in frameworks.KINDS.items() if kind == job.kind)


def _template_topology(job: TemplateJob, gates: Gates) -> Errors:
    paths: dict[str, Path] = {}
    is_valid = True
    try:
        job.pod_sets(gates)
    except errors.InvalidValueError:
        has_pod_sets = False
    else:
        has_pod_sets = True
    for slot in job.slots:
        annotations = template_annotations(job.template(slot))
        path = template_path(slot, has_keys=isinstance(job, KubeflowJob)).child("metadata", "annotations")
        paths[slot.pod_set] = path
        problems = tuple(topologyrules.check_annotations(annotations, path, gates))
        is_valid = is_valid and not problems
        yield from problems
        if has_pod_sets:
            yield from topologyrules.check_upper_bound(annotations, path, slot.pods)
    if isinstance(job, MPIJob) and is_valid:
        yield from topologyrules.check_groups(job.pod_sets(gates), paths)


def _train_job_topology(job: TrainJob, gates: Gates) -> Errors:
    """Check the templates of the JobSet that the trainer would create from the job's runtime."""
    advice = '. Adjust either the "TrainJob.spec.runtimePatches" or the "TrainingRuntime.Template" annotations'
    try:
        job_set = job.job_set()
    except RetryError as error:
        yield fielderror.invalid(SPEC.child("runtimeRef"), fielderror.OMITTED, str(error))
        return
    for slot in job_set.slots:
        annotations = template_annotations(job_set.template(slot))
        path = Path("job").key(slot.pod_set).child("annotations")
        for problem in (
            *topologyrules.check_annotations(annotations, path, gates),
            *topologyrules.check_upper_bound(annotations, path, slot.pods),
        ):
            yield structs.replace(problem, detail=f"{problem.detail}{advice} for the corresponding Job")


def pod_problems(
    document: Document, old: Document | None, gates: Gates, *, has_default_queue: bool
) -> tuple[FieldError, ...]:
    """Return the problems of a pod that is created, or changed from ``old``."""
    problems: list[FieldError] = []
    if old is None:
        problems += _common(document, frameworks.POD, gates)
    else:
        suspended = (pods.is_suspended(document), pods.is_suspended(old))
        changes = _Changes(document, old, suspended, frameworks.POD, has_default_queue=has_default_queue)
        problems += changes.problems(gates)
    mark = _labels(document).get(pods.FINALIZER)
    if mark not in (None, "true"):
        path = _LABELS.key(pods.FINALIZER)
        problems.append(fielderror.forbidden(path, "managed label value can only be 'true'"))
    problems += _group(document, gates)
    problems += topologyrules.check_annotations(_annotations(document), _ANNOTATIONS, gates)
    group, prebuilt = _group_name(document, gates), _prebuilt(document, gates)
    if group and prebuilt and prebuilt != group:
        detail = "prebuilt workload and pod group should be equal"
        problems.append(fielderror.invalid(_prebuilt_path(document, gates), prebuilt, detail))
    if old is not None:
        if group and pods.is_final_attempt(old) and not pods.is_final_attempt(document):
            detail = "unretriable pod group can't be converted to retriable"
            problems.append(fielderror.forbidden(_ANNOTATIONS.key(pods.RETRIABLE), detail))
        before = _group_name(old, gates)
        if before and before != group:
            problems.append(fielderror.invalid(_group_path(document, gates), group, _IMMUTABLE))
    return tuple(problems)


def _labels(document: Document) -> Mapping[str, str]:
    return document["metadata"].get("labels") or {}


def _annotations(document: Document) -> Mapping[str, str]:
    return document["metadata"].get("annotations") or {}


def _label(document: Document, name: str) -> str:
    return _labels(document).get(name, "")


def _annotation(document: Document, name: str) -> str | None:
    return _annotations(document).get(name)


def _is_elastic(document: Document, gates: Gates) -> bool:
    return gates.on(Gate.ELASTIC_JOBS) and _annotation(document, workload.ELASTIC) == "true"


# Rules of one object


def _common(document: Document, framework: str, gates: Gates) -> Errors:
    yield from queue_name_problems(document)
    yield from _prebuilt_problems(document, framework, gates)
    yield from _time_limit(document)
    yield from elastic_problems(document, framework, gates)
    if gates.on(Gate.ADMISSION_GATED_BY):
        yield from workloadrules.check_gates(_annotations(document))


def queue_name_problems(document: Document) -> Errors:
    """Return the problems of a queue name."""
    yield from _subdomain(_LABELS.key(QUEUE_LABEL), _labels(document).get(QUEUE_LABEL))


def elastic_problems(document: Document, framework: str, gates: Gates) -> Errors:
    """Return the problem of an elastic job of a kind that cannot be elastic."""
    if _is_elastic(document, gates) and framework not in _ELASTIC_KINDS:
        kind_text = _kind_text(frameworks.KINDS[framework])
        yield fielderror.forbidden(_ELASTIC_PATH, f"elastic job is not supported for {kind_text}")


def _kind_text(kind: frameworks.GroupVersionKind) -> str:
    return quotation.quote(f"{kind.group}/{kind.version}, Kind={kind.kind}")


def _time_limit(document: Document) -> Errors:
    limit = _labels(document).get(construction.LIMIT_LABEL)
    if limit is None:
        return
    path = _LABELS.key(construction.LIMIT_LABEL)
    seconds = labels.parse_int64(limit)
    if seconds is None:
        yield fielderror.invalid(path, limit, _unreadable(limit))
    elif seconds <= 0:
        yield fielderror.invalid(path, seconds, "should be greater than 0")


def _subdomain(path: Path, value: str | None) -> Errors:
    problems = names.dns1123_subdomain(value) if value is not None else ()
    if problems:
        yield fielderror.invalid(path, value, ",".join(problems))


def _unreadable(text: str) -> str:
    digits = text[1:] if text[:1] in ("+", "-") else text
    problem = "value out of range" if digits and _INTEGER_DIGITS.issuperset(digits) else "invalid syntax"
    return f"strconv.Atoi: parsing {quotation.quote(text)}: {problem}"


def _prebuilt(document: Document, gates: Gates) -> str:
    return construction.prebuilt_name(_labels(document), _annotations(document), gates)


def _prebuilt_path(document: Document, gates: Gates) -> Path:
    annotation = _annotation(document, construction.PREBUILT) or ""
    is_annotation = gates.on(Gate.WORKLOAD_IDENTIFIER_ANNOTATIONS) or len(annotation) > names.LABEL_LENGTH
    return (_ANNOTATIONS if is_annotation and annotation else _LABELS).key(construction.PREBUILT)


def _prebuilt_problems(document: Document, framework: str, gates: Gates) -> Errors:
    path = _prebuilt_path(document, gates)
    is_annotation = path == _ANNOTATIONS.key(construction.PREBUILT)
    yield from _subdomain(
        path, (_annotations(document) if is_annotation else _labels(document)).get(construction.PREBUILT)
    )
    kind = frameworks.KINDS[framework]
    if kind == JAXJob.kind and _prebuilt(document, gates):
        yield fielderror.forbidden(path, f"Is not supported for {_kind_text(kind)}")


# Immutable fields


class _Changes:
    """One object of a framework now and before, with ``is_suspended`` at both times."""

    def __init__(
        self,
        new: Document,
        old: Document,
        is_suspended: tuple[bool, bool],
        framework: str,
        *,
        has_default_queue: bool,
    ) -> None:
        self._new = new
        self._old = old
        self._framework = framework
        self._is_held, self._was_held = is_suspended
        self._has_default_queue = has_default_queue

    def problems(self, gates: Gates) -> Errors:
        yield from self._queue()
        yield from self._prebuilt(gates)
        yield from self._time_limit()
        yield from priority_problems(self._new, self._old, is_suspended=self._is_held)
        is_elastic = _is_elastic(self._new, gates)
        if is_elastic != _is_elastic(self._old, gates):
            yield fielderror.invalid(_ELASTIC_PATH, is_elastic, _IMMUTABLE)
        if gates.on(Gate.ADMISSION_GATED_BY):
            yield from workloadrules.check_gates(_annotations(self._new), _annotations(self._old))

    def _queue(self) -> Errors:
        queue, before = _label(self._new, QUEUE_LABEL), _label(self._old, QUEUE_LABEL)
        if not self._is_held and queue != before:
            yield fielderror.invalid(_LABELS.key(QUEUE_LABEL), queue, _IMMUTABLE)
        if not queue and before and self._has_default_queue:
            detail = "queue-name must not be empty in namespace with default queue"
            yield fielderror.invalid(_LABELS.key(QUEUE_LABEL), "", detail)

    def _prebuilt(self, gates: Gates) -> Errors:
        if self._is_held or _is_elastic(self._old, gates):
            yield from _prebuilt_problems(self._new, self._framework, gates)
            return
        name = _prebuilt(self._new, gates)
        if name != _prebuilt(self._old, gates):
            yield fielderror.invalid(_prebuilt_path(self._new, gates), name, _IMMUTABLE)

    def _time_limit(self) -> Errors:
        limit, before = _label(self._new, construction.LIMIT_LABEL), _label(self._old, construction.LIMIT_LABEL)
        if not (self._is_held and self._was_held) and limit != before:
            yield fielderror.invalid(_LABELS.key(construction.LIMIT_LABEL), limit, _IMMUTABLE)


def priority_problems(new: Document, old: Document, *, is_suspended: bool) -> Errors:
    """Return the problems of a change of the priority class."""
    priority, before = _label(new, PRIORITY_LABEL), _label(old, PRIORITY_LABEL)
    path = _LABELS.key(PRIORITY_LABEL)
    if not is_suspended and priority and not before:
        detail = "WorkloadPriorityClass cannot be added to a non-suspended workload"
        yield fielderror.invalid(path, priority, detail)
    elif before and not priority:
        yield fielderror.invalid(path, "", "WorkloadPriorityClass cannot be removed from a workload")


# Jobs


def _partial(job: BatchJob, gates: Gates) -> Errors:
    text = _annotation(job.document, MIN_PARALLELISM)
    if text is None:
        return
    path = _ANNOTATIONS.key(MIN_PARALLELISM)
    if job.min_pods is None:
        yield fielderror.invalid(path, text, _unreadable(text))
    elif not 0 < job.min_pods < job.pods:
        yield fielderror.invalid(path, job.min_pods, f"should be between 0 and {job.pods - 1}")
    if _is_elastic(job.document, gates):
        yield fielderror.invalid(path, text, "partial admission and elastic job cannot be used together")


def _synced_completions(job: BatchJob) -> Errors:
    text = _annotation(job.document, SYNC_COMPLETIONS)
    if text is None:
        return
    path = _ANNOTATIONS.key(SYNC_COMPLETIONS)
    if text not in topologyrequest.TRUE | topologyrequest.FALSE:
        yield fielderror.invalid(path, text, f'strconv.ParseBool: parsing "{text}": invalid syntax')
    if text not in topologyrequest.TRUE:
        return
    spec = job.document["spec"]
    if spec.get("completionMode", "NonIndexed") == "NonIndexed":
        yield fielderror.invalid(path, text, "should not be enabled for NonIndexed jobs")
    if spec.get("parallelism", 1) != spec.get("completions", 1):
        detail = f"should be equal to parallelism when {SYNC_COMPLETIONS} annotation is true"
        yield fielderror.invalid(SPEC.child("completions"), spec.get("completions"), detail)


def _partial_changes(job: BatchJob, before: BatchJob) -> Errors:
    is_running = not before.document["spec"].get("suspend")
    is_partial = _annotation(before.document, MIN_PARALLELISM) is not None
    if is_partial and is_running and before.parallelism != job.parallelism:
        detail = "cannot change when partial admission is enabled and the job is not suspended"
        yield fielderror.forbidden(SPEC.child("parallelism"), detail)
    synced, synced_before = (
        _annotation(each.document, SYNC_COMPLETIONS) in topologyrequest.TRUE for each in (job, before)
    )
    if not before.is_suspended and not job.is_suspended and synced != synced_before:
        path = _ANNOTATIONS.key(SYNC_COMPLETIONS)
        yield fielderror.forbidden(path, f"{_IMMUTABLE} while the job is not suspended")


# Topology


def template_annotations(template: Document) -> Mapping[str, str]:
    """Return the annotations of a pod template."""
    return (template.get("metadata") or {}).get("annotations") or {}


def template_path(slot: TemplateSlot, *, has_keys: bool = False) -> Path:
    """Return the path of a template. With ``has_keys``, its second step is the key of a map."""
    path = SPEC
    for position, step in enumerate(slot.path):
        if isinstance(step, int):
            path = path.item(step)
        else:
            path = path.key(step) if has_keys and position == 1 else path.child(step)
    return path


def _job_topology(job: BatchJob, gates: Gates) -> Errors:
    annotations = template_annotations(job.document["spec"].get("template") or {})
    problems = tuple(topologyrules.check_annotations(annotations, _TEMPLATE_ANNOTATIONS, gates))
    if problems:
        yield from problems
        return
    if _is_elastic(job.document, gates):
        for name, form in ((topologyrequest.REQUIRED, "required"), (topologyrequest.PREFERRED, "preferred")):
            if name in annotations:
                detail = f"{form} topology is not supported with elastic jobs"
                yield fielderror.forbidden(_TEMPLATE_ANNOTATIONS.child(name), detail)
                return
    yield from topologyrules.check_upper_bound(annotations, _TEMPLATE_ANNOTATIONS, job.pods)


def _job_set_topology(job_set: JobSet, gates: Gates) -> Errors:
    slots = job_set.slots
    annotations = [template_annotations(job_set.template(slot)) for slot in slots]
    paths = [template_path(slot).child("metadata", "annotations") for slot in slots]
    try:
        pod_sets = job_set.pod_sets(gates)
    except errors.InvalidValueError:
        for each, path in zip(annotations, paths, strict=True):
            yield from topologyrules.check_annotations(each, path, gates)
        return
    for each, path, pod_set in zip(annotations, paths, pod_sets, strict=True):
        yield from topologyrules.check_annotations(each, path, gates)
        yield from topologyrules.check_upper_bound(each, path, pod_set["count"])
    paths_by_name = {pod_set["name"]: path for pod_set, path in zip(pod_sets, paths, strict=True)}
    yield from topologyrules.check_groups(pod_sets, paths_by_name)


# Pods


def _group_name(pod: Document, gates: Gates) -> str:
    return pods.group_name(_labels(pod), _annotations(pod), gates)


def _group_path(document: Document, gates: Gates) -> Path:
    """Return the path of a pod's group name: an annotation or a label."""
    is_annotation = gates.on(Gate.WORKLOAD_IDENTIFIER_ANNOTATIONS) and _annotation(document, pods.GROUP)
    return (_ANNOTATIONS if is_annotation else _LABELS).key(pods.GROUP)


def _group(document: Document, gates: Gates) -> Errors:
    """Check that a pod has both a group name and a total count, or neither."""
    total = _annotation(document, pods.TOTAL)
    path, total_path = _group_path(document, gates), _ANNOTATIONS.key(pods.TOTAL)
    form = "label" if path == _LABELS.key(pods.GROUP) else "annotation"
    both = f"both the '{pods.TOTAL}' annotation and the '{pods.GROUP}' {form} should be set"
    name = _group_name(document, gates)
    if not name:
        if total is not None:
            yield fielderror.required(path, both)
            return
    else:
        yield from _subdomain(path, name)
        if total is None:
            yield fielderror.required(total_path, both)
            return
    if total is not None:
        count = podgroup.parse_int(total)
        if count is None:
            yield fielderror.invalid(total_path, total, _unreadable(total))
        elif count < 1:
            detail = "incorrect annotation value '{}={}': group total count should be greater than zero"
            yield fielderror.invalid(total_path, total, detail.format(pods.TOTAL, total))
