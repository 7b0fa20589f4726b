"""Rules for Job and CronJob."""

from typing import Any, Final

from drachma import errors
from drachma.validation import (
    cronschedule,
    fielderror,
    internalform,
    jobpolicies,
    kindrules,
    rendering,
    rulenotation,
    typerules,
    workload,
)
from drachma.validation.fielderror import Errors, FieldError
from drachma.validation.path import METADATA, SPEC, Document, Path
from drachma.values import names, timezones

CONTROLLER_UID: Final = ("controller-uid", "batch.kubernetes.io/controller-uid")
JOB_NAME: Final = ("job-name", "batch.kubernetes.io/job-name")
CRON_TEMPLATE: Final = SPEC.child("jobTemplate", "spec", "template")

_CRON_NAME_LENGTH: Final = 52
"""The controller appends eleven characters to the name of a CronJob for the names of its jobs."""

_SCHEDULING_FIELDS: Final = ("nodeSelector", "tolerations", "schedulingGates")


# The spec of a job


def _check_generated_labels(job: Document, at: Path, metadata: Document) -> Errors:
    """Check the labels that tie pods to their job, which only the server sets."""
    spec = job["spec"]
    if spec.get("manualSelector"):
        return
    uid, name = str(metadata.get("uid", "")), str(metadata.get("name", ""))
    values = {**dict.fromkeys(CONTROLLER_UID, uid), **dict.fromkeys(JOB_NAME, name)}
    labels = ((spec.get("template") or {}).get("metadata") or {}).get("labels") or {}
    for key in (CONTROLLER_UID[0], JOB_NAME[0], CONTROLLER_UID[1], JOB_NAME[1]):
        place, detail = at.child("spec", "template", "metadata", "labels").key(key), f"must be '{values[key]}'"
        if key not in labels:
            yield fielderror.required(place, detail)
        elif labels[key] != values[key]:
            yield fielderror.invalid(place, rendering.wire(labels), detail)
    selector = workload.compile_selector(spec.get("selector"))
    if selector is not None and not selector.matches(values):
        display = workload.show_selector(spec.get("selector"))
        yield fielderror.invalid(at.child("spec", "selector"), display, "`selector` not auto-generated")


def _check_pod_names(job: Document, at: Path, metadata: Document) -> Errors:
    """Check that the name of an indexed job can be part of the hostnames of its pods."""
    spec = job["spec"]
    if spec.get("completionMode") == "Indexed" and spec.get("completions"):
        hostname = f"{metadata.get('name', '')}-{spec['completions'] - 1}"
        if names.dns1123_label(hostname):
            detail = f"will not able to create pod with invalid DNS label: {hostname}"
            yield fielderror.invalid(METADATA.child("name"), metadata.get("name", ""), detail)


def _check_restart_policy(spec: Document, at: Path) -> Errors:
    pod, place = (spec.get("template") or {}).get("spec") or {}, at.child("template", "spec")
    problems = list(workload.check_restart_policy_of_job(pod, place))
    yield from problems
    if not problems and spec.get("podFailurePolicy") is not None and pod["restartPolicy"] != "Never":
        detail = 'only "Never" is supported when podFailurePolicy is specified'
        yield fielderror.invalid(place.child("restartPolicy"), rendering.named(pod["restartPolicy"]), detail)


def _check_match(spec: Document, at: Path) -> Errors:
    selector = workload.compile_selector(spec.get("selector"))
    if selector is not None:
        yield from workload.check_match(spec, selector, at)


def _check_gang(spec: Document, at: Path) -> Errors:
    """Check that a gang needs at most as many pods as run at once."""
    policy = (spec.get("scheduling") or {}).get("schedulingPolicy") or {}
    count, parallelism = (policy.get("gang") or {}).get("minCount"), spec.get("parallelism", 1)
    if count is not None and count > parallelism:
        place = at.child("scheduling", "schedulingPolicy", "gang", "minCount")
        yield fielderror.invalid(place, count, f"must not be greater than parallelism ({parallelism})")


# Updates of a job


def _check_template_update(job: Document, at: Path, old: Document) -> Errors:
    """Check a changed template: only a suspended job can change where its pods run, and their resources."""
    template, before = (each["spec"].get("template") or {} for each in (job, old))
    status, place = old.get("status") or {}, at.child("spec", "template")
    if template == before:
        return
    is_idle = not status.get("startTime") or "Suspended" in _true_conditions(status)
    if not (old["spec"].get("suspend") and is_idle and not status.get("active")):
        yield fielderror.invalid(place, internalform.render(template, "PodTemplateSpec"), typerules.IMMUTABLE)
    elif _fixed_part(template.get("spec") or {}) != _fixed_part(before.get("spec") or {}):
        display = internalform.render(template.get("spec") or {}, "PodSpec")
        yield fielderror.invalid(place.child("spec"), display, typerules.IMMUTABLE)


def _fixed_part(pod: Document) -> dict[str, Any]:
    """Return the fields of a pod that no update of a suspended job may change."""
    fixed = {field: value for field, value in pod.items() if field not in _SCHEDULING_FIELDS}
    affinity = {field: value for field, value in (pod.get("affinity") or {}).items() if field != "nodeAffinity"}
    containers = {
        field: [{**container, "resources": {}} for container in pod.get(field) or ()]
        for field in ("containers", "initContainers")
    }
    return {**fixed, "affinity": affinity, **containers}


# The status of a job


def _check_status(job: Document, at: Path, old: Document) -> list[FieldError]:
    """Check a changed status; errors that the old status has already may stay while other fields change."""
    status, before = (
        {**(each.get("status") or {}), "spec": job["spec"], "is": _true_conditions(each.get("status") or {})}
        for each in (job, old)
    )
    place = at.child("status")
    return [*_TYPES["JobStatus"](status, place), *_TYPES["StatusUpdate"](status, place, before)]


