"""InterPodAffinity: pods that want to be near others, or apart from them, and pods on nodes that want the same of them.

Every rule is a group of pods and a topology: which nodes have pods of the group is asked node by node and remembered
(:mod:`drachma.scheduler.framework.residents`), and the domains around those nodes are where the rule holds. A pod
without rules pays nothing while no pod on a node has any.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from drachma import errors
from drachma.api import node as nodes
from drachma.api import pod
from drachma.scheduler.framework import cyclestate, hints, plugin, residents, scoring, topology, verdict
from drachma.scheduler.framework.plugin import Filtered, PreFilterResult, Scores
from drachma.scheduler.snapshot import Snapshot, nodeinfo, podaffinity

_NAME: Final = "InterPodAffinity"
_NOT_NEAR: Final = verdict.Rejection(_NAME, ("node(s) didn't match pod affinity rules",))
_NOT_APART: Final = verdict.Rejection(_NAME, ("node(s) didn't match pod anti-affinity rules",), is_resolvable=True)
_UNWELCOME: Final = verdict.Rejection(
    _NAME, ("node(s) didn't satisfy existing pods anti-affinity rules",), is_resolvable=True
)
_HARD_WEIGHT: Final = 1
"""What a pod on a node that requires a pod is worth to the latter; upstream's ``hardPodAffinityWeight``."""

_Terms = tuple[podaffinity.Term, ...]
_Labels = tuple[tuple[str, str], ...]


class InterPodAffinity:
    """The plugin."""

    name: Final = _NAME

    def pre_filter(self, cycle: cyclestate.CycleState) -> PreFilterResult | verdict.Rejection:
        """Makes sure that the pod's rules can be read."""
        try:
            _ = cycle.pod.affinity
        except errors.InvalidValueError as error:
            return verdict.Rejection(_NAME, (f"parsing pod: {error}",))
        return plugin.ALL_NODES

    def filter(self, cycle: cyclestate.CycleState, alive: int) -> Filtered:
        """The nodes where the pod's own rules hold, and where it breaks no rule of a pod that is there."""
        rules, snapshot = cycle.pod.affinity, cycle.snapshot
        rejections: list[tuple[verdict.Rejection, int]] = []
        if rules.required:
            alive = _keep(alive, _near(rules.required, cycle.pod.pod, snapshot), _NOT_NEAR, rejections)
        if rules.required_apart:
            alive = _keep(alive, ~_around_any(rules.required_apart, snapshot), _NOT_APART, rejections)
        if snapshot.nodes.with_affinity:
            alive = _keep(alive, ~_unwelcome(cycle.pod.pod, snapshot), _UNWELCOME, rejections)
        return alive, rejections

    def score(self, cycle: cyclestate.CycleState, passing: int) -> Scores:
        """What preferred rules, of the pod and of those on nodes, are worth in the domains of a node."""
        rules, snapshot = cycle.pod.affinity, cycle.snapshot
        if not rules.preferred and not rules.preferred_apart and not snapshot.nodes.with_affinity:
            return {}
        classes = [(0, passing)]
        for worth in _worths(rules, cycle.pod.pod, snapshot):
            if len(worth) > 1:
                classes = scoring.merged(scoring.split(classes, worth))
        return _normalized(classes)

    def hints(self, snapshot: Snapshot) -> tuple[hints.Hint, ...]:
        """The changes that can help."""
        return _Hints(snapshot).all()


def _keep(
    alive: int, passing: int, rejection: verdict.Rejection, rejections: list[tuple[verdict.Rejection, int]]
) -> int:
    passing, more = plugin.split(alive, passing, rejection=rejection)
    rejections += more
    return passing


# The pod's own rules


def _group(term: podaffinity.Term, snapshot: Snapshot) -> residents.Group:
    """The pods that a term of a waiting pod means, with its namespaces by name."""
    chosen = term.namespace_selector
    if not chosen.requirements and chosen.matches({}):
        return residents.Group(None, term.selector)
    names = {name for name, labels in snapshot.namespaces.items() if chosen.matches(labels)}
    return residents.Group(term.namespaces | names if names else term.namespaces, term.selector)


