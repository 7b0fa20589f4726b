"""Address ranges of services."""

import pytest

from drachma import errors
from drachma.values.serviceranges import DEFAULT, ServiceRanges


def test_ranges_of_both_families() -> None:
    ranges = ServiceRanges.parse("fd00::/112, 10.0.0.0/24")
    assert (ranges.families, ranges.first) == (("IPv6", "IPv4"), "fd00::1")
    assert ranges.is_assignable("10.0.0.9")
    assert not any(map(ranges.is_assignable, ("10.0.0.0", "10.0.0.255", "10.0.1.1", "fd01::1")))


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param("10.0.0.0/24,10.1.0.0/24", "at most one range of each IP family", id="same-family"),
        pytest.param("10.0.0.1/24", "has host bits set", id="host-bits"),
        pytest.param("10.0.0.0/31", "must leave 3 to 64 bits", id="too-small"),
        pytest.param("fd00::/40", "must leave 3 to 64 bits", id="too-large"),
        pytest.param("", "does not appear to be", id="empty"),
    ],
)
def test_ranges_that_are_refused(text: str, want: str) -> None:
    with pytest.raises(errors.InvalidValueError, match=want):
        ServiceRanges.parse(text)


def test_the_default_is_single_stack() -> None:
    assert (DEFAULT.families, DEFAULT.first) == (("IPv4",), "10.96.0.1")
