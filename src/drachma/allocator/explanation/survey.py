"""Survey: explains why claims fit on none of many nodes. Nodes with the same reasons form a group.

Reasons are the same if the same causes reject the same numbers of devices, regardless of holders and names. The first
node of each group is explained in full.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import NamedTuple

from drachma.allocator import placement
from drachma.allocator.explanation import cause, explainer, report
from drachma.api import resourceclaim


class NodeGroup(NamedTuple):
    """An explanation, and the other nodes for which it is the same but for names."""

    explanation: report.Explanation
    others: tuple[str, ...]


class Survey(NamedTuple):
    """The groups that were explained, and the nodes of groups beyond those."""

    groups: tuple[NodeGroup, ...]
    unexplained: tuple[str, ...]


def survey(
    source: explainer.Explainer,
    nodes: Iterable[placement.Node],
    *,
    claims: Iterable[resourceclaim.ResourceClaim],
    most: int,
) -> Survey:
    """Return up to ``most`` groups of nodes in the order of their first members."""
    all_claims = tuple(claims)
    groups: dict[Hashable, list[placement.Node]] = {}
    for node in nodes:
        groups.setdefault(_key(source.outline(node, all_claims)), []).append(node)
    ordered = list(groups.values())
    explained = tuple(
        NodeGroup(source.explain(first, all_claims), tuple(node.name for node in similar))
        for first, *similar in ordered[:most]
    )
    return Survey(explained, tuple(node.name for group in ordered[most:] for node in group))


def _key(outline: report.Explanation) -> Hashable:
    ways = [way for claim in outline.claims for request in claim.requests for way in request.alternatives]
    return (
        outline.outcome,
        outline.message,
        tuple((way.wanted, way.considered, len(way.usable), _counts(way)) for way in ways),
        tuple(_values(constraint) for claim in outline.claims for constraint in claim.constraints),
    )


def _counts(way: report.AlternativeReport) -> Hashable:
    counts: dict[Hashable, int] = {}
    for entry in way.obstacles:
        key = _kind(entry.cause)
        counts[key] = counts.get(key, 0) + entry.count
    return frozenset(counts.items())


def _kind(why: cause.Cause) -> Hashable:
    """Return a cause without parts that belong to single nodes: holders, pools and values."""
    match why:
        case cause.ClassSelector() | cause.RequestSelector():
            return type(why), why.number
        case cause.Tainted():
            return type(why), why.taints
        case cause.PoolUnusable():
            return type(why), why.state
        case cause.CounterExhausted():
            return type(why), why.counter, why.needed, why.left
        case cause.CapacityShort():
            return type(why), why.capacity, why.left
        case cause.ConstraintUnmet():
            return type(why), why.constraint
        case _:
            return type(why)


def _values(constraint: report.ConstraintReport) -> Hashable:
    supplies = sorted(tuple(supply.have for supply in value.supplies) for value in constraint.values)
    return constraint.satisfiable, tuple(supplies), constraint.more_values
