"""Rules for HorizontalPodAutoscaler. The rules that upstream declares on its types come last, as there."""

from collections.abc import Sequence
from typing import Final

from drachma.validation import constraints, fielderror, kindrules, rulenotation
from drachma.validation.fielderror import Errors
from drachma.validation.path import Document, Path

_SOURCES: Final = ("object", "external", "pods", "resource", "containerResource")
_is_source: Final = constraints.one_of("ContainerResource", "External", "Object", "Pods", "Resource")

_is_positive: Final = constraints.positive_quantity("must be positive")


# The facts of specs, metrics and references are the old spec, which is empty for a new object.


def _check_target_version(spec: Document, at: Path, old: Document) -> Errors:
    """Check the version of the target; a version that the old spec has already may stay."""
    target = spec.get("scaleTargetRef") or {}
    before = old.get("scaleTargetRef") or {}
    is_old = bool(old) and all(target.get(field) == before.get(field) for field in ("apiVersion", "kind"))
    problem = _version_problem(target, needs_group=target.get("kind") != "ReplicationController")
    if problem and not is_old:
        yield fielderror.invalid(at.child("scaleTargetRef", "apiVersion"), target.get("apiVersion", ""), problem)


def _check_version(reference: Document, at: Path, old: Document) -> Errors:
    """Check the version of a described object, unless the old spec describes one with a malformed version."""
    problem = _version_problem(reference, needs_group=False)
    if problem and not any(_version_problem(each, needs_group=False) for each in _described(old)):
        yield fielderror.invalid(at.child("apiVersion"), reference.get("apiVersion", ""), problem)


def _version_problem(reference: Document, *, needs_group: bool) -> str:
    version: str = reference.get("apiVersion", "")
    if version.count("/") > 1:
        return f"unexpected GroupVersion string: {version}"
    return "apiVersion must specify API group" if needs_group and not version.rpartition("/")[0] else ""


def _described(spec: Document) -> Sequence[Document]:
    metrics = (each.get("object") for each in spec.get("metrics") or () if each.get("type") == "Object")
    return [each.get("describedObject") or {} for each in metrics if each is not None]


def _check_scaling_to_zero(spec: Document, at: Path) -> Errors:
    kinds = [metric.get("type") for metric in spec.get("metrics") or ()]
    if spec.get("minReplicas") == 0 and "Object" not in kinds and "External" not in kinds:
        detail = "must specify at least one Object or External metric to support scaling to zero replicas"
        yield fielderror.forbidden(at.child("metrics"), detail)


def _check_metric(metric: Document, at: Path, old: Document) -> Errors:
    kind = metric.get("type", "")
    if not kind:
        yield fielderror.required(at.child("type"), "must specify a metric source type")
    unknown = _is_source(kind, at.child("type"))
    yield from unknown
    sources = [field for field in _SOURCES if metric.get(field) is not None]
    if sources:
        type_ = _TYPES[f"{sources[0][0].upper()}{sources[0][1:]}MetricSource"]
        yield from type_(metric[sources[0]], at.child(sources[0]), old)
    yield from unknown
    own = kind[:1].lower() + kind[1:]
    if not unknown and own not in sources:
        yield fielderror.required(at.child(own), "must populate information for the given metric source")
    if len(sources) != 1:
        for other_field in sources:
            if other_field != own:
                yield fielderror.forbidden(at.child(other_field), "must populate the given metric source only")


_TYPES: Final = rulenotation.load("autoscaling", globals())
KINDS: Final = kindrules.read(_TYPES)
