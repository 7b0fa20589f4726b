"""Rules of Kueue's webhooks for Jobs, JobSets and pods: where what they say about queues makes no sense.

In Kueue's order and words. What they say about topology is not checked.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeAlias

from drachma.queueing.configuration import frameworks
from drachma.queueing.configuration.gates import Gate, Gates
from drachma.queueing.jobs import podgroup, topologyrequest, workloadnames
from drachma.queueing.jobs.batchjob import MIN_PARALLELISM, SYNC_COMPLETIONS, BatchJob
from drachma.queueing.jobs.jobset import JobSet
from drachma.queueing.jobs.jobworkload import LIMIT_LABEL, PRIORITY_LABEL, QUEUE_LABEL
from drachma.queueing.kinds import workload
from drachma.queueing.rules import workloadrules
from drachma.validation import fielderror
from drachma.validation.fielderror import Errors, FieldError
from drachma.validation.path import METADATA, SPEC, Path
from drachma.values import labels, names, quotation

Document: TypeAlias = Mapping[str, Any]

_LABELS: Final = METADATA.child("labels")
_ANNOTATIONS: Final = METADATA.child("annotations")
_ELASTIC_PATH: Final = _ANNOTATIONS.key(workload.ELASTIC)
_ELASTIC_KINDS: Final = frozenset({frameworks.BATCH_JOB})
_IMMUTABLE: Final = "field is immutable"
_INTEGER_DIGITS: Final = frozenset("0123456789")


def job_problems(
    document: Document, old: Document | None, gates: Gates, *, has_default_queue: bool
) -> tuple[FieldError, ...]:
    """All that is wrong with a Job that is made, or changed from ``old``."""
    job, before = BatchJob(document), None if old is None else BatchJob(old)
    found = [*_common(document, frameworks.BATCH_JOB, gates)]
    if before is None or _annotation(document, MIN_PARALLELISM) != _annotation(before.document, MIN_PARALLELISM):
        found += _partial(job, gates)
    found += _synced_completions(job)
    if before is not None:
        suspended = (job.is_suspended, before.is_suspended)
        changes = _Changes(document, before.document, suspended, has_default_queue=has_default_queue)
        found += changes.problems(gates)
        found += _partial_changes(job, before)
    return tuple(found)


def job_set_problems(
    document: Document, old: Document | None, gates: Gates, *, has_default_queue: bool
) -> tuple[FieldError, ...]:
    """All that is wrong with a JobSet that is made, or changed from ``old``."""
    found: list[FieldError] = []
    if old is not None:
        suspended = (JobSet(document).is_suspended, JobSet(old).is_suspended)
        changes = _Changes(document, old, suspended, has_default_queue=has_default_queue)
        found += changes.problems(gates)
    return (*found, *_common(document, frameworks.JOB_SET, gates))


def pod_problems(
    document: Document, old: Document | None, gates: Gates, *, has_default_queue: bool
) -> tuple[FieldError, ...]:
    """All that is wrong with a pod that is made, or changed from ``old``."""
    found: list[FieldError] = []
    if old is None:
        found += _common(document, frameworks.POD, gates)
    else:
        suspended = (podgroup.is_suspended(document), podgroup.is_suspended(old))
        changes = _Changes(document, old, suspended, has_default_queue=has_default_queue)
        found += changes.problems(gates)
    mark = _labels(document).get(podgroup.FINALIZER)
    if mark not in (None, "true"):
        path = _LABELS.key(podgroup.FINALIZER)
        found.append(fielderror.forbidden(path, "managed label value can only be 'true'"))
    found += _group(document, gates)
    group, prebuilt = podgroup.group_name(document, gates), _prebuilt(document, gates)
    if group and prebuilt and prebuilt != group:
        detail = "prebuilt workload and pod group should be equal"
        found.append(fielderror.invalid(_prebuilt_path(document, gates), prebuilt, detail))
    if old is not None:
        if group and podgroup.is_final_attempt(old) and not podgroup.is_final_attempt(document):
            detail = "unretriable pod group can't be converted to retriable"
            found.append(fielderror.forbidden(_ANNOTATIONS.key(podgroup.RETRIABLE), detail))
        before = podgroup.group_name(old, gates)
        if before and before != group:
            found.append(fielderror.invalid(_group_path(document, gates), group, _IMMUTABLE))
    return tuple(found)


def _labels(of: Document) -> Mapping[str, str]:
    return of["metadata"].get("labels") or {}


def _annotations(of: Document) -> Mapping[str, str]:
    return of["metadata"].get("annotations") or {}


def _label(of: Document, name: str) -> str:
    return _labels(of).get(name, "")


def _annotation(of: Document, name: str) -> str | None:
    return _annotations(of).get(name)


def _is_elastic(of: Document, gates: Gates) -> bool:
    return gates.on(Gate.ELASTIC_JOBS) and _annotation(of, workload.ELASTIC) == "true"


# What is said of one object


def _common(of: Document, framework: str, gates: Gates) -> Errors:
    yield from _subdomain(_LABELS.key(QUEUE_LABEL), _labels(of).get(QUEUE_LABEL))
    yield from _prebuilt_name(of, gates)
    yield from _time_limit(of)
    if _is_elastic(of, gates) and framework not in _ELASTIC_KINDS:
        kind = frameworks.KINDS[framework]
        shown = quotation.quote(f"{kind.group}/{kind.version}, Kind={kind.kind}")
        yield fielderror.forbidden(_ELASTIC_PATH, f"elastic job is not supported for {shown}")
    if gates.on(Gate.ADMISSION_GATED_BY):
        yield from workloadrules.check_gates(_annotations(of))


def _time_limit(of: Document) -> Errors:
    limit = _labels(of).get(LIMIT_LABEL)
    if limit is None:
        return
    path = _LABELS.key(LIMIT_LABEL)
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


def _prebuilt(of: Document, gates: Gates) -> str:
    return workloadnames.prebuilt(_labels(of), _annotations(of), gates)


def _prebuilt_path(of: Document, gates: Gates) -> Path:
    annotation = _annotation(of, workloadnames.PREBUILT) or ""
    is_annotation = gates.on(Gate.WORKLOAD_IDENTIFIER_ANNOTATIONS) or len(annotation) > names.LABEL_LENGTH
    return (_ANNOTATIONS if is_annotation and annotation else _LABELS).key(workloadnames.PREBUILT)


def _prebuilt_name(of: Document, gates: Gates) -> Errors:
    path = _prebuilt_path(of, gates)
    is_annotation = path == _ANNOTATIONS.key(workloadnames.PREBUILT)
    yield from _subdomain(path, (_annotations(of) if is_annotation else _labels(of)).get(workloadnames.PREBUILT))


# What may not change


class _Changes:
    """One object, now and before; ``is_suspended`` at both times."""

    def __init__(
        self, new: Document, old: Document, is_suspended: tuple[bool, bool], *, has_default_queue: bool
    ) -> None:
        self._new = new
        self._old = old
        self._is_held, self._was_held = is_suspended
        self._has_default_queue = has_default_queue

    def problems(self, gates: Gates) -> Errors:
        yield from self._queue()
        yield from self._prebuilt(gates)
        yield from self._time_limit()
        yield from self._priority()
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
            yield from _prebuilt_name(self._new, gates)
            return
        name = _prebuilt(self._new, gates)
        if name != _prebuilt(self._old, gates):
            yield fielderror.invalid(_prebuilt_path(self._new, gates), name, _IMMUTABLE)

    def _time_limit(self) -> Errors:
        limit, before = _label(self._new, LIMIT_LABEL), _label(self._old, LIMIT_LABEL)
        if not (self._is_held and self._was_held) and limit != before:
            yield fielderror.invalid(_LABELS.key(LIMIT_LABEL), limit, _IMMUTABLE)

    def _priority(self) -> Errors:
        priority, before = _label(self._new, PRIORITY_LABEL), _label(self._old, PRIORITY_LABEL)
        path = _LABELS.key(PRIORITY_LABEL)
        if not self._is_held and priority and not before:
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


# Pods


def _group_path(of: Document, gates: Gates) -> Path:
    """Where a pod says which group it is of: in an annotation, or in a label."""
    is_annotation = gates.on(Gate.WORKLOAD_IDENTIFIER_ANNOTATIONS) and _annotation(of, podgroup.GROUP)
    return (_ANNOTATIONS if is_annotation else _LABELS).key(podgroup.GROUP)


def _group(of: Document, gates: Gates) -> Errors:
    """A group has a name and a size, or neither."""
    total = _annotation(of, podgroup.TOTAL)
    path, total_path = _group_path(of, gates), _ANNOTATIONS.key(podgroup.TOTAL)
    form = "label" if path == _LABELS.key(podgroup.GROUP) else "annotation"
    both = f"both the '{podgroup.TOTAL}' annotation and the '{podgroup.GROUP}' {form} should be set"
    name = podgroup.group_name(of, gates)
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
            yield fielderror.invalid(total_path, total, detail.format(podgroup.TOTAL, total))
