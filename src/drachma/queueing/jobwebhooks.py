"""What Kueue's webhooks do to jobs and pods: held back when they are made, and refused where labels make no sense.

They look at documents and at what is passed in; whoever runs beside an API server asks them about every write.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple, TypeAlias

from drachma.queueing import jobowners, podgroup, rolehash, topologyrequest
from drachma.queueing.batchjob import MIN_PARALLELISM, SYNC_COMPLETIONS, BatchJob
from drachma.queueing.gates import Gate
from drachma.queueing.jobset import JobSet
from drachma.queueing.jobsettings import JobSettings
from drachma.queueing.jobworkload import LIMIT_LABEL, PRIORITY_LABEL, QUEUE_LABEL
from drachma.validation import fielderror
from drachma.validation.fielderror import Errors, FieldError
from drachma.validation.path import METADATA, SPEC, Path
from drachma.values import labels, names

Document: TypeAlias = Mapping[str, Any]

DEFAULT_QUEUE: Final = "default"
_LABELS: Final = METADATA.child("labels")
_ANNOTATIONS: Final = METADATA.child("annotations")
_IMMUTABLE: Final = "field is immutable"
_BY_PARENT: Final = "kueue.x-k8s.io/pod-suspending-parent"


class Place(NamedTuple):
    """Where an object is made: the labels of its namespace, what is in it, and the objects that may own it."""

    labels: Mapping[str, str]
    has_default_queue: bool
    has_default_priority: bool
    owner: Callable[[str, str, str], Document | None]
    """An object of the namespace by apiVersion, kind and name."""


def completed_job(document: Document, place: Place, settings: JobSettings) -> dict[str, Any] | None:
    """A new Job or JobSet as it should be: in a queue, and held back; None if it is so already."""
    after = dict(document)
    is_in_scope = settings.namespaces.matches(place.labels)
    if _ancestor(document, place, settings) is None:
        if place.has_default_queue and is_in_scope and not _label(after, QUEUE_LABEL):
            after = _labelled(after, QUEUE_LABEL, DEFAULT_QUEUE)
        after = _with_priority(after, place, settings)
        is_queued = bool(_label(after, QUEUE_LABEL)) or settings.management.without_queue_name
        if is_queued and is_in_scope and not after["spec"].get("suspend"):
            after["spec"] = {**after["spec"], "suspend": True}
    return after if after != document else None


def completed_pod(document: Document, place: Place, settings: JobSettings) -> dict[str, Any] | None:
    """A new pod as it should be: in a queue, and gated; None if it is left as it is."""
    after = dict(document)
    is_of_parent = _BY_PARENT in (document["metadata"].get("annotations") or {})
    if not is_of_parent:
        if not settings.namespaces.matches(place.labels) or _ancestor(document, place, settings) is not None:
            return None
        if place.has_default_queue and not _label(after, QUEUE_LABEL):
            after = _labelled(after, QUEUE_LABEL, DEFAULT_QUEUE)
        after = _with_priority(after, place, settings)
        if not (_label(after, QUEUE_LABEL) or settings.management.without_queue_name):
            return after if after != document else None
        after = _labelled(after, podgroup.FINALIZER, "true")
        finalizers = after["metadata"].get("finalizers") or []
        if podgroup.FINALIZER not in finalizers:
            after["metadata"] = {**after["metadata"], "finalizers": [*finalizers, podgroup.FINALIZER]}
    gates = after["spec"].get("schedulingGates") or []
    if not podgroup.is_gated(after):
        after["spec"] = {**after["spec"], "schedulingGates": [*gates, {"name": podgroup.GATE}]}
    annotations = {**(after["metadata"].get("annotations") or {}), rolehash.ANNOTATION: rolehash.of_spec(after["spec"])}
    after["metadata"] = {**after["metadata"], "annotations": annotations}
    return after


def _ancestor(of: Document, place: Place, settings: JobSettings) -> Document | None:
    """The owner that is queued in its place; those that cannot be found are none."""
    owners: dict[tuple[str, str, str], Document] = {}
    each: Document | None = of
    while each is not None and len(owners) <= jobowners.MOST:
        references = each["metadata"].get("ownerReferences") or ()
        owner = next((one for one in references if one.get("controller")), None)
        if owner is None:
            break
        each = place.owner(owner["apiVersion"], owner["kind"], owner["name"])
        if each is not None:
            owners[owner["apiVersion"], owner["kind"], owner["name"]] = each
    try:
        return jobowners.ancestor(of, owners, settings.management)
    except jobowners.AncestryError:
        return None


def _with_priority(of: dict[str, Any], place: Place, settings: JobSettings) -> dict[str, Any]:
    is_set = settings.gates.on(Gate.PRIORITY_CLASS_DEFAULTING) and place.has_default_priority
    return _labelled(of, PRIORITY_LABEL, "default") if is_set and not _label(of, PRIORITY_LABEL) else of


def _label(of: Document, name: str) -> str:
    value: str = (of["metadata"].get("labels") or {}).get(name, "")
    return value


def _annotation(of: Document, name: str) -> str | None:
    value: str | None = (of["metadata"].get("annotations") or {}).get(name)
    return value


def _labelled(of: Document, name: str, value: str) -> dict[str, Any]:
    metadata = of["metadata"]
    return {**of, "metadata": {**metadata, "labels": {**(metadata.get("labels") or {}), name: value}}}


def job_problems(document: Document, old: Document | None, place: Place) -> tuple[FieldError, ...]:
    """All that is wrong with a Job that is made, or changed from ``old``."""
    job, before = BatchJob(document), None if old is None else BatchJob(old)
    found = [*_common(document)]
    if before is None or _annotation(document, MIN_PARALLELISM) != _annotation(before.document, MIN_PARALLELISM):
        found += _partial(job)
    found += _synced_completions(job)
    if before is not None:
        found += _changes(document, before.document, place, is_suspended=(job.is_suspended, before.is_suspended))
        found += _partial_changes(job, before)
    return tuple(found)


def job_set_problems(document: Document, old: Document | None, place: Place) -> tuple[FieldError, ...]:
    """All that is wrong with a JobSet that is made, or changed from ``old``."""
    found: list[FieldError] = []
    if old is not None:
        suspended = (JobSet(document).is_suspended, JobSet(old).is_suspended)
        found += _changes(document, old, place, is_suspended=suspended)
    return (*found, *_common(document))


def pod_problems(
    document: Document, old: Document | None, place: Place, settings: JobSettings
) -> tuple[FieldError, ...]:
    """All that is wrong with a pod that is made, or changed from ``old``."""
    found: list[FieldError] = []
    if old is None:
        found += _common(document)
    else:
        suspended = (podgroup.is_suspended(document), podgroup.is_suspended(old))
        found += _changes(document, old, place, is_suspended=suspended)
    mark = (document["metadata"].get("labels") or {}).get(podgroup.FINALIZER)
    if mark not in (None, "true"):
        path = _LABELS.key(podgroup.FINALIZER)
        found.append(fielderror.forbidden(path, "managed label value can only be 'true'"))
    found += _group(document, settings)
    if old is not None:
        before, after = (podgroup.group_name(each, settings.gates) for each in (old, document))
        if before and before != after:
            found.append(fielderror.invalid(_LABELS.key(podgroup.GROUP), after, _IMMUTABLE))
    return tuple(found)


def _common(of: Document) -> Errors:
    yield from _subdomain(_LABELS.key(QUEUE_LABEL), (of["metadata"].get("labels") or {}).get(QUEUE_LABEL))
    limit = (of["metadata"].get("labels") or {}).get(LIMIT_LABEL)
    if limit is not None:
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
    return f'strconv.Atoi: parsing "{text}": invalid syntax'


def _changes(new: Document, old: Document, place: Place, *, is_suspended: tuple[bool, bool]) -> Errors:
    """What may not change; ``is_suspended`` now, and before."""
    is_held, was_held = is_suspended
    queue, queue_before = _label(new, QUEUE_LABEL), _label(old, QUEUE_LABEL)
    if not is_held and queue != queue_before:
        yield fielderror.invalid(_LABELS.key(QUEUE_LABEL), queue, _IMMUTABLE)
    if not queue and queue_before and place.has_default_queue:
        detail = "queue-name must not be empty in namespace with default queue"
        yield fielderror.invalid(_LABELS.key(QUEUE_LABEL), "", detail)
    limit, limit_before = _label(new, LIMIT_LABEL), _label(old, LIMIT_LABEL)
    if not (is_held and was_held) and limit != limit_before:
        yield fielderror.invalid(_LABELS.key(LIMIT_LABEL), limit, _IMMUTABLE)
    priority, priority_before = _label(new, PRIORITY_LABEL), _label(old, PRIORITY_LABEL)
    path = _LABELS.key(PRIORITY_LABEL)
    if not is_held and priority and not priority_before:
        detail = "WorkloadPriorityClass cannot be added to a non-suspended workload"
        yield fielderror.invalid(path, priority, detail)
    elif priority_before and not priority:
        yield fielderror.invalid(path, "", "WorkloadPriorityClass cannot be removed from a workload")


def _partial(job: BatchJob) -> Errors:
    text = _annotation(job.document, MIN_PARALLELISM)
    if text is None:
        return
    path = _ANNOTATIONS.key(MIN_PARALLELISM)
    if job.min_pods is None:
        yield fielderror.invalid(path, text, _unreadable(text))
    elif not 0 < job.min_pods < job.pods:
        yield fielderror.invalid(path, job.min_pods, f"should be between 0 and {job.pods - 1}")


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


def _group(of: Document, settings: JobSettings) -> Errors:
    """A group has a name and a size, or neither."""
    total = _annotation(of, podgroup.TOTAL)
    path, total_path = _LABELS.key(podgroup.GROUP), _ANNOTATIONS.key(podgroup.TOTAL)
    both = f"both the '{podgroup.TOTAL}' annotation and the '{podgroup.GROUP}' label should be set"
    name = podgroup.group_name(of, settings.gates)
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
