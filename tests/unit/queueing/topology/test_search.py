"""Choices of a search among counted places."""

from drachma.queueing.topology.counting import Place
from drachma.queueing.topology.search import Rules
from drachma.queueing.topology.tree import Domain


def _place(name: str, pods: int, score: int) -> Place:
    place = Place(Domain((name,), None), [])
    place.pods, place.score = pods, score
    return place


def test_best_fit_stays_in_the_first_run_of_one_score() -> None:
    """A place may stand before places with a higher score, because it takes the leader."""
    places = [_place("leader", 5, 1), _place("preferred", 9, 7), _place("smaller", 3, 1)]
    by_score = Rules(is_least_free=False, respects_preferences=True)
    assert by_score.best_fit(places, 3, lambda each: each.pods).domain.values == ("leader",)
    by_size = Rules(is_least_free=False, respects_preferences=False)
    assert by_size.best_fit(places, 3, lambda each: each.pods).domain.values == ("smaller",)
