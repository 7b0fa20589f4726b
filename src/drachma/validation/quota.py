"""Rules for ResourceQuota and LimitRange.

Upstream visits the resources of a limit range in no particular order; here they are in the order of their names.
"""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from drachma.validation import collection, fielderror, kindrules, rendering, rulenotation, typerules
from drachma.validation.fielderror import Errors, Found
from drachma.validation.path import Document, Path
from drachma.validation.podspec import resources
from drachma.values import names, quantity

_PODS: Final = frozenset({"pods"})
_COMPUTE: Final = frozenset({"cpu", "memory", "limits.cpu", "limits.memory", "requests.cpu", "requests.memory"})
_RESOURCES_OF_SCOPE: Final[Mapping[str, frozenset[str]]] = {
    "Terminating": _PODS | _COMPUTE,
    "NotTerminating": _PODS | _COMPUTE,
    "BestEffort": _PODS,
    "NotBestEffort": _PODS | _COMPUTE,
    "PriorityClass": _PODS | _COMPUTE,
    "CrossNamespacePodAffinity": _PODS | _COMPUTE,
    "VolumeAttributesClass": frozenset({"persistentvolumeclaims", "requests.storage"}),
}
_OPPOSITES: Final = (("BestEffort", "NotBestEffort"), ("Terminating", "NotTerminating"))
_EXPRESSION: Final = (("ScopeName", "scopeName", ""), ("Operator", "operator", ""), ("Values", "values", None))

_LIMIT_TYPES: Final = frozenset({"Pod", "Container", "PersistentVolumeClaim"})
_BOUND_FIELDS: Final = ("min", "max", "default", "defaultRequest", "maxLimitRequestRatio")
_MOST_MILLI: Final = (2**63 - 1) // 1000
_ONE: Final = quantity.Quantity.from_int(1)


# ResourceQuota


def _amounts(amounts: Mapping[str, str], at: Path) -> Errors:
    for name in sorted(amounts):
        yield from resources.quota_resource(name, at.key(name))
        yield from resources.amount(name, amounts[name], at.key(name))


def _check_scopes(spec: Document, at: Path) -> Errors:
    hard, scopes, place = spec.get("hard") or {}, spec.get("scopes") or (), at.child("scopes")
    display = rendering.wire(list(scopes))
    for scope in scopes:
        if scope not in _RESOURCES_OF_SCOPE:
            yield fielderror.invalid(place, display, "unsupported scope")
        for _ in _unlimited(scope, hard):
            yield fielderror.invalid(place, display, "unsupported scope applied to resource")
    yield from _conflicts(scopes, place, display=display)


def _check_selected_scopes(spec: Document, at: Path) -> Errors:
    expressions = (spec.get("scopeSelector") or {}).get("matchExpressions") or ()
    place = at.child("scopeSelector", "matchExpressions")
    yield from _REQUIREMENTS(expressions, place, spec)
    scopes = [expression.get("scopeName", "") for expression in expressions]
    yield from _conflicts(scopes, place, display=rendering.wire(list(spec.get("scopes") or ()) or None))


def _check_selected_resources(expression: Document, at: Path, spec: Document) -> Errors:
    display = _show_selector(spec["scopeSelector"]["matchExpressions"])
    for _ in _unlimited(expression.get("scopeName", ""), spec.get("hard") or {}):
        yield fielderror.invalid(at, display, "unsupported scope applied to resource")


def _unlimited(scope: str, hard: Mapping[str, str]) -> list[str]:
    """Return the resources of a quota that cannot be limited in a scope."""
    limited = _RESOURCES_OF_SCOPE.get(scope)
    return [name for name in hard if limited is not None and resources.is_quota(name) and name not in limited]


def _conflicts(scopes: Sequence[str], at: Path, *, display: rendering.Rendered) -> Errors:
    for pair in _OPPOSITES:
        if set(pair) <= set(scopes):
            yield fielderror.invalid(at, display, "conflicting scopes")


def _show_selector(expressions: Sequence[Document]) -> rendering.Rendered:
    items = ",".join(rendering.internal_fields(expression, *_EXPRESSION) for expression in expressions)
    return rendering.Rendered(f'{{"MatchExpressions":[{items}]}}')


def _check_quota_update(spec: Document, at: Path, old: Document) -> Errors:
    scopes = spec.get("scopes") or ()
    if set(scopes) != set(old.get("scopes") or ()):
        display = rendering.wire(list(scopes) if scopes else None)
        yield fielderror.invalid(at.child("scopes"), display, typerules.IMMUTABLE)


# LimitRange


class _Bounds(NamedTuple):
    """Bounds of one resource; None where there is none."""

    least: quantity.Quantity | None
    most: quantity.Quantity | None
    default: quantity.Quantity | None
    default_request: quantity.Quantity | None
    ratio: quantity.Quantity | None