def _near(terms: _Terms, waiting: pod.Pod, snapshot: Snapshot) -> int:
    """The nodes in all of whose domains there is a pod that all terms mean.

    Where there is no such pod in any domain and the waiting pod is one itself, it may be the first.
    """
    groups = [_group(term, snapshot) for term in terms]
    counts = residents.counts(snapshot.nodes, *groups)
    there = snapshot.nodes.everyone & ~counts.get(0, 0)
    topologies = [topology.of(snapshot.nodes, term.topology_key) for term in terms]
    near = everywhere = snapshot.nodes.everyone
    somewhere = 0
    for each in topologies:
        near &= each.around(there)
        everywhere &= each.members
        somewhere |= each.members
    if not there & somewhere and all(
        group.has(waiting.metadata.namespace, waiting.metadata.labels) for group in groups
    ):
        return everywhere
    return near


def _around_any(terms: _Terms, snapshot: Snapshot) -> int:
    """The nodes in the domains of pods that some term means."""
    around = 0
    for term in terms:
        counts = residents.counts(snapshot.nodes, _group(term, snapshot))
        there = snapshot.nodes.everyone & ~counts.get(0, 0)
        if there:
            around |= topology.of(snapshot.nodes, term.topology_key).around(there)
    return around


# The rules of pods on nodes


class _Guest(NamedTuple):
    """A pod that comes, and the labels of its namespace."""

    pod: pod.Pod
    namespace_labels: Mapping[str, str]

    @property
    def key(self) -> tuple[str, _Labels, _Labels]:
        """What pods on nodes see of it; the same for all pods that look alike."""
        metadata = self.pod.metadata
        return metadata.namespace, _sorted(metadata.labels), _sorted(self.namespace_labels)

    def is_meant_by(self, term: podaffinity.Term) -> bool:
        return term.matches(self.pod, self.namespace_labels)


def _guest(waiting: pod.Pod, snapshot: Snapshot) -> _Guest:
    return _Guest(waiting, snapshot.namespaces.get(waiting.metadata.namespace, {}))


def _sorted(labels: Mapping[str, str]) -> _Labels:
    return tuple(sorted(labels.items()))


def _unwelcome(waiting: pod.Pod, snapshot: Snapshot) -> int:
    """The nodes in the domains of pods that require to be apart from a pod."""
    guest = _guest(waiting, snapshot)
    ask = functools.partial(_kept_away, guest)
    hosts = snapshot.nodes.with_affinity
    around = 0
    for keys, members in snapshot.nodes.resources.classes(("unwelcome", guest.key), ask, among=hosts).items():
        there = members & hosts
        if there:
            for key in keys:
                around |= topology.of(snapshot.nodes, key).around(there)
    return around


def _kept_away(guest: _Guest, info: nodeinfo.NodeInfo) -> frozenset[str]:
    """The topologies in which pods on a node require to be apart from a pod."""
    return frozenset(
        term.topology_key for rules in info.affine.values() for term in rules.required_apart if guest.is_meant_by(term)
    )


def _attraction(guest: _Guest, info: nodeinfo.NodeInfo) -> tuple[tuple[str, int], ...]:
    """What a pod is worth to the pods on a node, by topology."""
    worth: dict[str, int] = {}
    for rules in info.affine.values():
        for terms, sign in ((rules.required, 0), (rules.preferred, 1), (rules.preferred_apart, -1)):
            for term in terms:
                if guest.is_meant_by(term):
                    weight = sign * term.weight if sign else _HARD_WEIGHT
                    worth[term.topology_key] = worth.get(term.topology_key, 0) + weight
    return tuple(sorted(worth.items()))


