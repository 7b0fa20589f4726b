"""Pod affinity: the rules of a pod about other pods, ready to match.

They are compiled once for a waiting pod, and once for each pod with such rules on a node, since they affect other pods
too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from drachma.api import labelselectors, pod
from drachma.values import labels


class Term(NamedTuple):
    """Pods with certain labels in certain namespaces, and a topology key. Hashable."""

    topology_key: str
    selector: labels.Selector
    namespaces: frozenset[str]
    namespace_selector: labels.Selector
    weight: int = 0
    """Weight of a preferred term."""

    def matches(self, selected_pod: pod.Pod, namespace_labels: Mapping[str, str]) -> bool:
        """Return True if the term selects a pod in a namespace with these labels."""
        metadata = selected_pod.metadata
        is_there = metadata.namespace in self.namespaces or self.namespace_selector.matches(namespace_labels)
        return is_there and self.selector.matches(metadata.labels)


class PodAffinity(NamedTuple):
    """All affinity rules of a pod."""

    required: tuple[Term, ...] = ()
    required_apart: tuple[Term, ...] = ()
    preferred: tuple[Term, ...] = ()
    preferred_apart: tuple[Term, ...] = ()


NONE: Final = PodAffinity()


def is_stated(by: pod.Pod) -> bool:
    """Return True if a pod has affinity rules."""
    affinity = by.spec.affinity
    return affinity is not None and (affinity.pod_affinity is not None or affinity.pod_anti_affinity is not None)


def of(stated: pod.Pod) -> PodAffinity:
    """Return the rules of a pod. Raises InvalidValueError for a malformed selector."""
    affinity = stated.spec.affinity
    if affinity is None:
        return NONE
    near, apart = affinity.pod_affinity or pod.PodAffinity(), affinity.pod_anti_affinity or pod.PodAffinity()
    namespace = stated.metadata.namespace
    return PodAffinity(
        tuple(_terms(near.required_during_scheduling_ignored_during_execution, namespace)),
        tuple(_terms(apart.required_during_scheduling_ignored_during_execution, namespace)),
        tuple(_weighted(near.preferred_during_scheduling_ignored_during_execution, namespace)),
        tuple(_weighted(apart.preferred_during_scheduling_ignored_during_execution, namespace)),
    )


def _terms(stated: Iterable[pod.PodAffinityTerm], namespace: str) -> Iterator[Term]:
    for term in stated:
        is_at_home = not term.namespaces and term.namespace_selector is None
        yield Term(
            term.topology_key,
            labelselectors.of(term.label_selector),
            frozenset((namespace,) if is_at_home else term.namespaces),
            labelselectors.of(term.namespace_selector),
        )


def _weighted(stated: Iterable[pod.WeightedPodAffinityTerm], namespace: str) -> Iterator[Term]:
    for preference in stated:
        for term in _terms((preference.pod_affinity_term,), namespace):
            yield term._replace(weight=preference.weight)
