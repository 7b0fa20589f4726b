"""NodeAffinity: the labels and names of nodes that a pod requires (also by nodeSelector) or prefers."""

from __future__ import annotations

import functools
from typing import Final

from drachma import errors
from drachma.api import node as nodes
from drachma.api import nodeselector, pod
from drachma.scheduler import hints, podinfo, selectors, verdict
from drachma.scheduler.plugins.question import Preference, Question
from drachma.values import nodes as matching

_REJECTION: Final = verdict.Rejection(verdict.NODE_AFFINITY, ("node(s) didn't match Pod's node affinity/selector",))
_CONFLICT: Final = verdict.Rejection(verdict.NODE_AFFINITY, ("pod affinity terms conflict",))
_WEIGHT: Final = 2


def question(info: podinfo.PodInfo) -> Question | None:
    """What nodes are asked; None if any will do."""
    required = _required(info.pod)
    if required is None and not info.pod.spec.node_selector:
        return None
    key = (tuple(sorted(info.pod.spec.node_selector.items())), required)
    return Question((verdict.NODE_AFFINITY, key), lambda state: _matches(key, state.node), _REJECTION)


def preference(info: podinfo.PodInfo) -> Preference | None:
    """The weights of the preferred terms that a node matches, added up; None where nothing is preferred."""
    affinity = info.pod.spec.affinity
    if affinity is None or affinity.node_affinity is None:
        return None
    terms = affinity.node_affinity.preferred_during_scheduling_ignored_during_execution
    if not terms:
        return None
    try:
        weighted = _weighted(terms)
    except errors.InvalidValueError as error:
        raise verdict.AbortError(f'running PreScore plugin "{verdict.NODE_AFFINITY}": {error}') from error
    return Preference(
        ("preferred", terms),
        lambda state: sum(weight for weight, term in weighted if term.matches(state.node.metadata.labels, state.name)),
        weight=_WEIGHT,
    )


def named_nodes(info: podinfo.PodInfo) -> frozenset[str] | verdict.Rejection | None:
    """The nodes that the pod requires by name; None if some term leaves the name open.

    A rejection where terms name nodes that contradict each other.
    """
    required = _required(info.pod)
    if required is None or not required.node_selector_terms:
        return None
    named: set[str] = set()
    for term in required.node_selector_terms:
        of_term: set[str] | None = None
        for field in term.match_fields:
            if field.key == "metadata.name" and field.operator == "In":
                of_term = set(field.values) if of_term is None else of_term & set(field.values)
        if of_term is None:
            return None
        named |= of_term
    return frozenset(named) or _CONFLICT


def _required(waiting: pod.Pod) -> nodeselector.NodeSelector | None:
    affinity = waiting.spec.affinity
    if affinity is None or affinity.node_affinity is None:
        return None
    return affinity.node_affinity.required_during_scheduling_ignored_during_execution


@functools.lru_cache(maxsize=1024)
def _affinity(key: tuple[tuple[tuple[str, str], ...], nodeselector.NodeSelector | None]) -> matching.RequiredAffinity:
    labels, required = key
    terms = None if required is None else selectors.terms(required.node_selector_terms)
    return matching.RequiredAffinity(dict(labels), terms)


def _matches(key: tuple[tuple[tuple[str, str], ...], nodeselector.NodeSelector | None], node: nodes.Node) -> bool:
    try:
        return _affinity(key).matches(node.metadata.labels, node.metadata.name)
    except errors.InvalidValueError:
        # The API server does not check these terms, and upstream takes bad ones for terms that match nothing.
        return False


@functools.lru_cache(maxsize=1024)
def _weighted(
    terms: tuple[pod.PreferredSchedulingTerm, ...],
) -> tuple[tuple[int, matching.NodeSelectorMatcher], ...]:
    return tuple(
        (term.weight, matching.NodeSelectorMatcher.compile(selectors.terms((term.preference,))))
        for term in terms
        if term.weight and (term.preference.match_expressions or term.preference.match_fields)
    )


def _node_helps(waiting: pod.Pod, old: nodes.Node | None, new: nodes.Node) -> bool:
    key = (tuple(sorted(waiting.spec.node_selector.items())), _required(waiting))
    return _matches(key, new) and (old is None or not _matches(key, old))


HINTS: Final = (hints.Hint(hints.Resource.NODE, hints.Action.ADD | hints.Action.UPDATE_NODE_LABEL, _node_helps),)
