"""Devices that taint rules select, and slices with their taints."""

import pytest

from drachma.api import devicetaintrule
from drachma.claims import identity, taints
from drachma.testing import device, resource_slice, taint_rule

_DEVICE = identity.DeviceID("d", "p", "a")


@pytest.mark.parametrize(
    ("rule", "want"),
    [
        pytest.param(taint_rule("r", key="k", driver="d").build(), True, id="driver"),
        pytest.param(taint_rule("r", key="k", driver="e").build(), False, id="another-driver"),
        pytest.param(taint_rule("r", key="k", driver="d", pool="p", device="a").build(), True, id="all-three"),
        pytest.param(taint_rule("r", key="k", driver="d", pool="q").build(), False, id="another-pool"),
        pytest.param(taint_rule("r", key="k", device="a").build(), True, id="device-of-any-pool"),
        pytest.param(taint_rule("r", key="k", device="b").build(), False, id="another-device"),
        pytest.param(devicetaintrule.DeviceTaintRule(), False, id="no-selector"),
    ],
)
def test_which_devices_a_rule_means(rule: devicetaintrule.DeviceTaintRule, want: bool) -> None:
    assert taints.selects_device(rule, _DEVICE) is want


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
