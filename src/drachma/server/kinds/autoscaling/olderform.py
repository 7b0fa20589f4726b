"""Conversion of autoscalers between autoscaling/v1 and v2.

v1 has fields for CPU only and keeps the rest in annotations, as JSON. A round trip loses nothing. Annotations that
cannot be decoded are ignored.
"""

from collections.abc import Mapping
from typing import Any, Final, TypeAlias

import msgspec

Document: TypeAlias = dict[str, Any]

_PREFIX: Final = "autoscaling.alpha.kubernetes.io/"
_METRICS: Final = f"{_PREFIX}metrics"
_CURRENT_METRICS: Final = f"{_PREFIX}current-metrics"
_CONDITIONS: Final = f"{_PREFIX}conditions"
_BEHAVIOR: Final = f"{_PREFIX}behavior"
_ROUND_TRIP: Final = frozenset({_METRICS, _CURRENT_METRICS, _CONDITIONS, _BEHAVIOR})
_CPU: Final = "cpu"
_DEFAULT_UTILIZATION: Final = 80
_NOTHING: Final = "0"
_CARRIED: Final = ("scaleTargetRef", "minReplicas", "maxReplicas")
_SIZES: Final = ("observedGeneration", "lastScaleTime", "currentReplicas", "desiredReplicas")
_SOURCES: Final = ("object", "pods", "resource", "containerResource", "external")
_RULES: Final = ("stabilizationWindowSeconds", "selectPolicy", "policies", "tolerance")
_DIRECTIONS: Final = ("scaleUp", "scaleDown")


def newer(document: Mapping[str, Any]) -> Document:
    """Return a v1 document as v2."""
    metadata = dict(document.get("metadata") or {})
    annotations = dict(metadata.get("annotations") or {})
    spec, status = document.get("spec") or {}, document.get("status") or {}
    changed: Document = {field: spec[field] for field in _CARRIED if field in spec}
    utilization = spec.get("targetCPUUtilizationPercentage")
    metrics = [_newer_metric(each, "target") for each in _list(annotations.get(_METRICS))]
    if utilization is not None or not metrics:
        metrics.append(_cpu(_DEFAULT_UTILIZATION if utilization is None else utilization))
    changed["metrics"] = metrics
    behavior = _newer_behavior(annotations.get(_BEHAVIOR))
    if behavior:
        changed["behavior"] = behavior
    state: Document = {field: status[field] for field in _SIZES if field in status}
    current = status.get("currentCPUUtilizationPercentage")
    if current is not None:
        usage = {"name": _CPU, "current": {"averageUtilization": current}}
        state["currentMetrics"] = [{"type": "Resource", "resource": usage}]
    if _CURRENT_METRICS in annotations:
        state["currentMetrics"] = [_newer_metric(each, "current") for each in _list(annotations[_CURRENT_METRICS])]
    if _CONDITIONS in annotations:
        state["conditions"] = _list(annotations[_CONDITIONS])
    return {
        **document,
        "apiVersion": "autoscaling/v2",
        **_replace_annotations(metadata, annotations, {}),
        "spec": changed,
        "status": state,
    }


def older(document: Mapping[str, Any]) -> Document:
    """Return a v2 document as v1."""
    metadata = dict(document.get("metadata") or {})
    spec, status = document.get("spec") or {}, document.get("status") or {}
    metrics, current = spec.get("metrics") or [], status.get("currentMetrics") or []
    changed: Document = {field: spec[field] for field in _CARRIED if field in spec}
    cpu = [each["resource"]["target"]["averageUtilization"] for each in metrics if _is_cpu(each, "target")]
    if cpu:
        changed["targetCPUUtilizationPercentage"] = cpu[0]
    state: Document = {field: status[field] for field in _SIZES if field in status}
    used = [each["resource"]["current"]["averageUtilization"] for each in current if _is_cpu(each, "current")]
    if used:
        state["currentCPUUtilizationPercentage"] = used[-1]
    new_annotations: dict[str, str] = {}
    other_metrics = [_older_metric(each, "target") for each in metrics if not _is_cpu(each, "target")]
    if other_metrics:
        new_annotations[_METRICS] = _text(other_metrics)
    if current:
        new_annotations[_CURRENT_METRICS] = _text([_older_metric(each, "current") for each in current])
    if spec.get("behavior") is not None:
        new_annotations[_BEHAVIOR] = _text(_older_behavior(spec["behavior"]))
    if status.get("conditions"):
        new_annotations[_CONDITIONS] = _text([_ordered_condition(each) for each in status["conditions"]])
    state.setdefault("currentReplicas", 0)
    state.setdefault("desiredReplicas", 0)
    annotations = dict(metadata.get("annotations") or {})
    return {
        **document,
        "apiVersion": "autoscaling/v1",
        **_replace_annotations(metadata, annotations, new_annotations),
        "spec": changed,
        "status": state,
    }


def _replace_annotations(metadata: Document, old: Mapping[str, str], new: Mapping[str, str]) -> Document:
    """Return metadata whose round-trip annotations are replaced by new ones."""
    annotations = {key: text for key, text in old.items() if key not in _ROUND_TRIP} | dict(new)
    fields = {field: value for field, value in metadata.items() if field != "annotations"}
    return {"metadata": {**fields, "annotations": annotations} if annotations else fields}


