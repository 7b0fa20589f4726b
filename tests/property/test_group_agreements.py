"""Constraints on the devices of all pods of a group, against trying every device for every pod."""

import itertools

from hypothesis import example, given, settings
from hypothesis import strategies as st

from drachma.api import gates, meta, pod, podgroup
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
