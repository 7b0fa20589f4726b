"""Rules for jobs: how often they run, when they give up, what may change, and what their status may say.

What ``podFailurePolicy`` and ``successPolicy`` say in detail is not looked at: nobody here acts on them.
"""

from collections.abc import Mapping
from typing import Any, Final

from drachma.validation import fielderror, metadata, rendering, workload
from drachma.validation.fielderror import Errors, FieldError
from drachma.validation.path import METADATA, SPEC, STATUS, Path
from drachma.validation.podspec import choices, selectors
from drachma.values import names

CONTROLLER_UID: Final = ("controller-uid", "batch.kubernetes.io/controller-uid")
JOB_NAME: Final = ("job-name", "batch.kubernetes.io/job-name")

_COUNTS: Final = (
    "parallelism", "completions", "activeDeadlineSeconds", "backoffLimit", "ttlSecondsAfterFinished",
    "backoffLimitPerIndex", "maxFailedIndexes",
)  # fmt: skip
_MODES: Final = ("NonIndexed", "Indexed")
_REPLACEMENTS: Final = ("Failed", "TerminatingOrFailed")
_MOST_PARALLEL: Final = 100_000
_MANAGER_LENGTH: Final = 63
_STEERING: Final = ("nodeSelector", "tolerations", "schedulingGates")
_POLICY: Final = workload.TEMPLATE.child("spec", "restartPolicy")


def check(content: Mapping[str, Any], own: Mapping[str, Any]) -> Errors:
    """A new job with its labels and selector; ``own`` is its metadata."""
    spec = content["spec"]
    if not spec.get("manualSelector"):
        yield from _generated(spec, own)
    yield from check_spec(spec)
    yield from check_name(spec, own)


def check_name(spec: Mapping[str, Any], own: Mapping[str, Any]) -> Errors:
    """The name of an indexed job becomes part of the hostnames of its pods."""
    if spec.get("completionMode") == "Indexed" and spec.get("completions"):
        hostname = f"{own.get('name', '')}-{spec['completions'] - 1}"
        if names.dns1123_label(hostname):
            detail = f"will not able to create pod with invalid DNS label: {hostname}"
            yield fielderror.invalid(METADATA.child("name"), own.get("name", ""), detail)


def check_spec(spec: Mapping[str, Any]) -> Errors:
    """The spec of a job."""
    for field in _COUNTS:
        if spec.get(field) is not None:
            yield from choices.not_negative(spec[field], SPEC.child(field))
    if spec.get("maxFailedIndexes") is not None and spec.get("backoffLimitPerIndex") is None:
        yield fielderror.required(SPEC.child("backoffLimitPerIndex"), "when maxFailedIndexes is specified")
    if spec.get("managedBy") is not None:
        yield from _manager(spec["managedBy"], SPEC.child("managedBy"))
    yield from _completion(spec)
    policy = spec.get("podReplacementPolicy")
    supported = _REPLACEMENTS[:1] if spec.get("podFailurePolicy") is not None else _REPLACEMENTS
    if policy is not None and policy not in supported:
        yield fielderror.not_supported(SPEC.child("podReplacementPolicy"), rendering.named(policy), supported)
    yield from workload.check_template(spec.get("template") or {})
    yield from _restart(spec)
    selector = spec.get("selector")
    if selector is None:
        yield fielderror.required(SPEC.child("selector"))
    else:
        yield from selectors.check(selector, SPEC.child("selector"))
    chosen = workload.matching(selector)
    if chosen is not None:
        yield from workload.check_match(spec, chosen)


def check_update(content: Mapping[str, Any], old: Mapping[str, Any]) -> Errors:
    """A changed job."""
    spec, before = content["spec"], old["spec"]
    yield from _completions(spec, before)
    yield from workload.check_selector_update(spec, before)
    yield from _template(spec, before, status=old.get("status") or {})
    for field in ("completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy", "successPolicy"):
        if spec.get(field) != before.get(field):
            yield fielderror.invalid(SPEC.child(field), rendering.wire(spec.get(field)), metadata.IMMUTABLE)


