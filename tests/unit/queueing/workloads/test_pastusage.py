"""Past usage: decay, entry penalties, and the weighted sum."""

import math

import pytest

from drachma.queueing.configuration.configuration import AdmissionFairSharing
from drachma.queueing.workloads import pastusage
from drachma.queueing.workloads.pastusage import Consumed, UsageRates
from drachma.values import quantity

_MINUTE = 60.0
_WEEK = 7 * 24 * 60 * _MINUTE


def of(**amounts: str) -> Consumed:
    return {name: quantity.Quantity.parse(text).nanos for name, text in amounts.items()}


def shown(amounts: Consumed) -> dict[str, str]:
    return {name: str(quantity.Quantity.parse(f"{each}n")) for name, each in amounts.items()}


def rates(half_life: float = 5 * _MINUTE, interval: float = 5 * _MINUTE, **weights: float) -> UsageRates:
    return UsageRates(half_life, interval, weights)


@pytest.mark.parametrize(
    ("before", "now", "seconds", "half_life", "want"),
    [
        pytest.param(of(cpu="8"), of(), 300, 300, {"cpu": "4"}, id="half-is-gone-after-a-half-life"),
        pytest.param(of(cpu="8"), of(cpu="4"), 300, 300, {"cpu": "6"}, id="what-is-used-takes-its-place"),
        pytest.param(
            of(cpu="8"), of(cpu="4"), 300, 600, {"cpu": "6828427124n"}, id="half-of-a-half-life-is-less-than-half"
        ),
        pytest.param(of(cpu="8"), of(), 300, 86400, {"cpu": "7980769063n"}, id="a-long-half-life-counts-billionths"),
        pytest.param(of(cpu="8"), of(memory="2"), 300, 300, {"cpu": "4", "memory": "1"}, id="other-resources"),
        pytest.param(of(cpu="8"), of(cpu="4"), 0, 300, {"cpu": "8"}, id="no-time"),
        pytest.param(of(cpu="1n"), of(), 1, 300, {"cpu": "0"}, id="the-last-billionth-goes"),
        pytest.param(of(memory="64Ti"), of(), 300, 300, {"memory": "35184372088832"}, id="more-nanos-than-64-bits"),
    ],
)
def test_what_is_remembered_fades(
    before: Consumed, now: Consumed, seconds: float, half_life: float, want: dict[str, str]
) -> None:
    assert shown(pastusage.decayed(before, now, seconds, rates=rates(half_life))) == want


def test_a_long_half_life_still_comes_to_what_is_used() -> None:
    slow, in_use, consumed = rates(_WEEK), of(cpu="2"), of()
    for half_lives, want in ((1, 1.0), (2, 1.5), (3, 1.75)):
        for _ in range(int(_WEEK // 300)):
            consumed = pastusage.decayed(consumed, in_use, 300, rates=slow)
        assert consumed["cpu"] <= in_use["cpu"]
        assert consumed["cpu"] / 1e9 == pytest.approx(want, abs=1e-3), half_lives


@pytest.mark.parametrize(
    ("used", "want"),
    [
        pytest.param(rates(), {"cpu": "2", "gpus": "1"}, id="an-interval-of-one-half-life"),
        pytest.param(rates(interval=10 * _MINUTE), {"cpu": "3", "gpus": "1500m"}, id="of-two"),
        pytest.param(rates(half_life=0), {"cpu": "0", "gpus": "0"}, id="nothing-is-remembered"),
    ],
)
def test_an_admission_counts_as_if_it_had_run_for_one_interval(used: UsageRates, want: dict[str, str]) -> None:
    assert shown(pastusage.entry_penalty(of(cpu="4", gpus="2"), rates=used)) == want


@pytest.mark.parametrize(
    ("consumed", "weights", "weight", "want"),
    [
        pytest.param(of(cpu="4", gpus="2"), {}, 1, 6, id="every-unit-alike"),
        pytest.param(of(cpu="4", gpus="2"), {"gpus": 5}, 1, 14, id="a-resource-that-matters-more"),
        pytest.param(of(cpu="4", gpus="10"), {"gpus": 0}, 1, 4, id="one-that-does-not-matter"),
        pytest.param(of(gpus="3"), {"gpus": 4}, 2, 6, id="a-queue-that-may-use-more"),
        pytest.param(of(), {}, 1, 0, id="nothing-used"),
        pytest.param(of(), {}, 0, math.inf, id="no-weight-and-nothing-used"),
        pytest.param(of(cpu="4"), {}, -1, math.inf, id="less-than-no-weight"),
    ],
)
def test_usage_in_one_number(consumed: Consumed, weights: dict[str, float], weight: float, want: float) -> None:
    assert pastusage.weighted(consumed, weight=weight, rates=rates(**weights)) == want


def test_rates_are_those_of_the_configuration() -> None:
    sharing = AdmissionFairSharing(
        usage_half_life_time="1h30m", usage_sampling_interval="500ms", resource_weights={"cpu": 2}
    )
    assert UsageRates.of(sharing) == UsageRates(5400, 0.5, {"cpu": 2})
