"""Rules for autoscalers of pods. Those that upstream declares on its types come last, as there."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from drachma.validation import fielderror, formats, metadata, rendering
from drachma.validation.fielderror import Errors
from drachma.validation.path import SPEC, STATUS, Path
from drachma.validation.podspec import choices
from drachma.validation.podspec import resources as pod_resources
from drachma.values import names
from drachma.values.quantity import Quantity

_LONGEST_PERIOD: Final = 1800
_LONGEST_WINDOW: Final = 3600
_SELECT: Final = ("Disabled", "Max", "Min")
_POLICIES: Final = ("Percent", "Pods")
_SOURCES: Final = ("ContainerResource", "External", "Object", "Pods", "Resource")
_FIELDS: Final = ("object", "external", "pods", "resource", "containerResource")
_TARGETS: Final = ("Utilization", "Value", "AverageValue")
_POPULATE: Final = "must populate information for the given metric source"
_EITHER: Final = "must set either a target raw value or a target utilization"
_BOTH: Final = "may not set both a target raw value and a target utilization"


def check(spec: Mapping[str, Any], old: Mapping[str, Any] | None = None) -> Errors:
    """The spec of an autoscaler; what is wrong with the versions that an ``old`` one refers to may stay."""
    least, most = spec.get("minReplicas"), spec.get("maxReplicas", 0)
    if least is not None and most < least:
        detail = "must be greater than or equal to `minReplicas`"
        yield fielderror.invalid(SPEC.child("maxReplicas"), most, detail)
    target, at = spec.get("scaleTargetRef") or {}, SPEC.child("scaleTargetRef")
    before = (old or {}).get("scaleTargetRef") or {}
    bears_version = old is not None and all(target.get(each) == before.get(each) for each in ("apiVersion", "kind"))
    yield from _reference(
        target, at, needs_group=target.get("kind") != "ReplicationController", bears_version=bears_version
    )
    bears_objects = any(_version_problem(each, needs_group=False) for each in _described(old or {}))
    yield from _metrics(spec.get("metrics") or (), least, bears_version=bears_objects)
    behavior = spec.get("behavior") or {}
    for direction in ("scaleUp", "scaleDown"):
        if behavior.get(direction) is not None:
            yield from _scaling(behavior[direction], SPEC.child("behavior", direction))
    if least is not None and least < 0:
        yield fielderror.invalid(SPEC.child("minReplicas"), least, "must be greater than or equal to 0")
    if not most:
        yield fielderror.required(SPEC.child("maxReplicas"))
    elif most < 0:
        yield fielderror.invalid(SPEC.child("maxReplicas"), most, "must be greater than or equal to 1")


def check_status(status: Mapping[str, Any]) -> Errors:
    """What is said of an autoscaler."""
    for position, condition in enumerate(status.get("conditions") or ()):
        generation = condition.get("observedGeneration")
        if generation is not None and generation < 0:
            at = STATUS.child("conditions").item(position).child("observedGeneration")
            yield fielderror.invalid(at, generation, metadata.MUST_NOT_BE_NEGATIVE)
    for field in ("currentReplicas", "desiredReplicas"):
        yield from choices.not_negative(status.get(field) or 0, STATUS.child(field))


def _described(spec: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    metrics = (each.get("object") for each in spec.get("metrics") or () if each.get("type") == "Object")
    return [each.get("describedObject") or {} for each in metrics if each is not None]


def _reference(reference: Mapping[str, Any], at: Path, *, needs_group: bool, bears_version: bool) -> Errors:
    for field in ("kind", "name"):
        text = reference.get(field, "")
        if not text:
            yield fielderror.required(at.child(field))
        else:
            yield from fielderror.problems(at.child(field), text, names.path_segment_name(text))
    problem = "" if bears_version else _version_problem(reference, needs_group=needs_group)
    if problem:
        yield fielderror.invalid(at.child("apiVersion"), reference.get("apiVersion", ""), problem)


def _version_problem(reference: Mapping[str, Any], *, needs_group: bool) -> str:
    version: str = reference.get("apiVersion", "")
    if version.count("/") > 1:
        return f"unexpected GroupVersion string: {version}"
    return "apiVersion must specify API group" if needs_group and not version.rpartition("/")[0] else ""


def _metrics(metrics: Sequence[Mapping[str, Any]], least: int | None, *, bears_version: bool) -> Errors:
    at = SPEC.child("metrics")
    for position, metric in enumerate(metrics):
        yield from _metric(metric, at.item(position), bears_version=bears_version)
    if least == 0 and not any(each.get("type") in ("Object", "External") for each in metrics):
        detail = "must specify at least one Object or External metric to support scaling to zero replicas"
        yield fielderror.forbidden(at, detail)


def _metric(metric: Mapping[str, Any], at: Path, *, bears_version: bool) -> Errors:
    kind = metric.get("type", "")
    if not kind:
        yield fielderror.required(at.child("type"), "must specify a metric source type")
    if kind not in _SOURCES:
        yield fielderror.not_supported(at.child("type"), rendering.named(kind), _SOURCES)
    present = [field for field in _FIELDS if metric.get(field) is not None]
    if present:
        yield from _source(present[0], metric[present[0]], at.child(present[0]), bears_version=bears_version)
    field = kind[:1].lower() + kind[1:]
    if kind not in _SOURCES:
        yield fielderror.not_supported(at.child("type"), rendering.named(kind), _SOURCES)
    elif field not in present:
        yield fielderror.required(at.child(field), _POPULATE)
    if len(present) != 1:
        for other in present:
            if other != field:
                yield fielderror.forbidden(at.child(other), "must populate the given metric source only")


def _source(field: str, source: Mapping[str, Any], at: Path, *, bears_version: bool) -> Errors:
    target, place = source.get("target") or {}, at.child("target")
    value, average = target.get("value"), target.get("averageValue")
    if field in ("resource", "containerResource"):
        yield from _resource(field, source, at)
        yield from _target(target, place)
        if target.get("averageUtilization") is None and average is None:
            yield fielderror.required(place.child("averageUtilization"), _EITHER)
        if target.get("averageUtilization") is not None and average is not None:
            yield fielderror.forbidden(place.child("averageValue"), _BOTH)
        return
    if field == "object":
        described = source.get("describedObject") or {}
        yield from _reference(described, at.child("describedObject"), needs_group=False, bears_version=bears_version)
    yield from _identifier(source.get("metric") or {}, at.child("metric"))
    yield from _target(target, place)
    if field == "pods":
        if average is None:
            yield fielderror.required(place.child("averageValue"), "must specify a positive target averageValue")
    elif value is None and average is None:
        per_pod = " for metric or a per-pod target" if field == "external" else " or averageValue"
        yield fielderror.required(place.child("averageValue"), f"must set either a target value{per_pod}")
    elif field == "external" and value is not None and average is not None:
        detail = "may not set both a target value for metric and a per-pod target"
        yield fielderror.forbidden(place.child("value"), detail)


def _resource(field: str, source: Mapping[str, Any], at: Path) -> Errors:
    name = source.get("name", "")
    if not name:
        yield fielderror.required(at.child("name"), "must specify a resource name")
    elif field == "containerResource":
        yield from pod_resources.container_resource(name, at.child("name"))
    if field == "containerResource":
        container = source.get("container", "")
        if not container:
            yield fielderror.required(at.child("container"), "must specify a container")
        else:
            yield from formats.short_name(container, at.child("container"))


def _identifier(metric: Mapping[str, Any], at: Path) -> Errors:
    name = metric.get("name", "")
    if not name:
        yield fielderror.required(at.child("name"), "must specify a metric name")
    else:
        yield from fielderror.problems(at.child("name"), name, names.path_segment_name(name))


def _target(target: Mapping[str, Any], at: Path) -> Errors:
    kind = target.get("type", "")
    if not kind:
        yield fielderror.required(at.child("type"), "must specify a metric target type")
    if kind not in _TARGETS:
        detail = "must be either Utilization, Value, or AverageValue"
        yield fielderror.invalid(at.child("type"), rendering.named(kind), detail)
    for field in ("value", "averageValue"):
        amount = target.get(field)
        if amount is not None and Quantity.parse(amount).sign <= 0:
            yield fielderror.invalid(at.child(field), amount, "must be positive")
    utilization = target.get("averageUtilization")
    if utilization is not None and utilization < 1:
        yield fielderror.invalid(at.child("averageUtilization"), utilization, "must be greater than 0")


def _scaling(rules: Mapping[str, Any], at: Path) -> Errors:
    window = rules.get("stabilizationWindowSeconds")
    if window is not None and window < 0:
        detail = "must be greater than or equal to zero"
        yield fielderror.invalid(at.child("stabilizationWindowSeconds"), window, detail)
    if window is not None and window > _LONGEST_WINDOW:
        detail = f"must be less than or equal to {_LONGEST_WINDOW}"
        yield fielderror.invalid(at.child("stabilizationWindowSeconds"), window, detail)
    select = rules.get("selectPolicy")
    if select is not None and select not in _SELECT:
        yield fielderror.not_supported(at.child("selectPolicy"), rendering.named(select), _SELECT)
    policies = rules.get("policies") or ()
    if not policies:
        yield fielderror.required(at.child("policies"), "must specify at least one Policy")
    for position, policy in enumerate(policies):
        yield from _policy(policy, at.child("policies").item(position))
    tolerance = rules.get("tolerance")
    if tolerance is not None and Quantity.parse(tolerance).sign < 0:
        yield fielderror.invalid(at.child("tolerance"), tolerance, metadata.MUST_NOT_BE_NEGATIVE)


def _policy(policy: Mapping[str, Any], at: Path) -> Errors:
    kind, value, period = policy.get("type", ""), policy.get("value", 0), policy.get("periodSeconds", 0)
    if kind not in _POLICIES:
        yield fielderror.not_supported(at.child("type"), rendering.named(kind), _POLICIES)
    if value <= 0:
        yield fielderror.invalid(at.child("value"), value, choices.POSITIVE)
    if period <= 0:
        yield fielderror.invalid(at.child("periodSeconds"), period, choices.POSITIVE)
    if period > _LONGEST_PERIOD:
        detail = f"must be less than or equal to {_LONGEST_PERIOD}"
        yield fielderror.invalid(at.child("periodSeconds"), period, detail)
