"""Rules for FlowSchema and PriorityLevelConfiguration. The rules that upstream declares on its types come last."""

import math
from collections.abc import Mapping, Sequence
from typing import Final

from drachma.validation import constraints, fielderror, kindrules, rendering, rulenotation
from drachma.validation.fielderror import Errors
from drachma.validation.path import Document, Path
from drachma.values import names

DEFAULT_PRECEDENCE: Final = 1000

_EXEMPT: Final = "exempt"
_ALL: Final = "*"
_METHODS: Final = ("ByNamespace", "ByUser")
_VERBS: Final = ("create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch")
_HASH_BITS: Final = 60
_lone_verb: Final = constraints.lone_star("verbs")
_lone_path: Final = constraints.lone_star("non-resource URLs")
_lone_namespace: Final = constraints.lone_star("namespaces")
_lone_group: Final = constraints.lone_star("api groups")
_lone_resource: Final = constraints.lone_star("resources")

_EVERYTHING: Final = {
    "resourceRules": [
        {"verbs": [_ALL], "apiGroups": [_ALL], "resources": [_ALL], "clusterScope": True, "namespaces": [_ALL]}
    ],
    "nonResourceRules": [{"verbs": [_ALL], "nonResourceURLs": [_ALL]}],
}
MANDATORY_SCHEMAS: Final[Mapping[str, Document]] = {
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
"""Specs of flow schemas that cannot be changed, by name."""

MANDATORY_LEVELS: Final[Mapping[str, Document]] = {
    "exempt": {"type": "Exempt", "exempt": {"nominalConcurrencyShares": 0, "lendablePercent": 0}},
    "catch-all": {
        "type": "Limited",
        "limited": {"nominalConcurrencyShares": 5, "lendablePercent": 0, "limitResponse": {"type": "Reject"}},
    },
}
"""Specs of priority levels that cannot be changed, by name; but what the exempt level says under ``exempt`` can."""


# FlowSchema. The facts of both kinds are their metadata.


def _check_method(spec: Document, at: Path) -> Errors:
    method = spec.get("distinguisherMethod")
    if method is not None and method.get("type", "") not in _METHODS:
        display = rendering.internal_fields(method, ("Type", "type", ""))
        yield fielderror.not_supported(at.child("distinguisherMethod", "type"), display, _METHODS)


def _check_mandatory_schema(spec: Document, at: Path, metadata: Document) -> Errors:
    name = metadata.get("name", "")
    if name in MANDATORY_SCHEMAS and spec != MANDATORY_SCHEMAS[name]:
        yield fielderror.invalid(at, fielderror.OMITTED, f"spec of '{name}' must equal the fixed value")


def _account_name(name: str, at: Path) -> Errors:
    if name != _ALL:
        yield from constraints.dns_subdomain(name, at)


def _verbs(verbs: Sequence[str], at: Path) -> Errors:
    if _ALL in verbs:
        yield from _lone_verb(verbs, at)
    elif not set(_VERBS).issuperset(verbs):
        yield fielderror.not_supported(at, rendering.wire(tuple(verbs)), _VERBS)


def _paths(paths: Sequence[str], at: Path) -> Errors:
    if _ALL in paths:
        yield from _lone_path(paths, at)
        return
    for position, path in enumerate(paths):
        problem = _path_problem(path)
        if problem:
            yield fielderror.invalid(at.item(position), path, problem)


def _check_namespaces(rule: Document, at: Path) -> Errors:
    namespaces, place = rule.get("namespaces") or (), at.child("namespaces")
    if not namespaces and not rule.get("clusterScope"):
        detail = "resource rules that are not cluster scoped must supply at least one namespace"
        yield fielderror.required(place, detail)
    elif _ALL in namespaces:
        yield from _lone_namespace(namespaces, place)
    else:
        for position, namespace in enumerate(namespaces):
            for problem in names.dns1123_label(namespace):
                detail = f"each member of this list must be '*' or a DNS-1123 label; {problem}"
                yield fielderror.invalid(place.item(position), namespace, detail)


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
    return "wildcard can only do suffix matching" if stars > 1 or (stars and not path.endswith("/*")) else ""


# PriorityLevelConfiguration


def _check_mandatory_level(spec: Document, at: Path, metadata: Document) -> Errors:
    name = metadata.get("name", "")
    fixed = MANDATORY_LEVELS.get(name)
    if fixed is None:
        return
    if name != _EXEMPT and spec != fixed:
        yield fielderror.invalid(at, fielderror.OMITTED, f"spec of '{name}' must equal the fixed value")
    elif name == _EXEMPT and {**spec, "exempt": fixed["exempt"]} != fixed:
        detail = "spec of 'exempt' except the 'spec.exempt' field must equal the fixed value"
        yield fielderror.invalid(at, fielderror.OMITTED, detail)


def _check_hand_size(queuing: Document, at: Path) -> Errors:
    queues, hand, place = queuing.get("queues", 0), queuing.get("handSize", 0), at.child("handSize")
    if hand <= 0:
        yield fielderror.invalid(place, hand, "must be positive")
    elif hand > queues:
        yield fielderror.invalid(place, hand, f"should not be greater than queues ({queues})")
    # As upstream, with the precision of floating point.
    elif math.ceil(math.log2(queues) * hand) > _HASH_BITS:
        detail = (
            f"required entropy bits of deckSize {queues} and handSize {hand} should not be greater than {_HASH_BITS}"
        )
        yield fielderror.invalid(place, hand, detail)


_TYPES: Final = rulenotation.load("flowcontrol", globals())
KINDS: Final = kindrules.read(_TYPES)
