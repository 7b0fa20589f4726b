"""Rules for cron jobs: when, and what the jobs look like."""

from collections.abc import Mapping
from typing import Any, Final

from drachma import errors
from drachma.validation import cronschedule, fielderror, metadata, rendering
from drachma.validation.fielderror import Errors
from drachma.validation.path import METADATA, SPEC
from drachma.validation.podspec import choices
from drachma.validation.podspec import spec as pod_spec
from drachma.values import timezones

TEMPLATE: Final = SPEC.child("jobTemplate", "spec", "template")
_CONCURRENCY: Final = ("Allow", "Forbid", "Replace")
_LONGEST_NAME: Final = 52
"""The controller appends eleven characters to make the names of jobs."""


def check(spec: Mapping[str, Any]) -> Errors:
    """The spec of a cron job, apart from its time zone."""
    yield from _schedule(spec.get("schedule", ""), spec.get("timeZone"))
    if spec.get("startingDeadlineSeconds") is not None:
        yield from choices.not_negative(spec["startingDeadlineSeconds"], SPEC.child("startingDeadlineSeconds"))
    policy, at = spec.get("concurrencyPolicy", ""), SPEC.child("concurrencyPolicy")
    if not policy:
        yield fielderror.required(at)
    elif policy not in _CONCURRENCY:
        yield fielderror.not_supported(at, rendering.named(policy), _CONCURRENCY)
    for field in ("successfulJobsHistoryLimit", "failedJobsHistoryLimit"):
        if spec.get(field) is not None:
            yield from choices.not_negative(spec[field], SPEC.child(field))
    yield from _template((spec.get("jobTemplate") or {}).get("spec") or {})


def check_name(name: str) -> Errors:
    """The name must leave room for those of jobs."""
    if len(name) > _LONGEST_NAME:
        detail = f"must be no more than {_LONGEST_NAME} characters"
        yield fielderror.invalid(METADATA.child("name"), name, detail)


def _schedule(schedule: str, zone: str | None) -> Errors:
    at = SPEC.child("schedule")
    if not schedule:
        yield fielderror.required(at)
    elif problem := _cron_problem(schedule):
        yield fielderror.invalid(at, schedule, problem)
    if "TZ" in schedule and zone is not None:
        yield fielderror.invalid(at, schedule, "cannot use both timeZone field and TZ or CRON_TZ in schedule")
    elif "TZ" in schedule:
        yield fielderror.invalid(at, schedule, "cannot use TZ or CRON_TZ in schedule, use timeZone field instead")


def check_zone(zone: str | None, old: str | None = None) -> Errors:
    """The time zone of a cron job; the stored one stays valid if the tz database loses it."""
    place = SPEC.child("timeZone")
    if zone is None or zone == old:
        return
    if not zone:
        yield fielderror.invalid(place, zone, "timeZone must be nil or non-empty string")
    elif zone.lower() == "local":
        detail = "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"
        yield fielderror.invalid(place, zone, detail)
    elif timezones.find(zone) is None:
        yield fielderror.invalid(place, zone, f"unknown time zone {zone}")


def _cron_problem(schedule: str) -> str:
    """What is wrong with a text in cron's notation; empty if it is good."""
    try:
        cronschedule.parse(schedule)
    except errors.InvalidValueError as error:
        return str(error)
    return ""


def _template(spec: Mapping[str, Any]) -> Errors:
    at = SPEC.child("jobTemplate", "spec")
    for field in ("parallelism", "completions", "activeDeadlineSeconds", "backoffLimit", "ttlSecondsAfterFinished"):
        if spec.get(field) is not None:
            yield from choices.not_negative(spec[field], at.child(field))
    if spec.get("manualSelector"):
        shown = rendering.wire(spec["manualSelector"])
        yield fielderror.not_supported(at.child("manualSelector"), shown, ("nil", "false"))
    template = spec.get("template") or {}
    own = template.get("metadata") or {}
    yield from metadata.labels(own.get("labels") or {}, TEMPLATE.child("labels"))
    yield from metadata.annotations(own.get("annotations") or {}, TEMPLATE.child("annotations"))
    pod = template.get("spec") or {}
    yield from pod_spec.check(pod, TEMPLATE.child("spec"), is_pod=False)
    policy, place = pod.get("restartPolicy", ""), TEMPLATE.child("spec", "restartPolicy")
    if policy in ("", "Always"):
        yield fielderror.required(place, 'valid values: "OnFailure", "Never"')
    elif policy not in ("OnFailure", "Never"):
        yield fielderror.not_supported(place, rendering.named(policy), ("OnFailure", "Never"))
