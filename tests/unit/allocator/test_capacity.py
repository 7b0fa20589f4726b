"""How much of a capacity a request takes."""

import pytest

from drachma.allocator import capacity
from drachma.api import resourceclaim, resourceslice
from drachma.values import quantity

_parse = quantity.Quantity.parse


def _range(least: str | None = None, most: str | None = None, step: str | None = None) -> dict[str, object]:
    bounds = {key: _parse(value) for key, value in (("min", least), ("max", most), ("step", step)) if value is not None}
    return {"valid_range": resourceslice.CapacityRequestPolicyRange(**bounds)}


def _values(*values: str) -> dict[str, object]:
    return {"valid_values": tuple(map(_parse, values))}


def _capacity(value: str, default: str | None = None, **policy: object) -> resourceslice.DeviceCapacity:
    if default is None and not policy:
        return resourceslice.DeviceCapacity(value=_parse(value))
    found = resourceslice.CapacityRequestPolicy(default=None if default is None else _parse(default), **policy)  # type: ignore[arg-type]
    return resourceslice.DeviceCapacity(value=_parse(value), request_policy=found)


def _wanted(amount: str | None) -> resourceclaim.CapacityRequirements | None:
    return None if amount is None else resourceclaim.CapacityRequirements(requests={"m": _parse(amount)})


@pytest.mark.parametrize(
    ("has", "wants", "want"),
    [
        pytest.param(_capacity("8"), None, "8", id="all-of-it-without-a-request"),
        pytest.param(_capacity("8"), "3", "3", id="what-is-requested"),
        pytest.param(_capacity("8", "2"), None, "2", id="the-default"),
        pytest.param(_capacity("8", "2", **_range("2", "6", "2")), "1", "2", id="at-least-the-minimum"),
        pytest.param(_capacity("8", "1", **_range("2", "6", "2")), "1", "1", id="the-default-below-the-minimum"),
        pytest.param(_capacity("8", "2", **_range("2", "6", "2")), "3", "4", id="rounded-up-to-a-step"),
        pytest.param(_capacity("8", "2", **_range("2", "6")), "3", "3", id="without-steps-as-requested"),
        pytest.param(_capacity("8", "2", **_range("2", "6", "2")), "7", None, id="above-the-maximum"),
        pytest.param(_capacity("8", "2", **_values("2", "4")), "3", "4", id="rounded-up-to-a-valid-value"),
        pytest.param(_capacity("8", "2", **_values("2", "4")), "5", None, id="above-all-valid-values"),
        pytest.param(
            _capacity("8Gi", "1Gi", **_range("1Gi", "4Gi", "1Gi")), "1536Mi", "2Gi", id="in-the-format-of-the-step"
        ),
        pytest.param(
            _capacity("1", "200m", **_range("200m", "1", "200m")), "300m", "1", id="fractions-are-rounded-up-to-units"
        ),
    ],
)
def test_consumption(has: resourceslice.DeviceCapacity, wants: str | None, want: str | None) -> None:
    found = capacity.consumption(_wanted(wants), {"m": has}, fractional=False)
    assert (None if found is None else str(found["m"])) == want


@pytest.mark.parametrize(
    ("wants", "want"),
    [
        pytest.param("100m", "200m", id="minimum"),
        pytest.param("300m", "400m", id="step"),
        pytest.param("900m", "1", id="a-whole-number-is-written-as-one"),
    ],
)
def test_fractional_ranges_are_computed_in_thousandths(wants: str, want: str) -> None:
    has = _capacity("2", "200m", **_range("200m", "1", "200m"))
    found = capacity.consumption(_wanted(wants), {"m": has}, fractional=True)
    assert found is not None
    assert str(found["m"]) == want


def test_a_capacity_that_the_device_does_not_have_does_not_suit() -> None:
    assert capacity.consumption(_wanted("1"), {"other": _capacity("1")}, fractional=False) is None


@pytest.mark.parametrize(
    ("has", "wants", "message"),
    [
        pytest.param(_capacity("8"), "-1", 'capacity "m": capacity value is negative', id="negative"),
        pytest.param(
            _capacity("8", "2", **_range("2", None, "2")),
            "18446744073709551616",
            'capacity "m": capacity request cannot be represented in the device\'s range arithmetic: '
            "request 18446744073709551616 exceeds MaxInt64",
            id="beyond-int64",
        ),
        pytest.param(
            _capacity("8", "2", **_range("2", None, "2")),
            "9223372036854775807",
            'capacity "m": capacity request cannot be represented in the device\'s range arithmetic: '
            "rounding request 9223372036854775807 up to the next step passes MaxInt64",
            id="rounded-beyond-int64",
        ),
    ],
)
def test_amounts_that_make_no_sense_are_errors(has: resourceslice.DeviceCapacity, wants: str, message: str) -> None:
    with pytest.raises(capacity.CapacityError) as caught:
        capacity.consumption(_wanted(wants), {"m": has}, fractional=False)
    assert str(caught.value) == message


def test_an_amount_that_is_no_whole_thousandth_is_an_error_in_a_fractional_range() -> None:
    has = _capacity("2", "200m", **_range("200m", "1", "200m"))
    with pytest.raises(capacity.CapacityError, match=r"request 1000250u is not a representable milli value$"):
        capacity.consumption(_wanted("1000250u"), {"m": has}, fractional=True)


def test_an_error_comes_before_a_policy_that_does_not_suit() -> None:
    wanted = resourceclaim.CapacityRequirements(requests={"a": _parse("9"), "b": _parse("-1")})
    has = {"a": _capacity("8", "1", **_values("1", "2")), "b": _capacity("8")}
    with pytest.raises(capacity.CapacityError, match='capacity "b": capacity value is negative'):
        capacity.consumption(wanted, has, fractional=False)


def test_results_are_spelled_canonically() -> None:
    assert capacity.canonical({"m": _parse("1024Mi")})["m"].text == "1Gi"
