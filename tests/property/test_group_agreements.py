"""Constraints on the devices of all pods of a group, against trying every device for every pod."""

import itertools
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec import structs

from drachma.api import gates, meta, pod, podgroup, resourceclaim
from drachma.claims import reservation
from drachma.scheduler.cycle import gangsearch, units
from drachma.scheduler.snapshot import agreements, podinfo
from drachma.testing import claim, device, node, resource_slice
from drachma.testing import pod as a_pod
from tests.unit.scheduler.worlds import DRIVER, World

RAIL = f"{DRIVER}/rail"
GATES = gates.ALL.switched({gates.Gate.GENERIC_WORKLOAD: True})
NODES = st.lists(
    st.tuples(st.sampled_from([1, 2, 3]), st.lists(st.sampled_from(["", "0", "1", "2"]), max_size=3)),  # cpu, rails
    min_size=1,
    max_size=3,
)
COUNTS = st.lists(st.sampled_from([1, 1, 2]), min_size=1, max_size=3)  # devices of each pod


@settings(max_examples=150, deadline=None)
@given(nodes=NODES, counts=COUNTS, is_match=st.booleans())
@example(nodes=[(1, ["1", "1", "1"]), (2, ["0", "0", ""])], counts=[1, 1], is_match=True)  # the rarer rail has room
@example(nodes=[(1, ["", "1"]), (1, ["1", "0", "0"])], counts=[1, 1], is_match=True)  # as frequent, on other nodes
@example(nodes=[(3, ["0", "1", "0"])], counts=[1, 1, 1], is_match=False)  # the first pod's rail, after the second's
@example(nodes=[(1, ["0", "1", "2"]), (1, ["0"])], counts=[2, 1], is_match=False)  # other rails on the same node
@example(nodes=[(1, ["0", "1"]), (1, ["2"])], counts=[1, 2], is_match=False)  # another node for the first pod
@example(nodes=[(1, ["2"]), (1, ["0", "1"])], counts=[1, 2], is_match=False)
def test_exactly_the_groups_that_fit_are_placed(
    nodes: list[tuple[int, list[str]]], counts: list[int], is_match: bool
) -> None:
    world = World(enabled=GATES)
    world.put_class(f'device.driver == "{DRIVER}"')
    for number, (cpu, rails) in enumerate(nodes):
        world.put_node(node(f"n{number}", allocatable={"cpu": str(cpu), "memory": "8Gi", "pods": "9"}))
        devices = [
            device(f"d{place}").attributes(**({"rail": rail} if rail else {})) for place, rail in enumerate(rails)
        ]
        if devices:
            world.put_slice(resource_slice(f"s{number}", driver=DRIVER).on_node(f"n{number}").devices(*devices))
    members = _members(world, counts, agreements.MATCH if is_match else agreements.DISTINCT)
    outcome = _decide(world, members)
    assert isinstance(outcome, gangsearch.Together) == _fits(nodes, counts, is_match=is_match)
    if isinstance(outcome, gangsearch.Together):
        assert _agrees(nodes, outcome, counts, is_match=is_match)


def _members(world: World, counts: list[int], annotation: str) -> list[podinfo.PodInfo]:
    policy = podgroup.PodGroupSchedulingPolicy(gang=podgroup.GangSchedulingPolicy(min_count=len(counts)))
    metadata = meta.ObjectMeta(name="g", namespace="default", uid="g", annotations={annotation: RAIL})
    world.snapshot.gangs.put_group(
        podgroup.PodGroup(metadata=metadata, spec=podgroup.PodGroupSpec(scheduling_policy=policy))
    )
    members = []
    for number, count in enumerate(counts):
        request = claim(f"c{number}").uid(f"c{number}")
        world.claim(request.request("r", device_class="gpu", mode="ExactCount", count=count))
        member = a_pod(f"p{number}").uid(f"p{number}").container("c", requests={"cpu": "1"})
        member = member.spec(scheduling_group=pod.PodSchedulingGroup(pod_group_name="g"), priority=0)
        built = member.claim("x", claim=f"c{number}").build()
        world.snapshot.gangs.put_pod(built)
        members.append(podinfo.PodInfo(built))
    return members


def _decide(world: World, members: list[podinfo.PodInfo]) -> units.Decision:
    decider = units.Units(world.cycle, world.profile, gates=GATES, gang_steps=5000)
    unit = decider.unit(members[0], world.snapshot)._replace(members=members)
    return decider.decide(unit, world.snapshot)


