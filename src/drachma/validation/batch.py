"""Rules for Job and CronJob.

The details of ``podFailurePolicy`` and ``successPolicy`` are not checked, because no component here acts on them.
"""

from typing import Any, Final

from drachma import errors
from drachma.validation import (
    cronschedule,
    fielderror,
    internalform,
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

_MANAGER_LENGTH: Final = 63
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


def _manager(name: str, at: Path) -> Errors:
    domain, _, path = name.partition("/")
    if not name:
        yield fielderror.required(at)
    elif not domain or not path:
        yield fielderror.invalid(at, name, 'must be a domain-prefixed path (such as "acme.io/foo")')
    else:
        yield from fielderror.problems(at, domain, names.dns1123_subdomain(domain))
    if len(name) > _MANAGER_LENGTH:
        yield fielderror.too_long(at, _MANAGER_LENGTH)


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


# Updates of a job


def _check_template_update(job: Document, at: Path, old: Document) -> Errors:
    """Check a changed template: only a suspended job can change where its pods run, and their resources."""
    template, before = (each["spec"].get("template") or {} for each in (job, old))
    status, place = old.get("status") or {}, at.child("spec", "template")
    if template == before:
        return
    is_idle = not status.get("startTime") or _is(status, "Suspended")
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


def _check_status(job: Document, at: Path, old: Document) -> Errors:
    """Check a changed status; errors that the old status has already may stay while other fields change."""
    status, before, spec, place = job.get("status") or {}, old.get("status") or {}, job["spec"], at.child("status")
    yield from _TYPES["JobStatus"](status, place)
    yield from _check_end(status, before, place)
    yield from _check_finished(status, before, place, spec=spec)
    ready = status.get("ready")
    if ready is not None and _changes(status, before, "ready", "active") and ready > status.get("active", 0):
        yield fielderror.invalid(place.child("ready"), ready, "cannot set more ready pods than active")
    if _is(status, "SuccessCriteriaMet"):
        for outcome in ("Failed", "FailureTarget"):
            if _is(status, outcome):
                yield _bad_conditions(f"cannot set SuccessCriteriaMet=True and {outcome}=true conditions", place)
    yield from _check_history(status, before, place, spec=spec)


def _check_end(status: Document, old: Document, at: Path) -> Errors:
    """Check that conditions say how a job will end before they say that it has ended."""
    is_complete, is_failed = _is(status, "Complete"), _is(status, "Failed")
    has_completed, has_failed = is_complete != _is(old, "Complete"), is_failed != _is(old, "Failed")
    target_changes = _is(status, "FailureTarget") != _is(old, "FailureTarget")
    place, time, start = at.child("completionTime"), status.get("completionTime"), status.get("startTime")
    if (has_completed or has_failed) and is_complete and is_failed:
        yield _bad_conditions("cannot set Complete=True and Failed=true conditions", at)
    if (has_completed or target_changes) and is_complete and _is(status, "FailureTarget"):
        yield _bad_conditions("cannot set Complete=True and FailureTarget=true conditions", at)
    if has_completed or _changes(status, old, "completionTime"):
        if time is not None and not is_complete:
            detail = "cannot set completionTime when there is no Complete=True condition"
            yield fielderror.invalid(place, time, detail)
        if time is None and is_complete:
            yield fielderror.required(place, "completionTime is required for Complete jobs")
    if _changes(status, old, "startTime", "completionTime") and time is not None and start is not None and time < start:
        yield fielderror.invalid(place, time, "must be equal to or after `startTime`")
    if (has_failed or _changes(status, old, "failedIndexes")) and is_failed and not _is(status, "FailureTarget"):
        yield _bad_conditions("cannot set Failed=True condition without the FailureTarget=true condition", at)
    criteria_change = _is(status, "SuccessCriteriaMet") != _is(old, "SuccessCriteriaMet")
    if (has_completed or criteria_change) and is_complete and not _is(status, "SuccessCriteriaMet"):
        yield _bad_conditions("cannot set Complete=True condition without the SuccessCriteriaMet=true condition", at)


def _check_finished(status: Document, old: Document, at: Path, *, spec: Document) -> Errors:
    if not _is_finished(status):
        return
    has_finished = not _is_finished(old)
    if (has_finished or _changes(status, old, "active")) and status.get("active", 0) > 0:
        yield fielderror.invalid(at.child("active"), status["active"], "active>0 is invalid for finished job")
    is_empty = bool(spec.get("suspend")) and spec.get("completions") == 0
    if (has_finished or _changes(status, old, "startTime")) and not is_empty and status.get("startTime") is None:
        yield fielderror.required(at.child("startTime"), "startTime is required for finished job")
    uncounted = status.get("uncountedTerminatedPods") or {}
    if (has_finished or _changes(status, old, "uncountedTerminatedPods")) and any(uncounted.values()):
        display = rendering.internal_fields(uncounted, ("Failed", "failed", None), ("Succeeded", "succeeded", None))
        yield fielderror.invalid(at.child("uncountedTerminatedPods"), display, "must be empty for finished job")
    if (has_finished or _changes(status, old, "terminating")) and (status.get("terminating") or 0) > 0:
        detail = "terminating>0 is invalid for finished job"
        yield fielderror.invalid(at.child("terminating"), status["terminating"], detail)


def _check_history(status: Document, old: Document, at: Path, *, spec: Document) -> Errors:
    """Check that a status takes back nothing that has happened."""
    for kind in ("Failed", "Complete", "FailureTarget"):
        if _is(old, kind) and not _is(status, kind):
            yield _bad_conditions(f"cannot disable the terminal {kind}=True condition", at)
    is_scalable = spec.get("completionMode") == "Indexed" and spec.get("completions") == spec.get("parallelism")
    for field in ("failed", "succeeded"):
        if status.get(field, 0) < old.get(field, 0) and not (field == "succeeded" and is_scalable):
            yield fielderror.invalid(at.child(field), status.get(field, 0), f"cannot decrease the {field} counter")
    time = status.get("completionTime")
    if time is not None and old.get("completionTime") not in (None, time):
        yield fielderror.invalid(at.child("completionTime"), time, typerules.IMMUTABLE)
    is_resuming = _is(old, "Suspended") and _is(status, "Suspended", value="False")
    start = status.get("startTime")
    if old.get("startTime") not in (None, start) and not spec.get("suspend") and not is_resuming:
        yield fielderror.invalid(at.child("startTime"), start, "field is immutable for unsuspended job once set")
    if _is(old, "SuccessCriteriaMet") and not _is(status, "SuccessCriteriaMet"):
        yield _bad_conditions("cannot disable the SuccessCriteriaMet=True condition", at)


def _is(status: Document, kind: str, *, value: str = "True") -> bool:
    conditions = status.get("conditions") or ()
    return any(each.get("type") == kind and each.get("status") == value for each in conditions)


def _is_finished(status: Document) -> bool:
    return _is(status, "Complete") or _is(status, "Failed")


def _changes(status: Document, old: Document, *fields: str) -> bool:
    return any(status.get(field) != old.get(field) for field in fields)


def _bad_conditions(detail: str, at: Path) -> FieldError:
    """Return an error of the conditions; upstream's message leaves out their value, and the colon after it."""
    return fielderror.invalid(at.child("conditions"), rendering.Rendered(detail), "")


# CronJob


def _check_schedule(spec: Document, at: Path) -> Errors:
    schedule, place = spec.get("schedule", ""), at.child("schedule")
    if not schedule:
        yield fielderror.required(place)
    else:
        try:
            cronschedule.parse(schedule)
        except errors.InvalidValueError as error:
            yield fielderror.invalid(place, schedule, str(error))
    if "TZ" in schedule and spec.get("timeZone") is not None:
        yield fielderror.invalid(place, schedule, "cannot use both timeZone field and TZ or CRON_TZ in schedule")
    elif "TZ" in schedule:
        yield fielderror.invalid(place, schedule, "cannot use TZ or CRON_TZ in schedule, use timeZone field instead")


def _no_manual_selector(value: bool, at: Path) -> Errors:  # noqa: FBT001 - the value of a field
    yield fielderror.not_supported(at, rendering.wire(value), ("nil", "false"))


def _job_pod_template(template: Document, at: Path) -> Errors:
    spec = template.get("spec") or {}
    yield from workload.check_job_template(template, at)
    yield from workload.check_restart_policy_of_job(spec, at.child("spec"))


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
