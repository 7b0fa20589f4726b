"""Defragmentation: plans have as few moves as a search by brute force finds, and every move does as the plan says."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import NamedTuple

from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec import structs

from drachma import testing
from drachma.api import meta, pod
from drachma.simulate import ClusterState, Simulation
from drachma.simulate.defragmentation import Goal, Planner, search, wholes

DRIVER = "gpu.example.com"
CPU = {"cpu": "64", "memory": "256Gi", "pods": "110"}


class World(NamedTuple):
    """Devices of each node, and pods as (node, number of devices, whether it may move)."""

    nodes: tuple[int, ...]
    pods: tuple[tuple[int, int, bool], ...]

    def used(self, places: tuple[int, ...]) -> list[int]:
        used = [0] * len(self.nodes)
        for place, (_, size, _) in zip(places, self.pods, strict=True):
            used[place] += size
        return used


@st.composite
def worlds(draw: st.DrawFn) -> World:
    nodes = tuple(draw(st.lists(st.integers(1, 4), min_size=2, max_size=4)))
    free = list(nodes)
    pods = []
    for node, size, movable in draw(
        st.lists(
            st.tuples(st.integers(0, len(nodes) - 1), st.integers(1, 3), st.booleans()),
            max_size=6,
        )
    ):
        if free[node] >= size:
            free[node] -= size
            pods.append((node, size, movable))
    return World(nodes, tuple(pods))


def build(world: World) -> Simulation:
    objects: list[meta.Object] = [testing.device_class("gpu", f'device.driver == "{DRIVER}"').build()]
    for number, count in enumerate(world.nodes):
        name = f"n{number}"
        devices = [f"gpu-{place}" for place in range(count)]
        slices = testing.resource_slice(name, driver=DRIVER).on_node(name).devices(*devices)
        objects += [testing.node(name, allocatable=CPU).build(), slices.build()]
    for size in (1, 2, 3):
        request = testing.claim_template(f"gpus-{size}").request("r", device_class="gpu", count=size, mode="ExactCount")
        objects.append(request.build())
    next_device = [0] * len(world.nodes)
    for number, (node, size, movable) in enumerate(world.pods):
        name, uid = f"p{number}", f"uid-{number}"
        results = [("r", DRIVER, f"n{node}", f"gpu-{next_device[node] + place}") for place in range(size)]
        next_device[node] += size
        claim = testing.claim(f"{name}-c").request("r", device_class="gpu", count=size, mode="ExactCount")
        claim = claim.uid(f"claim-{number}").owner("Pod", name, uid=uid).allocated(*results)
        objects.append(claim.reserved_for(name, uid=uid).build())
        made = testing.pod(name).uid(uid).claim("r", template=f"gpus-{size}").owner("ReplicaSet", "rs", uid="rs")
        made = made.container("c", requests={"cpu": "1"}, claims=("r",)).on_node(f"n{node}")
        if not movable:
            made = made.annotation("drachma.dev/movable", "false")
        status = pod.PodResourceClaimStatus(name="r", resource_claim_name=f"{name}-c")
        objects.append(structs.replace(made.build(), status=pod.PodStatus(resource_claim_statuses=(status,))))
    return Simulation(ClusterState.of(objects))


def fewest(world: World, number: int) -> int | None:
    """Number of moves that bring back so many nodes, by trying all sets of nodes and all sequences of moves."""
    start = tuple(node for node, _, _ in world.pods)
    used = world.used(start)
    free = {node for node, amount in enumerate(used) if not amount}
    best: int | None = None
    for targets in itertools.combinations([node for node in range(len(world.nodes)) if node not in free], number):
        least = sum(node in targets for node in start)
        reached, moves = {start}, 0
        while moves <= least + search.MOST_EXTRA:
            if any(not set(places) & set(targets) for places in reached):
                best = moves if best is None else min(best, moves)
                break
            reached = {after for places in reached for after in _neighbours(world, places, free | set(targets))}
            moves += 1
    return best


def _neighbours(world: World, places: tuple[int, ...], protected: set[int]) -> Iterator[tuple[int, ...]]:
    used = world.used(places)
    for number, (_, size, movable) in enumerate(world.pods):
        for node in range(len(world.nodes)):
            if movable and node not in protected and node != places[number] and used[node] + size <= world.nodes[node]:
                yield (*places[:number], node, *places[number + 1 :])


@settings(max_examples=60, deadline=None)
@given(worlds(), st.integers(1, 3))
@example(World((4, 4, 2), ((0, 3, True), (1, 1, True), (1, 1, False), (2, 1, False))), 1)
def test_plans_have_the_fewest_moves(world: World, number: int) -> None:
    plan = Planner(build(world), Goal.NODES, effort=100_000).plan(number)
    assert plan.is_fewest
    assert len(plan.brought_back) <= number
    most = next((count for count in range(number, 0, -1) if fewest(world, count) is not None), 0)
    assert len(plan.brought_back) == most
    assert len(plan.moves) == (fewest(world, most) if most else 0)


@settings(max_examples=30, deadline=None)
@given(worlds())
def test_a_plan_does_as_it_says(world: World) -> None:
    cluster = build(world)
    plan = Planner(cluster, Goal.NODES).plan()
    users = wholes.users(cluster.snapshot)
    before = {each.node for each in wholes.find(cluster.snapshot, Goal.NODES) if users.is_free(each)}
    places = tuple(node for node, _, _ in world.pods)
    for move in plan.moves:
        number = int(str(move.pod.metadata.name)[1:])
        assert move.origin == f"n{places[number]}"
        assert world.pods[number][2]
        assert move.target not in before
        places = (*places[:number], int(move.target[1:]), *places[number + 1 :])
        assert all(amount <= count for amount, count in zip(world.used(places), world.nodes, strict=True))
    after = {f"n{node}" for node, amount in enumerate(world.used(places)) if not amount}
    assert after == before | {each.node for each in plan.brought_back}
    # The cluster itself stays as it was.
    assert wholes.users(cluster.snapshot).pods.keys() == {f"uid-{number}" for number in range(len(world.pods))}
