"""Occurrences of attribute values, few or many."""

import random

import pytest

from drachma.allocator import occurrences


@pytest.mark.parametrize(
    ("values", "want_index"), [pytest.param(4, True, id="few-values"), pytest.param(500, False, id="many-values")]
)
def test_devices_and_their_elements(values: int, want_index: bool) -> None:
    rng = random.Random(values)
    bits = [rng.getrandbits(values) & rng.getrandbits(values) for _ in range(20)]
    column = occurrences.Occurrences(bits)
    for _ in range(100):
        units = rng.getrandbits(20)
        want = 0
        for position in range(20):
            want |= bits[position] if units >> position & 1 else 0
        assert column.elements(units) == want
        elements = 1 << rng.randrange(values) | 1 << rng.randrange(values)
        want = sum(1 << position for position in range(20) if bits[position] & elements)
        assert column.holding(elements) == column.holding(elements) == want
    # An index by value would take more memory than the devices.
    assert (column._index is not None) is want_index
