"""Whether demands can be served at once, compared with trying all ways."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drachma.allocator import matching


@pytest.mark.parametrize(
    ("demands", "want"),
    [
        pytest.param([], True, id="nothing-wanted"),
        pytest.param([(0b111, 3)], True, id="all-of-it"),
        pytest.param([(0b111, 4)], False, id="more-than-there-is"),
        pytest.param([(0, 0)], True, id="nothing-of-nothing"),
        pytest.param([(0b011, 1), (0b011, 1), (0b011, 1)], False, id="three-for-two"),
        pytest.param([(0b001, 1), (0b011, 1), (0b110, 1)], True, id="a-chain"),
        pytest.param([(0b0110, 1), (0b0011, 1), (0b0001, 1), (0b1100, 1)], True, id="exchanges-along-a-chain"),
        pytest.param([(0b0011, 1), (0b0011, 1), (0b0111, 1), (0b0101, 1)], False, id="hall's-condition-broken"),
    ],
)
def test_can_serve(demands: list[matching.Demand], want: bool) -> None:
    assert matching.can_serve(demands) is want


def _by_trying(demands: list[matching.Demand]) -> bool:
    units = [units for units, needed in demands for _ in range(needed)]
    return any(
        all(wanted >> place & 1 for wanted, place in zip(units, places, strict=True))
        for places in itertools.permutations(range(5), len(units))
    )


@given(st.lists(st.tuples(st.integers(0, 31), st.integers(0, 2)), max_size=4))
def test_the_answer_is_that_of_trying_all_ways(demands: list[matching.Demand]) -> None:
    assert matching.can_serve(demands) is _by_trying(demands)