def _limits(limits: Sequence[Document], at: Path) -> Errors:
    for place, item, kind, is_repeated in collection.walk_items(limits, at, field="type"):
        yield from _limit_type(kind, place.child("type"))
        if is_repeated:
            yield fielderror.duplicate(place.child("type"), rendering.named(kind))
        yield from _check_limit(item, kind, place)


def _limit_type(kind: str, at: Path) -> Found:
    errors = fielderror.problems(at, rendering.named(kind), names.qualified_name(kind))
    if errors or "/" in kind or kind in _LIMIT_TYPES:
        return errors
    return [fielderror.invalid(at, rendering.named(kind), "must be a standard limit type or fully qualified")]


def _check_limit(item: Document, kind: str, at: Path) -> Errors:
    fields = {field: item.get(field) or {} for field in ("max", "min", "default", "defaultRequest")}
    for field, amounts in list(fields.items()):
        if kind == "Pod" and amounts and field in ("default", "defaultRequest"):
            yield fielderror.forbidden(at.child(field), "may not be specified when `type` is 'Pod'")
            fields[field] = {}
        else:
            yield from _resource_names(amounts, kind, at.child(field))
    if kind == "PersistentVolumeClaim" and "storage" not in fields["min"] and "storage" not in fields["max"]:
        detail = "either minimum or maximum storage value is required, but neither was provided"
        yield fielderror.required(at.child("limits"), detail)
    fields["maxLimitRequestRatio"] = item.get("maxLimitRequestRatio") or {}
    yield from _resource_names(fields["maxLimitRequestRatio"], kind, at.child("maxLimitRequestRatio"))
    for name in sorted({name for amounts in fields.values() for name in amounts}):
        texts = (fields[field].get(name) for field in _BOUND_FIELDS)
        bounds = _Bounds(*(None if text is None else quantity.Quantity.parse(text) for text in texts))
        yield from _check_order(name, bounds, at)
        yield from _check_ratio(name, bounds, at)
        yield from _check_overcommit(name, bounds, at)


def _resource_names(amounts: Mapping[str, str], kind: str, at: Path) -> Errors:
    rule = resources.container_resource if kind in ("Pod", "Container") else resources.any_resource
    for name in sorted(amounts):
        yield from rule(name, at.key(name))


def _check_order(name: str, bounds: _Bounds, at: Path) -> Errors:
    least, most, default, request, _ = bounds
    requests, defaults = at.child("defaultRequest").key(name), at.child("default").key(name)
    # Messages about the default show the bound and not the default, as upstream's.
    for low, high, place, display, low_title, high_title in (
        (least, most, at.child("min").key(name), least, "min", "max"),
        (least, request, requests, request, "min", "default request"),
        (request, most, requests, request, "default request", "max"),
        (request, default, requests, request, "default request", "default limit"),
        (least, default, defaults, least, "min", "default"),
        (default, most, defaults, most, "default", "max"),
    ):
        if low is not None and high is not None and low > high:
            detail = f"{low_title} value {low} is greater than {high_title} value {high}"
            yield fielderror.invalid(place, str(display), detail)


def _check_ratio(name: str, bounds: _Bounds, at: Path) -> Errors:
    ratio, least, most = bounds.ratio, bounds.least, bounds.most
    if ratio is None:
        return
    place = at.child("maxLimitRequestRatio").key(name)
    if ratio < _ONE:
        yield fielderror.invalid(place, str(ratio), f"ratio {ratio} is less than 1")
    if least is None or most is None:
        return
    if all(each.as_int64() < _MOST_MILLI for each in (ratio, least, most)):
        number, low, high = ratio.milli_value() / 1000, least.milli_value(), most.milli_value()
    else:
        number, low, high = float(ratio.as_int64()), least.as_int64(), most.as_int64()
    # Without a least amount there is no bound for the ratio; Go divides by zero and gets infinity.
    if low and number > high / low:
        yield fielderror.invalid(place, str(ratio), f"ratio {ratio} is greater than max/min = {high / low:f}")


def _check_overcommit(name: str, bounds: _Bounds, at: Path) -> Errors:
    if names.is_native_resource(name) and not names.is_huge_page_resource(name):
        return
    default, request = bounds.default, bounds.default_request
    if default is not None and request is not None and default != request:
        detail = f"default value {default} must equal to defaultRequest value {request} in {name}"
        yield fielderror.invalid(at.child("defaultRequest").key(name), str(request), detail)


_TYPES: Final = rulenotation.load("quota", globals())
_REQUIREMENTS: Final = typerules.Each(_TYPES["ScopedResourceSelectorRequirement"], is_at_list=True)
KINDS: Final = kindrules.read(_TYPES)
