"""Spreading: defaults, preemption, messages. General properties are in tests/property/test_scheduler_neighbours.py."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import structs

from drachma.api import meta, pod, replicaset, replicationcontroller, service
from drachma.scheduler.cycle.decision import Placed, Unfit
from drachma.scheduler.plugins.podtopologyspread.plugin import PodTopologySpread
from drachma.scheduler.snapshot import podinfo
from drachma.testing import node
from drachma.testing import pod as a_pod
from tests.unit.scheduler import worlds

ZONE = "topology.kubernetes.io/zone"
HOST = "kubernetes.io/hostname"


def constraint(key: str = ZONE, **fields: Any) -> pod.TopologySpreadConstraint:
    stated = {"max_skew": 1, "when_unsatisfiable": "DoNotSchedule", **fields}
    return pod.TopologySpreadConstraint(
        topology_key=key, label_selector=meta.LabelSelector(match_labels={"app": "web"}), **stated
    )


def a_web(name: str, *constraints: pod.TopologySpreadConstraint, **spec: Any) -> Any:
    made = a_pod(name).uid(name).label("app", "web").container("c")
    return made.spec(topology_spread_constraints=constraints, **spec)


def a_world() -> worlds.World:
    world = worlds.World()
    for name in ("a0", "a1", "b0"):
        world.put_node(node(name, labels={ZONE: name[0], HOST: name}, allocatable={"cpu": "64", "pods": "110"}))
    return world


def decided(world: worlds.World, made: Any) -> Any:
    return world.decide(podinfo.PodInfo(made.build()))


def test_pods_alternate_between_zones() -> None:
    world = a_world()
    zones = []
    for number in range(6):
        placed = decided(world, a_web(f"p{number}", constraint()))
        assert isinstance(placed, Placed)
        world.snapshot.bind(placed.assignment)
        zones.append(placed.node[0])
    assert [sorted(zones[begin : begin + 2]) for begin in (0, 2, 4)] == [["a", "b"]] * 3


def test_messages_are_upstreams() -> None:
    world = a_world()
    world.put_node(node("lost"))
    world.put_node(node("c0", labels={ZONE: "c"}))
    world.snapshot.nodes.put_node(node("c0", labels={ZONE: "c"}, taints=()).build())
    for number, name in enumerate(("a0", "b0", "c0")):
        world.snapshot.add_pod(a_web(f"r{number}").on_node(name).build())
    world.snapshot.add_pod(a_web("r9").on_node("c0").build())
    unfit = decided(world, a_web("p", constraint(min_domains=4)))
    assert isinstance(unfit, Unfit)
    assert unfit.diagnosis.message() == (
        "0/5 nodes are available: 1 node(s) didn't match pod topology spread constraints (missing required label), "
        "4 node(s) didn't match pod topology spread constraints."
    )


def test_pods_about_to_go_do_not_count() -> None:
    world = a_world()
    leaving = a_web("r").on_node("b0").build()
    world.snapshot.add_pod(leaving)
    placed = decided(world, a_web("p", constraint(), node_selector={HOST: "b0"}))
    assert isinstance(placed, Placed)
    world.snapshot.add_pod(a_web("q").on_node("b0").build())
    # The nodes that the pod cannot go to do not count either, unless it says so.
    unfit = decided(world, a_web("p", constraint(node_affinity_policy="Ignore"), node_selector={HOST: "b0"}))
    assert isinstance(unfit, Unfit)
    for made in (leaving, a_web("q").on_node("b0").build()):
        metadata = structs.replace(made.metadata, deletion_timestamp=worlds.World().clock.utc())
        world.snapshot.add_pod(structs.replace(made, metadata=metadata))
    assert isinstance(decided(world, a_web("p", constraint(node_affinity_policy="Ignore"))), Placed)


@pytest.mark.parametrize(
    "by",
    [
        pytest.param(
            service.Service(
                metadata=meta.ObjectMeta(name="web", namespace="default"),
                spec=service.ServiceSpec(selector={"app": "web"}),
            ),
            id="service",
        ),
        pytest.param(
            replicaset.ReplicaSet(
                metadata=meta.ObjectMeta(name="web", namespace="default"),
                spec=replicaset.ReplicaSetSpec(selector=meta.LabelSelector(match_labels={"app": "web"})),
            ),
            id="replica-set",
        ),
        pytest.param(
            replicationcontroller.ReplicationController(
                metadata=meta.ObjectMeta(name="web", namespace="default"),
                spec=replicationcontroller.ReplicationControllerSpec(selector={"app": "web"}),
            ),
            id="replication-controller",
        ),
    ],
)
def test_pods_that_belong_together_are_spread_by_default(by: Any) -> None:
    world = a_world()
    if isinstance(by, service.Service):
        world.snapshot.workloads.put_service(by)
    else:
        world.snapshot.workloads.put_owner(by)
    for number, name in enumerate(("a0", "a0", "b0", "b0")):
        world.snapshot.add_pod(a_web(f"r{number}").on_node(name).build())
    is_old = isinstance(by, replicationcontroller.ReplicationController)
    kind, version = ("ReplicationController", "v1") if is_old else ("ReplicaSet", "apps/v1")
    owned = a_web("p").owner(kind, "web", uid="web", api_version=version)
    placed = decided(world, owned)
    assert isinstance(placed, Placed)
    assert placed.node == "a1"


def a_bound(app: str) -> pod.Pod:
    made: pod.Pod = a_pod("r").label("app", app).container("c").on_node("a0").build()
    return made


@pytest.mark.parametrize(
    ("old", "new", "want"),
    [
        pytest.param(None, a_bound("web"), True, id="one-more-of-its-kind"),
        pytest.param(a_bound("web"), None, True, id="one-less"),
        pytest.param(a_bound("x"), a_bound("web"), True, id="becomes-one"),
        pytest.param(None, a_bound("x"), False, id="another"),
    ],
)
def test_which_pods_wake_it(old: Any, new: Any, want: bool) -> None:
    hint = PodTopologySpread().hints(worlds.World().snapshot)[0]
    assert hint.helps(a_web("p", constraint()).build(), old, new) is want
