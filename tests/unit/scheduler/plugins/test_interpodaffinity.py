"""Affinity between pods: named cases. General properties are in tests/property/test_scheduler_neighbours.py."""

from __future__ import annotations

from typing import Any

import pytest

from drachma.api import meta, pod
from drachma.scheduler.cycle.decision import Placed, Unfit
from drachma.scheduler.plugins.interpodaffinity import InterPodAffinity
from drachma.scheduler.snapshot import podinfo
from drachma.testing import node
from drachma.testing import pod as a_pod
from tests.unit.scheduler import worlds

ZONE = "topology.kubernetes.io/zone"
HOST = "kubernetes.io/hostname"


def term(app: str, key: str = ZONE, **fields: Any) -> pod.PodAffinityTerm:
    return pod.PodAffinityTerm(label_selector=meta.LabelSelector(match_labels={"app": app}), topology_key=key, **fields)


def near(*terms: pod.PodAffinityTerm) -> pod.Affinity:
    return pod.Affinity(pod_affinity=pod.PodAffinity(required_during_scheduling_ignored_during_execution=terms))


def apart(*terms: pod.PodAffinityTerm) -> pod.Affinity:
    return pod.Affinity(pod_anti_affinity=pod.PodAffinity(required_during_scheduling_ignored_during_execution=terms))


def prefers(weight: int, chosen: pod.PodAffinityTerm) -> pod.Affinity:
    preference = pod.WeightedPodAffinityTerm(weight=weight, pod_affinity_term=chosen)
    rules = pod.PodAffinity(preferred_during_scheduling_ignored_during_execution=(preference,))
    return pod.Affinity(pod_affinity=rules)


def a_labelled(name: str, app: str, affinity: pod.Affinity | None = None, *, namespace: str = "default") -> Any:
    return a_pod(name, namespace=namespace).uid(name).label("app", app).container("c").spec(affinity=affinity)


def a_world() -> worlds.World:
    """Zone a with the nodes a0 and a1, zone b with b0, and a node in no zone."""
    world = worlds.World()
    for name in ("a0", "a1", "b0"):
        world.put_node(node(name, labels={ZONE: name[0], HOST: name}))
    world.put_node(node("lost", labels={HOST: "lost"}))
    return world


def places(world: worlds.World, waiting: Any) -> set[str]:
    """Return the feasible nodes."""
    remaining, found = world.snapshot, set()
    for name in ("a0", "a1", "b0", "lost"):
        on = waiting.spec(affinity=waiting.build().spec.affinity, node_selector={HOST: name})
        if isinstance(world.cycle.decide(podinfo.PodInfo(on.build()), remaining), Placed):
            found.add(name)
    return found


@pytest.mark.parametrize(
    ("affinity", "app", "want"),
    [
        pytest.param(near(term("web")), "x", {"a0", "a1"}, id="near-a-zone"),
        pytest.param(near(term("web", HOST)), "x", {"a0"}, id="near-a-host"),
        pytest.param(near(term("none")), "x", set(), id="near-nobody"),
        pytest.param(near(term("first")), "first", {"a0", "a1", "b0"}, id="the-first-of-its-kind"),
        pytest.param(near(term("web"), term("x", HOST)), "x", set(), id="one-pod-must-match-all-terms"),
        pytest.param(apart(term("web")), "x", {"b0", "lost"}, id="apart-from-a-zone"),
        pytest.param(apart(term("web", HOST)), "x", {"a1", "b0", "lost"}, id="apart-from-a-host"),
        pytest.param(None, "lonely", {"b0", "lost"}, id="a-pod-there-keeps-it-away"),
        pytest.param(near(term("web", namespaces=("other",))), "x", set(), id="in-another-namespace"),
        pytest.param(near(term("web", namespace_selector=meta.LabelSelector())), "x", {"a0", "a1"}, id="in-any"),
        pytest.param(
            near(term("far", namespace_selector=meta.LabelSelector(match_labels={"team": "b"}))),
            "x",
            {"b0"},
            id="in-namespaces-with-a-label",
        ),
    ],
)
def test_where_a_pod_can_go(affinity: pod.Affinity | None, app: str, want: set[str]) -> None:
    world = a_world()
    world.snapshot.namespaces["other"] = {"team": "b"}
    world.snapshot.add_pod(a_labelled("web", "web", apart(term("lonely"))).on_node("a0").build())
    world.snapshot.add_pod(a_labelled("far", "far", namespace="other").on_node("b0").build())
    assert places(world, a_labelled("p", app, affinity)) == want


