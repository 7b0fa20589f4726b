"""Which controllers a list of names means."""

import pytest

from drachma import errors
from drachma.api import gates
from drachma.controllers import descriptors
from tests import firstalpha

FIRST_ALPHA = "structured-parameters-controller"
GROUPS = "podgroup-protection-controller"
ALL = {each.name for each in descriptors.ALL} - {FIRST_ALPHA, GROUPS}


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param("*", ALL, id="all"),
        pytest.param("job-controller", {"job-controller"}, id="one"),
        pytest.param(
            "job-controller, namespace-controller", {"job-controller", "namespace-controller"}, id="two-with-a-space"
        ),
        pytest.param("*,-job-controller", ALL - {"job-controller"}, id="all-but-one"),
        pytest.param("-job-controller", set(), id="nothing-without-a-star"),
    ],
)
def test_choices(text: str, want: set[str]) -> None:
    assert {each.name for each in descriptors.chosen(text)} == want


def test_the_first_alpha_has_a_controller_where_it_is_served() -> None:
    assert {each.name for each in descriptors.chosen(gates=firstalpha.GATES)} == {*ALL, FIRST_ALPHA}


def test_pod_groups_have_a_controller_where_they_are_scheduled() -> None:
    chosen = descriptors.chosen(gates=gates.ALL.switched({gates.Gate.GENERIC_WORKLOAD: True}))
    assert {each.name for each in chosen} == {*ALL, GROUPS}


def test_names_that_are_not_known() -> None:
    with pytest.raises(errors.InvalidValueError, match=r"route is not known: there are .*job-controller"):
        descriptors.chosen("*,-route")


@pytest.mark.parametrize(
    ("gate", "name"),
    [
        pytest.param(gates.Gate.DEVICE_TAINTS, "device-taint-eviction-controller", id="taints"),
        pytest.param(gates.Gate.CORE, "resourceclaim-controller", id="claims"),
        pytest.param(gates.Gate.RESOURCE_POOL_STATUS, "resourcepoolstatusrequest-controller", id="pools"),
    ],
)
def test_features_that_are_off(gate: gates.Gate, name: str) -> None:
    chosen = descriptors.chosen(gates=gates.ALL.switched({gate: False}))
    assert {each.name for each in chosen} == ALL - {name}


def test_no_controller_resizes_volumes() -> None:
    assert not [each.name for each in descriptors.ALL if "expand" in each.name or "resize" in each.name]


def test_the_cleaner_of_bootstrap_tokens_runs_by_default() -> None:
    assert "token-cleaner-controller" in {each.name for each in descriptors.chosen()}
