"""Placement: the nodes that a slice or a device is for.

Called when the pools of a node are gathered and, for slices that leave the choice to their devices, when devices are
screened. Refused: node selectors that do not compile, with upstream's message.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from drachma import errors
from drachma.api import node as nodeapi
from drachma.api import nodeselector, struct
from drachma.values import nodes


class Node(msgspec.Struct, frozen=True):
    """Fields of a node that the allocator reads."""

    name: str
    labels: Mapping[str, str] = struct.ABSENT_MAP
    declared_features: tuple[str, ...] = ()

    @classmethod
    def of(cls, node: nodeapi.Node, *, declared_features: tuple[str, ...] = ()) -> Node:
        """Return the allocator's view of a node. Its declared features are passed separately."""
        return cls(node.metadata.name, node.metadata.labels, declared_features)


class Placement:
    """Nodes on which a slice or a device can be used: one by name, all, selected ones, or unknown."""

    __slots__ = ("_everywhere", "_matcher", "_node_name", "_problem", "known")

    def __init__(
        self, node_name: str | None, *, all_nodes: bool | None, selector: nodeselector.NodeSelector | None
    ) -> None:
        self._node_name = node_name or ""
        self._everywhere = bool(all_nodes)
        self._matcher: nodes.NodeSelectorMatcher | None = None
        self._problem = ""
        self.known = bool(self._node_name or self._everywhere or selector is not None)
        if selector is not None and not self._node_name and not self._everywhere:
            try:
                self._matcher = nodes.NodeSelectorMatcher.compile(map(_term, selector.node_selector_terms))
            except errors.InvalidValueError as error:
                self._problem = f"failed to parse node selector {_format_selector(selector)}: {error}"

    def covers(self, node: Node) -> bool:
        """Return True if the node is included. Raises AllocationError if the node selector does not compile."""
        if self._node_name:
            return self._node_name == node.name
        if self._everywhere:
            return True
        if self._problem:
            raise errors.AllocationError(self._problem)
        return self._matcher is not None and self._matcher.matches(node.labels, node.name)


def _term(term: nodeselector.NodeSelectorTerm) -> nodes.Term:
    return nodes.Term(tuple(map(_expression, term.match_expressions)), tuple(map(_expression, term.match_fields)))


def _expression(requirement: nodeselector.NodeSelectorRequirement) -> nodes.Expression:
    values = None if struct.is_absent(requirement.values) else requirement.values
    return nodes.Expression(requirement.key, requirement.operator, values)


def _format_selector(selector: nodeselector.NodeSelector) -> str:
    """Return a selector in Go's notation, which upstream puts into its message."""
    terms = "".join(
        f"NodeSelectorTerm{{MatchExpressions:{_format_requirements(term.match_expressions)},"
        f"MatchFields:{_format_requirements(term.match_fields)},}},"
        for term in selector.node_selector_terms
    )
    return f"&NodeSelector{{NodeSelectorTerms:[]NodeSelectorTerm{{{terms}}},}}"


def _format_requirements(requirements: tuple[nodeselector.NodeSelectorRequirement, ...]) -> str:
    texts = "".join(
        f"NodeSelectorRequirement{{Key:{entry.key},Operator:{entry.operator},Values:[{' '.join(entry.values)}],}},"
        for entry in requirements
    )
    return f"[]NodeSelectorRequirement{{{texts}}}"
