"""Matchers for node selectors of the API, compiled once for equal selectors."""

from __future__ import annotations

import functools
from typing import Final

from drachma.api import nodeselector
from drachma.bounds import memory
from drachma.claims import nodeaffinity
from drachma.scheduler.snapshot import nodeinfo
from drachma.scheduler.snapshot import nodes as snapshotnodes
from drachma.values import nodes

_matchers: Final = memory.Cache[nodeselector.NodeSelector, nodes.NodeSelectorMatcher]("node selectors")

_FACTOR: Final = 4
"""Bytes of a selector and its matcher for each character of the selector's text."""


def size(key: object) -> int:
    """Return about how many bytes a selector and its matcher take."""
    return _FACTOR * len(repr(key))


def strict(selector: nodeselector.NodeSelector) -> nodes.NodeSelectorMatcher:
    """Return the matcher of a selector. Raises InvalidValueError for a malformed selector."""
    matcher = _matchers.get(selector)
    if matcher is None:
        matcher = nodes.NodeSelectorMatcher.compile(nodeaffinity.terms(selector.node_selector_terms))
        _matchers.put(selector, matcher, size=size(selector))
    return matcher


def matching_nodes(selector: nodeselector.NodeSelector, of_all: snapshotnodes.Nodes, *, among: int) -> int:
    """Return the nodes of a set that match a selector. Raises InvalidValueError for a malformed selector."""
    name = only_name(selector)
    if name is not None:
        info = of_all.find(name)
        return 0 if info is None else among & info.bit
    ask = functools.partial(_matches, strict(selector))
    return among & of_all.properties.classes(("selector", selector), ask, among=among).get(True, 0)


def _matches(matcher: nodes.NodeSelectorMatcher, info: nodeinfo.NodeInfo) -> bool:
    return matcher.matches(info.node.metadata.labels, info.name)


def only_name(selector: nodeselector.NodeSelector) -> str | None:
    """Return the node that a selector names and nothing else, as allocations of local devices do, or None."""
    if len(selector.node_selector_terms) != 1:
        return None
    term = selector.node_selector_terms[0]
    if term.match_expressions or len(term.match_fields) != 1:
        return None
    field = term.match_fields[0]
    if field.key == "metadata.name" and field.operator == "In" and len(field.values) == 1:
        return field.values[0]
    return None
