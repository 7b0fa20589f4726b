"""InterPodAffinity: rules of a pod about other pods, and rules of pods on nodes about it.

Every rule has a group of pods and a topology. Which nodes have pods of the group is asked node by node and remembered
(:mod:`drachma.scheduler.framework.topology`), and the rule holds in the domains around those nodes. A pod without rules
costs nothing while no pod on a node has any.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from drachma import errors
from drachma.api import node as nodes
from drachma.api import pod
from drachma.scheduler.framework import cyclestate, hints, plugin, scoring, topology, verdict
from drachma.scheduler.framework.plugin import Filtered, PreFilterResult, Scores
from drachma.scheduler.snapshot import Snapshot, nodeinfo, podaffinity

_NAME: Final = "InterPodAffinity"
_NOT_NEAR: Final = verdict.Rejection(_NAME, ("node(s) didn't match pod affinity rules",))
_NOT_APART: Final = verdict.Rejection(_NAME, ("node(s) didn't match pod anti-affinity rules",), is_resolvable=True)
_UNWELCOME: Final = verdict.Rejection(
    _NAME, ("node(s) didn't satisfy existing pods anti-affinity rules",), is_resolvable=True
)
_HARD_WEIGHT: Final = 1
"""Weight of a required rule of a pod on a node; upstream's ``hardPodAffinityWeight``."""

_Terms = tuple[podaffinity.Term, ...]
_Labels = tuple[tuple[str, str], ...]


class InterPodAffinity:
    """The plugin."""

    name: Final = _NAME

    def pre_filter(self, cycle: cyclestate.CycleState) -> PreFilterResult | verdict.Rejection:
        """Check that the pod's rules are well-formed."""
        try:
            _ = cycle.pod.affinity
        except errors.InvalidValueError as error:
            return verdict.Rejection(_NAME, (f"parsing pod: {error}",))
        return plugin.ALL_NODES

    def filter(self, cycle: cyclestate.CycleState, alive: int) -> Filtered:
        """Return the nodes where the pod's own rules hold, and where it breaks no rule of another pod."""
        rules, snapshot = cycle.pod.affinity, cycle.snapshot
        rejections: list[tuple[verdict.Rejection, int]] = []
        if rules.required:
            alive = _keep(alive, _nodes_near(rules.required, cycle.pod.pod, snapshot), _NOT_NEAR, rejections)
        if rules.required_apart:
            alive = _keep(alive, ~_nodes_around(rules.required_apart, snapshot), _NOT_APART, rejections)
        if snapshot.nodes.with_affinity:
            alive = _keep(alive, ~_excluded_nodes(cycle.pod.pod, snapshot), _UNWELCOME, rejections)
        return alive, rejections

    def is_local(self, cycle: cyclestate.CycleState) -> bool:
        """Return True if neither the pod nor any pod on a node has rules about others."""
        rules = cycle.pod.affinity
        return not rules.required and not rules.required_apart and not cycle.snapshot.nodes.with_affinity

    def score(self, cycle: cyclestate.CycleState, passing: int) -> Scores:
        """Score nodes by the preferred rules of the pod, and of pods on nodes, in their domains."""
        rules, snapshot = cycle.pod.affinity, cycle.snapshot
        if not rules.preferred and not rules.preferred_apart and not snapshot.nodes.with_affinity:
            return {}
        classes = [(0, passing)]
        for worth in _rule_weights(rules, cycle.pod.pod, snapshot):
            if len(worth) > 1:
                classes = scoring.merge(scoring.split(classes, worth))
        return _normalize(classes)

    def hints(self, snapshot: Snapshot) -> tuple[hints.Hint, ...]:
        """Return the changes that can help."""
        return _Hints(snapshot).all()


def _keep(
    alive: int, passing: int, rejection: verdict.Rejection, rejections: list[tuple[verdict.Rejection, int]]
) -> int:
    passing, more = plugin.split(alive, passing, rejection=rejection)
    rejections += more
    return passing


# The pod's own rules


def _group(term: podaffinity.Term, snapshot: Snapshot) -> topology.Group:
    """Return the pods that a term of a waiting pod selects, with namespaces by name."""
    selector = term.namespace_selector
    if not selector.requirements and selector.matches({}):
        return topology.Group(None, term.selector)
    names = {name for name, labels in snapshot.namespaces.items() if selector.matches(labels)}
    return topology.Group(term.namespaces | names if names else term.namespaces, term.selector)