def _is_cpu(metric: Mapping[str, Any], part: str) -> bool:
    """Return True if v1 has a field for the metric."""
    resource = metric.get("resource") or {}
    is_resource = metric.get("type") == "Resource" and resource.get("name") == _CPU
    return is_resource and (resource.get(part) or {}).get("averageUtilization") is not None


def _cpu(utilization: int) -> Document:
    target = {"type": "Utilization", "averageUtilization": utilization}
    return {"type": "Resource", "resource": {"name": _CPU, "target": target}}


def _older_metric(metric: Mapping[str, Any], part: str) -> Document:
    """Return a metric in the form of v1; ``part`` is ``target`` for specs and ``current`` for statuses."""
    changed: Document = {"type": metric.get("type", "")}
    for source in _SOURCES:
        if metric.get(source) is not None:
            changed[source] = _older_source(source, metric[source], part)
    return changed


def _older_source(source: str, fields: Mapping[str, Any], part: str) -> Document:
    values, metric = fields.get(part) or {}, fields.get("metric") or {}
    value, average = values.get("value"), values.get("averageValue")
    utilization = values.get("averageUtilization")
    plain: Document
    if source == "object":
        plain = {"target": fields.get("describedObject") or {}, "metricName": metric.get("name", "")}
        plain[f"{part}Value"] = value or _NOTHING
        plain |= _some(selector=metric.get("selector"), averageValue=average)
    elif source == "pods":
        plain = {"metricName": metric.get("name", ""), f"{part}AverageValue": average or _NOTHING}
        plain |= _some(selector=metric.get("selector"))
    elif source == "external":
        plain = {"metricName": metric.get("name", ""), **_some(metricSelector=metric.get("selector"))}
        plain |= _some(**{f"{part}Value": value if part == "target" else value or _NOTHING})
        plain |= _some(**{f"{part}AverageValue": average})
    else:
        shown_average = average if part == "target" else average or _NOTHING
        plain = {"name": fields.get("name", ""), **_some(**{f"{part}AverageUtilization": utilization})}
        plain |= _some(**{f"{part}AverageValue": shown_average})
        if source == "containerResource":
            plain["container"] = fields.get("container", "")
    return plain


def _newer_metric(metric: Mapping[str, Any], part: str) -> Document:
    changed: Document = {"type": metric.get("type", "")}
    for source in _SOURCES:
        if isinstance(metric.get(source), dict):
            changed[source] = _newer_source(source, metric[source], part)
    return changed


def _newer_source(source: str, fields: Mapping[str, Any], part: str) -> Document:
    value, average = fields.get(f"{part}Value"), fields.get(f"{part}AverageValue")
    utilization = fields.get(f"{part}AverageUtilization")
    if source == "object":
        average = fields.get("averageValue")
        if part == "target" and average is not None and value == _NOTHING:
            # v1 cannot omit the value, so zero means none.
            value = None
    values = _some(value=value, averageValue=average, averageUtilization=utilization)
    if part == "target":
        values = {"type": _target_type(source, value, average, utilization), **values}
    if source in ("resource", "containerResource"):
        place = {"container": fields.get("container", "")} if source == "containerResource" else {}
        return {"name": fields.get("name", ""), **place, part: values}
    selector = fields.get("metricSelector" if source == "external" else "selector")
    described = {"describedObject": fields.get("target") or {}} if source == "object" else {}
    return {**described, "metric": {"name": fields.get("metricName", ""), **_some(selector=selector)}, part: values}


def _target_type(source: str, value: Any, average: Any, utilization: Any) -> str:
    if source in ("resource", "containerResource"):
        return "AverageValue" if utilization is None else "Utilization"
    if source == "external":
        return "AverageValue" if value is None else "Value"
    return "Value" if source == "object" and average is None else "AverageValue"


def _older_behavior(behavior: Mapping[str, Any]) -> Document:
    """Return a behavior in the form of upstream's internal type, whose field names are capitalised."""
    return {_capital(direction): _older_rules(behavior.get(direction)) for direction in _DIRECTIONS}


def _older_rules(rules: Mapping[str, Any] | None) -> Document | None:
    if rules is None:
        return None
    changed = {_capital(field): rules.get(field) for field in _RULES}
    order = ("type", "value", "periodSeconds")
    policies = rules.get("policies")
    if policies is not None:
        changed["Policies"] = [{_capital(field): policy.get(field) for field in order} for policy in policies]
    return changed


def _newer_behavior(text: str | None) -> Document:
    try:
        behavior = msgspec.json.decode(text or "{}")
    except msgspec.DecodeError:
        return {}
    return _lower_camel(behavior) if isinstance(behavior, dict) else {}


def _lower_camel(value: Any) -> Any:
    """Return a JSON value with field names in lower camel case and without nulls."""
    if isinstance(value, dict):
        return {name[:1].lower() + name[1:]: _lower_camel(inner) for name, inner in value.items() if inner is not None}
    return [_lower_camel(inner) for inner in value] if isinstance(value, list) else value


def _ordered_condition(condition: Mapping[str, Any]) -> Document:
    order = ("type", "status", "lastTransitionTime", "reason", "message", "observedGeneration")
    return {field: condition[field] for field in order if field in condition}


def _capital(name: str) -> str:
    return name[:1].upper() + name[1:]


def _some(**fields: Any) -> Document:
    return {name: value for name, value in fields.items() if value is not None}


def _text(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _list(text: str | None) -> list[Document]:
    try:
        return msgspec.json.decode(text or "[]", type=list[dict[str, Any]])
    except msgspec.DecodeError:
        return []
