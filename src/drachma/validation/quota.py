"""Rules for resource quotas: what can be limited, how much, and for which pods."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from drachma.validation import fielderror, metadata, rendering
from drachma.validation.fielderror import Errors
from drachma.validation.path import SPEC, STATUS, Path
from drachma.validation.podspec import resources

_PODS: Final = frozenset({"pods"})
_COMPUTE: Final = frozenset({"cpu", "memory", "limits.cpu", "limits.memory", "requests.cpu", "requests.memory"})
_LIMITED: Final[Mapping[str, frozenset[str]]] = {
    "Terminating": _PODS | _COMPUTE,
    "NotTerminating": _PODS | _COMPUTE,
    "BestEffort": _PODS,
    "NotBestEffort": _PODS | _COMPUTE,
    "PriorityClass": _PODS | _COMPUTE,
    "CrossNamespacePodAffinity": _PODS | _COMPUTE,
    "VolumeAttributesClass": frozenset({"persistentvolumeclaims", "requests.storage"}),
}
"""What can be limited in each scope."""
_EXISTING: Final = frozenset(
    {"BestEffort", "NotBestEffort", "Terminating", "NotTerminating", "CrossNamespacePodAffinity"}
)
_OPPOSITES: Final = (("BestEffort", "NotBestEffort"), ("Terminating", "NotTerminating"))
_MUST_EXIST: Final = (
    "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, "
    "ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity"
)


def check(spec: Mapping[str, Any]) -> Errors:
    """What a quota says."""
    hard, scopes = spec.get("hard") or {}, spec.get("scopes") or ()
    yield from _amounts(hard, SPEC.child("hard"))
    at, shown = SPEC.child("scopes"), rendering.wire(list(scopes))
    for scope in scopes:
        if scope not in _LIMITED:
            yield fielderror.invalid(at, shown, "unsupported scope")
        for _ in _unfit(scope, hard):
            yield fielderror.invalid(at, shown, "unsupported scope applied to resource")
    yield from _conflicts(scopes, at, shown=shown)
    if spec.get("scopeSelector"):
        yield from _selector(spec, hard, SPEC.child("scopeSelector", "matchExpressions"))


def check_update(spec: Mapping[str, Any], old: Mapping[str, Any]) -> Errors:
    """A changed quota: it is for the same pods as before."""
    scopes = spec.get("scopes") or ()
    if set(scopes) != set(old.get("scopes") or ()):
        shown = rendering.wire(list(scopes) if scopes else None)
        yield fielderror.invalid(SPEC.child("scopes"), shown, metadata.IMMUTABLE)


def check_status(status: Mapping[str, Any]) -> Errors:
    """What is used of a quota."""
    for field in ("hard", "used"):
        yield from _amounts(status.get(field) or {}, STATUS.child(field))


def _amounts(amounts: Mapping[str, str], at: Path) -> Errors:
    for name in sorted(amounts):
        yield from resources.quota_resource(name, at.key(name))
        yield from resources.amount(name, amounts[name], at.key(name))


def _unfit(scope: str, hard: Mapping[str, str]) -> list[str]:
    limited = _LIMITED.get(scope)
    return (
        [] if limited is None else [name for name in sorted(hard) if resources.is_quota(name) and name not in limited]
    )


def _conflicts(scopes: Sequence[str], at: Path, *, shown: rendering.Rendered) -> Errors:
    for pair in _OPPOSITES:
        if set(pair) <= set(scopes):
            yield fielderror.invalid(at, shown, "conflicting scopes")


def _selector(spec: Mapping[str, Any], hard: Mapping[str, str], at: Path) -> Errors:
    expressions = spec["scopeSelector"].get("matchExpressions") or ()
    for expression in expressions:
        scope, operator = expression.get("scopeName", ""), expression.get("operator", "")
        values = expression.get("values") or ()
        if scope not in _LIMITED:
            yield fielderror.invalid(at.child("scopeName"), rendering.named(scope), "unsupported scope")
        for _ in _unfit(scope, hard):
            yield fielderror.invalid(at, _shown(expressions), "unsupported scope applied to resource")
        if scope in _EXISTING and operator != "Exists":
            yield fielderror.invalid(at.child("operator"), rendering.named(operator), _MUST_EXIST)
        match operator:
            case "In" | "NotIn":
                if not values:
                    detail = "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"
                    yield fielderror.required(at.child("values"), detail)
            case "Exists" | "DoesNotExist":
                if values:
                    detail = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector"
                    yield fielderror.invalid(at.child("values"), rendering.wire(list(values)), detail)
            case _:
                detail = "not a valid selector operator"
                yield fielderror.invalid(at.child("operator"), rendering.named(operator), detail)
    scopes = [expression.get("scopeName", "") for expression in expressions]
    yield from _conflicts(scopes, at, shown=rendering.wire(list(spec.get("scopes") or ()) or None))


def _shown(expressions: Sequence[Mapping[str, Any]]) -> rendering.Rendered:
    """A scope selector in the form of upstream's internal type."""
    fields = (("ScopeName", "scopeName", ""), ("Operator", "operator", ""), ("Values", "values", None))
    items = (
        "{" + ",".join(f'"{go}":{rendering.wire(each.get(wire, empty))}' for go, wire, empty in fields) + "}"
        for each in expressions
    )
    return rendering.Rendered('{"MatchExpressions":[' + ",".join(items) + "]}")