def _nodes_near(terms: _Terms, waiting_pod: pod.Pod, snapshot: Snapshot) -> int:
    """Return the nodes in whose domains there is a pod that all terms select.

    If there is no such pod anywhere and the terms select the waiting pod itself, it may be the first.
    """
    groups = [_group(term, snapshot) for term in terms]
    counts = topology.pod_counts(snapshot.nodes, *groups)
    there = snapshot.nodes.all_nodes & ~counts.get(0, 0)
    topologies = [topology.of(snapshot.nodes, term.topology_key) for term in terms]
    near = everywhere = snapshot.nodes.all_nodes
    somewhere = 0
    for each in topologies:
        near &= each.around(there)
        everywhere &= each.members
        somewhere |= each.members
    if not there & somewhere and all(
        group.has(waiting_pod.metadata.namespace, waiting_pod.metadata.labels) for group in groups
    ):
        return everywhere
    return near


def _nodes_around(terms: _Terms, snapshot: Snapshot) -> int:
    """Return the nodes in the domains of pods that some term selects."""
    around = 0
    for term in terms:
        counts = topology.pod_counts(snapshot.nodes, _group(term, snapshot))
        there = snapshot.nodes.all_nodes & ~counts.get(0, 0)
        if there:
            around |= topology.of(snapshot.nodes, term.topology_key).around(there)
    return around


# Rules of pods on nodes


class _Guest(NamedTuple):
    """Waiting pod, and the labels of its namespace."""

    pod: pod.Pod
    namespace_labels: Mapping[str, str]

    @property
    def key(self) -> tuple[str, _Labels, _Labels]:
        """Properties that rules of other pods can select; equal for pods that look alike."""
        metadata = self.pod.metadata
        return metadata.namespace, _sorted(metadata.labels), _sorted(self.namespace_labels)

    def is_meant_by(self, term: podaffinity.Term) -> bool:
        return term.matches(self.pod, self.namespace_labels)


def _guest(waiting_pod: pod.Pod, snapshot: Snapshot) -> _Guest:
    return _Guest(waiting_pod, snapshot.namespaces.get(waiting_pod.metadata.namespace, {}))


def _sorted(labels: Mapping[str, str]) -> _Labels:
    return tuple(sorted(labels.items()))


def _excluded_nodes(waiting_pod: pod.Pod, snapshot: Snapshot) -> int:
    """Return the nodes in the domains of pods whose anti-affinity selects the waiting pod."""
    guest = _guest(waiting_pod, snapshot)
    ask = functools.partial(_exclusion_topologies, guest)
    hosts = snapshot.nodes.with_affinity
    around = 0
    for keys, members in snapshot.nodes.resources.classes(("unwelcome", guest.key), ask, among=hosts).items():
        there = members & hosts
        if there:
            for key in keys:
                around |= topology.of(snapshot.nodes, key).around(there)
    return around


def _exclusion_topologies(guest: _Guest, info: nodeinfo.NodeInfo) -> frozenset[str]:
    """Return the topologies in which pods on a node require to be apart from the waiting pod."""
    return frozenset(
        term.topology_key for rules in info.affine.values() for term in rules.required_apart if guest.is_meant_by(term)
    )


def _attraction(guest: _Guest, info: nodeinfo.NodeInfo) -> tuple[tuple[str, int], ...]:
    """Return the weight of the waiting pod to the pods on a node, by topology."""
    worth: dict[str, int] = {}
    for rules in info.affine.values():
        for terms, sign in ((rules.required, 0), (rules.preferred, 1), (rules.preferred_apart, -1)):
            for term in terms:
                if guest.is_meant_by(term):
                    weight = sign * term.weight if sign else _HARD_WEIGHT
                    worth[term.topology_key] = worth.get(term.topology_key, 0) + weight
    return tuple(sorted(worth.items()))


def _rule_weights(
    rules: podaffinity.PodAffinity, waiting_pod: pod.Pod, snapshot: Snapshot
) -> Iterator[Mapping[int, int]]:
    """Yield, for each rule, the nodes by weight."""
    all_nodes = snapshot.nodes.all_nodes
    for terms, sign in ((rules.preferred, 1), (rules.preferred_apart, -1)):
        for term in terms:
            counts = topology.pod_counts(snapshot.nodes, _group(term, snapshot))
            yield _domain_totals(term.topology_key, counts, snapshot, factor=sign * term.weight)
    hosts = snapshot.nodes.with_affinity
    if not hosts:
        return
    guest = _guest(waiting_pod, snapshot)
    by_key: dict[str, dict[int, int]] = {}
    ask = functools.partial(_attraction, guest)
    for attraction, members in snapshot.nodes.resources.classes(("attraction", guest.key), ask, among=hosts).items():
        for key, weight in attraction:
            counts = by_key.setdefault(key, {})
            counts[weight] = counts.get(weight, 0) | members & hosts
    for key, counts in by_key.items():
        counts[0] = counts.get(0, 0) | all_nodes & ~functools.reduce(int.__or__, counts.values())
        yield _domain_totals(key, counts, snapshot, factor=1)