def _worths(rules: podaffinity.PodAffinity, waiting: pod.Pod, snapshot: Snapshot) -> Iterator[Mapping[int, int]]:
    """Rule by rule, the nodes by what it is worth there."""
    everyone = snapshot.nodes.everyone
    for terms, sign in ((rules.preferred, 1), (rules.preferred_apart, -1)):
        for term in terms:
            counts = residents.counts(snapshot.nodes, _group(term, snapshot))
            yield _by_domain(term.topology_key, counts, snapshot, factor=sign * term.weight)
    hosts = snapshot.nodes.with_affinity
    if not hosts:
        return
    guest = _guest(waiting, snapshot)
    by_key: dict[str, dict[int, int]] = {}
    ask = functools.partial(_attraction, guest)
    for attraction, members in snapshot.nodes.resources.classes(("attraction", guest.key), ask, among=hosts).items():
        for key, weight in attraction:
            counts = by_key.setdefault(key, {})
            counts[weight] = counts.get(weight, 0) | members & hosts
    for key, counts in by_key.items():
        counts[0] = counts.get(0, 0) | everyone & ~functools.reduce(int.__or__, counts.values())
        yield _by_domain(key, counts, snapshot, factor=1)


def _by_domain(key: str, counts: Mapping[int, int], snapshot: Snapshot, *, factor: int) -> dict[int, int]:
    """All nodes by the total of their domain, times a factor; those in no domain have nothing."""
    everyone = snapshot.nodes.everyone
    domains = topology.of(snapshot.nodes, key)
    worth = {factor * total: nodes for total, nodes in domains.totals(counts, among=everyone).items()}
    worth[0] = worth.get(0, 0) | everyone & ~domains.members
    return worth


def _normalized(classes: list[tuple[int, int]]) -> dict[int, int]:
    """Totals of nodes scaled to 0..100, where the lowest is 0 and the highest 100."""
    lowest, highest = min(total for total, _ in classes), max(total for total, _ in classes)
    if lowest == highest:
        return {}
    scaled: dict[int, int] = {}
    for total, same in classes:
        # As upstream, in floating point and cut off.
        score = int(scoring.MAX * ((total - lowest) / (highest - lowest)))
        scaled[score] = scaled.get(score, 0) | same
    return scaled


# What can help


class _Hints:
    """Which changes can help pods that were rejected here."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot: Final = snapshot

    def all(self) -> tuple[hints.Hint, ...]:
        pods = hints.Action.ADD | hints.Action.DELETE | hints.Action.UPDATE_POD_LABEL
        return (
            hints.Hint(hints.Resource.ASSIGNED_POD, pods, self._pod_helps),
            hints.Hint(hints.Resource.TARGET_POD, hints.Action.UPDATE_POD_LABEL, hints.always),
            hints.Hint(hints.Resource.NODE, hints.Action.ADD | hints.Action.UPDATE_NODE_LABEL, _node_helps),
        )

    def _pod_helps(self, waiting: pod.Pod, old: pod.Pod | None, new: pod.Pod | None) -> bool:
        rules = _rules(waiting)
        was_near, is_near = (self._is_meant_by_all(rules.required, each) for each in (old, new))
        was_far, is_far = (self._is_meant_by_any(rules.required_apart, each) for each in (old, new))
        if (is_near and not was_near) or (was_far and not is_far):
            return True
        if old is None or new is not None or not podaffinity.is_stated(old):
            return False
        return self._is_meant_by_any(_rules(old).required_apart, waiting)

    def _is_meant_by_all(self, terms: _Terms, other: pod.Pod | None) -> bool:
        return other is not None and bool(terms) and all(term.matches(other, self._labels(other)) for term in terms)

    def _is_meant_by_any(self, terms: _Terms, other: pod.Pod | None) -> bool:
        return other is not None and any(term.matches(other, self._labels(other)) for term in terms)

    def _labels(self, of: pod.Pod) -> Mapping[str, str]:
        return self._snapshot.namespaces.get(of.metadata.namespace, {})


def _rules(of: pod.Pod) -> podaffinity.PodAffinity:
    """The rules of a pod; none where they cannot be read, which no change of others mends."""
    try:
        return podaffinity.of(of)
    except errors.InvalidValueError:
        return podaffinity.NONE


def _node_helps(waiting: pod.Pod, old: nodes.Node | None, new: nodes.Node) -> bool:
    rules = _rules(waiting)
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
