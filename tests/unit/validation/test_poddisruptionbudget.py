"""Disruption budgets."""

from typing import Any

import pytest

from drachma.validation import poddisruptionbudget

_PERCENT_RULE = (
    "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for "
    "validation is '[0-9]+%')"
)
_BOTH = "minAvailable and maxUnavailable cannot be both set"


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param({}, id="empty"),
        pytest.param({"minAvailable": 0}, id="number"),
        pytest.param({"maxUnavailable": "100%"}, id="all-of-a-hundred"),
        pytest.param({"selector": {"matchLabels": {"a": "b"}}}, id="selector"),
        pytest.param({"unhealthyPodEvictionPolicy": "AlwaysAllow"}, id="policy"),
    ],
)
def test_good_ones_pass(spec: dict[str, Any]) -> None:
    assert not list(poddisruptionbudget.KINDS["PodDisruptionBudget"].always({"spec": spec}))


@pytest.mark.parametrize(
    ("spec", "want"),
    [
        pytest.param(
            {"minAvailable": 1, "maxUnavailable": "50%", "selector": {"matchLabels": {"a": "b"}}},
            'spec: Invalid value: {"MinAvailable":1,"Selector":{"matchLabels":{"a":"b"}},"MaxUnavailable":"50%",'
            f'"UnhealthyPodEvictionPolicy":null}}: {_BOTH}',
            id="both",
        ),
        pytest.param(
            {"minAvailable": 1, "maxUnavailable": 0, "unhealthyPodEvictionPolicy": "AlwaysAllow"},
            'spec: Invalid value: {"MinAvailable":1,"Selector":null,"MaxUnavailable":0,'
            f'"UnhealthyPodEvictionPolicy":"AlwaysAllow"}}: {_BOTH}',
            id="both-without-selector",
        ),
        pytest.param(
            {"minAvailable": -1},
            "spec.minAvailable: Invalid value: -1: must be greater than or equal to 0",
            id="negative",
        ),
        pytest.param({"minAvailable": "x"}, f'spec.minAvailable: Invalid value: "x": {_PERCENT_RULE}', id="a-word"),
        pytest.param(
            {"maxUnavailable": "5"}, f'spec.maxUnavailable: Invalid value: "5": {_PERCENT_RULE}', id="a-number-as-text"
        ),
        pytest.param(
            {"maxUnavailable": "101%"},
            'spec.maxUnavailable: Invalid value: "101%": must not be greater than 100%',
            id="more-than-all",
        ),
        pytest.param(
            {"selector": {"matchExpressions": [{"key": "a", "operator": "Bogus"}]}},
            'spec.selector.matchExpressions[0].operator: Invalid value: "Bogus": not a valid selector operator',
            id="selector-operator",
        ),
        pytest.param(
            {"unhealthyPodEvictionPolicy": "Never"},
            'spec.unhealthyPodEvictionPolicy: Unsupported value: "Never": supported values: "AlwaysAllow", '
            '"IfHealthyBudget"',
            id="policy",
        ),
        pytest.param(
            {"unhealthyPodEvictionPolicy": ""},
            'spec.unhealthyPodEvictionPolicy: Unsupported value: "": supported values: "AlwaysAllow", '
            '"IfHealthyBudget"',
            id="empty-policy",
        ),
    ],
)
def test_bad_ones(spec: dict[str, Any], want: str) -> None:
    assert [str(error) for error in poddisruptionbudget.KINDS["PodDisruptionBudget"].always({"spec": spec})] == [want]


def test_what_a_status_must_be() -> None:
    status = {
        "disruptionsAllowed": -1,
        "currentHealthy": -1,
        "desiredHealthy": -2,
        "expectedPods": -1,
        "conditions": [{"type": "", "status": "x"}],
    }
    least = "must be greater than or equal to 0"
    rules = poddisruptionbudget.KINDS["PodDisruptionBudget"]
    assert [str(error) for error in rules.status({"status": status})] == [
        "status.conditions[0].type: Required value: is required",
        'status.conditions[0].status: Unsupported value: "x": supported values: "False", "True", "Unknown"',
        "status.conditions[0].lastTransitionTime: Required value",
        "status.conditions[0].reason: Required value",
        f"status.disruptionsAllowed: Invalid value: -1: {least}",
        f"status.currentHealthy: Invalid value: -1: {least}",
        f"status.desiredHealthy: Invalid value: -2: {least}",
        f"status.expectedPods: Invalid value: -1: {least}",
    ]