def _fits(nodes: list[tuple[int, list[str]]], counts: list[int], *, is_match: bool) -> bool:
    """Try every set of devices of one node for every pod."""
    per_pod = [
        [
            (number, chosen)
            for number, (_, rails) in enumerate(nodes)
            for chosen in itertools.combinations(range(len(rails)), count)
        ]
        for count in counts
    ]
    return any(_is_possible(nodes, choice, is_match=is_match) for choice in itertools.product(*per_pod))


def _is_possible(
    nodes: list[tuple[int, list[str]]], choice: tuple[tuple[int, tuple[int, ...]], ...], *, is_match: bool
) -> bool:
    devices = [(number, place) for number, chosen in choice for place in chosen]
    homes = [number for number, _ in choice]
    rails = [nodes[number][1][place] for number, place in devices]
    agrees = len(set(rails)) == 1 if is_match else len(set(rails)) == len(rails)
    has_room = all(homes.count(number) <= cpu for number, (cpu, _) in enumerate(nodes))
    return agrees and all(rails) and has_room and len(set(devices)) == len(devices)


def _agrees(
    nodes: list[tuple[int, list[str]]], outcome: gangsearch.Together, counts: list[int], *, is_match: bool
) -> bool:
    choice = tuple(
        (
            int(placed.node[1:]),
            tuple(
                int(result.device[1:])
                for each in placed.assignment.allocations
                for result in each.result.devices.results
            ),
        )
        for placed in outcome.placements
    )
    return len(choice) == len(counts) and _is_possible(nodes, choice, is_match=is_match)


# Groups with running pods, and constraints on one request


SCOPES = st.sampled_from(["", "@x", "@x/r", "@y"])


@settings(max_examples=100, deadline=None)
@given(
    nodes=NODES, running=st.lists(st.integers(0, 8), max_size=2), counts=COUNTS, scope=SCOPES, is_match=st.booleans()
)
@example(nodes=[(3, ["0", "1"]), (3, ["0", "0"])], running=[0, 1], counts=[1], scope="", is_match=True)  # they disagree
@example(nodes=[(3, ["0", "0"]), (3, ["0", "1"])], running=[0], counts=[1], scope="", is_match=False)  # the other rail
@example(nodes=[(3, ["0", "1"])], running=[], counts=[1], scope="@x/r", is_match=True)  # q may differ
@example(nodes=[(3, ["0", "0", "1"])], running=[], counts=[2], scope="@x/r", is_match=True)
@example(nodes=[(3, ["0", "0", "1"])], running=[], counts=[2], scope="@x/r", is_match=False)  # in one claim
@example(nodes=[(3, ["0", "1"])], running=[], counts=[1], scope="", is_match=True)
@example(nodes=[(3, ["0", "0", "1", "2"])], running=[0, 1], counts=[1], scope="", is_match=False)  # a rail twice
@example(nodes=[(3, ["0", "1"])], running=[], counts=[1], scope="@y", is_match=True)  # out of scope
@example(nodes=[(3, ["0", "1", "0", "1"])], running=[0, 1], counts=[1], scope="@y", is_match=True)
def test_new_pods_agree_with_those_that_run(
    nodes: list[tuple[int, list[str]]], running: list[int], counts: list[int], scope: str, is_match: bool
) -> None:
    """Every pod has a claim ``x`` with devices for request ``r``, and one more device for request ``q``."""
    places = [(number, place) for number, (_, rails) in enumerate(nodes) for place in range(len(rails))]
    residents = [places[each % len(places)] for each in running] if places else []
    homes = [number for number, _ in residents]
    if len(set(residents)) < len(residents) or any(homes.count(each) > nodes[each][0] for each in homes):
        return
    world = World(enabled=GATES)
    world.put_class(f'device.driver == "{DRIVER}"')
    for number, (cpu, rails) in enumerate(nodes):
        world.put_node(node(f"n{number}", allocatable={"cpu": str(cpu), "memory": "8Gi", "pods": "9"}))
        devices = [
            device(f"d{place}").attributes(**({"rail": rail} if rail else {})) for place, rail in enumerate(rails)
        ]
        if devices:
            world.put_slice(
                resource_slice(f"s{number}", driver=DRIVER, pool=f"n{number}").on_node(f"n{number}").devices(*devices)
            )
    annotation = agreements.MATCH if is_match else agreements.DISTINCT
    _put_group(world, len(residents) + len(counts), {annotation: f"{RAIL}{scope}"})
    for number, (home, place) in enumerate(residents):
        _put_resident(world, f"run{number}", home, place)
    members = [_put_member(world, f"p{number}", count) for number, count in enumerate(counts)]
    outcome = _decide(world, members)

    in_scope = {"": ("r", "q"), "@x": ("r", "q"), "@x/r": ("r",), "@y": ()}[scope]
    assert isinstance(outcome, gangsearch.Together) == _fit_next_to(
        nodes, residents, counts, in_scope=in_scope, is_match=is_match
    )


