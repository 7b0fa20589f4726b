"""Topology spread constraints of pods."""

from typing import Any

import pytest

from tests.unit.validation.podspec import specs


@pytest.mark.parametrize(
    ("constraints", "want"),
    [
        pytest.param(
            [{}],
            [
                "maxSkew: Invalid value: 0: must be greater than zero",
                "topologyKey: Required value: can not be empty",
                'whenUnsatisfiable: Unsupported value: "": supported values: "DoNotSchedule", "ScheduleAnyway"',
            ],
            id="nothing-set",
        ),
        pytest.param(
            [{"maxSkew": 0, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}],
            ["maxSkew: Invalid value: 0: must be greater than zero"],
            id="max-skew-zero",
        ),
        pytest.param(
            [{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "Bogus"}],
            ['whenUnsatisfiable: Unsupported value: "Bogus": supported values: "DoNotSchedule", "ScheduleAnyway"'],
            id="unknown-action",
        ),
        pytest.param(
            [
                {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"},
                {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"},
            ],
            ['{topologyKey, whenUnsatisfiable}: Duplicate value: "{zone, DoNotSchedule}"'],
            id="duplicate",
        ),
        pytest.param(
            [{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "minDomains": 0}],
            ["minDomains: Invalid value: 0: must be greater than zero"],
            id="min-domains-zero",
        ),
        pytest.param(
            [{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway", "minDomains": 2}],
            [
                (
                    "minDomains: Invalid value: 2: can only use minDomains if whenUnsatisfiable=DoNotSchedule, not "
                    "ScheduleAnyway"
                )
            ],
            id="min-domains-that-do-not-count",
        ),
        pytest.param(
            [
                {
                    "maxSkew": 1,
                    "topologyKey": "zone",
                    "whenUnsatisfiable": "DoNotSchedule",
                    "nodeAffinityPolicy": "x",
                    "nodeTaintsPolicy": "y",
                }
            ],
            [
                'nodeAffinityPolicy: Unsupported value: "x": supported values: "Honor", "Ignore"',
                'nodeTaintsPolicy: Unsupported value: "y": supported values: "Honor", "Ignore"',
            ],
            id="unknown-policies",
        ),
        pytest.param(
            [{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "matchLabelKeys": ["a"]}],
            ["matchLabelKeys: Forbidden: must not be specified when labelSelector is not set"],
            id="match-label-keys-without-selector",
        ),
        pytest.param(
            [
                {
                    "maxSkew": 1,
                    "topologyKey": "zone",
                    "whenUnsatisfiable": "DoNotSchedule",
                    "labelSelector": {"matchLabels": {"a": "b b"}},
                }
            ],
            [f'labelSelector.matchLabels: Invalid value: "b b": {specs.LABEL_VALUE}'],
            id="bad-label",
        ),
    ],
)
def test_refused(constraints: list[dict[str, Any]], want: list[str]) -> None:
    errors = specs.errors(topologySpreadConstraints=constraints)
    assert errors == [f"spec.topologySpreadConstraints[0].{each}" for each in want]
