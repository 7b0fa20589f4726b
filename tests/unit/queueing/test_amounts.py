"""Amounts: rounding, limits, and the order in which resources are looked at."""

import pytest

from drachma.queueing import amounts
from drachma.values import quantity


@pytest.mark.parametrize(
    ("name", "text", "want"),
    [
        pytest.param("cpu", "1500m", 1500, id="cpu-in-thousandths"),
        pytest.param("cpu", "100u", 1, id="a-little-cpu-rounds-up"),
        pytest.param("memory", "1500m", 2, id="memory-rounds-up"),
        pytest.param("memory", "-1500m", -2, id="below-zero-away-from-zero"),
        pytest.param("gpu", "10E", amounts.UNLIMITED, id="too-large"),
    ],
)
def test_a_request_counts_in_whole_units(name: str, text: str, want: int) -> None:
    assert amounts.requested(name, quantity.Quantity.parse(text)) == want


def test_a_quota_that_is_too_large_is_unlimited() -> None:
    assert amounts.quota("cpu", quantity.Quantity.parse("1E")) == amounts.UNLIMITED
    assert amounts.quota("memory", quantity.Quantity.parse("1E")) == 10**18


@pytest.mark.parametrize(
    ("first", "second", "sum_", "difference"),
    [
        pytest.param(3, 2, 5, 1, id="plain"),
        pytest.param(amounts.UNLIMITED, 2, amounts.UNLIMITED, amounts.UNLIMITED, id="unlimited-absorbs"),
        pytest.param(2, amounts.UNLIMITED, amounts.UNLIMITED, amounts.LEAST, id="all-and-more-is-taken"),
        pytest.param(amounts.UNLIMITED, amounts.UNLIMITED, amounts.UNLIMITED, 0, id="both-unlimited"),
        pytest.param(amounts.LEAST, 1, amounts.LEAST + 1, amounts.LEAST, id="stops-at-the-least"),
    ],
)
def test_amounts_stop_at_their_limits(first: int, second: int, sum_: int, difference: int) -> None:
    assert amounts.plus(first, second) == sum_
    assert amounts.minus(first, second) == difference


def test_resources_are_walked_by_hash() -> None:
    names = ["cpu", "example.com/gpu", "pods", "whole-gpus", "memory", "ephemeral-storage", "gpu.memory"]

    assert amounts.walk(names) == [
        "ephemeral-storage", "memory", "whole-gpus", "pods", "example.com/gpu", "cpu", "gpu.memory",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "amount", "want"),
    [
        pytest.param("cpu", 2500, "2500m", id="cpu"),
        pytest.param("memory", 5 * 2**30, "5Gi", id="memory"),
        pytest.param("pods", 10_000, "10k", id="pods"),
        pytest.param("gpu.memory", 2**30, "1Gi", id="bytes-by-configuration"),
    ],
)
def test_amounts_are_shown_in_canonical_form(name: str, amount: int, want: str) -> None:
    assert str(amounts.to_quantity(name, amount, binary={"gpu.memory"})) == want
