"""Rules for the policies of a job on failure and success, and for lists of indexes such as ``0,2-4``."""

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

from drachma import errors
from drachma.validation import fielderror, rendering, rulenotation
from drachma.validation.fielderror import Errors
from drachma.validation.path import Document, Path
from drachma.values import quotation

MAX_RULES: Final = 20
MAX_PATTERNS: Final = 20
MAX_EXIT_CODES: Final = 255

_NUMBER: Final = re.compile(r"[+-]?[0-9]+")
_REQUIREMENT: Final = (
    ("ContainerName", "containerName", None),
    ("Operator", "operator", ""),
    ("Values", "values", None),
)
_PATTERN: Final = (("Type", "type", ""), ("Status", "status", ""))


def check(spec: Document, at: Path) -> Errors:
    """Yield the errors of the policies of a job's spec."""
    failure, success = spec.get("podFailurePolicy"), spec.get("successPolicy")
    if failure is not None:
        yield from _TYPES["PodFailurePolicy"](failure, at.child("podFailurePolicy"), spec)
    if success is not None and spec.get("completionMode") != "Indexed":
        yield fielderror.invalid(at.child("successPolicy"), show_success(success), "requires indexed completion mode")
    elif success is not None:
        yield from _TYPES["SuccessPolicy"](success, at.child("successPolicy"), spec)


# Indexes


def intervals(text: str, completions: int) -> Iterator[tuple[int, int]]:
    """Yield the first and the last index of each interval of a list of indexes.

    Raises:
        errors.InvalidValueError: an interval is malformed, or has an index that the job does not have.
    """
    for part in text.split(","):
        yield _interval(part, completions)


def count_indexes(text: str, completions: int) -> int:
    """Return the number of indexes in a list.

    Raises:
        errors.InvalidValueError: the list is malformed, or not in increasing order.
    """
    total, last = 0, None
    for first, end in intervals(text, completions) if text else ():
        if last is not None and last >= first:
            raise errors.InvalidValueError(f"non-increasing order, previous: {last}, current: {first}")
        total, last = total + end - first + 1, end
    return total


def find_overlap(text: str, other: str, completions: int) -> int | None:
    """Return the first index that two lists share, or None; malformed intervals are ignored."""
    rest, other_rest = (_readable(each, completions) for each in (text, other))
    while rest and other_rest:
        (first, end), (other_first, other_end) = rest[0], other_rest[0]
        if first <= other_end and other_first <= end:
            return max(first, other_first)
        (rest if first <= other_first else other_rest).pop(0)
    return None


def _readable(text: str, completions: int) -> list[tuple[int, int]]:
    read = []
    for part in text.split(",") if text else ():
        try:
            read.append(_interval(part, completions))
        except errors.InvalidValueError:
            continue
    return read


def _interval(text: str, completions: int) -> tuple[int, int]:
    limits = text.split("-")
    if len(limits) > 2:
        raise errors.InvalidValueError(
            f"the fragment {quotation.quote(text)} violates the requirement that an index interval can have at most "
            "two parts separated by '-'"
        )
    first = _index(limits[0], completions)
    if len(limits) == 1:
        return first, first
    last = _index(limits[1], completions)
    if first >= last:
        raise errors.InvalidValueError(f"non-increasing order, previous: {first}, current: {last}")
    return first, last


def _index(text: str, completions: int) -> int:
    if not _NUMBER.fullmatch(text) or not -(2**63) <= int(text) < 2**63:
        raise errors.InvalidValueError(f"cannot convert string to integer for index: {quotation.quote(text)}")
    if int(text) >= completions:
        raise errors.InvalidValueError(f"too large index: {quotation.quote(text)}")
    return int(text)


# Policies in the form of upstream's internal types


def show_failure(policy: Document | None) -> rendering.Rendered:
    """Return a policy on failures as messages show it."""
    return _show_policy(policy, _show_failure_rule)


def show_success(policy: Document | None) -> rendering.Rendered:
    """Return a policy on success as messages show it."""
    return _show_policy(policy, _show_success_rule)


def _show_policy(policy: Document | None, show: Any) -> rendering.Rendered:
    if policy is None:
        return rendering.NULL
    return rendering.internal_fields({"rules": _show_list(policy.get("rules"), show)}, ("Rules", "rules", None))


