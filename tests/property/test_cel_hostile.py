"""A small, seeded part of what ``bench.cel_fuzz`` tries."""

import pytest

from tests.property import cel_hostile


@pytest.mark.parametrize("seed", range(5))
def test_hostile_text_is_refused_or_evaluated(seed: int) -> None:
    ends = {cel_hostile.attempt(text) for text in cel_hostile.inputs(seed, 300)}
    assert ends == {"refused", "failed", "evaluated"}
