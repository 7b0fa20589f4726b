"""Tolerations, and what taint rules do to slices."""

import pytest

from drachma.allocator import taints
from drachma.api import devices
from drachma.testing import device, resource_slice, taint_rule

_TAINT = devices.DeviceTaint(key="k", value="v", effect="NoSchedule")


def _toleration(*, key: str = "", operator: str = "", value: str = "", effect: str = "") -> devices.DeviceToleration:
    return devices.DeviceToleration(key=key, operator=operator, value=value, effect=effect)


@pytest.mark.parametrize(
    ("toleration", "want"),
    [
        pytest.param(_toleration(key="k", operator="Equal", value="v"), True, id="equal"),
        pytest.param(_toleration(key="k", value="v"), True, id="no-operator-means-equal"),
        pytest.param(_toleration(key="k", operator="Equal", value="w"), False, id="another-value"),
        pytest.param(_toleration(key="k", operator="Exists"), True, id="exists"),
        pytest.param(_toleration(operator="Exists"), True, id="everything"),
        pytest.param(_toleration(key="j", operator="Exists"), False, id="another-key"),
        pytest.param(_toleration(key="k", operator="Exists", effect="NoExecute"), False, id="another-effect"),
        pytest.param(_toleration(key="k", operator="Exists", effect="NoSchedule"), True, id="this-effect"),
        pytest.param(_toleration(key="k", operator="Unknown"), False, id="unknown-operator"),
    ],
)
def test_tolerates(toleration: devices.DeviceToleration, want: bool) -> None:
    assert taints.tolerates(toleration, _TAINT) is want


@pytest.mark.parametrize(
    ("effect", "want"),
    [
        pytest.param("NoSchedule", True, id="no-schedule"),
        pytest.param("NoExecute", True, id="no-execute"),
        pytest.param("None", False, id="none"),
        pytest.param("FromTheFuture", False, id="unknown"),
    ],
)
def test_only_known_effects_prevent_allocation(effect: str, want: bool) -> None:
    taint = devices.DeviceTaint(key="k", effect=effect)
    assert (taints.preventing((taint,), ()) is taint) is want


def test_every_taint_must_be_tolerated() -> None:
    other = devices.DeviceTaint(key="j", effect="NoExecute")
    tolerated = (_toleration(key="k", operator="Exists"),)
    assert taints.preventing((_TAINT, other), tolerated) is other


def test_a_rule_taints_the_devices_that_it_selects() -> None:
    published = resource_slice("s", driver="d").on_node("n").devices(device("a").taint("own"), "b").build()
    rules = [
        taint_rule("all", key="x", driver="d").build(),
        taint_rule("one", key="y", device="b").build(),
        taint_rule("other", key="z", driver="e").build(),
    ]
    tainted = taints.apply_rules(published, rules)
    assert [[taint.key for taint in entry.taints] for entry in tainted.spec.devices] == [["own", "x"], ["x", "y"]]
    assert [[taint.key for taint in entry.taints] for entry in published.spec.devices] == [["own"], []]


def test_a_slice_that_no_rule_means_stays_the_same_object() -> None:
    published = resource_slice("s", driver="d").on_node("n").devices("a").build()
    assert taints.apply_rules(published, [taint_rule("r", key="x", device="b").build()]) is published