def _domain_totals(key: str, counts: Mapping[int, int], snapshot: Snapshot, *, factor: int) -> dict[int, int]:
    """Return all nodes by the total of their domain, times a factor; 0 for nodes in no domain."""
    all_nodes = snapshot.nodes.all_nodes
    domains = topology.of(snapshot.nodes, key)
    worth = {factor * total: nodes for total, nodes in domains.totals(counts, among=all_nodes).items()}
    worth[0] = worth.get(0, 0) | all_nodes & ~domains.members
    return worth


def _normalize(classes: list[tuple[int, int]]) -> dict[int, int]:
    """Return totals of nodes scaled to 0..100, with the lowest at 0 and the highest at 100."""
    lowest, highest = min(total for total, _ in classes), max(total for total, _ in classes)
    if lowest == highest:
        return {}
    scaled: dict[int, int] = {}
    for total, same in classes:
        # As upstream: computed in floating point, and truncated.
        score = int(scoring.MAX * ((total - lowest) / (highest - lowest)))
        scaled[score] = scaled.get(score, 0) | same
    return scaled


# Hints


class _Hints:
    """Tests of changes that can help rejected pods."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot: Final = snapshot

    def all(self) -> tuple[hints.Hint, ...]:
        pods = hints.Action.ADD | hints.Action.DELETE | hints.Action.UPDATE_POD_LABEL
        return (
            hints.Hint(hints.Resource.ASSIGNED_POD, pods, self._pod_helps),
            hints.Hint(hints.Resource.TARGET_POD, hints.Action.UPDATE_POD_LABEL, hints.always),
            hints.Hint(hints.Resource.NODE, hints.Action.ADD | hints.Action.UPDATE_NODE_LABEL, _node_helps),
        )

    def _pod_helps(self, waiting_pod: pod.Pod, old: pod.Pod | None, new: pod.Pod | None) -> bool:
        rules = _rules(waiting_pod)
        was_near, is_near = (self._is_meant_by_all(rules.required, each) for each in (old, new))
        was_far, is_far = (self._is_meant_by_any(rules.required_apart, each) for each in (old, new))
        if (is_near and not was_near) or (was_far and not is_far):
            return True
        if old is None or new is not None or not podaffinity.is_stated(old):
            return False
        return self._is_meant_by_any(_rules(old).required_apart, waiting_pod)

    def _is_meant_by_all(self, terms: _Terms, selected_pod: pod.Pod | None) -> bool:
        return (
            selected_pod is not None
            and bool(terms)
            and all(term.matches(selected_pod, self._labels(selected_pod)) for term in terms)
        )

    def _is_meant_by_any(self, terms: _Terms, selected_pod: pod.Pod | None) -> bool:
        return selected_pod is not None and any(
            term.matches(selected_pod, self._labels(selected_pod)) for term in terms
        )

    def _labels(self, selected_pod: pod.Pod) -> Mapping[str, str]:
        return self._snapshot.namespaces.get(selected_pod.metadata.namespace, {})


def _rules(ruling_pod: pod.Pod) -> podaffinity.PodAffinity:
    """Return the rules of a pod; none if they are malformed, which no change of other objects mends."""
    try:
        return podaffinity.of(ruling_pod)
    except errors.InvalidValueError:
        return podaffinity.NONE


def _node_helps(waiting_pod: pod.Pod, old: nodes.Node | None, new: nodes.Node) -> bool:
    rules = _rules(waiting_pod)
    now = new.metadata.labels
    if old is None:
        return bool(rules.required_apart) or any(term.topology_key in now for term in rules.required)
    before = old.metadata.labels
    joins = any(
        term.topology_key in now and before.get(term.topology_key) != now[term.topology_key] for term in rules.required
    )
    return joins or any(
        term.topology_key in before and before[term.topology_key] != now.get(term.topology_key)
        for term in rules.required_apart
    )
