"""Rules for FlowSchema and PriorityLevelConfiguration. The rules that upstream declares on its types come last."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

from drachma.validation import constraints, fielderror, rendering, typerules
from drachma.validation.fielderror import Errors
from drachma.validation.kindrules import Change, KindRules, below
from drachma.validation.path import Path
from drachma.values import names

Document = Mapping[str, Any]

DEFAULT_PRECEDENCE: Final = 1000

_EXEMPT: Final = "exempt"
_ALL: Final = "*"
_METHODS: Final = ("ByNamespace", "ByUser")
_VERBS: Final = ("create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch")
_SUBJECT_FIELDS: Final = {"Group": "group", "ServiceAccount": "serviceAccount", "User": "user"}
_HASH_BITS: Final = 60
_is_level_type: Final = constraints.one_of("Exempt", "Limited")
_is_response_type: Final = constraints.one_of("Queue", "Reject")
_is_subject_kind: Final = constraints.one_of(*_SUBJECT_FIELDS)

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


def _precedence_of_exempt(precedence: int, at: Path, metadata: Document) -> Errors:
    if precedence == 1 and metadata.get("name") != _EXEMPT:
        yield fielderror.invalid(at, precedence, "only the schema named 'exempt' may have matchingPrecedence 1")


def _check_method(spec: Document, at: Path) -> Errors:
    method = spec.get("distinguisherMethod")
    if method is not None and method.get("type", "") not in _METHODS:
        display = rendering.internal_fields(method, ("Type", "type", ""))
        yield fielderror.not_supported(at.child("distinguisherMethod", "type"), display, _METHODS)


def _check_mandatory_schema(spec: Document, at: Path, metadata: Document) -> Errors:
    name = metadata.get("name", "")
    if name in MANDATORY_SCHEMAS and spec != MANDATORY_SCHEMAS[name]:
        yield fielderror.invalid(at, fielderror.OMITTED, f"spec of '{name}' must equal the fixed value")


def _check_has_rules(rule: Document, at: Path) -> Errors:
    if not rule.get("resourceRules") and not rule.get("nonResourceRules"):
        yield fielderror.required(at, "at least one of resourceRules and nonResourceRules has to be non-empty")


def _check_subject(subject: Document, at: Path) -> Errors:
    kind = subject.get("kind", "")
    unknown = _is_subject_kind(kind, at.child("kind"))
    if unknown:
        yield from unknown
        return
    field = _SUBJECT_FIELDS[kind]
    member, place = subject.get(field), at.child(field)
    if member is None:
        yield fielderror.required(place, f"{field} is required when subject kind is '{kind}'")
    elif kind == "ServiceAccount":
        yield from _TYPES["ServiceAccountSubject"](member, place)
    elif not member.get("name"):
        yield fielderror.required(place.child("name"))
    for other_kind, other_field in reversed(_SUBJECT_FIELDS.items()):
        if other_kind != kind and subject.get(other_field) is not None:
            detail = f"{other_field} is forbidden when subject kind is not '{other_kind}'"
            yield fielderror.forbidden(at.child(other_field), detail)


def _account_name(name: str, at: Path) -> Errors:
    if name != _ALL:
        yield from constraints.dns_subdomain(name, at)


def _verbs(verbs: Sequence[str], at: Path) -> Errors:
    if _ALL in verbs:
        yield from _lone_star(verbs, at, "verbs")
    elif not set(_VERBS).issuperset(verbs):
        yield fielderror.not_supported(at, rendering.wire(tuple(verbs)), _VERBS)


def _paths(paths: Sequence[str], at: Path) -> Errors:
    if _ALL in paths:
        yield from _lone_star(paths, at, "non-resource URLs")
        return
    for position, path in enumerate(paths):
        problem = _path_problem(path)
        if problem:
            yield fielderror.invalid(at.item(position), path, problem)


def _lone_star_of_groups(groups: Sequence[str], at: Path) -> Errors:
    yield from _lone_star(groups, at, "api groups")


def _lone_star_of_resources(resources: Sequence[str], at: Path) -> Errors:
    yield from _lone_star(resources, at, "resources")


def _lone_star(values: Sequence[str], at: Path, title: str) -> Errors:
    """Check that a star, which stands for everything, is the only value."""
    if _ALL in values and len(values) > 1:
        detail = f"if '*' is present, must not specify other {title}"
        yield fielderror.invalid(at, rendering.wire(tuple(values)), detail)


def _check_namespaces(rule: Document, at: Path) -> Errors:
    namespaces, place = rule.get("namespaces") or (), at.child("namespaces")
    if not namespaces and not rule.get("clusterScope"):
        detail = "resource rules that are not cluster scoped must supply at least one namespace"
        yield fielderror.required(place, detail)
    elif _ALL in namespaces:
        yield from _lone_star(namespaces, place, "namespaces")
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


def _check_type_of_exempt(spec: Document, at: Path, metadata: Document) -> Errors:
    kind = spec.get("type", "")
    if (metadata.get("name") == _EXEMPT) != (kind == "Exempt"):
        detail = "must be 'Exempt' if and only if `name` is 'exempt'"
        yield fielderror.invalid(at.child("type"), rendering.named(kind), detail)


def _check_level(spec: Document, at: Path) -> Errors:
    kind, field = spec.get("type", ""), spec.get("type", "").lower()
    if kind in ("Exempt", "Limited") and spec.get(field) is not None:
        yield from _TYPES[f"{kind}PriorityLevelConfiguration"](spec[field], at.child(field))
    elif kind:
        yield from _is_level_type(kind, at.child("type"))


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


def _check_members(spec: Document, at: Path) -> Errors:
    """Check the members of the union that upstream declares, and those of the response."""
    kind, exempt, limited = spec.get("type", ""), spec.get("exempt"), spec.get("limited")
    if exempt is not None and kind != "Exempt":
        yield fielderror.forbidden(at.child("exempt"), "")
    if limited is not None and kind != "Limited":
        yield fielderror.forbidden(at.child("limited"), "")
    if limited is None and kind == "Limited":
        yield fielderror.required(at.child("limited"))
    if not kind:
        yield fielderror.required(at.child("type"))
    if limited is not None:
        response, place = limited.get("limitResponse") or {}, at.child("limited", "limitResponse")
        kind, queuing = response.get("type", ""), response.get("queuing")
        if queuing is not None and kind != "Queue":
            yield fielderror.forbidden(place.child("queuing"), "")
        if queuing is None and kind == "Queue":
            yield fielderror.required(place.child("queuing"))
        if not kind:
            yield fielderror.required(place.child("type"))


def _check_response(response: Document, at: Path) -> Errors:
    kind, queuing = response.get("type", ""), response.get("queuing")
    if kind == "Queue" and queuing is not None:
        yield from _TYPES["QueuingConfiguration"](queuing, at.child("queuing"))
    elif kind:
        yield from _is_response_type(kind, at.child("type"))


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


# Status


def _conditions(conditions: Sequence[Document], at: Path) -> Errors:
    previous: set[str] = set()
    for position, condition in enumerate(conditions):
        kind, place = condition.get("type", ""), at.item(position)
        if kind in previous:
            yield fielderror.duplicate(place.child("type"), rendering.named(kind))
        previous.add(kind)
        yield from _TYPES["Condition"](condition, place)


_TYPES: Final = typerules.load("flowcontrol", globals())
FLOW_SCHEMA: Final = KindRules(always=_TYPES["FlowSchema"], status=Change(below("status", _TYPES["Status"])))
PRIORITY_LEVEL: Final = KindRules(
    always=_TYPES["PriorityLevelConfiguration"], status=Change(below("status", _TYPES["Status"]))
)