def _show_list(items: Sequence[Any] | None, show: Any) -> rendering.Rendered:
    return rendering.NULL if items is None else rendering.Rendered("[" + ",".join(map(show, items)) + "]")


def _show_failure_rule(rule: Document) -> rendering.Rendered:
    parts = {
        "action": rule.get("action", ""),
        "codes": rendering.internal_fields(rule.get("onExitCodes"), *_REQUIREMENT),
        "conditions": _show_list(
            rule.get("onPodConditions"), lambda pattern: rendering.internal_fields(pattern, *_PATTERN)
        ),
    }
    names = (("Action", "action", ""), ("OnExitCodes", "codes", None), ("OnPodConditions", "conditions", None))
    return rendering.internal_fields(parts, *names)


def _show_success_rule(rule: Document) -> rendering.Rendered:
    names = (("SucceededIndexes", "succeededIndexes", None), ("SucceededCount", "succeededCount", None))
    return rendering.internal_fields(rule, *names)


# Rules


def _check_failure_rules(policy: Document, at: Path, spec: Document) -> Errors:
    yield from _check_items(policy.get("rules"), at.child("rules"), MAX_RULES, "PodFailurePolicyRule", spec)


def _check_success_rules(policy: Document, at: Path, spec: Document) -> Errors:
    yield from _check_items(policy.get("rules"), at.child("rules"), MAX_RULES, "SuccessPolicyRule", spec)


def _check_patterns(rule: Document, at: Path, spec: Document) -> Errors:
    patterns, place = rule.get("onPodConditions"), at.child("onPodConditions")
    yield from _check_items(patterns, place, MAX_PATTERNS, "PodFailurePolicyOnPodConditionsPattern", spec)


def _check_items(items: Sequence[Any] | None, at: Path, limit: int, type_name: str, spec: Document) -> Errors:
    """Check each item of a list, also if there are too many."""
    if items and len(items) > limit:
        yield fielderror.too_many(at, len(items), limit)
    for index, item in enumerate(items or ()):
        yield from _TYPES[type_name](item, at.item(index), spec)


def _check_container_name(requirement: Document, at: Path, spec: Document) -> Errors:
    name, pod = requirement.get("containerName"), (spec.get("template") or {}).get("spec") or {}
    containers = [*(pod.get("containers") or ()), *(pod.get("initContainers") or ())]
    if name is not None and all(each.get("name", "") != name for each in containers):
        detail = "must be one of the container or initContainer names in the pod template"
        yield fielderror.invalid(at.child("containerName"), name, detail)


def _check_exit_codes(requirement: Document, at: Path) -> Errors:
    codes, place = requirement.get("values"), at.child("values")
    if not codes:
        yield fielderror.invalid(place, rendering.wire(codes), "at least one value is required")
        return
    if len(codes) > MAX_EXIT_CODES:
        yield fielderror.too_many(place, len(codes), MAX_EXIT_CODES)
    previous: set[int] = set()
    for index, code in enumerate(codes):
        if requirement.get("operator") == "In" and code == 0:
            yield fielderror.invalid(place.item(index), code, "must not be 0 for the In operator")
        if code in previous:
            yield fielderror.duplicate(place.item(index), code)
        previous.add(code)
    if list(codes) != sorted(codes):
        yield fielderror.invalid(place, rendering.wire(codes), "must be ordered")


def _check_succeeded(rule: Document, at: Path, spec: Document) -> Errors:
    indexes, count, completions = rule.get("succeededIndexes"), rule.get("succeededCount"), spec.get("completions")
    if completions is None:
        return
    total = 0
    if indexes is not None:
        try:
            total = count_indexes(indexes, completions)
        except errors.InvalidValueError as error:
            yield fielderror.invalid(at.child("succeededIndexes"), indexes, f"error parsing succeededIndexes: {error}")
    if count is None:
        return
    place = at.child("succeededCount")
    if count < 0:
        yield fielderror.invalid(place, count, "must be greater than or equal to 0")
    if count > completions:
        detail = f"must be less than or equal to {completions} (the number of specified completions)"
        yield fielderror.invalid(place, count, detail)
    if indexes is not None and count > total:
        detail = (
            f"must be less than or equal to {total} (the number of indexes in the specified succeededIndexes field)"
        )
        yield fielderror.invalid(place, count, detail)


_TYPES: Final = rulenotation.load("jobpolicies", globals())
