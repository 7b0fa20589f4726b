"""Gangs: the search finds nodes exactly where trying every way would, and nothing that it looks at changes."""

from hypothesis import example, given, settings
from hypothesis import strategies as st

from drachma.scheduler.cycle import gangsearch
from tests.property.gangworlds import NODES, PODS, a_world, fits_some_way, gang_of, seen


@settings(max_examples=40)
@given(NODES, PODS, st.integers(0, 1))
@example(  # the first pods have to leave the nodes that they like best
    [(1, ()), (2, ("b", "b")), (2, ("a", "b"))], [(1, "a"), (2, "shared"), (1, ""), (2, "b")], 0
)
@example([(1, ("a",)), (2, ("b", "b"))], [(1, "b"), (2, "a"), (1, ""), (1, "b")], 1)
@example([(4, ()), (3, ())], [(2, ""), (2, ""), (3, "")], 0)  # no order of shapes helps, only going back
@example([(4, ()), (3, ()), (3, ())], [(2, ""), (2, ""), (3, ""), (3, "")], 0)  # the third choice of a pod
def test_the_search_is_as_good_as_trying_everything(
    nodes: list[tuple[int, tuple[str, ...]]], pods: list[tuple[int, str]], spare: int
) -> None:
    world = a_world(nodes)
    members = gang_of(world, pods)
    needed = len(members) - spare
    before = seen(world)
    outcome = gangsearch.search(world.cycle, world.snapshot, members, needed=needed, steps=100_000)
    assert seen(world) == before
    assert isinstance(outcome, gangsearch.Together | gangsearch.Short)
    assert isinstance(outcome, gangsearch.Together) == fits_some_way(world, members, needed)
    if isinstance(outcome, gangsearch.Together):
        assert len(outcome.placements) >= needed
        assert len(outcome.placements) + len(outcome.surplus) == len(members)
        fork = world.snapshot.fork()
        for placed in outcome.placements:
            fork.commit(placed.assignment)
        for info in fork.nodes:
            assert info.ledger.requested.get("cpu", 0) <= info.ledger.allocatable["cpu"]
    else:
        assert not outcome.has_given_up
