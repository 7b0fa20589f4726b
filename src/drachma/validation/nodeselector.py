"""Rules for node selectors of slices, devices and allocations."""

from typing import Final

from drachma.api import nodeselector
from drachma.validation import collection, fielderror, formats, rendering
from drachma.validation.fielderror import Errors, FieldError, Found
from drachma.validation.path import Path
from drachma.values import names

_NAME_FIELD: Final = "metadata.name"


def check(selector: nodeselector.NodeSelector, at: Path) -> Found:
    """A selector with at least one term, and each term well formed."""
    terms = at.child("nodeSelectorTerms")
    if not selector.node_selector_terms:
        return [fielderror.required(terms, "must have at least one node selector term")]
    return collection.check_list(selector.node_selector_terms, _term, at=terms)


def _term(term: nodeselector.NodeSelectorTerm, at: Path) -> Found:
    errors: list[FieldError] = []
    if term.match_expressions:
        errors += collection.check_list(term.match_expressions, _label_requirement, at=at.child("matchExpressions"))
    if term.match_fields:
        errors += collection.check_list(term.match_fields, _field_requirement, at=at.child("matchFields"))
    return errors


def _label_requirement(requirement: nodeselector.NodeSelectorRequirement, at: Path) -> Errors:
    values = at.child("values")
    match requirement.operator:
        case "In" | "NotIn":
            if not requirement.values:
                yield fielderror.required(values, "must be specified when `operator` is 'In' or 'NotIn'")
        case "Exists" | "DoesNotExist":
            if requirement.values:
                detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
                yield fielderror.forbidden(values, detail)
        case "Gt" | "Lt":
            if len(requirement.values) != 1:
                yield fielderror.required(values, "must be specified single value when `operator` is 'Lt' or 'Gt'")
        case _:
            yield _unknown_operator(requirement, at)
    yield from formats.label_key(requirement.key, at.child("key"))
    for position, value in enumerate(requirement.values):
        for message in names.label_value(value):
            yield fielderror.invalid(values.item(position), value, message, origin="format=k8s-label-value")


def _field_requirement(requirement: nodeselector.NodeSelectorRequirement, at: Path) -> Errors:
    if requirement.operator not in ("In", "NotIn"):
        yield _unknown_operator(requirement, at)
    elif len(requirement.values) != 1:
        detail = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
        yield fielderror.required(at.child("values"), detail)
    if requirement.key != _NAME_FIELD:
        yield fielderror.invalid(at.child("key"), requirement.key, "not a valid field selector key")
        return
    values = at.child("values")
    for position, value in enumerate(requirement.values):
        yield from formats.node_name(value, values.item(position))


def _unknown_operator(requirement: nodeselector.NodeSelectorRequirement, at: Path) -> fielderror.FieldError:
    operator = rendering.named(requirement.operator)
    return fielderror.invalid(at.child("operator"), operator, "not a valid selector operator")
