"""Pod affinity: the pods that a pod wants to be near to, or apart from, ready to match.

Worked out once for a pod that waits, and once for each pod with such rules on a node: they count for others, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from drachma.api import labelselectors, pod
from drachma.values import labels


class Term(NamedTuple):
    """Pods with certain labels in certain namespaces, and how near is near. Hashable."""

    topology_key: str
    selector: labels.Selector
    namespaces: frozenset[str]
    namespace_selector: labels.Selector
    weight: int = 0
    """Where it is only preferred."""

    def matches(self, other: pod.Pod, namespace_labels: Mapping[str, str]) -> bool:
        """Whether a pod in a namespace with these labels is meant."""
        metadata = other.metadata
        is_there = metadata.namespace in self.namespaces or self.namespace_selector.matches(namespace_labels)
        return is_there and self.selector.matches(metadata.labels)


class PodAffinity(NamedTuple):
    """All such rules of a pod."""

    required: tuple[Term, ...] = ()
    required_apart: tuple[Term, ...] = ()
    preferred: tuple[Term, ...] = ()
    preferred_apart: tuple[Term, ...] = ()


NONE: Final = PodAffinity()


def is_stated(by: pod.Pod) -> bool:
    """Whether a pod has any such rules."""
    affinity = by.spec.affinity
    return affinity is not None and (affinity.pod_affinity is not None or affinity.pod_anti_affinity is not None)


def of(stated: pod.Pod) -> PodAffinity:
    """The rules of a pod; raises InvalidValueError for a selector that is not well-formed."""
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
