"""What pods require of nodes, in the form that :mod:`drachma.values.nodes` makes matchers of. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from drachma.api import nodeselector, pod, struct
from drachma.values import nodes


def required(of: pod.PodSpec) -> nodeselector.NodeSelector | None:
    """The terms of which a node must match one; None where any node will do."""
    if of.affinity is None or of.affinity.node_affinity is None:
        return None
    return of.affinity.node_affinity.required_during_scheduling_ignored_during_execution


def terms(stated: Iterable[nodeselector.NodeSelectorTerm]) -> tuple[nodes.Term, ...]:
    """Terms in the form that matchers are made of."""
    return tuple(
        nodes.Term(tuple(map(_expression, term.match_expressions)), tuple(map(_expression, term.match_fields)))
        for term in stated
    )


def _expression(requirement: nodeselector.NodeSelectorRequirement) -> nodes.Expression:
    values = None if struct.is_absent(requirement.values) else requirement.values
    return nodes.Expression(requirement.key, requirement.operator, values)
