"""Node selectors of the API, ready to match; compiled once for all pods that state the same."""

from __future__ import annotations

import functools

from drachma.api import nodeselector
from drachma.claims import nodeaffinity
from drachma.values import nodes

_REMEMBERED = 4096


@functools.lru_cache(maxsize=_REMEMBERED)
def strict(selector: nodeselector.NodeSelector) -> nodes.NodeSelectorMatcher:
    """The matcher of a selector; InvalidValueError for one that is not well-formed."""
    return nodes.NodeSelectorMatcher.compile(nodeaffinity.terms(selector.node_selector_terms))


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
