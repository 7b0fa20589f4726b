"""Scores over sets of nodes."""

from hypothesis import given, settings
from hypothesis import strategies as st

from drachma.scheduler.framework import scoring
from drachma.scheduler.snapshot import nodeclass


def test_normalized_scores() -> None:
    scores = {0: 0b0001, 5: 0b0010, 10: 0b0100, 20: 0b1000}
    assert scoring.normalize(scores, among=0b0111) == {0: 0b0001, 50: 0b0010, 100: 0b0100}
    assert scoring.normalize(scores, among=0b0111, less_is_better=True) == {100: 0b0001, 50: 0b0010, 0: 0b0100}
    assert scoring.normalize({0: 0b11}, among=0b11) == {0: 0b11}
    assert scoring.normalize({0: 0b11}, among=0b11, less_is_better=True) == {100: 0b11}


@settings(max_examples=60)
@given(
    st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3), st.integers(-2, 2)), min_size=1, max_size=100),
    st.integers(0, 20),
)
def test_the_best_total_wins(nodes: list[tuple[int, int, int]], start: int) -> None:
    plugins: list[dict[int, int]] = [{}, {}, {}]
    for slot, ratings in enumerate(nodes):
        for scores, rating in zip(plugins, ratings, strict=True):
            scores[rating] = scores.get(rating, 0) | 1 << slot
    best = scoring.best((1 << len(nodes)) - 1, list(zip(plugins, (3, 1, 2), strict=True)))
    totals = [3 * first + second + 2 * third for first, second, third in nodes]
    assert list(nodeclass.slots(best)) == [slot for slot, total in enumerate(totals) if total == max(totals)]
    chosen = scoring.pick(best, start)
    assert best >> chosen & 1
