"""Tolerations that match taints, of devices and of nodes."""

import pytest

from drachma.api import devices, node, pod
from drachma.claims import taints

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
    assert (taints.first_untolerated((taint,), ()) is taint) is want


def test_every_taint_must_be_tolerated() -> None:
    other = devices.DeviceTaint(key="j", effect="NoExecute")
    tolerated = (_toleration(key="k", operator="Exists"),)
    assert taints.first_untolerated((_TAINT, other), tolerated) is other


@pytest.mark.parametrize(
    ("toleration", "want"),
    [
        pytest.param(pod.Toleration(key=taints.UNSCHEDULABLE, operator="Exists"), True, id="exists"),
        pytest.param(pod.Toleration(key=taints.NOT_READY, operator="Exists"), False, id="another-key"),
        pytest.param(
            pod.Toleration(key=taints.UNSCHEDULABLE, operator="Gt", value="1"), False, id="operator-behind-a-gate"
        ),
    ],
)
def test_the_rule_is_the_same_for_nodes(toleration: pod.Toleration, want: bool) -> None:
    taint = node.Taint(key=taints.UNSCHEDULABLE, effect=taints.NO_SCHEDULE)
    assert taints.is_tolerated(taint, (toleration,)) is want
