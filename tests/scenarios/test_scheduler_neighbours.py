"""Pods that look at other pods, in a running scheduler: from the API to binding, and woken by what others do."""

from __future__ import annotations

from typing import Any

from drachma.api import meta, namespace, pod
from drachma.testing import node
from drachma.testing import pod as a_pod
from tests.scenarios import schedulers

ZONE = "topology.kubernetes.io/zone"
HOST = "kubernetes.io/hostname"


def term(app: str, key: str, **fields: Any) -> pod.PodAffinityTerm:
    return pod.PodAffinityTerm(label_selector=meta.LabelSelector(match_labels={"app": app}), topology_key=key, **fields)


def required(*terms: pod.PodAffinityTerm) -> pod.PodAffinity:
    return pod.PodAffinity(required_during_scheduling_ignored_during_execution=terms)


def a_labelled(name: str, app: str, **spec: Any) -> Any:
    return a_pod(name).label("app", app).container("c").spec(**spec)


async def test_a_pod_waits_for_the_one_that_it_wants_to_be_near() -> None:
    async with schedulers.cluster() as world:
        for name in ("a0", "b0"):
            await world.create(node(name, labels={ZONE: name[0], HOST: name}))
        await world.create(a_labelled("p", "x", affinity=pod.Affinity(pod_affinity=required(term("web", ZONE)))))
        assert await world.why("p") == (
            "0/2 nodes are available: 2 node(s) didn't match pod affinity rules. "
            "preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling."
        )
        await world.create(a_labelled("web", "web", node_selector={HOST: "b0"}))
        await world.advance(2)
        assert await world.node_of("p") == "b0"


async def test_pods_of_one_kind_keep_apart_and_the_third_waits_for_a_node() -> None:
    async with schedulers.cluster() as world:
        await world.create(node("a0", labels={HOST: "a0"}), node("a1", labels={HOST: "a1"}))
        apart = pod.Affinity(pod_anti_affinity=required(term("web", HOST)))
        for name in ("p0", "p1", "p2"):
            await world.create(a_labelled(name, "web", affinity=apart))
        assert {await world.node_of("p0"), await world.node_of("p1")} == {"a0", "a1"}
        assert (await world.why("p2")).startswith(
            "0/2 nodes are available: 2 node(s) didn't match pod anti-affinity rules."
        )
        await world.create(node("a2", labels={HOST: "a2"}))
        await world.advance(2)
        assert await world.node_of("p2") == "a2"


async def test_namespaces_are_chosen_by_their_labels() -> None:
    async with schedulers.cluster() as world:
        await world.client.create(namespace.Namespace(metadata=meta.ObjectMeta(name="far", labels={"team": "b"})))
        await world.create(node("a0", labels={HOST: "a0"}), node("a1", labels={HOST: "a1"}))
        web = a_pod("web", namespace="far").label("app", "web").container("c").spec(node_selector={HOST: "a1"})
        await world.create(web)
        chosen = term("web", HOST, namespace_selector=meta.LabelSelector(match_labels={"team": "b"}))
        await world.create(a_labelled("p", "x", affinity=pod.Affinity(pod_affinity=required(chosen))))
        assert await world.node_of("p") == "a1"


async def test_an_important_pod_evicts_one_that_it_must_not_be_with() -> None:
    async with schedulers.cluster() as world:
        await world.priorities(100)
        await world.create(node("a0", labels={HOST: "a0"}))
        await world.create(a_labelled("web", "web"))
        apart = pod.Affinity(pod_anti_affinity=required(term("web", HOST)))
        await world.create(a_labelled("p", "x", affinity=apart, priority_class_name="priority-100"))
        assert (await world.pod("p")).status.nominated_node_name == "a0"
        victim = await world.pod("web")
        assert victim.metadata.deletion_timestamp is not None
        await world.world.delete(victim, grace_period_seconds=0)
        await world.advance(2)
        assert await world.node_of("p") == "a0"


async def test_pods_are_spread_as_they_say_and_wait_where_they_cannot_be() -> None:
    async with schedulers.cluster() as world:
        for name in ("a0", "a1", "b0"):
            await world.create(node(name, labels={ZONE: name[0], HOST: name}, allocatable={"cpu": "1", "pods": "9"}))
        spread = pod.TopologySpreadConstraint(
            max_skew=1,
            topology_key=ZONE,
            when_unsatisfiable="DoNotSchedule",
            label_selector=meta.LabelSelector(match_labels={"app": "web"}),
        )
        for number in range(4):
            made = a_pod(f"p{number}").label("app", "web").container("c", requests={"cpu": "900m"})
            await world.create(made.spec(topology_spread_constraints=(spread,)))
        places = [await world.node_of(f"p{number}") for number in range(4)]
        assert sorted(place[:1] for place in places) == ["", "a", "a", "b"]
        waiting = f"p{places.index('')}"
        assert (await world.why(waiting)).startswith("0/3 nodes are available: 3 Insufficient cpu.")
