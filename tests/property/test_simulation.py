"""Simulations: whatever is done to one, those that it was forked from, and its forks, stay as they are.

What is compared is all that a simulation shows of itself, and what becomes of the pods that wait in it.
"""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from drachma import testing
from drachma.api import meta, pod
from drachma.simulate import ClusterState, Simulation

DRIVER = "gpu.example.com"
NODES = ("n0", "n1", "n2")
PODS = ("p0", "p1", "p2", "p3")


def a_node(name: str, cpu: str = "2") -> meta.Object:
    return testing.node(name, allocatable={"cpu": cpu, "memory": "8Gi", "pods": "4"}).build()


def a_slice(name: str, count: int = 2) -> meta.Object:
    devices = [f"gpu-{number}" for number in range(count)]
    return testing.resource_slice(f"{name}-gpus", driver=DRIVER, pool=name).on_node(name).devices(*devices).build()


def a_pod(name: str, *, with_gpu: bool = True) -> pod.Pod:
    made = testing.pod(name).uid(name).container("c", requests={"cpu": "1"})
    return (made.claim("gpu", template="gpu") if with_gpu else made).build()


def fresh() -> Simulation:
    """Two nodes with devices, a pod on one of them, and two that wait."""
    objects = [
        testing.device_class(DRIVER, f'device.driver == "{DRIVER}"').build(),
        testing.claim_template("gpu").request("r", device_class=DRIVER, count=1, mode="ExactCount").build(),
        *(made for name in NODES[:2] for made in (a_node(name), a_slice(name))),
        testing.pod("there").uid("there").container("c", requests={"cpu": "500m"}).on_node("n0").build(),
    ]
    return Simulation(ClusterState.of([*objects, a_pod("p0"), a_pod("p1", with_gpu=False)]))


CHANGES = st.one_of(
    st.tuples(st.just("add"), st.builds(a_node, st.sampled_from(NODES), st.sampled_from("123"))),
    st.tuples(st.just("add"), st.builds(a_slice, st.sampled_from(NODES), st.integers(0, 3))),
    st.tuples(st.just("add"), st.builds(a_pod, st.sampled_from(PODS), with_gpu=st.booleans())),
    st.tuples(st.just("remove"), st.sampled_from(NODES)),
    st.tuples(st.just("place"), st.integers(0, 3)),
    st.tuples(st.just("evict"), st.integers(0, 3)),
)


def apply(cluster: Simulation, change: tuple[str, Any]) -> None:
    match change:
        case "add", made:
            cluster.add([made])
        case "remove", name:
            cluster.remove_node(name, [f"{name}-gpus"])
        case "place", number:
            for each in cluster.pending[number : number + 1]:
                cluster.place(each)
        case "evict", number:
            for each in residents(cluster)[number : number + 1]:
                cluster.evict(each)


def residents(cluster: Simulation) -> list[pod.Pod]:
    bookings = [booking for info in cluster.snapshot.nodes for booking in info.ledger.bookings.values()]
    return sorted((each.pod for each in bookings), key=lambda each: str(each.metadata.name))


def shown(cluster: Simulation) -> Any:
    snapshot = cluster.snapshot
    what_if = cluster.fork().schedule()
    return {
        "nodes": {
            info.name: (info.node, dict(info.ledger.requested), sorted(info.ledger.bookings)) for info in snapshot.nodes
        },
        "devices": {
            info.name: [
                (block.pool_id, snapshot.devices.state.taken(block)) for block in snapshot.devices.view(info).blocks
            ]
            for info in snapshot.nodes
        },
        "claims": sorted(snapshot.claims, key=lambda each: str(each.metadata.name)),
        "pending": cluster.pending,
        "placements": what_if.placements,
        "waiting": [(each.pod, each.reason) for each in what_if.waiting],
    }


@settings(max_examples=60)
@given(st.lists(CHANGES, max_size=4), st.lists(CHANGES, max_size=10), st.lists(CHANGES, max_size=4))
def test_forks_and_what_they_were_forked_from_do_not_change_each_other(
    before: list[Any], inside: list[Any], outside: list[Any]
) -> None:
    cluster = fresh()
    for change in before:
        apply(cluster, change)
    fork, idle = cluster.fork(), cluster.fork()
    want = shown(cluster)
    for change in inside:
        apply(fork, change)
    assert shown(cluster) == want
    of_fork = shown(fork)
    for change in outside:
        apply(cluster, change)
    assert shown(fork) == of_fork
    assert shown(idle) == want
