"""Constraints on attributes with many values."""

import random

import pytest

from drachma.allocator import claim, constraint, features, screening, selectors
from drachma.testing import claim as build_claim


def _check(bits: list[int]) -> constraint.Check:
    offered = features.ALL
    spec = build_claim("c").request("r", device_class="any").match_attribute("example.com/a").build()
    screener = screening.Screener(selectors.SelectorCompiler(offered), offered)
    check = constraint.Check(0, claim.Claim(spec, offered).constraints[0], screener)
    check.bits = bits
    return check


@pytest.mark.parametrize(
    ("values", "want_index"), [pytest.param(4, True, id="few-values"), pytest.param(500, False, id="many-values")]
)
def test_elements_of_devices(values: int, want_index: bool) -> None:
    rng = random.Random(values)
    bits = [rng.getrandbits(values) for _ in range(20)]
    check = _check(bits)
    for _ in range(20):
        units = rng.getrandbits(20)
        want = 0
        for position in range(20):
            want |= bits[position] if units >> position & 1 else 0
        assert check.elements(units) == want
    # An index by value would take more memory than the devices.
    assert (check._holders is not None) is want_index