def test_messages_are_upstreams() -> None:
    world = a_world()
    world.snapshot.add_pod(a_labelled("web", "web", apart(term("x"))).on_node("a0").build())
    rules = pod.Affinity(
        pod_affinity=pod.PodAffinity(required_during_scheduling_ignored_during_execution=(term("web"),)),
        pod_anti_affinity=pod.PodAffinity(required_during_scheduling_ignored_during_execution=(term("web", HOST),)),
    )
    decided = world.decide(podinfo.PodInfo(a_labelled("p", "x", rules).build()))
    assert isinstance(decided, Unfit)
    assert decided.diagnosis.message() == (
        "0/4 nodes are available: 1 node(s) didn't match pod anti-affinity rules, "
        "1 node(s) didn't satisfy existing pods anti-affinity rules, 2 node(s) didn't match pod affinity rules."
    )
    assert world.snapshot.nodes.named(frozenset({"a0", "a1"})) == decided.diagnosis.resolvable


def test_preferences_of_both_sides_count() -> None:
    world = a_world()
    world.snapshot.add_pod(a_labelled("web", "web").on_node("b0").build())
    for number in range(3):
        world.snapshot.add_pod(a_labelled(f"fan-{number}", "fan", prefers(10, term("p"))).on_node("a1").build())
    plain = world.decide(podinfo.PodInfo(a_labelled("p1", "p").build()))
    assert isinstance(plain, Placed)
    assert plain.node in ("a0", "a1")
    strong = world.decide(podinfo.PodInfo(a_labelled("p2", "p", prefers(100, term("web"))).build()))
    assert isinstance(strong, Placed)
    assert strong.node == "b0"


def test_a_pod_that_changes_its_labels_is_seen() -> None:
    world = a_world()
    world.snapshot.add_pod(a_labelled("web", "web").on_node("a0").build())
    waiting = a_labelled("p", "x", near(term("web")))
    assert places(world, waiting) == {"a0", "a1"}
    world.snapshot.add_pod(a_labelled("web", "other").on_node("a0").build())
    assert places(world, waiting) == set()


def a_bound(app: str, affinity: pod.Affinity | None = None) -> pod.Pod:
    made: pod.Pod = a_labelled("r", app, affinity).on_node("a0").build()
    return made


@pytest.mark.parametrize(
    ("affinity", "old", "new", "want"),
    [
        pytest.param(near(term("web")), None, a_bound("web"), True, id="a-pod-comes-that-it-wants-near"),
        pytest.param(near(term("web")), None, a_bound("x"), False, id="another-pod-comes"),
        pytest.param(near(term("web")), a_bound("x"), a_bound("web"), True, id="a-pod-becomes-one"),
        pytest.param(apart(term("web")), a_bound("web"), None, True, id="a-pod-goes-that-it-wants-apart"),
        pytest.param(apart(term("web")), a_bound("web"), a_bound("x"), True, id="a-pod-is-one-no-longer"),
        pytest.param(apart(term("web")), a_bound("x"), None, False, id="another-pod-goes"),
        pytest.param(None, a_bound("x", apart(term("p"))), None, True, id="a-pod-goes-that-kept-it-away"),
    ],
)
def test_which_pods_wake_it(affinity: pod.Affinity | None, old: Any, new: Any, want: bool) -> None:
    hint = InterPodAffinity().hints(worlds.World().snapshot)[0]
    assert hint.helps(a_labelled("p", "p", affinity).build(), old, new) is want
