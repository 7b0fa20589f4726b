"""Devices as CEL sees them."""

import pytest

from drachma import cel
from drachma.api import resourceslice
from drachma.values import quantity, semver
from tests.unit.cel import running

_attribute = resourceslice.DeviceAttribute


def test_names_without_a_domain_belong_to_the_driver() -> None:
    device = cel.Device("d.example.com", attributes={"a": _attribute(int_value=1), "x.org/b": _attribute(int_value=2)})
    assert device.attributes == {"d.example.com": {"a": 1}, "x.org": {"b": 2}}
    assert device.attributes["unknown"] == {}


@pytest.mark.parametrize(
    ("attribute", "want"),
    [
        pytest.param(_attribute(int_value=1), 1, id="int"),
        pytest.param(_attribute(bool_value=False), False, id="bool"),
        pytest.param(_attribute(string_value=""), "", id="string"),
        pytest.param(_attribute(version_value="1.2.3"), semver.SemVer.parse("1.2.3"), id="version"),
        pytest.param(_attribute(int_values=(1, 2)), [1, 2], id="ints"),
        pytest.param(_attribute(bool_values=()), [], id="explicitly-empty"),
        pytest.param(_attribute(int_value=1, string_values=("a",)), ["a"], id="lists-come-first"),
        pytest.param(_attribute(version_values=("1.0.0",)), [semver.SemVer.parse("1.0.0")], id="versions"),
    ],
)
def test_attribute_values(attribute: resourceslice.DeviceAttribute, want: object) -> None:
    device = cel.Device("d", attributes={"a": attribute})
    assert device.problem is None
    assert device.attributes["d"]["a"] == want


@pytest.mark.parametrize(
    ("attribute", "problem"),
    [
        pytest.param(_attribute(), "attribute a: unsupported attribute value", id="no-value"),
        pytest.param(
            _attribute(version_value="1.2"),
            "attribute a: parse semantic version: No Major.Minor.Patch elements found",
            id="bad-version",
        ),
    ],
)
def test_devices_that_cannot_be_matched(attribute: resourceslice.DeviceAttribute, problem: str) -> None:
    outcome = running.on_device("true", cel.Device("d", attributes={"a": attribute}))
    assert outcome == cel.Outcome(None, problem, None)


def test_capacity() -> None:
    device = cel.Device("d", capacity={"m": running.amount("1Gi"), "none": resourceslice.DeviceCapacity()})
    assert device.capacity["d"]["m"] == quantity.Quantity.parse("1Gi")
    assert device.capacity["d"]["none"] == quantity.Quantity.parse("0")


def test_of_a_slice() -> None:
    device = cel.Device.of(
        resourceslice.Device(name="gpu", attributes={"a": _attribute(int_value=1)}, allow_multiple_allocations=True),
        "d",
    )
    assert device.variables["device"]["driver"] == "d"
    assert device.variables["device"]["allowMultipleAllocations"] is True
    assert device.attributes == {"d": {"a": 1}}


def test_sharing_is_off_unless_said_otherwise() -> None:
    assert running.on_device("device.allowMultipleAllocations", cel.Device("d")).match is False
