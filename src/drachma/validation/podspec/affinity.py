"""Rules for what draws a pod to nodes and to other pods, or keeps it away: affinity and topology spread."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from drachma.validation import fielderror, formats, rendering
from drachma.validation.fielderror import Errors, Found
from drachma.validation.path import Path
from drachma.validation.podspec import choices, selectors
from drachma.values import names

REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"

_NAME_FIELD: Final = "metadata.name"
_HEAVIEST: Final = 100
_ACTIONS: Final = ("DoNotSchedule", "ScheduleAnyway")
_NODE_POLICIES: Final = ("Honor", "Ignore")


def check(affinity: Mapping[str, Any], at: Path) -> Errors:
    """All kinds of affinity."""
    nodes = affinity.get("nodeAffinity")
    if nodes is not None:
        yield from _node_affinity(nodes, at.child("nodeAffinity"))
    for field in ("podAffinity", "podAntiAffinity"):
        for position, term in enumerate((affinity.get(field) or {}).get(REQUIRED) or ()):
            yield from _pod_term(term, at.child(field, REQUIRED).item(position))
        for position, weighted in enumerate((affinity.get(field) or {}).get(PREFERRED) or ()):
            path = at.child(field, PREFERRED).item(position)
            yield from _weight(weighted, path)
            yield from _pod_term(weighted.get("podAffinityTerm") or {}, path.child("podAffinityTerm"))


def check_spread(constraints: Sequence[Mapping[str, Any]], at: Path) -> Errors:
    """How evenly pods are spread."""
    for position, constraint in enumerate(constraints):
        yield from _spread(constraint, at.item(position), rest=constraints[position + 1 :])


# Nodes


def _node_affinity(affinity: Mapping[str, Any], at: Path) -> Errors:
    required = affinity.get(REQUIRED)
    if required is not None:
        terms = at.child(REQUIRED, "nodeSelectorTerms")
        if not required.get("nodeSelectorTerms"):
            yield fielderror.required(terms, "must have at least one node selector term")
        for position, term in enumerate(required.get("nodeSelectorTerms") or ()):
            yield from _node_term(term, terms.item(position), checks_values=True)
    for position, preferred in enumerate(affinity.get(PREFERRED) or ()):
        path = at.child(PREFERRED).item(position)
        yield from _weight(preferred, path)
        yield from _node_term(preferred.get("preference") or {}, path.child("preference"), checks_values=False)


def _node_term(term: Mapping[str, Any], at: Path, *, checks_values: bool) -> Errors:
    for position, requirement in enumerate(term.get("matchExpressions") or ()):
        yield from _label_requirement(
            requirement, at.child("matchExpressions").item(position), checks_values=checks_values
        )
    for position, requirement in enumerate(term.get("matchFields") or ()):
        yield from _field_requirement(requirement, at.child("matchFields").item(position))


def _label_requirement(requirement: Mapping[str, Any], at: Path, *, checks_values: bool) -> Errors:
    operator, values = requirement.get("operator", ""), requirement.get("values") or ()
    if operator in selectors.SET_OPERATORS:
        yield from selectors.check_values(operator, values, at.child("values"))
    elif operator not in ("Gt", "Lt"):
        yield _unknown(operator, at)
    elif len(values) != 1:
        detail = "must be specified single value when `operator` is 'Lt' or 'Gt'"
        yield fielderror.required(at.child("values"), detail)
    yield from formats.label_key(requirement.get("key", ""), at.child("key"))
    if checks_values:
        for position, value in enumerate(values):
            yield from formats.label_value(value, at.child("values").item(position))


def _field_requirement(requirement: Mapping[str, Any], at: Path) -> Errors:
    operator, values = requirement.get("operator", ""), requirement.get("values") or ()
    if operator not in ("In", "NotIn"):
        yield _unknown(operator, at)
    elif len(values) != 1:
        detail = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
        yield fielderror.required(at.child("values"), detail)
    key = requirement.get("key", "")
    if key != _NAME_FIELD:
        yield fielderror.invalid(at.child("key"), key, "not a valid field selector key")
        return
    for position, value in enumerate(values):
        yield from formats.node_name(value, at.child("values").item(position))


def _unknown(operator: str, at: Path) -> fielderror.FieldError:
    return fielderror.invalid(at.child("operator"), rendering.named(operator), "not a valid selector operator")


def _weight(weighted: Mapping[str, Any], at: Path) -> Found:
    weight = weighted.get("weight", 0)
    if 0 < weight <= _HEAVIEST:
        return ()
    return [fielderror.invalid(at.child("weight"), weight, "must be in the range 1-100")]


# Other pods


def _pod_term(term: Mapping[str, Any], at: Path) -> Errors:
    selector = term.get("labelSelector")
    yield from selectors.check(selector, at.child("labelSelector"))
    yield from selectors.check(term.get("namespaceSelector"), at.child("namespaceSelector"))
    for name in term.get("namespaces") or ():
        yield from fielderror.problems(at.child("namespace"), name, names.dns1123_label(name))
    yield from _label_keys(term, at, selector=selector)
    topology = term.get("topologyKey", "")
    if not topology:
        yield fielderror.required(at.child("topologyKey"), "can not be empty")
    yield from formats.label_key(topology, at.child("topologyKey"))


def _label_keys(term: Mapping[str, Any], at: Path, *, selector: Mapping[str, Any] | None) -> Errors:
    """Keys whose values are the pod's own: they need a selector to be added to, and must not be in it already."""
    matching, differing = term.get("matchLabelKeys") or (), term.get("mismatchLabelKeys") or ()
    for field, keys in (("matchLabelKeys", matching), ("mismatchLabelKeys", differing)):
        if keys and selector is None:
            yield fielderror.forbidden(at.child(field), "must not be specified when labelSelector is not set")
        elif keys:
            for position, key in enumerate(keys):
                yield from formats.label_key(key, at.child(field).item(position))
    if selector is not None and matching:
        positions = {key: position for position, key in enumerate(matching)}
        seen = set(selector.get("matchLabels") or ())
        for expression in selector.get("matchExpressions") or ():
            key = expression.get("key", "")
            if key in positions and key in seen:
                detail = "exists in both matchLabelKeys and labelSelector"
                yield fielderror.invalid(at.item(positions[key]), key, detail)
            seen.add(key)
    for position, key in enumerate(matching):
        if key in differing:
            detail = "exists in both matchLabelKeys and mismatchLabelKeys"
            yield fielderror.invalid(at.child("matchLabelKeys").item(position), key, detail)


