"""Choices of a search among counted places."""

from drachma.queueing.topology.places import Place
from drachma.queueing.topology.search import Rules
from drachma.queueing.topology.tree import Domain


def _place(name: str, pods: int, score: int) -> Place:
    return Place(Domain((name,), None), pods=pods, score=score)


def test_best_fit_stays_in_the_first_run_of_one_score() -> None:
    """A place may stand before places with a higher score, because it takes the leader."""
    places = [_place("leader", 5, 1), _place("preferred", 9, 7), _place("smaller", 3, 1)]
    sizes = [place.pods for place in places]
    by_score = Rules(is_least_free=False, respects_preferences=True)
    assert by_score.last_place(places, sizes, 0, 3) == 0
    by_size = Rules(is_least_free=False, respects_preferences=False)
    assert by_size.last_place(places, sizes, 0, 3) == 2
    by_free_capacity = Rules(is_least_free=True, respects_preferences=False)
    assert by_free_capacity.last_place(places, sizes, 0, 3) == 0
