"""Rules about other pods, node by node and pod by pod: what they mean, beside plugins that answer for sets of nodes.

Clusters are small and crowded with rules. Answers are asked twice, with a change in between, and in a fork: what is
remembered must not show.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st

from drachma.api import gates, labelselectors, meta, pod
from drachma.api import node as nodes
from drachma.scheduler.framework import cyclestate
from drachma.scheduler.framework.plugin import Filtered, Scores
from drachma.scheduler.plugins import interpodaffinity
from drachma.scheduler.plugins.podtopologyspread.plugin import PodTopologySpread
from drachma.scheduler.snapshot import Snapshot, podinfo
from drachma.testing import node
from drachma.testing import pod as a_pod

KEYS = ("kubernetes.io/hostname", "zone", "rack")
NAMESPACES = {"default": {"team": "a"}, "other": {"team": "b"}, "third": {"team": "a"}}
LABELS = st.dictionaries(st.sampled_from(["app", "tier"]), st.sampled_from(["x", "y"]), max_size=2)


class Resident(NamedTuple):
    """A pod on a node, for the definitions."""

    pod: pod.Pod
    node: nodes.Node


# Clusters


def a_labelled_pod(name: str, labels: Mapping[str, str], *, namespace: str = "default") -> Any:
    made = a_pod(name, namespace=namespace).uid(name).container("c")
    for key, value in labels.items():
        made = made.label(key, value)
    return made


def a_selector(labels: Mapping[str, str]) -> meta.LabelSelector:
    return meta.LabelSelector(match_labels=labels)


SELECTORS = st.builds(a_selector, LABELS)
TERMS = st.builds(
    pod.PodAffinityTerm,
    label_selector=st.one_of(st.none(), SELECTORS),
    namespaces=st.sampled_from([(), ("other",), ("default", "third")]),
    topology_key=st.sampled_from(KEYS),
    namespace_selector=st.sampled_from([None, a_selector({}), a_selector({"team": "a"}), a_selector({"team": "z"})]),
)
WEIGHTED = st.builds(pod.WeightedPodAffinityTerm, weight=st.integers(1, 100), pod_affinity_term=TERMS)
RULES = st.one_of(
    st.none(),
    st.builds(
        pod.PodAffinity,
        required_during_scheduling_ignored_during_execution=st.lists(TERMS, max_size=2).map(tuple),
        preferred_during_scheduling_ignored_during_execution=st.lists(WEIGHTED, max_size=2).map(tuple),
    ),
)
AFFINITIES = st.builds(pod.Affinity, pod_affinity=RULES, pod_anti_affinity=RULES)
CONSTRAINTS = st.builds(
    pod.TopologySpreadConstraint,
    max_skew=st.integers(1, 3),
    topology_key=st.sampled_from(KEYS),
    when_unsatisfiable=st.sampled_from(["DoNotSchedule", "ScheduleAnyway"]),
    label_selector=st.one_of(st.none(), SELECTORS),
    min_domains=st.sampled_from([None, 1, 3]),
    node_affinity_policy=st.sampled_from([None, "Honor", "Ignore"]),
    node_taints_policy=st.sampled_from([None, "Honor", "Ignore"]),
    match_label_keys=st.sampled_from([(), ("tier",)]),
)


@st.composite
def clusters(draw: st.DrawFn) -> list[nodes.Node]:
    made = []
    for number in range(draw(st.integers(1, 6))):
        labels = {"kubernetes.io/hostname": f"n{number}"} if draw(st.integers(0, 5)) else {}
        if not labels and draw(st.booleans()):
            # The name of another node.
            labels = {"kubernetes.io/hostname": "n0"}
        for key in ("zone", "rack"):
            if draw(st.integers(0, 3)):
                labels[key] = draw(st.sampled_from("ab"))
        taints = (nodes.Taint(key="t", effect="NoSchedule"),) if not draw(st.integers(0, 3)) else ()
        made.append(node(f"n{number}", labels=labels, taints=taints).build())
    return made


@st.composite
def residents(draw: st.DrawFn, count: int) -> list[pod.Pod]:
    made = []
    for number in range(draw(st.integers(0, 8))):
        namespace = draw(st.sampled_from(list(NAMESPACES)))
        labelled = a_labelled_pod(f"r{number}", draw(LABELS), namespace=namespace)
        where = f"n{draw(st.integers(0, count - 1))}"
        made.append(labelled.spec(affinity=draw(st.one_of(st.none(), AFFINITIES))).on_node(where).build())
    return made


@st.composite
def questions(draw: st.DrawFn, rules: st.SearchStrategy[dict[str, Any]]) -> tuple[list[nodes.Node], Any, Any, pod.Pod]:
    cluster = draw(clusters())
    waiting = a_labelled_pod("w", draw(LABELS)).spec(**draw(rules)).build()
    return cluster, draw(residents(len(cluster))), draw(residents(len(cluster))), waiting


def a_snapshot(cluster: Sequence[nodes.Node], pods: Sequence[pod.Pod]) -> Snapshot:
    snapshot = Snapshot(gates.ALL)
    for name, labels in NAMESPACES.items():
        snapshot.namespaces[name] = labels
    for each in cluster:
        snapshot.add_node(each)
    for resident in pods:
        snapshot.add_pod(resident)
    return snapshot


def replace_pods(snapshot: Snapshot, before: Sequence[pod.Pod], after: Sequence[pod.Pod]) -> None:
    for each in before:
        snapshot.remove_pod(each.metadata.uid)
    for each in after:
        snapshot.add_pod(each)


class Asked(NamedTuple):
    """What a plugin says of nodes by name."""

    rejected: dict[str, str]
    scores: dict[str, int]


def ask(plugin: Any, waiting: pod.Pod, snapshot: Snapshot) -> Asked:
    cycle = cyclestate.CycleState(podinfo.PodInfo(waiting), snapshot)
    all_nodes = snapshot.nodes.all_nodes
    skips = plugin.pre_filter(cycle).is_skipped
    filtered: Filtered = (all_nodes, ()) if skips else plugin.filter(cycle, all_nodes)
    passing, rejections = filtered
    rejected = {each: reason.reasons[0] for reason, members in rejections for each in named(snapshot, members)}
    assert set(rejected) == set(named(snapshot, all_nodes & ~passing))
    scores: Scores = plugin.score(cycle, passing) if passing else {}
    by_name = {each: score for score, members in scores.items() for each in named(snapshot, members & passing)}
    return Asked(rejected, by_name)


def named(snapshot: Snapshot, members: int) -> list[str]:
    return [info.name for info in snapshot.nodes if info.bit & members]


def check(plugin: Any, question: tuple[list[nodes.Node], Any, Any, pod.Pod], want: Any) -> None:
    cluster, before, after, waiting = question
    snapshot = a_snapshot(cluster, before)
    compare(ask(plugin, waiting, snapshot), want(waiting, cluster, before))
    fork = snapshot.fork()
    replace_pods(fork, before, after)
    compare(ask(plugin, waiting, fork), want(waiting, cluster, after))
    compare(ask(plugin, waiting, snapshot), want(waiting, cluster, before))
    replace_pods(snapshot, before, after)
    compare(ask(plugin, waiting, snapshot), want(waiting, cluster, after))


def compare(answer: Asked, want: Asked) -> None:
    assert answer.rejected == want.rejected
    # No scores, or the same for all: nothing is preferred.
    if len(set(want.scores.values())) > 1:
        assert answer.scores == want.scores
    else:
        assert len(set(answer.scores.values())) < 2


# Affinity


def is_meant(term: pod.PodAffinityTerm, owner: pod.Pod, other: pod.Pod) -> bool:
    chosen = set(term.namespaces)
    if not term.namespaces and term.namespace_selector is None:
        chosen = {owner.metadata.namespace}
    by_labels = labelselectors.of(term.namespace_selector)
    namespace = other.metadata.namespace
    is_there = namespace in chosen or by_labels.matches(NAMESPACES[namespace])
    return is_there and labelselectors.of(term.label_selector).matches(other.metadata.labels)


def are_near(key: str, one: nodes.Node, other: nodes.Node) -> bool:
    labels = one.metadata.labels
    return key in labels and labels[key] == other.metadata.labels.get(key)


def rules_of(of: pod.Pod) -> tuple[pod.PodAffinity, pod.PodAffinity]:
    affinity = of.spec.affinity or pod.Affinity()
    return affinity.pod_affinity or pod.PodAffinity(), affinity.pod_anti_affinity or pod.PodAffinity()


def required(rules: pod.PodAffinity) -> tuple[pod.PodAffinityTerm, ...]:
    return rules.required_during_scheduling_ignored_during_execution


def is_near_enough(waiting: pod.Pod, on: nodes.Node, there: Sequence[Resident]) -> bool:
    terms = required(rules_of(waiting)[0])
    if not terms:
        return True
    if any(term.topology_key not in on.metadata.labels for term in terms):
        return False
    meant = [each for each in there if all(is_meant(term, waiting, each.pod) for term in terms)]
    if all(any(are_near(term.topology_key, on, each.node) for each in meant) for term in terms):
        return True
    is_first = not any(term.topology_key in each.node.metadata.labels for term in terms for each in meant)
    return is_first and all(is_meant(term, waiting, waiting) for term in terms)


def objection(waiting: pod.Pod, on: nodes.Node, there: Sequence[Resident]) -> str:
    if not is_near_enough(waiting, on, there):
        return "node(s) didn't match pod affinity rules"
    for term in required(rules_of(waiting)[1]):
        if any(is_meant(term, waiting, each.pod) and are_near(term.topology_key, on, each.node) for each in there):
            return "node(s) didn't match pod anti-affinity rules"
    for each in there:
        for term in required(rules_of(each.pod)[1]):
            if is_meant(term, each.pod, waiting) and are_near(term.topology_key, each.node, on):
                return "node(s) didn't satisfy existing pods anti-affinity rules"
    return ""


def worth(waiting: pod.Pod, on: nodes.Node, there: Sequence[Resident]) -> int:
    total = 0
    for each in there:
        for owner, other in ((waiting, each.pod), (each.pod, waiting)):
            for rules, sign in zip(rules_of(owner), (1, -1), strict=True):
                for preference in rules.preferred_during_scheduling_ignored_during_execution:
                    term = preference.pod_affinity_term
                    if is_meant(term, owner, other) and are_near(term.topology_key, each.node, on):
                        total += sign * preference.weight
        for term in required(rules_of(each.pod)[0]):
            total += is_meant(term, each.pod, waiting) and are_near(term.topology_key, each.node, on)
    return total


def affinity_means(waiting: pod.Pod, cluster: Sequence[nodes.Node], pods: Sequence[pod.Pod]) -> Asked:
    by_name = {each.metadata.name: each for each in cluster}
    there = [Resident(each, by_name[each.spec.node_name]) for each in pods]
    rejected = {each.metadata.name: text for each in cluster if (text := objection(waiting, each, there))}
    worths = {name: worth(waiting, each, there) for name, each in by_name.items() if name not in rejected}
    least, most = min(worths.values(), default=0), max(worths.values(), default=0)
    scores = {
        name: int(100 * ((value - least) / (most - least))) if most > least else 0 for name, value in worths.items()
    }
    return Asked(rejected, scores)


@given(questions(st.fixed_dictionaries({"affinity": st.one_of(st.none(), AFFINITIES)})))
@settings(max_examples=150, deadline=None)
def test_affinity_is_as_defined(question: tuple[list[nodes.Node], Any, Any, pod.Pod]) -> None:
    check(interpodaffinity.InterPodAffinity(), question, affinity_means)


# Spreading


def counts_for(constraint: pod.TopologySpreadConstraint, waiting: pod.Pod, on: nodes.Node) -> bool:
    wanted = waiting.spec.node_selector.items()
    if constraint.node_affinity_policy != "Ignore" and not wanted <= on.metadata.labels.items():
        return False
    return constraint.node_taints_policy != "Honor" or not on.spec.taints


def is_like(constraint: pod.TopologySpreadConstraint, waiting: pod.Pod, other: pod.Pod) -> bool:
    keys = [key for key in constraint.match_label_keys if key in waiting.metadata.labels]
    if any(other.metadata.labels.get(key) != waiting.metadata.labels[key] for key in keys):
        return False
    return labelselectors.of(constraint.label_selector).matches(other.metadata.labels)


def number_on(constraint: pod.TopologySpreadConstraint, waiting: pod.Pod, there: Sequence[pod.Pod]) -> int:
    if constraint.label_selector == meta.LabelSelector() or constraint.label_selector is None:
        keys = [key for key in constraint.match_label_keys if key in waiting.metadata.labels]
        if not keys or constraint.label_selector is None:
            return 0
    return sum(each.metadata.namespace == "default" and is_like(constraint, waiting, each) for each in there)


def spread_means(waiting: pod.Pod, cluster: Sequence[nodes.Node], pods: Sequence[pod.Pod]) -> Asked:
    stated = waiting.spec.topology_spread_constraints
    hard = [each for each in stated if each.when_unsatisfiable == "DoNotSchedule"]
    soft = [each for each in stated if each.when_unsatisfiable == "ScheduleAnyway"]
    on = {
        each.metadata.name: [other for other in pods if other.spec.node_name == each.metadata.name] for each in cluster
    }

    def totals(each: pod.TopologySpreadConstraint, among: Sequence[pod.TopologySpreadConstraint]) -> dict[str, int]:
        found: dict[str, int] = {}
        for place in cluster:
            labels = place.metadata.labels
            if all(other.topology_key in labels for other in among) and counts_for(each, waiting, place):
                value = labels[each.topology_key]
                found[value] = found.get(value, 0) + number_on(each, waiting, on[place.metadata.name])
        return found

    rejected: dict[str, str] = {}
    for place in cluster:
        for each in hard:
            value = place.metadata.labels.get(each.topology_key)
            text = "node(s) didn't match pod topology spread constraints"
            if value is None:
                rejected[place.metadata.name] = f"{text} (missing required label)"
                break
            domains = totals(each, hard)
            least = 0 if len(domains) < (each.min_domains or 1) else min(domains.values())
            if domains.get(value, 0) + is_like(each, waiting, waiting) - least > each.max_skew:
                rejected[place.metadata.name] = text
                break
    passing = [place for place in cluster if place.metadata.name not in rejected]
    scored = [place for place in passing if all(each.topology_key in place.metadata.labels for each in soft)]
    worths: dict[str, int] = {}
    for place in scored:
        worth = 0.0
        for each in soft:
            value = place.metadata.labels[each.topology_key]
            if each.topology_key == "kubernetes.io/hostname":
                size, number = len(scored), number_on(each, waiting, on[place.metadata.name])
            else:
                size = len({other.metadata.labels[each.topology_key] for other in scored})
                number = totals(each, soft).get(value, 0)
            worth += number * math.log(size + 2) + (each.max_skew - 1)
        worths[place.metadata.name] = math.floor(worth + 0.5)
    if not soft:
        return Asked(rejected, {})
    least, most = min(worths.values(), default=0), max(worths.values(), default=0)
    scores = {name: 100 * (most + least - worth) // most if most else 100 for name, worth in worths.items()}
    ignored = {place.metadata.name: 0 for place in passing if place not in scored}
    return Asked(rejected, scores | ignored)


SPREADS = st.fixed_dictionaries(
    {
        "topology_spread_constraints": st.lists(CONSTRAINTS, max_size=3).map(tuple),
        "node_selector": st.sampled_from([{}, {"zone": "a"}]),
    }
)


@given(questions(SPREADS))
@settings(max_examples=150, deadline=None)
def test_spreading_is_as_defined(question: tuple[list[nodes.Node], Any, Any, pod.Pod]) -> None:
    check(PodTopologySpread(), question, spread_means)
