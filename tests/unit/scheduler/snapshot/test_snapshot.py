"""Snapshots: independence of forks, and what-if questions."""

from typing import Any

import pytest

from drachma.accounting import ledger
from drachma.api import resourceclaim
from drachma.scheduler.cycle.decision import Placed, Unfit
from drachma.scheduler.snapshot import Snapshot, assignment, podinfo
from drachma.testing import claim, device_class, node, resource_slice
from drachma.testing import pod as a_pod
from tests.unit.scheduler.worlds import DRIVER, World


def a_world(nodes: int = 2) -> World:
    """Nodes without devices of their own, and one device that all of them can reach."""
    world = World()
    world.put_class(f'device.driver == "{DRIVER}"')
    for number in range(nodes):
        world.put_node(node(f"n{number}", allocatable={"cpu": "1", "memory": "1Gi", "pods": "9"}))
    world.put_slice(resource_slice("net", driver=DRIVER).on_all_nodes().devices("d"))
    world.claim(claim("c").uid("c").request("r", device_class="gpu", mode="ExactCount", count=1))
    return world


WANTING = podinfo.PodInfo(a_pod("p").uid("p").container("c").claim("x", claim="c").build())
BIG = podinfo.PodInfo(a_pod("big").uid("big").container("c", requests={"cpu": "800m"}).build())


def taking(pool: str, device: str, *, by: str = "other") -> assignment.Assignment:
    """Another pod with another claim that takes a device."""
    made = a_pod(by).uid(by).container("c", requests={"cpu": "300m"}).build()
    allocated = claim(by).uid(by).allocated(("r", DRIVER, pool, device)).build()
    assert isinstance(allocated.status.allocation, resourceclaim.AllocationResult)
    allocation = assignment.Allocation(allocated, allocated.status.allocation)
    return assignment.Assignment(made, "n0", ledger.demand(made), (allocation,))


def where(world: World, info: podinfo.PodInfo, snapshot: Snapshot) -> Any:
    """Return the feasible nodes of a pod, or the message."""
    decided = world.cycle.decide(info, snapshot)
    if isinstance(decided, Placed):
        return decided.feasible
    assert isinstance(decided, Unfit)
    return decided.diagnosis.message()


NOT_ALLOCATED = "0/2 nodes are available: 2 cannot allocate all claims."


def test_devices_taken_in_a_fork_before_anybody_looked() -> None:
    world = a_world()
    fork = world.snapshot.fork()
    fork.bind(taking("net", "d"))
    assert where(world, WANTING, fork) == NOT_ALLOCATED
    assert where(world, WANTING, world.snapshot) == 2


def test_devices_taken_in_a_fork_after_the_live_snapshot_was_asked() -> None:
    world = a_world()
    assert where(world, WANTING, world.snapshot) == 2
    fork = world.snapshot.fork()
    fork.bind(taking("net", "d"))
    assert where(world, WANTING, fork) == NOT_ALLOCATED
    assert where(world, WANTING, world.snapshot) == 2


def test_devices_taken_in_the_live_snapshot_are_still_free_in_a_fork() -> None:
    world = a_world()
    fork = world.snapshot.fork()
    world.snapshot.bind(taking("net", "d"))
    assert where(world, WANTING, world.snapshot) == NOT_ALLOCATED
    assert where(world, WANTING, fork) == 2


def test_devices_of_a_pool_that_nodes_came_to_see() -> None:
    world = a_world()
    fork = world.snapshot.fork()
    fork.bind(taking("net", "d"))
    assert where(world, WANTING, fork) == NOT_ALLOCATED
    fork.devices.put_slice(resource_slice("more", driver=DRIVER).on_all_nodes().devices("e").build())
    assert where(world, WANTING, fork) == 2
    fork.bind(taking("more", "e", by="third"))
    assert where(world, WANTING, fork) == NOT_ALLOCATED
    fork.unbind(taking("net", "d"))
    assert where(world, WANTING, fork) == 2
    fork.devices.remove_slice("net")
    assert where(world, WANTING, fork) == NOT_ALLOCATED


