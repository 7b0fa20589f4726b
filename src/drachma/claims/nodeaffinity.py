"""Required node affinity of pods, in the form of :mod:`drachma.values.nodes`. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from drachma.api import nodeselector, pod, struct
from drachma.values import nodes


def required(spec: pod.PodSpec) -> nodeselector.NodeSelector | None:
    """Return the terms of which a node must match one, or None if any node matches."""
    if spec.affinity is None or spec.affinity.node_affinity is None:
        return None
    return spec.affinity.node_affinity.required_during_scheduling_ignored_during_execution


def terms(stated: Iterable[nodeselector.NodeSelectorTerm]) -> tuple[nodes.Term, ...]:
    """Return terms in the form that matchers are made of."""
    return tuple(
        nodes.Term(tuple(map(_expression, term.match_expressions)), tuple(map(_expression, term.match_fields)))
        for term in stated
    )


def _expression(requirement: nodeselector.NodeSelectorRequirement) -> nodes.Expression:
    values = None if struct.is_absent(requirement.values) else requirement.values
    return nodes.Expression(requirement.key, requirement.operator, values)
