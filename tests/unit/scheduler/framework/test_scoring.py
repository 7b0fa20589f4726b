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
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=12), st.integers(0, 20))
def test_the_best_total_wins(nodes: list[tuple[int, int]], start: int) -> None:
    first: dict[int, int] = {}
    second: dict[int, int] = {}
    for slot, (left, right) in enumerate(nodes):
        first[left] = first.get(left, 0) | 1 << slot
        second[right] = second.get(right, 0) | 1 << slot
    classes = scoring.split([(0, (1 << len(nodes)) - 1)], first, weight=3)
    best = scoring.best(scoring.split(classes, second))
    totals = [3 * left + right for left, right in nodes]
    # A plugin that says the same about all nodes changes nothing.
    assert [totals[slot] for slot in nodeclass.slots(best)] == [max(totals)] * best.bit_count()
    chosen = scoring.pick(best, start)
    assert best >> chosen & 1
