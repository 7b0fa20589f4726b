"""Numbers and shares of pods."""

import pytest

from drachma.controllers.workload import shares


@pytest.mark.parametrize(
    ("amount", "want_up", "want_down"),
    [
        pytest.param(3, 3, 3, id="number"),
        pytest.param("50%", 4, 3, id="share"),
        pytest.param("100%", 7, 7, id="all"),
        pytest.param("0%", 0, 0, id="none"),
        pytest.param(None, 0, 0, id="absent"),
    ],
)
def test_shares_of_seven(amount: int | str | None, want_up: int, want_down: int) -> None:
    assert (shares.rounded_up(amount, 7), shares.rounded_down(amount, 7)) == (want_up, want_down)
