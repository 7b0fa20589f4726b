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


@pytest.mark.parametrize(
    ("one", "other", "want"),
    [
        pytest.param("10", "9", True, id="as-numbers"),
        pytest.param("9", "9", False, id="equal"),
        pytest.param("9", "10", False, id="older"),
        pytest.param("1", "", True, id="newer-than-none"),
        pytest.param("", "1", False, id="none"),
        pytest.param("abc", "", False, id="no-numbers"),
    ],
)
def test_is_newer(one: str, other: str, want: bool) -> None:
    assert resourceversion.is_newer(one, other) is want
