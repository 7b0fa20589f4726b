"""Survey: explains why claims fit on none of many nodes. Nodes with the same reasons form a group.

Nodes with equal outlines, apart from names, get the same answer, so one of them is explained in full. Explanations then
form a group if the same causes reject the same numbers of devices and the same changes would help.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Final, NamedTuple

from drachma.allocator import placement
from drachma.allocator.explanation import cause, explainer, report
from drachma.api import resourceclaim

_MOST_EXPLAINED: Final = 256
"""Limit for different outlines that are explained in full, to compare their changes."""

_ELSEWHERE: Final = (cause.NotReachable, cause.PoolUnusable, cause.FeatureOff)
_UNSUITABLE: Final = (cause.ClassSelector, cause.RequestSelector, cause.Failure)


class NodeGroup(NamedTuple):
    """An explanation, and the other nodes for which it is the same but for names."""

    explanation: report.Explanation
    others: tuple[str, ...]


class NodeSupply(NamedTuple):
    """Devices that nodes have for one request: the request that lacks most of them."""

    request: str
    class_name: str
    wanted: int
    free: int
    """Devices that match and could be allocated."""
    held: int
    """Devices that match and are allocated."""
    matching: int
    """Devices that match, in any state."""
    nodes: tuple[str, ...]


class Survey(NamedTuple):
    """The groups that were explained, the nodes of groups beyond those, and the supplies of all nodes."""

    groups: tuple[NodeGroup, ...]
    unexplained: tuple[str, ...]
    supplies: tuple[NodeSupply, ...] = ()


def survey(
    source: explainer.Explainer,
    nodes: Iterable[placement.Node],
    *,
    claims: Iterable[resourceclaim.ResourceClaim],
    most: int,
) -> Survey:
    """Return up to ``most`` groups of nodes in the order of their first members."""
    all_claims = tuple(claims)
    alike: dict[Hashable, list[placement.Node]] = {}
    outlines: dict[Hashable, report.Explanation] = {}
    supplies: dict[tuple[str, str, int, int, int, int], list[str]] = {}
    for node in nodes:
        outline = source.outline(node, all_claims)
        fingerprint = _fingerprint(outline)
        alike.setdefault(fingerprint, []).append(node)
        outlines.setdefault(fingerprint, outline)
        for supply in _supplies(outline):
            supplies.setdefault(supply, []).append(node.name)
    explanations: dict[Hashable, report.Explanation] = {}
    groups: dict[Hashable, list[str]] = {}
    unexplained: list[str] = []
    for number, (fingerprint, members) in enumerate(alike.items()):
        names = [node.name for node in members]
        if number >= _MOST_EXPLAINED:
            unexplained += names
            continue
        explanation = source.explain(members[0], all_claims)
        key = _key(outlines[fingerprint]), _changes(explanation)
        explanations.setdefault(key, explanation)
        groups.setdefault(key, []).extend(names)
    explained = tuple(NodeGroup(explanations[key], tuple(names[1:])) for key, names in list(groups.items())[:most])
    unexplained += (name for names in list(groups.values())[most:] for name in names)
    return Survey(
        explained,
        tuple(unexplained),
        tuple(NodeSupply(*facts, tuple(names)) for facts, names in supplies.items()),
    )


def _supplies(outline: report.Explanation) -> Iterable[tuple[str, str, int, int, int, int]]:
    """Yield the supply of the request that lacks most, if the claims do not fit."""
    if outline.outcome is not report.Outcome.DOES_NOT_FIT:
        return
    ways = [way for claim in outline.claims for request in claim.requests for way in request.alternatives]
    if not ways:
        return
    way = max(ways, key=lambda each: each.wanted - len(each.usable))
    held_count = sum(each.count for each in way.obstacles if isinstance(each.cause, cause.Held))
    far = sum(each.count for each in way.obstacles if isinstance(each.cause, (*_ELSEWHERE, *_UNSUITABLE)))
    yield way.name, way.class_name, way.wanted, len(way.usable), held_count, way.considered - far


def _key(outline: report.Explanation) -> Hashable:
    ways = [way for claim in outline.claims for request in claim.requests for way in request.alternatives]
    return (
        outline.outcome,
        outline.message,
        tuple((way.wanted, way.considered, len(way.usable), _counts(way)) for way in ways),
        tuple(_values(constraint) for claim in outline.claims for constraint in claim.constraints),
    )


def _changes(explanation: report.Explanation) -> Hashable:
    """Return the changes without names of single claims, which differ from node to node."""
    return tuple(
        (each.kind, each.size, each.request, each.number, each.after)
        if each.kind is not report.ChangeKind.FREE_CLAIM
        else (each.kind, each.size)
        for each in explanation.changes
    )


def _fingerprint(outline: report.Explanation) -> Hashable:
    """Return a key that is equal only if nodes differ in nothing but names of pools, holders and other nodes."""
    holders: dict[str, int] = {}

    def holder_numbers(why: cause.Cause) -> Hashable:
        return tuple(holders.setdefault(each, len(holders)) for each in getattr(why, "claims", ()))

    ways = [way for claim in outline.claims for request in claim.requests for way in request.alternatives]
    return (
        _key(outline),
        tuple(
            (
                _local(way.usable),
                tuple(
                    (_kind(each.cause), holder_numbers(each.cause), _local(each.devices))
                    for each in way.obstacles
                    if not isinstance(each.cause, cause.NotReachable)
                ),
            )
            for way in ways
        ),
    )


def _local(devices: Iterable[str]) -> Hashable:
    """Return the names of devices with their drivers, without their pools."""
    return tuple((name.partition("/")[0], name.rpartition("/")[2]) for name in devices)


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
