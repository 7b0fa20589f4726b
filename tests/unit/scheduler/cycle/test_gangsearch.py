"""The gang search: its order, the cases that need no search, and its limit."""

from drachma.api import meta, pod
from drachma.scheduler.cycle import gangsearch
from drachma.scheduler.snapshot import podinfo
from drachma.testing import PodBuilder, node
from drachma.testing import pod as a_pod
from tests.unit.scheduler.worlds import World


def member(name: str, cpu: str) -> podinfo.PodInfo:
    return podinfo.PodInfo(a_pod(name).uid(name).container("c", requests={"cpu": cpu}).build())


def world_of(*cpus: str) -> World:
    world = World()
    for number, cpu in enumerate(cpus):
        world.put_node(node(f"n{number}", allocatable={"cpu": cpu, "memory": "8Gi", "pods": "110"}))
    return world


def found(world: World, members: list[podinfo.PodInfo], *, needed: int | None = None, steps: int = 1000) -> object:
    return gangsearch.search(
        world.cycle, world.snapshot, members, needed=len(members) if needed is None else needed, steps=steps
    )


def test_like_pods_that_are_too_many_need_no_search() -> None:
    """Forty places for forty-one pods: nothing is tried twice."""
    members = [member(f"p{number}", "1") for number in range(41)]
    outcome = found(world_of(*["2"] * 20), members, steps=100)
    assert isinstance(outcome, gangsearch.Short)
    assert (outcome.placed, outcome.has_given_up) == (40, False)
    assert [unfit.info.uid for unfit in outcome.all_unfit] == ["p40"]


def test_giving_up() -> None:
    """Pods of each shape fit by themselves, but not together, which only the search finds out."""
    members = [member(f"p{number}", cpu) for number, cpu in enumerate(["4", "4", "4", "2"])]
    world = world_of("5", "5", "5")
    outcomes = [found(world, members, steps=steps) for steps in (5, 1000)]
    assert [isinstance(each, gangsearch.Short) and each.has_given_up for each in outcomes] == [True, False]


def test_pods_beyond_those_needed_may_be_left_out() -> None:
    outcome = found(world_of("3"), [member("a", "2"), member("b", "1"), member("c", "1")], needed=2)
    assert isinstance(outcome, gangsearch.Together)
    assert len(outcome.placements) == 2
    assert [unfit.diagnosis.message() for unfit in outcome.surplus] == ["0/1 nodes are available: 1 Insufficient cpu."]


def test_a_claim_that_is_missing_is_a_reason_like_others() -> None:
    broken = a_pod("b").uid("b").claim("x", claim="c").container("c").build()
    outcome = found(world_of("1"), [member("a", "1"), podinfo.PodInfo(broken)])
    assert isinstance(outcome, gangsearch.Short)
    assert (outcome.placed, [unfit.info.uid for unfit in outcome.all_unfit]) == (1, ["b"])


def test_pods_that_want_to_be_near_each_other() -> None:
    """The first pod must be near the second, and that near the third, which fits on one node only."""
    world = World()
    for number, cpu in enumerate(["3", "2"]):
        made = node(f"n{number}", labels={"host": f"n{number}"}, allocatable={"cpu": cpu, "memory": "8Gi", "pods": "9"})
        world.put_node(made)
    chain = [beside("a", "b", "1"), beside("b", "c", "1"), podinfo.PodInfo(named("c", "1").build())]
    outcome = found(world, chain)
    assert isinstance(outcome, gangsearch.Together)
    assert {placed.node for placed in outcome.placements} == {"n0"}


def named(name: str, cpu: str) -> PodBuilder:
    return a_pod(name).uid(name).label("name", name).container("c", requests={"cpu": cpu})


def beside(name: str, other: str, cpu: str) -> podinfo.PodInfo:
    term = pod.PodAffinityTerm(label_selector=meta.LabelSelector(match_labels={"name": other}), topology_key="host")
    near = pod.PodAffinity(required_during_scheduling_ignored_during_execution=(term,))
    return podinfo.PodInfo(named(name, cpu).spec(affinity=pod.Affinity(pod_affinity=near)).build())
