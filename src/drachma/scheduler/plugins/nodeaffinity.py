"""NodeAffinity: labels and names of nodes that a pod requires (also by nodeSelector) or prefers."""

from __future__ import annotations

import functools
from typing import Final

from drachma import errors
from drachma.api import node as nodes
from drachma.api import nodeselector, pod
from drachma.bounds import memory
from drachma.claims import nodeaffinity
from drachma.scheduler.framework import cyclestate, hints, nodeselectors, plugin, requiredaffinity, scoring, verdict
from drachma.scheduler.framework.plugin import Filtered, PreFilterResult, Scores
from drachma.scheduler.snapshot import Snapshot, nodeinfo
from drachma.values import nodes as matching

_NAME: Final = "NodeAffinity"
_REJECTION: Final = verdict.Rejection(_NAME, ("node(s) didn't match Pod's node affinity/selector",))
_CONFLICT: Final = verdict.Rejection(_NAME, ("pod affinity terms conflict",))

_Preferred = tuple[pod.PreferredSchedulingTerm, ...]


class NodeAffinity:
    """The plugin."""

    name: Final = _NAME

    def pre_filter(self, cycle: cyclestate.CycleState) -> PreFilterResult | verdict.Rejection:
        """Return the nodes that the pod requires by name. Skip the filter if it requires nothing."""
        spec = cycle.pod.pod.spec
        selector = nodeaffinity.required(spec)
        if selector is None:
            return plugin.ALL_NODES if spec.node_selector else plugin.SKIP
        names = _names(selector)
        if names is None:
            return plugin.ALL_NODES
        return PreFilterResult(names) if names else _CONFLICT

    def filter(self, cycle: cyclestate.CycleState, alive: int) -> Filtered:
        """Return the nodes that match."""
        required = requiredaffinity.of(cycle.pod.pod)
        passing = requiredaffinity.matching_nodes(required, cycle.snapshot.nodes, among=alive)
        return plugin.split(alive, passing, rejection=_REJECTION)

    def is_local(self, _cycle: cyclestate.CycleState) -> bool:
        """Return True: only the node and its pods are read."""
        return True

    def score(self, cycle: cyclestate.CycleState, passing: int) -> Scores:
        """Score nodes by the total weight of matching preferred terms."""
        affinity = cycle.pod.pod.spec.affinity
        if affinity is None or affinity.node_affinity is None:
            return {}
        terms = affinity.node_affinity.preferred_during_scheduling_ignored_during_execution
        if not terms:
            return {}
        try:
            weighted = _weighted(terms)
        except errors.InvalidValueError as error:
            raise verdict.AbortError(f'running PreScore plugin "{_NAME}": {error}') from error
        classes = cycle.snapshot.nodes.properties.classes(
            ("preferred", terms), functools.partial(_preference, weighted), among=passing
        )
        return scoring.normalize(classes, among=passing)

    def hints(self, _snapshot: Snapshot) -> tuple[hints.Hint, ...]:
        """Return the changes that can help."""
        return _HINTS


def _names(selector: nodeselector.NodeSelector) -> frozenset[str] | None:
    """Return the nodes required by name, empty if terms contradict each other, or None if a term names none."""
    if not selector.node_selector_terms:
        return None
    names: set[str] = set()
    for term in selector.node_selector_terms:
        of_term: set[str] | None = None
        for field in term.match_fields:
            if field.key == "metadata.name" and field.operator == "In":
                of_term = set(field.values) if of_term is None else of_term & set(field.values)
        if of_term is None:
            return None
        names |= of_term
    return frozenset(names)


_Weighted = tuple[tuple[int, matching.NodeSelectorMatcher], ...]


def _weighted(terms: _Preferred) -> _Weighted:
    weighted = _preferences.get(terms)
    if weighted is None:
        weighted = tuple(
            (term.weight, matching.NodeSelectorMatcher.compile(nodeaffinity.terms((term.preference,))))
            for term in terms
            if term.weight and (term.preference.match_expressions or term.preference.match_fields)
        )
        _preferences.put(terms, weighted, size=nodeselectors.size(terms))
    return weighted


_preferences: Final = memory.Cache[_Preferred, _Weighted]("node selectors")


def _preference(weighted: _Weighted, info: nodeinfo.NodeInfo) -> int:
    return sum(weight for weight, term in weighted if term.matches(info.node.metadata.labels, info.name))


def _node_helps(waiting_pod: pod.Pod, old: nodes.Node | None, new: nodes.Node) -> bool:
    required = requiredaffinity.of(waiting_pod)
    return requiredaffinity.matches(required, new) and (old is None or not requiredaffinity.matches(required, old))


_HINTS: Final = (hints.Hint(hints.Resource.NODE, hints.Action.ADD | hints.Action.UPDATE_NODE_LABEL, _node_helps),)