def _put_group(world: World, size: int, annotations: dict[str, str]) -> None:
    policy = podgroup.PodGroupSchedulingPolicy(gang=podgroup.GangSchedulingPolicy(min_count=size))
    metadata = meta.ObjectMeta(name="g", namespace="default", uid="g", annotations=annotations)
    world.snapshot.gangs.put_group(
        podgroup.PodGroup(metadata=metadata, spec=podgroup.PodGroupSpec(scheduling_policy=policy))
    )


def _member(name: str) -> Any:
    made = a_pod(name).uid(name).container("c", requests={"cpu": "1"}).claim("x", claim=f"{name}-x")
    return made.spec(scheduling_group=pod.PodSchedulingGroup(pod_group_name="g"), priority=0)


def _put_member(world: World, name: str, count: int) -> podinfo.PodInfo:
    made = claim(f"{name}-x").uid(f"{name}-x").request("r", device_class="gpu", mode="ExactCount", count=count)
    world.claim(made.request("q", device_class="gpu", mode="ExactCount", count=1))
    built = _member(name).build()
    world.snapshot.gangs.put_pod(built)
    return podinfo.PodInfo(built)


def _put_resident(world: World, name: str, home: int, place: int) -> None:
    """Add a running pod with one device."""
    stored = claim(f"{name}-x").uid(f"{name}-x").request("r", device_class="gpu", mode="ExactCount", count=1).build()
    result = resourceclaim.DeviceRequestAllocationResult(
        request="r", driver=DRIVER, pool=f"n{home}", device=f"d{place}"
    )
    allocation = resourceclaim.AllocationResult(devices=resourceclaim.DeviceAllocationResult(results=(result,)))
    built = _member(name).on_node(f"n{home}").build()
    status = structs.replace(stored.status, allocation=allocation, reserved_for=(reservation.consumer(built),))
    world.snapshot.claims.observe(structs.replace(stored, status=status))
    world.snapshot.gangs.put_pod(built)
    world.snapshot.add_pod(built)


def _fit_next_to(
    nodes: list[tuple[int, list[str]]],
    residents: list[tuple[int, int]],
    counts: list[int],
    *,
    in_scope: tuple[str, ...],
    is_match: bool,
) -> bool:
    """Try every choice of devices for the requests ``r`` and ``q`` of every new pod."""
    taken = set(residents)
    fixed = [nodes[number][1][place] for number, place in residents if "r" in in_scope]
    # A running pod without the attribute does not count, and neither does a constraint that it broke before.
    fixed = [rail for rail in fixed if rail]

    def place(number: int, used: frozenset[tuple[int, int]], homes: tuple[int, ...], rails: tuple[str, ...]) -> bool:
        if number == len(counts):
            return True
        for home, (cpu, own) in enumerate(nodes):
            if homes.count(home) >= cpu:
                continue
            free = [(home, each) for each in range(len(own)) if (home, each) not in used]
            for of_r in itertools.combinations(free, counts[number]):
                for of_q in (each for each in free if each not in of_r):
                    chosen = [own[each] for _, each in of_r] if "r" in in_scope else []
                    chosen += [own[of_q[1]]] if "q" in in_scope else []
                    if all(chosen) and _agree([*fixed, *rails, *chosen], is_match=is_match):
                        after = used | {*of_r, of_q}
                        if place(number + 1, after, (*homes, home), (*rails, *chosen)):
                            return True
        return False

    return place(0, frozenset(taken), tuple(number for number, _ in residents), ())


def _agree(rails: list[str], *, is_match: bool) -> bool:
    return len(set(rails)) <= 1 if is_match else len(set(rails)) == len(rails)