def check_status(content: Mapping[str, Any], old: Mapping[str, Any]) -> Errors:
    """A changed status; what was wrong before may stay so, while other things change."""
    status, before, spec = content.get("status") or {}, old.get("status") or {}, content["spec"]
    for field in ("active", "succeeded", "failed", "ready", "terminating"):
        if status.get(field) is not None:
            yield from choices.not_negative(status[field], STATUS.child(field))
    yield from _ending(status, before)
    yield from _end(status, before, spec=spec)
    ready = status.get("ready")
    if ready is not None and _changes(status, before, "ready", "active") and ready > status.get("active", 0):
        yield fielderror.invalid(STATUS.child("ready"), ready, "cannot set more ready pods than active")
    if _is(status, "SuccessCriteriaMet"):
        for other in ("Failed", "FailureTarget"):
            if _is(status, other):
                yield _conditions(f"cannot set SuccessCriteriaMet=True and {other}=true conditions")
    yield from _history(status, before, spec=spec)


# The spec


def _generated(spec: Mapping[str, Any], own: Mapping[str, Any]) -> Errors:
    """The labels that tie pods to their job, which nobody else may set."""
    expected = {
        **dict.fromkeys(CONTROLLER_UID, own.get("uid", "")),
        **dict.fromkeys(JOB_NAME, own.get("name", "")),
    }
    labels = ((spec.get("template") or {}).get("metadata") or {}).get("labels") or {}
    at = workload.TEMPLATE.child("metadata")
    for key in (CONTROLLER_UID[0], JOB_NAME[0], CONTROLLER_UID[1], JOB_NAME[1]):
        if key not in labels:
            yield fielderror.required(at.child("labels").key(key), f"must be '{expected[key]}'")
        elif labels[key] != expected[key]:
            yield fielderror.invalid(at.child("labels").key(key), rendering.wire(labels), f"must be '{expected[key]}'")
    chosen = workload.matching(spec.get("selector"))
    if chosen is not None and not chosen.matches(expected):
        shown = workload.shown(spec.get("selector"))
        yield fielderror.invalid(SPEC.child("selector"), shown, "`selector` not auto-generated")


def _manager(name: str, at: Path) -> Errors:
    domain, slash, path = name.partition("/")
    if not name:
        yield fielderror.required(at)
    elif not slash or not domain or not path:
        yield fielderror.invalid(at, name, 'must be a domain-prefixed path (such as "acme.io/foo")')
    else:
        yield from fielderror.problems(at, domain, names.dns1123_subdomain(domain))
    if len(name) > _MANAGER_LENGTH:
        yield fielderror.too_long(at, _MANAGER_LENGTH)


def _completion(spec: Mapping[str, Any]) -> Errors:
    mode, completions = spec.get("completionMode"), spec.get("completions")
    failed = spec.get("maxFailedIndexes")
    if mode is not None and mode not in _MODES:
        yield fielderror.not_supported(SPEC.child("completionMode"), rendering.named(mode), _MODES)
    if mode == "Indexed":
        if completions is None:
            yield fielderror.required(SPEC.child("completions"), "when completion mode is Indexed")
        if (spec.get("parallelism") or 0) > _MOST_PARALLEL:
            detail = f"must be less than or equal to {_MOST_PARALLEL} when completion mode is Indexed"
            yield fielderror.invalid(SPEC.child("parallelism"), spec["parallelism"], detail)
        if completions is not None and failed is not None and failed > completions:
            detail = "must be less than or equal to completions"
            yield fielderror.invalid(SPEC.child("maxFailedIndexes"), failed, detail)
        if failed is not None and failed > _MOST_PARALLEL:
            detail = f"must be less than or equal to {_MOST_PARALLEL}"
            yield fielderror.invalid(SPEC.child("maxFailedIndexes"), failed, detail)
    if mode in (None, "NonIndexed"):
        for field in ("backoffLimitPerIndex", "maxFailedIndexes"):
            if spec.get(field) is not None:
                yield fielderror.invalid(SPEC.child(field), spec[field], "requires indexed completion mode")


