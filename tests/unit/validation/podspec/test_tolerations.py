"""Tolerations of pods."""

from typing import Any

import pytest

from tests.unit.validation.podspec import specs


@pytest.mark.parametrize(
    ("fields", "want"),
    [
        pytest.param(
            {"tolerations": [{"key": "k", "operator": "Equal", "value": "v v"}]},
            ['spec.tolerations[0].operator: Invalid value: "v v": a valid label must be an empty string or'],
            id="tolerations-0-operator-invalid-value",
        ),
        pytest.param(
            {"tolerations": [{"key": "bad key", "operator": "Exists"}]},
            ['spec.tolerations[0].key: Invalid value: "bad key": name part must consist of alphanumeric ch'],
            id="tolerations-0-key-invalid-value",
        ),
        pytest.param(
            {"tolerations": [{"key": "bad key!", "value": "-x-", "effect": "Bogus"}]},
            [
                'spec.tolerations[0].key: Invalid value: "bad key!": name part must consist of alphanumeric c',
                'spec.tolerations[0].operator: Invalid value: "-x-": a valid label must be an empty string or',
                'spec.tolerations[0].effect: Unsupported value: "Bogus": supported values: "NoSchedule", "Pre',
            ],
            id="tolerations-0-key-invalid-value-2",
        ),
        pytest.param(
            {"tolerations": [{}]},
            ['spec.tolerations[0].operator: Invalid value: "": operator must be Exists when `key` is empty'],
            id="tolerations-0-operator-invalid-value-2",
        ),
        pytest.param(
            {"tolerations": [{"operator": "Equal"}]},
            ['spec.tolerations[0].operator: Invalid value: "Equal": operator must be Exists when `key` is'],
            id="tolerations-0-operator-invalid-value-3",
        ),
        pytest.param(
            {"tolerations": [{"key": "k", "operator": "Exists", "effect": "NoSchedule", "tolerationSeconds": 3}]},
            ["spec.tolerations[0].effect: Invalid value: \"NoSchedule\": effect must be 'NoExecute' when `to"],
            id="tolerations-0-effect-invalid-value",
        ),
        pytest.param(
            {"tolerations": [{"key": "k", "operator": "Lt", "value": "5"}]},
            ['spec.tolerations[0].operator: Unsupported value: "Lt": supported values: "Equal", "Exists",'],
            id="tolerations-0-operator-unsupported-value",
        ),
        pytest.param(
            {"tolerations": [{"key": "k", "operator": "Gt", "value": "05"}]},
            ['spec.tolerations[0].operator: Unsupported value: "Gt": supported values: "Equal", "Exists",'],
            id="tolerations-0-operator-unsupported-value-2",
        ),
        pytest.param(
            {"tolerations": [{"key": "k", "operator": "Gt", "value": "x"}]},
            ['spec.tolerations[0].operator: Unsupported value: "Gt": supported values: "Equal", "Exists",'],
            id="tolerations-0-operator-unsupported-value-3",
        ),
        pytest.param(
            {"tolerations": [{"key": "k", "operator": "Gt", "value": "99999999999999999999"}]},
            ['spec.tolerations[0].operator: Unsupported value: "Gt": supported values: "Equal", "Exists",'],
            id="tolerations-0-operator-unsupported-value-4",
        ),
    ],
)
def test_refused(fields: dict[str, Any], want: list[str]) -> None:
    found = specs.errors(**fields)
    assert len(found) == len(want), found
    assert all(error.startswith(start) for error, start in zip(found, want, strict=True)), found
