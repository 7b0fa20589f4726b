"""Shares as they are shown."""

import math

import pytest

from drachma.queueing.admission.dominantshare import Share

LARGEST = 2**63 - 1


@pytest.mark.parametrize(
    ("share", "want"),
    [
        pytest.param(Share(2.0, 301.0), 151, id="rounded-up"),
        pytest.param(Share(0.0, 1.0), LARGEST, id="no-weight"),
        pytest.param(Share(0.001, 2.0**62), LARGEST, id="more-than-64-bits"),
    ],
)
def test_a_share_is_shown_in_64_bits(share: Share, want: int) -> None:
    assert share.rounded == want


def test_a_share_is_compared_as_it_is() -> None:
    assert math.isclose(Share(0.001, 2.0**62).weighted, 2.0**62 * 1000)
