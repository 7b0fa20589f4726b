"""Capacity of devices: the policies for requests of a part of it."""

from typing import Any

import pytest

from drachma.api import gates
from tests.unit.validation import builders
from tests.unit.validation.builders import SLICE, Document, changed, create, setting, stored, update

DEVICE = "spec.devices.0"
AT = "spec.devices[0]"
POLICY = f"{AT}.capacity[memory].requestPolicy"


def shared(policy: Document) -> builders.Change:
    def change(document: Document) -> None:
        builders.put(document, f"{DEVICE}.allowMultipleAllocations", True)
        builders.put(document, f"{DEVICE}.capacity.memory.requestPolicy", policy)

    return change


def range_policy(default: str = "2", **bounds: str) -> Document:
    return {"default": default, "validRange": {"min": "1", **bounds}}


@pytest.mark.parametrize(
    "document",
    [
        pytest.param(changed(SLICE, shared(range_policy("3", max="9", step="2"))), id="range"),
        pytest.param(changed(SLICE, shared(range_policy("1500m", max="2", step="500m"))), id="fractional-range"),
        pytest.param(changed(SLICE, shared({"default": "2", "validValues": ["1", "2", "1Ki"][:2]})), id="values"),
        pytest.param(
            changed(SLICE, shared({"default": "1", "validValues": ["1", "1000m"]})), id="same-value-other-spelling"
        ),
    ],
)
def test_good(document: Document) -> None:
    assert create(document) == []


@pytest.mark.parametrize(
    ("path", "value", "want"),
    [
        pytest.param(
            f"{DEVICE}.capacity.memory.requestPolicy",
            {},
            f"{POLICY}: Forbidden: allowMultipleAllocations must be true",
            id="policy-on-exclusive-device",
        ),
    ],
)
def test_one_thing_wrong(path: str, value: Any, want: str) -> None:
    assert create(changed(SLICE, setting(path, value))) == [want]


@pytest.mark.parametrize(
    ("policy", "want"),
    [
        pytest.param(
            {"validValues": ["1"]},
            [f"{POLICY}.default: Required value: required when validValues is defined"],
            id="values-without-default",
        ),
        pytest.param(
            {"validRange": {"min": "1"}},
            [f"{POLICY}.default: Required value: required when validRange is defined"],
            id="range-without-default",
        ),
        pytest.param(
            {"default": "1", "validValues": ["1"], "validRange": {"min": "1"}},
            [
                (
                    f'{POLICY}: Forbidden: exactly one policy can be specified, cannot specify "validValues" and '
                    '"validRange" at the same time'
                )
            ],
            id="two-policies",
        ),
        pytest.param(
            {"default": "2", "validValues": ["2", "1"]},
            [f'{POLICY}.validValues[1]: Invalid value: "1": values must be sorted in ascending order'],
            id="not-sorted",
        ),
        pytest.param(
            {"default": "1", "validValues": ["1", "11"]},
            [f'{POLICY}.validValues[1]: Invalid value: "11": option is larger than capacity value: 10'],
            id="larger-than-capacity",
        ),
        pytest.param(
            {"default": "1", "validValues": ["1", "1"]},
            [f'{POLICY}.validValues[1]: Duplicate value: "1"'],
            id="duplicate-value",
        ),
        pytest.param(
            {"default": "3", "validValues": ["1"]},
            [f'{POLICY}.validValues: Invalid value: "3": default value is not valid according to the requestPolicy'],
            id="default-not-among-values",
        ),
        pytest.param(
            {"default": "1", "validRange": {"max": "2"}},
            [f"{POLICY}.validRange.min: Required value: required when validRange is defined"],
            id="range-without-min",
        ),
        pytest.param(
            range_policy("0"),
            [f'{POLICY}.validRange.default: Invalid value: "0": default is less than min: 1'],
            id="default-below-min",
        ),
        pytest.param(
            range_policy("9", max="8"),
            [f'{POLICY}.validRange.default: Invalid value: "9": default is more than max: 8'],
            id="default-above-max",
        ),
        pytest.param(
            range_policy("2", max="11"),
            [f'{POLICY}.validRange.max: Invalid value: "11": max is larger than capacity value: 10'],
            id="max-beyond-capacity",
        ),
        pytest.param(
            range_policy("2", step="0"),
            [f'{POLICY}.validRange.step: Invalid value: "0": must be greater than zero'],
            id="step-not-positive",
        ),
        pytest.param(
            range_policy("2", step="2"),
            [f'{POLICY}.validRange.step: Invalid value: "2": value is not a multiple of a given step (2) from (1)'],
            id="default-off-the-steps",
        ),
        pytest.param(
            range_policy("1", step="10"),
            [f'{POLICY}.validRange.step: Invalid value: "10": one step 11 is larger than capacity value: 10'],
            id="step-beyond-capacity",
        ),
        pytest.param(
            range_policy("1", step="1u"),
            [f'{POLICY}.validRange.step: Invalid value: "1u": value cannot be represented as a milli value'],
            id="finer-than-milli",
        ),
    ],
)
def test_request_policies(policy: Document, want: list[str]) -> None:
    assert create(changed(SLICE, shared(policy))) == want


def test_too_many_options_hide_the_default() -> None:
    policy = {"default": "1", "validValues": [f"{i}" for i in range(11)]}
    assert create(changed(SLICE, shared(policy))) == [
        f"{POLICY}.validValues: Too many: 11: must have at most 10 items",
        f'{POLICY}.validValues: Invalid value: "1": default value is not valid according to the requestPolicy',
    ]


def test_without_fractions_options_are_compared_as_integers() -> None:
    off = gates.ALL.switched({"DRAFractionalCapacityRange": False})
    document = changed(SLICE, shared({"default": "1", "validValues": ["500m", "1"]}))
    assert create(document, gates=off) == [f'{POLICY}.validValues[1]: Duplicate value: "1"']


def test_without_fractions_a_negative_bound_is_refused() -> None:
    off = gates.ALL.switched({"DRAFractionalCapacityRange": False})
    policy = {"default": "1", "validRange": {"min": "-1", "step": "1"}}
    assert create(changed(SLICE, shared(policy)), gates=off) == [
        f'{POLICY}.validRange.min: Invalid value: "-1": must be greater than or equal to 0'
    ]


def test_stored_capacity_is_not_checked_again() -> None:
    old = changed(stored(SLICE), shared({"validValues": ["99"]}))
    assert update(changed(old, setting("metadata.labels", {"a": "b"})), old) == []
    touched = update(changed(old, setting(f"{DEVICE}.capacity.memory.value", "11")), old)
    assert touched == [f"{POLICY}.default: Required value: required when validValues is defined"]
