"""Rules for flow schemas."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from drachma.validation import fielderror, flowconditions, rendering
from drachma.validation.fielderror import Errors
from drachma.validation.path import SPEC, Path
from drachma.values import names

DEFAULT_PRECEDENCE: Final = 1000

_HIGHEST_PRECEDENCE: Final = 10000
_EXEMPT: Final = "exempt"
_METHODS: Final = ("ByNamespace", "ByUser")
_VERBS: Final = ("create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch")
_KINDS: Final = {"Group": "group", "ServiceAccount": "serviceAccount", "User": "user"}
_ALL: Final = "*"

_EVERYTHING: Final = {
    "resourceRules": [
        {"verbs": [_ALL], "apiGroups": [_ALL], "resources": [_ALL], "clusterScope": True, "namespaces": [_ALL]}
    ],
    "nonResourceRules": [{"verbs": [_ALL], "nonResourceURLs": [_ALL]}],
}
MANDATORY: Final[Mapping[str, Mapping[str, Any]]] = {
    "exempt": {
        "priorityLevelConfiguration": {"name": "exempt"},
        "matchingPrecedence": 1,
        "rules": [{"subjects": [{"kind": "Group", "group": {"name": "system:masters"}}], **_EVERYTHING}],
    },
    "catch-all": {
        "priorityLevelConfiguration": {"name": "catch-all"},
        "matchingPrecedence": 10000,
        "distinguisherMethod": {"type": "ByUser"},
        "rules": [
            {
                "subjects": [
                    {"kind": "Group", "group": {"name": name}}
                    for name in ("system:unauthenticated", "system:authenticated")
                ],
                **_EVERYTHING,
            }
        ],
    },
}
"""Specs that cannot be others."""


def check(spec: Mapping[str, Any], *, name: str) -> Errors:
    """The spec of a schema of that name."""
    precedence, at = spec.get("matchingPrecedence", 0), SPEC.child("matchingPrecedence")
    if precedence <= 0:
        yield fielderror.invalid(at, precedence, "must be a positive value")
    if precedence > _HIGHEST_PRECEDENCE:
        yield fielderror.invalid(at, precedence, f"must not be greater than {_HIGHEST_PRECEDENCE}")
    if precedence == 1 and name != _EXEMPT:
        yield fielderror.invalid(at, precedence, "only the schema named 'exempt' may have matchingPrecedence 1")
    method = spec.get("distinguisherMethod")
    if method is not None and method.get("type", "") not in _METHODS:
        shown = rendering.Rendered(f'{{"Type":{rendering.named(method.get("type", ""))}}}')
        yield fielderror.not_supported(SPEC.child("distinguisherMethod", "type"), shown, _METHODS)
    level, place = (
        (spec.get("priorityLevelConfiguration") or {}).get("name", ""),
        SPEC.child("priorityLevelConfiguration"),
    )
    if not level:
        yield fielderror.required(place.child("name"), "must reference a priority level")
    else:
        yield from fielderror.problems(place.child("name"), level, names.dns1123_subdomain(level))
    for position, rule in enumerate(spec.get("rules") or ()):
        yield from _rule(rule, SPEC.child("rules").item(position))
    if name in MANDATORY and spec != MANDATORY[name]:
        yield fielderror.invalid(SPEC, fielderror.OMITTED, f"spec of '{name}' must equal the fixed value")


def check_status(status: Mapping[str, Any]) -> Errors:
    """What is said of a schema."""
    yield from flowconditions.check(status.get("conditions") or ())


def _rule(rule: Mapping[str, Any], at: Path) -> Errors:
    subjects = rule.get("subjects") or ()
    for position, subject in enumerate(subjects):
        yield from _subject(subject, at.child("subjects").item(position))
    if not subjects:
        yield fielderror.required(at.child("subjects"), "subjects must contain at least one value")
    resources, others = rule.get("resourceRules") or (), rule.get("nonResourceRules") or ()
    if not resources and not others:
        yield fielderror.required(at, "at least one of resourceRules and nonResourceRules has to be non-empty")
    for position, each in enumerate(resources):
        yield from _resource_rule(each, at.child("resourceRules").item(position))
    for position, each in enumerate(others):
        yield from _path_rule(each, at.child("nonResourceRules").item(position))


def _subject(subject: Mapping[str, Any], at: Path) -> Errors:
    kind = subject.get("kind", "")
    if kind not in _KINDS:
        yield fielderror.not_supported(at.child("kind"), rendering.named(kind), tuple(_KINDS))
        return
    field = _KINDS[kind]
    inner, place = subject.get(field), at.child(field)
    if inner is None:
        yield fielderror.required(place, f"{field} is required when subject kind is '{kind}'")
    elif not inner.get("name"):
        yield fielderror.required(place.child("name"))
    elif kind == "ServiceAccount" and inner["name"] != _ALL:
        yield from fielderror.problems(place.child("name"), inner["name"], names.dns1123_subdomain(inner["name"]))
    if kind == "ServiceAccount" and inner is not None:
        namespace = inner.get("namespace", "")
        if not namespace:
            yield fielderror.required(place.child("namespace"), "must specify namespace for service account")
        else:
            yield from fielderror.problems(place.child("namespace"), namespace, names.dns1123_label(namespace))
    for other, other_field in reversed(_KINDS.items()):
        if other != kind and subject.get(other_field) is not None:
            detail = f"{other_field} is forbidden when subject kind is not '{other}'"
            yield fielderror.forbidden(at.child(other_field), detail)


def _path_rule(rule: Mapping[str, Any], at: Path) -> Errors:
    yield from _verbs(rule.get("verbs") or (), at.child("verbs"))
    paths, place = rule.get("nonResourceURLs") or (), at.child("nonResourceURLs")
    if not paths:
        yield fielderror.required(place, "nonResourceURLs must contain at least one value")
    elif _ALL in paths:
        yield from _alone(paths, place, "non-resource URLs")
    else:
        for position, path in enumerate(paths):
            problem = _path_problem(path)
            if problem:
                yield fielderror.invalid(place.item(position), path, problem)


def _resource_rule(rule: Mapping[str, Any], at: Path) -> Errors:
    yield from _verbs(rule.get("verbs") or (), at.child("verbs"))
    for field, singular, plural in (
        ("apiGroups", "api group", "api groups"),
        ("resources", "resource", "resources"),
    ):
        values = rule.get(field) or ()
        if not values:
            yield fielderror.required(at.child(field), f"resource rules must supply at least one {singular}")
        else:
            yield from _alone(values, at.child(field), plural)
    namespaces, place = rule.get("namespaces") or (), at.child("namespaces")
    if not namespaces and not rule.get("clusterScope"):
        detail = "resource rules that are not cluster scoped must supply at least one namespace"
        yield fielderror.required(place, detail)
    elif _ALL in namespaces:
        yield from _alone(namespaces, place, "namespaces")
    else:
        for position, namespace in enumerate(namespaces):
            for problem in names.dns1123_label(namespace):
                detail = f"each member of this list must be '*' or a DNS-1123 label; {problem}"
                yield fielderror.invalid(place.item(position), namespace, detail)


def _verbs(verbs: Sequence[str], at: Path) -> Errors:
    if not verbs:
        yield fielderror.required(at, "verbs must contain at least one value")
    elif _ALL in verbs:
        yield from _alone(verbs, at, "verbs")
    elif not set(_VERBS).issuperset(verbs):
        yield fielderror.not_supported(at, rendering.wire(tuple(verbs)), _VERBS)


def _alone(values: Sequence[str], at: Path, title: str) -> Errors:
    """A star stands for everything, so nothing stands beside it."""
    if _ALL in values and len(values) > 1:
        detail = f"if '*' is present, must not specify other {title}"
        yield fielderror.invalid(at, rendering.wire(tuple(values)), detail)


def _path_problem(path: str) -> str:
    if not path:
        return "must not be empty"
    if path == "/":
        return ""
    if not path.startswith("/"):
        return "must start with slash"
    if " " in path:
        return "must not contain white-space"
    if "//" in path:
        return "must not contain double slash"
    stars = path.count("*")
    if stars > 1 or (stars == 1 and not path.endswith("/*")):
        return "wildcard can only do suffix matching"
    return ""