def _true_conditions(status: Document) -> dict[str, bool]:
    return {each.get("type"): True for each in status.get("conditions") or () if each.get("status") == "True"}


def _check_uncounted(pods: Document, at: Path) -> Errors:
    previous: set[str] = set()
    for field in ("succeeded", "failed"):
        for index, uid in enumerate(pods.get(field) or ()):
            place = at.child(field).item(index)
            if not uid:
                yield fielderror.invalid(place, rendering.named(uid), "must not be empty")
            elif uid in previous:
                yield fielderror.duplicate(place, rendering.named(uid))
            previous.add(uid)


def _check_indexes(status: Document, at: Path, old: Document) -> Errors:
    """Check lists of indexes that change; a stored list may have indexes that a smaller job no longer has."""
    spec = status["spec"]
    completed, failed, completions = (
        status.get("completedIndexes") or "",
        status.get("failedIndexes"),
        spec.get("completions"),
    )
    is_completed_changed = completed != (old.get("completedIndexes") or "")
    is_failed_changed = failed != old.get("failedIndexes")
    counts_by_index = spec.get("backoffLimitPerIndex") is not None
    if is_completed_changed and completions is not None:
        yield from _check_index_list("completedIndexes", completed, completions, at)
    if is_failed_changed and completions is not None and counts_by_index and failed is not None:
        yield from _check_index_list("failedIndexes", failed, completions, at)
    if is_completed_changed and completed and spec.get("completionMode") != "Indexed":
        detail = "cannot set non-empty completedIndexes when non-indexed completion mode"
        yield fielderror.invalid(at.child("completedIndexes"), completed, detail)
    if is_failed_changed and failed is not None and not counts_by_index:
        detail = "cannot set non-null failedIndexes when backoffLimitPerIndex is null"
        yield fielderror.invalid(at.child("failedIndexes"), failed, detail)
    if (is_completed_changed or is_failed_changed) and completions is not None and failed is not None:
        overlap = jobpolicies.find_overlap(completed, failed, completions)
        if overlap is not None:
            detail = f"failedIndexes and completedIndexes overlap at index: {overlap}"
            yield fielderror.invalid(at.child("failedIndexes"), failed, detail)


def _check_index_list(field: str, indexes: str, completions: int, at: Path) -> Errors:
    try:
        jobpolicies.count_indexes(indexes, completions)
    except errors.InvalidValueError as error:
        shown = indexes if field == "completedIndexes" else rendering.named(indexes)
        yield fielderror.invalid(at.child(field), shown, f"error parsing {field}: {error}")


def _is_resumed(status: Document, old: Document) -> bool:
    conditions = status.get("conditions") or ()
    return "Suspended" in old["is"] and any(
        each.get("type") == "Suspended" and each.get("status") == "False" for each in conditions
    )


def _show_uncounted(pods: Document) -> rendering.Rendered:
    return rendering.internal_fields(pods, ("Failed", "failed", None), ("Succeeded", "succeeded", None))


# CronJob


def _check_schedule(spec: Document, at: Path, old: Document) -> Errors:
    schedule, place = spec.get("schedule", ""), at.child("schedule")
    if not schedule:
        yield fielderror.required(place)
    else:
        try:
            cronschedule.parse(schedule)
        except errors.InvalidValueError as error:
            yield fielderror.invalid(place, schedule, str(error))
    if "TZ" in old.get("schedule", ""):
        if "TZ" in schedule and spec.get("timeZone") is not None:
            yield fielderror.invalid(place, schedule, "cannot use both timeZone field and TZ or CRON_TZ in schedule")
    elif "TZ" in schedule:
        yield fielderror.invalid(place, schedule, "cannot use TZ or CRON_TZ in schedule, use timeZone field instead")


def _no_manual_selector(value: bool, at: Path) -> Errors:  # noqa: FBT001 - the value of a field
    yield fielderror.not_supported(at, rendering.wire(value), ("nil", "false"))


def _check_updated_pod_names(job: Document, at: Path, old: Document) -> Errors:
    return _check_pod_names(job, at, old["metadata"])


def _check_name_length(content: Document, at: Path, metadata: Document) -> Errors:
    name = metadata.get("name", "")
    if len(name) > _CRON_NAME_LENGTH:
        detail = f"must be no more than {_CRON_NAME_LENGTH} characters"
        yield fielderror.invalid(METADATA.child("name"), name, detail)


def _zone(zone: str, at: Path) -> Errors:
    if not zone:
        yield fielderror.invalid(at, zone, "timeZone must be nil or non-empty string")
    elif zone.lower() == "local":
        detail = "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"
        yield fielderror.invalid(at, zone, detail)
    elif timezones.find(zone) is None:
        yield fielderror.invalid(at, zone, f"unknown time zone {zone}")


def _has_other_scheduling(job: Document, old: Document) -> bool:
    """Return True if an update changes the scheduling of a job in more than the number of pods of its gang."""
    scheduling, before = (each["spec"].get("scheduling") for each in (job, old))
    return _without_count(scheduling) != _without_count(before)


def _without_count(scheduling: Document | None) -> Document | None:
    policy = (scheduling or {}).get("schedulingPolicy") or {}
    if scheduling is None or policy.get("gang") is None:
        return scheduling
    gang = {field: value for field, value in policy["gang"].items() if field != "minCount"}
    return {**scheduling, "schedulingPolicy": {**policy, "gang": gang}}


_TYPES: Final = rulenotation.load("batch", globals())
KINDS: Final = kindrules.read(_TYPES)
