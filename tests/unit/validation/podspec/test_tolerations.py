"""Tolerations of pods."""

from typing import Any

import pytest

from tests.unit.validation.podspec import specs


@pytest.mark.parametrize(
    ("fields", "want"),
    [
        pytest.param(
            {"tolerations": [{"key": "k", "operator": "Equal", "value": "v v"}]},
            [
                (
                    'spec.tolerations[0].operator: Invalid value: "v v": a valid label must be an empty string '
                    "or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
                    "alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for "
                    "validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
                )
            ],
            id="tolerations-0-operator-invalid-value",
        ),
        pytest.param(
            {"tolerations": [{"key": "bad key", "operator": "Exists"}]},
            [
                (
                    'spec.tolerations[0].key: Invalid value: "bad key": name part must consist of alphanumeric '
                    "characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. "
                    "'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
                    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
                )
            ],
            id="tolerations-0-key-invalid-value",
        ),
        pytest.param(
            {"tolerations": [{"key": "bad key!", "value": "-x-", "effect": "Bogus"}]},
            [
                (
                    'spec.tolerations[0].key: Invalid value: "bad key!": name part must consist of alphanumeric '
                    "characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. "
                    "'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
                    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
                ),
                (
                    'spec.tolerations[0].operator: Invalid value: "-x-": a valid label must be an empty string '
                    "or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
                    "alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for "
                    "validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
                ),
                (
                    'spec.tolerations[0].effect: Unsupported value: "Bogus": supported values: "NoSchedule", '
                    '"PreferNoSchedule", "NoExecute"'
                ),
            ],
            id="tolerations-0-key-invalid-value-2",
        ),
        pytest.param(
            {"tolerations": [{}]},
            [
                (
                    'spec.tolerations[0].operator: Invalid value: "": operator must be Exists when `key` is '
                    'empty, which means "match all values and all keys"'
                )
            ],
            id="tolerations-0-operator-invalid-value-2",
        ),
        pytest.param(
            {"tolerations": [{"operator": "Equal"}]},
            [
                (
                    'spec.tolerations[0].operator: Invalid value: "Equal": operator must be Exists when `key` is '
                    'empty, which means "match all values and all keys"'
                )
            ],
            id="tolerations-0-operator-invalid-value-3",
        ),
        pytest.param(
            {"tolerations": [{"key": "k", "operator": "Exists", "effect": "NoSchedule", "tolerationSeconds": 3}]},
            [
                (
                    "spec.tolerations[0].effect: Invalid value: \"NoSchedule\": effect must be 'NoExecute' when "
                    "`tolerationSeconds` is set"
                )
            ],
            id="tolerations-0-effect-invalid-value",
        ),
        pytest.param(
            {"tolerations": [{"key": "k", "operator": "Lt", "value": "5"}]},
            [
                (
                    'spec.tolerations[0].operator: Unsupported value: "Lt": supported values: "Equal", "Exists", '
                    '"Lt", "Gt"'
                )
            ],
            id="tolerations-0-operator-unsupported-value",
        ),
        pytest.param(
            {"tolerations": [{"key": "k", "operator": "Gt", "value": "05"}]},
            [
                (
                    'spec.tolerations[0].operator: Unsupported value: "Gt": supported values: "Equal", "Exists", '
                    '"Lt", "Gt"'
                )
            ],
            id="tolerations-0-operator-unsupported-value-2",
        ),
        pytest.param(
            {"tolerations": [{"key": "k", "operator": "Gt", "value": "x"}]},
            [
                (
                    'spec.tolerations[0].operator: Unsupported value: "Gt": supported values: "Equal", "Exists", '
                    '"Lt", "Gt"'
                )
            ],
            id="tolerations-0-operator-unsupported-value-3",
        ),
        pytest.param(
            {"tolerations": [{"key": "k", "operator": "Gt", "value": "99999999999999999999"}]},
            [
                (
                    'spec.tolerations[0].operator: Unsupported value: "Gt": supported values: "Equal", "Exists", '
                    '"Lt", "Gt"'
                )
            ],
            id="tolerations-0-operator-unsupported-value-4",
        ),
    ],
)
def test_refused(fields: dict[str, Any], want: list[str]) -> None:
    found = specs.errors(**fields)
    assert found == want