def _restart(spec: Mapping[str, Any]) -> Errors:
    policy = ((spec.get("template") or {}).get("spec") or {}).get("restartPolicy", "")
    if policy in ("", "Always"):
        yield fielderror.required(_POLICY, 'valid values: "OnFailure", "Never"')
    elif policy not in ("OnFailure", "Never"):
        yield fielderror.not_supported(_POLICY, rendering.named(policy), ("OnFailure", "Never"))
    elif spec.get("podFailurePolicy") is not None and policy != "Never":
        detail = 'only "Never" is supported when podFailurePolicy is specified'
        yield fielderror.invalid(_POLICY, rendering.named(policy), detail)


# What may change


def _completions(spec: Mapping[str, Any], old: Mapping[str, Any]) -> Errors:
    new, before = spec.get("completions"), old.get("completions")
    at = SPEC.child("completions")
    if new == before:
        return
    if spec.get("completionMode") != "Indexed":
        yield fielderror.invalid(at, new, metadata.IMMUTABLE)
    elif new is not None and new != spec.get("parallelism"):
        yield fielderror.invalid(at, new, "can only be modified in tandem with spec.parallelism")


def _template(spec: Mapping[str, Any], old: Mapping[str, Any], *, status: Mapping[str, Any]) -> Errors:
    """A job on hold can be steered to other nodes, and its pods made smaller or larger."""
    template, before = spec.get("template") or {}, old.get("template") or {}
    if template == before:
        return
    is_idle = not status.get("startTime") or _is(status, "Suspended")
    if not (old.get("suspend") and is_idle and not status.get("active")):
        yield fielderror.invalid(workload.TEMPLATE, rendering.wire(template), metadata.IMMUTABLE)
        return
    pod, pod_before = _free(template.get("spec") or {}), _free(before.get("spec") or {})
    for field in ("containers", "initContainers"):
        pod[field], pod_before[field] = _without_resources(pod.get(field)), _without_resources(pod_before.get(field))
    if pod != pod_before:
        shown = rendering.wire(template.get("spec") or {})
        yield fielderror.invalid(workload.TEMPLATE.child("spec"), shown, metadata.IMMUTABLE)


def _free(pod: Mapping[str, Any]) -> dict[str, Any]:
    free = {field: value for field, value in pod.items() if field not in _STEERING}
    others = {field: value for field, value in (pod.get("affinity") or {}).items() if field != "nodeAffinity"}
    return {**free, "affinity": others}


def _without_resources(containers: list[dict[str, Any]] | None) -> list[dict[str, Any]]:
    return [{**container, "resources": {}} for container in containers or ()]


# The status


def _ending(status: Mapping[str, Any], old: Mapping[str, Any]) -> Errors:
    """A job is said to end before it has ended."""
    is_complete, is_failed = _is(status, "Complete"), _is(status, "Failed")
    has_completed, has_failed = is_complete != _is(old, "Complete"), is_failed != _is(old, "Failed")
    target_changes = _is(status, "FailureTarget") != _is(old, "FailureTarget")
    at, time, start = STATUS.child("completionTime"), status.get("completionTime"), status.get("startTime")
    if (has_completed or has_failed) and is_complete and is_failed:
        yield _conditions("cannot set Complete=True and Failed=true conditions")
    if (has_completed or target_changes) and is_complete and _is(status, "FailureTarget"):
        yield _conditions("cannot set Complete=True and FailureTarget=true conditions")
    if has_completed or _changes(status, old, "completionTime"):
        if time is not None and not is_complete:
            yield fielderror.invalid(at, time, "cannot set completionTime when there is no Complete=True condition")
        if time is None and is_complete:
            yield fielderror.required(at, "completionTime is required for Complete jobs")
    if _changes(status, old, "startTime", "completionTime") and time is not None and start is not None and time < start:
        yield fielderror.invalid(at, time, "must be equal to or after `startTime`")
    if (has_failed or _changes(status, old, "failedIndexes")) and is_failed and not _is(status, "FailureTarget"):
        yield _conditions("cannot set Failed=True condition without the FailureTarget=true condition")
    criteria_change = _is(status, "SuccessCriteriaMet") != _is(old, "SuccessCriteriaMet")
    if (has_completed or criteria_change) and is_complete and not _is(status, "SuccessCriteriaMet"):
        yield _conditions("cannot set Complete=True condition without the SuccessCriteriaMet=true condition")


