"""Generated names: the prefix as far as there is room, and a suffix that chance draws."""

import random

import pytest

from drachma.values import generatedname, names


@pytest.mark.parametrize(
    ("prefix", "want"),
    [
        pytest.param("p-gpu-", "p-gpu-", id="short"),
        pytest.param("x" * 58, "x" * 58, id="just-fits"),
        pytest.param("x" * 80, "x" * 58, id="too-long"),
    ],
)
def test_draw(prefix: str, want: str) -> None:
    chance = random.Random(1)
    drawn = {generatedname.draw(prefix, chance=chance) for _ in range(20)}
    assert {name[:-5] for name in drawn} == {want}
    assert len(drawn) == 20
    assert not any(names.dns1123_label(name) for name in drawn)
