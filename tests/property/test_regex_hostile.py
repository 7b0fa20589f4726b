"""Random hostile patterns: refused or compiled, and never anything else."""

import random

import pytest

from drachma.cel.runtime import patternsize, regex
from tests.property import regex_hostile


@pytest.mark.parametrize("seed", range(4))
def test_a_hostile_pattern_is_refused_or_compiled(seed: int) -> None:
    chance = random.Random(seed)
    ends = {regex_hostile.attempt(regex_hostile.pattern(chance), chance) for _ in range(100)}
    assert ends <= {"refused", "found", "not found"}
    assert len(ends) > 1


def test_a_program_is_about_as_large_as_its_estimate() -> None:
    chance = random.Random(7)
    compared = 0
    for _ in range(600):
        text = regex_hostile.pattern(chance, depth=2)
        try:
            size = regex.compile_pattern(text).programsize
        except regex.PatternError:
            continue
        compared += 1
        figures = patternsize.estimate(text, most=regex.MOST_INSTRUCTIONS)
        assert size <= 2 * figures.instructions + 100, text
    assert compared > 100