def _end(status: Mapping[str, Any], old: Mapping[str, Any], *, spec: Mapping[str, Any]) -> Errors:
    """What a job that has ended can have left."""
    if not _is_finished(status):
        return
    has_finished = not _is_finished(old)
    if (has_finished or _changes(status, old, "active")) and status.get("active", 0) > 0:
        yield fielderror.invalid(STATUS.child("active"), status["active"], "active>0 is invalid for finished job")
    is_empty = bool(spec.get("suspend")) and spec.get("completions") == 0
    if (has_finished or _changes(status, old, "startTime")) and not is_empty and status.get("startTime") is None:
        yield fielderror.required(STATUS.child("startTime"), "startTime is required for finished job")
    uncounted = status.get("uncountedTerminatedPods") or {}
    if (has_finished or _changes(status, old, "uncountedTerminatedPods")) and any(uncounted.values()):
        shown = rendering.wire({"Succeeded": uncounted.get("succeeded"), "Failed": uncounted.get("failed")})
        yield fielderror.invalid(STATUS.child("uncountedTerminatedPods"), shown, "must be empty for finished job")
    if (has_finished or _changes(status, old, "terminating")) and (status.get("terminating") or 0) > 0:
        detail = "terminating>0 is invalid for finished job"
        yield fielderror.invalid(STATUS.child("terminating"), status["terminating"], detail)


def _history(status: Mapping[str, Any], old: Mapping[str, Any], *, spec: Mapping[str, Any]) -> Errors:
    """What happened stays so."""
    for kind in ("Failed", "Complete", "FailureTarget"):
        if _is(old, kind) and not _is(status, kind):
            yield _conditions(f"cannot disable the terminal {kind}=True condition")
    is_scalable = spec.get("completionMode") == "Indexed" and spec.get("completions") == spec.get("parallelism")
    for field in ("failed", "succeeded"):
        if status.get(field, 0) < old.get(field, 0) and not (field == "succeeded" and is_scalable):
            detail = f"cannot decrease the {field} counter"
            yield fielderror.invalid(STATUS.child(field), status.get(field, 0), detail)
    time = status.get("completionTime")
    if time is not None and old.get("completionTime") not in (None, time):
        yield fielderror.invalid(STATUS.child("completionTime"), time, metadata.IMMUTABLE)
    is_resuming = _is(old, "Suspended") and _is(status, "Suspended", value="False")
    start = status.get("startTime")
    if old.get("startTime") not in (None, start) and not spec.get("suspend") and not is_resuming:
        yield fielderror.invalid(STATUS.child("startTime"), start, "field is immutable for unsuspended job once set")
    if _is(old, "SuccessCriteriaMet") and not _is(status, "SuccessCriteriaMet"):
        yield _conditions("cannot disable the SuccessCriteriaMet=True condition")


def _is(status: Mapping[str, Any], kind: str, *, value: str = "True") -> bool:
    conditions = status.get("conditions") or ()
    return any(each.get("type") == kind and each.get("status") == value for each in conditions)


def _is_finished(status: Mapping[str, Any]) -> bool:
    return _is(status, "Complete") or _is(status, "Failed")


def _changes(status: Mapping[str, Any], old: Mapping[str, Any], *fields: str) -> bool:
    return any(status.get(field) != old.get(field) for field in fields)


def _conditions(detail: str) -> FieldError:
    """Upstream leaves out the conditions themselves, and the colon after them."""
    return fielderror.invalid(STATUS.child("conditions"), rendering.Rendered(detail), "")