def test_slices_that_are_changed_in_different_ways_at_once() -> None:
    world = a_world()
    first, second = world.snapshot.fork(), world.snapshot.fork()
    first.devices.put_slice(resource_slice("net", driver=DRIVER).on_node("n0").devices("d").build())
    second.devices.put_slice(resource_slice("net", driver=DRIVER).on_all_nodes().devices().build())
    assert where(world, WANTING, first) == 1
    assert where(world, WANTING, second) == NOT_ALLOCATED
    assert where(world, WANTING, first) == 1
    assert where(world, WANTING, world.snapshot) == 2


def test_classes_that_are_changed_in_different_ways_at_once() -> None:
    world = a_world()
    first, second = world.snapshot.fork(), world.snapshot.fork()
    first.devices.put_class(device_class("gpu", "false").build())
    second.devices.put_class(device_class("gpu", "true").build())
    assert where(world, WANTING, first) == NOT_ALLOCATED
    assert where(world, WANTING, second) == 2
    assert where(world, WANTING, world.snapshot) == 2


def test_nodes_that_take_the_same_slot() -> None:
    world = a_world()
    fork = world.snapshot.fork()
    world.put_node(node("live", allocatable={"cpu": "1", "pods": "9"}))
    fork.add_node(node("imagined", allocatable={"cpu": "100m", "pods": "9"}).build())
    assert where(world, BIG, world.snapshot) == 3
    assert where(world, BIG, fork) == 2
    assert [info.name for info in fork.nodes] == ["n0", "n1", "imagined"]


def test_a_node_that_is_gone_in_a_fork_leaves_its_slot_to_nobody_else() -> None:
    world = a_world()
    fork = world.snapshot.fork()
    fork.remove_node("n0")
    world.put_node(node("n2", allocatable={"cpu": "1", "pods": "9"}))
    assert [info.name for info in world.snapshot.nodes] == ["n0", "n1", "n2"]
    assert [info.name for info in fork.nodes] == ["n1"]


def test_pods_in_a_fork_take_nothing_of_the_live_snapshot() -> None:
    world = a_world()
    fork = world.snapshot.fork()
    fork.bind(taking("net", "d"))
    assert where(world, BIG, fork) == 1
    assert where(world, BIG, world.snapshot) == 2


def test_what_if_there_were_another_node() -> None:
    """As for autoscaling: a pod fits nowhere, but would fit on a new node."""
    world = a_world()
    big = podinfo.PodInfo(a_pod("b").uid("b").container("c", requests={"cpu": "3"}).claim("x", claim="c").build())
    assert where(world, big, world.snapshot) == "0/2 nodes are available: 2 Insufficient cpu."
    fork = world.snapshot.fork()
    fork.add_node(node("large", allocatable={"cpu": "4", "memory": "8Gi", "pods": "9"}).build())
    decided = world.cycle.decide(big, fork)
    assert isinstance(decided, Placed)
    assert (decided.node, len(decided.assignment.allocations)) == ("large", 1)
    fork.bind(decided.assignment)
    assert where(world, WANTING, fork) == (
        "0/3 nodes are available: resource claim default/c is in the process of being allocated."
    )
    assert where(world, WANTING, world.snapshot) == 2


def test_what_if_a_node_were_drained() -> None:
    world = a_world()
    world.snapshot.add_pod(a_pod("b").uid("b").container("c", requests={"cpu": "900m"}).on_node("n0").build())
    fork = world.snapshot.fork()
    fork.remove_node("n1")
    assert where(world, BIG, fork) == "0/1 nodes are available: 1 Insufficient cpu."
    assert where(world, BIG, world.snapshot) == 1


@pytest.mark.parametrize("forks", [1, 2, 3])
def test_forks_of_forks(forks: int) -> None:
    world = a_world()
    snapshot = world.snapshot
    for _ in range(forks):
        snapshot = snapshot.fork()
    snapshot.remove_node("n0")
    assert where(world, BIG, snapshot) == 1
    assert where(world, BIG, world.snapshot) == 2
