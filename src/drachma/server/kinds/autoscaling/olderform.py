"""Autoscalers in autoscaling/v1, which knows of CPU only: everything else stands in annotations there, as JSON.

``newer`` makes v2 of a v1 document, ``older`` v1 of a v2 one; nothing is lost on the way there and back. Annotations
that cannot be read count as if they were not there.
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
    """A v1 document as v2."""
    metadata = dict(document.get("metadata") or {})
    notes = dict(metadata.get("annotations") or {})
    spec, status = document.get("spec") or {}, document.get("status") or {}
    changed: Document = {field: spec[field] for field in _CARRIED if field in spec}
    utilization = spec.get("targetCPUUtilizationPercentage")
    metrics = [_newer_metric(each, "target") for each in _list(notes.get(_METRICS))]
    if utilization is not None or not metrics:
        metrics.append(_cpu(_DEFAULT_UTILIZATION if utilization is None else utilization))
    changed["metrics"] = metrics
    behavior = _newer_behavior(notes.get(_BEHAVIOR))
    if behavior:
        changed["behavior"] = behavior
    state: Document = {field: status[field] for field in _SIZES if field in status}
    current = status.get("currentCPUUtilizationPercentage")
    if current is not None:
        usage = {"name": _CPU, "current": {"averageUtilization": current}}
        state["currentMetrics"] = [{"type": "Resource", "resource": usage}]
    if _CURRENT_METRICS in notes:
        state["currentMetrics"] = [_newer_metric(each, "current") for each in _list(notes[_CURRENT_METRICS])]
    if _CONDITIONS in notes:
        state["conditions"] = _list(notes[_CONDITIONS])
    return {
        **document,
        "apiVersion": "autoscaling/v2",
        **_with_notes(metadata, notes, {}),
        "spec": changed,
        "status": state,
    }


def older(document: Mapping[str, Any]) -> Document:
    """A v2 document as v1."""
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
    notes: dict[str, str] = {}
    others = [_older_metric(each, "target") for each in metrics if not _is_cpu(each, "target")]
    if others:
        notes[_METRICS] = _text(others)
    if current:
        notes[_CURRENT_METRICS] = _text([_older_metric(each, "current") for each in current])
    if spec.get("behavior") is not None:
        notes[_BEHAVIOR] = _text(_older_behavior(spec["behavior"]))
    if status.get("conditions"):
        notes[_CONDITIONS] = _text([_ordered_condition(each) for each in status["conditions"]])
    state.setdefault("currentReplicas", 0)
    state.setdefault("desiredReplicas", 0)
    own = dict(metadata.get("annotations") or {})
    return {
        **document,
        "apiVersion": "autoscaling/v1",
        **_with_notes(metadata, own, notes),
        "spec": changed,
        "status": state,
    }


def _with_notes(metadata: Document, notes: Mapping[str, str], more: Mapping[str, str]) -> Document:
    """Metadata with annotations of which those of this conversion are exactly ``more``."""
    kept = {key: text for key, text in notes.items() if key not in _ROUND_TRIP} | dict(more)
    rest = {field: value for field, value in metadata.items() if field != "annotations"}
    return {"metadata": {**rest, "annotations": kept} if kept else rest}


def _is_cpu(metric: Mapping[str, Any], part: str) -> bool:
    """Whether v1 has a field for a metric."""
    resource = metric.get("resource") or {}
    is_resource = metric.get("type") == "Resource" and resource.get("name") == _CPU
    return is_resource and (resource.get(part) or {}).get("averageUtilization") is not None


def _cpu(utilization: int) -> Document:
    target = {"type": "Utilization", "averageUtilization": utilization}
    return {"type": "Resource", "resource": {"name": _CPU, "target": target}}


def _older_metric(metric: Mapping[str, Any], part: str) -> Document:
    """A metric, or what is known of one: ``part`` is ``target`` or ``current``."""
    changed: Document = {"type": metric.get("type", "")}
    for source in _SOURCES:
        if metric.get(source) is not None:
            changed[source] = _older_source(source, metric[source], part)
    return changed


def _older_source(source: str, given: Mapping[str, Any], part: str) -> Document:
    values, metric = given.get(part) or {}, given.get("metric") or {}
    value, average = values.get("value"), values.get("averageValue")
    utilization = values.get("averageUtilization")
    plain: Document
    if source == "object":
        plain = {"target": given.get("describedObject") or {}, "metricName": metric.get("name", "")}
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
        known = average if part == "target" else average or _NOTHING
        plain = {"name": given.get("name", ""), **_some(**{f"{part}AverageUtilization": utilization})}
        plain |= _some(**{f"{part}AverageValue": known})
        if source == "containerResource":
            plain["container"] = given.get("container", "")
    return plain


def _newer_metric(metric: Mapping[str, Any], part: str) -> Document:
    changed: Document = {"type": metric.get("type", "")}
    for source in _SOURCES:
        if isinstance(metric.get(source), dict):
            changed[source] = _newer_source(source, metric[source], part)
    return changed


def _newer_source(source: str, given: Mapping[str, Any], part: str) -> Document:
    value, average = given.get(f"{part}Value"), given.get(f"{part}AverageValue")
    utilization = given.get(f"{part}AverageUtilization")
    if source == "object":
        average = given.get("averageValue")
        if part == "target" and average is not None and value == _NOTHING:
            # v1 cannot leave the value out, and zero is none.
            value = None
    values = _some(value=value, averageValue=average, averageUtilization=utilization)
    if part == "target":
        values = {"type": _target_type(source, value, average, utilization), **values}
    if source in ("resource", "containerResource"):
        place = {"container": given.get("container", "")} if source == "containerResource" else {}
        return {"name": given.get("name", ""), **place, part: values}
    selector = given.get("metricSelector" if source == "external" else "selector")
    described = {"describedObject": given.get("target") or {}} if source == "object" else {}
    return {**described, "metric": {"name": given.get("metricName", ""), **_some(selector=selector)}, part: values}


def _target_type(source: str, value: Any, average: Any, utilization: Any) -> str:
    if source in ("resource", "containerResource"):
        return "AverageValue" if utilization is None else "Utilization"
    if source == "external":
        return "AverageValue" if value is None else "Value"
    return "Value" if source == "object" and average is None else "AverageValue"


def _older_behavior(behavior: Mapping[str, Any]) -> Document:
    """In the form of upstream's internal type, whose fields begin with capital letters."""
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
    return _small(behavior) if isinstance(behavior, dict) else {}


def _small(value: Any) -> Any:
    """JSON with field names that begin with small letters, without what is null."""
    if isinstance(value, dict):
        return {name[:1].lower() + name[1:]: _small(inner) for name, inner in value.items() if inner is not None}
    return [_small(inner) for inner in value] if isinstance(value, list) else value


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
