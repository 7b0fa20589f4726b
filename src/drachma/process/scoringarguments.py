"""Arguments of the plugins that score nodes by resources, in a KubeSchedulerConfiguration, with upstream's rules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from drachma.scheduler.framework import resourcescoring
from drachma.scheduler.framework.resourcescoring import ScoredResource, ShapePoint, Strategy, StrategyType
from drachma.validation import fielderror
from drachma.validation.fielderror import Errors
from drachma.validation.path import Path

_TYPES: Final = {each.value: each for each in StrategyType}
_RATIO: Final = StrategyType.REQUESTED_TO_CAPACITY_RATIO.value
_MOST_WEIGHT: Final = 100
_MOST_UTILIZATION: Final = 100


def check_strategy(strategy: Mapping[str, Any], at: Path) -> Errors:
    """Yield the errors of a ``scoringStrategy`` of NodeResourcesFit."""
    kind, ratio = _type(strategy), strategy.get("requestedToCapacityRatio")
    if kind not in _TYPES:
        yield fielderror.not_supported(at.child("type"), kind, tuple(_TYPES))
    for number, resource in enumerate(_resources(strategy.get("resources"))):
        if not 0 < resource.weight <= _MOST_WEIGHT:
            rule = f"resource weight of {resource.name} not in valid range (0, {_MOST_WEIGHT}]"
            yield fielderror.invalid(at.child("resources").item(number).child("weight"), resource.weight, rule)
    here = at.child("requestedToCapacityRatio")
    if kind == _RATIO and ratio is None:
        yield fielderror.required(here, f"must be specified when type is {_RATIO}")
    elif kind == _RATIO:
        yield from _check_shape(_shape(strategy), here.child("shape"))
    elif ratio is not None:
        yield fielderror.forbidden(here, f"must be nil when type is not {_RATIO}")


def _check_shape(shape: Sequence[ShapePoint], at: Path) -> Errors:
    if not shape:
        yield fielderror.required(at, "at least one point must be specified")
    for number in range(1, len(shape)):
        if shape[number - 1].utilization >= shape[number].utilization:
            rule = "values must be sorted in increasing order"
            yield fielderror.invalid(at.item(number).child("utilization"), shape[number].utilization, rule)
            break
    for number, point in enumerate(shape):
        for field, amount, most in (
            ("utilization", point.utilization, _MOST_UTILIZATION),
            ("score", point.score, resourcescoring.MOST_SHAPE_SCORE),
        ):
            if not 0 <= amount <= most:
                yield fielderror.invalid(at.item(number).child(field), amount, f"not in valid range [0, {most}]")


def check_balance(resources: Sequence[Mapping[str, Any]] | None, at: Path) -> Errors:
    """Yield the errors of the ``resources`` of NodeResourcesBalancedAllocation."""
    names: set[str] = set()
    for number, resource in enumerate(_resources(resources)):
        if resource.name in names:
            yield fielderror.duplicate(at.item(number).child("name"), resource.name)
        names.add(resource.name)
        if resource.weight != 1:
            yield fielderror.invalid(at.item(number).child("weight"), resource.weight, "must be 1")


def convert_strategy(strategy: Mapping[str, Any]) -> Strategy:
    """Return a ``scoringStrategy`` without errors."""
    resources = convert_resources(strategy.get("resources"))
    return Strategy(_TYPES[_type(strategy)], resources, _shape(strategy))


def convert_resources(resources: Sequence[Mapping[str, Any]] | None) -> tuple[ScoredResource, ...]:
    """Return resources without errors: cpu and memory if there are none."""
    return _resources(resources) or resourcescoring.CPU_AND_MEMORY


def _type(strategy: Mapping[str, Any]) -> str:
    """Return the type as written: upstream defaults a whole strategy that is absent, and no type inside one."""
    return str(strategy.get("type") or "")


def _resources(resources: Sequence[Mapping[str, Any]] | None) -> tuple[ScoredResource, ...]:
    """Return resources as upstream defaults them: a weight that is absent or 0 is 1."""
    return tuple(ScoredResource(str(each.get("name", "")), each.get("weight") or 1) for each in resources or ())


def _shape(strategy: Mapping[str, Any]) -> tuple[ShapePoint, ...]:
    shape = (strategy.get("requestedToCapacityRatio") or {}).get("shape") or ()
    return tuple(ShapePoint(each.get("utilization", 0), each.get("score", 0)) for each in shape)
