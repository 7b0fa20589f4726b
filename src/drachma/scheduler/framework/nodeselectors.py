"""Node selectors of the API, ready to match; compiled once for all pods that state the same."""

from __future__ import annotations

import functools
from collections.abc import Iterable

from drachma.api import nodeselector, struct
from drachma.values import nodes

_REMEMBERED = 4096


def terms(stated: Iterable[nodeselector.NodeSelectorTerm]) -> tuple[nodes.Term, ...]:
    """Terms in the form that matchers are made of."""
    return tuple(
        nodes.Term(tuple(map(_expression, term.match_expressions)), tuple(map(_expression, term.match_fields)))
        for term in stated
    )


@functools.lru_cache(maxsize=_REMEMBERED)
def strict(selector: nodeselector.NodeSelector) -> nodes.NodeSelectorMatcher:
    """The matcher of a selector; InvalidValueError for one that is not well-formed."""
    return nodes.NodeSelectorMatcher.compile(terms(selector.node_selector_terms))


def only_name(selector: nodeselector.NodeSelector) -> str | None:
    """The one node that a selector means by its name and nothing else, as allocations of local devices have it."""
    if len(selector.node_selector_terms) != 1:
        return None
    term = selector.node_selector_terms[0]
    if term.match_expressions or len(term.match_fields) != 1:
        return None
    field = term.match_fields[0]
    if field.key == "metadata.name" and field.operator == "In" and len(field.values) == 1:
        return field.values[0]
    return None


def _expression(requirement: nodeselector.NodeSelectorRequirement) -> nodes.Expression:
    values = None if struct.is_absent(requirement.values) else requirement.values
    return nodes.Expression(requirement.key, requirement.operator, values)