def _spread(constraint: Mapping[str, Any], at: Path, *, rest: Sequence[Mapping[str, Any]]) -> Errors:
    topology, action = constraint.get("topologyKey", ""), constraint.get("whenUnsatisfiable", "")
    skew = constraint.get("maxSkew", 0)
    if skew <= 0:
        yield fielderror.invalid(at.child("maxSkew"), skew, choices.POSITIVE)
    if not topology:
        yield fielderror.required(at.child("topologyKey"), "can not be empty")
    if action not in _ACTIONS:
        yield fielderror.not_supported(at.child("whenUnsatisfiable"), rendering.named(action), _ACTIONS)
    if any((each.get("topologyKey", ""), each.get("whenUnsatisfiable", "")) == (topology, action) for each in rest):
        yield fielderror.duplicate(at.child("{topologyKey, whenUnsatisfiable}"), f"{{{topology}, {action}}}")
    domains = constraint.get("minDomains")
    if domains is not None:
        if domains <= 0:
            yield fielderror.invalid(at.child("minDomains"), domains, choices.POSITIVE)
        if action != "DoNotSchedule":
            detail = f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}"
            yield fielderror.invalid(at.child("minDomains"), domains, detail)
    for field in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
        policy = constraint.get(field)
        if policy is not None and policy not in _NODE_POLICIES:
            yield fielderror.not_supported(at.child(field), rendering.named(policy), _NODE_POLICIES)
    selector = constraint.get("labelSelector")
    yield from _label_keys({"matchLabelKeys": constraint.get("matchLabelKeys")}, at, selector=selector)
    yield from selectors.check(selector, at.child("labelSelector"))
