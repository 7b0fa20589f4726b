"""Resource versions in order."""

import pytest

from drachma.runtime import resourceversion


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param("12", 12, id="a-number"),
        pytest.param("", 0, id="none"),
        pytest.param("abc", 0, id="no-number"),
        pytest.param("-1", 0, id="negative"),
    ],
)
def test_number(text: str, want: int) -> None:
    assert resourceversion.number(text) == want
