"""Where and for how long pods may run: gates, deadlines, node names, node selectors."""

from typing import Any

import pytest

from tests.unit.validation.podspec import specs


@pytest.mark.parametrize(
    ("fields", "want"),
    [
        pytest.param(
            {"schedulingGates": [{"name": "a b"}]},
            [
                (
                    'spec.schedulingGates[0]: Invalid value: "a b": name part must consist of alphanumeric '
                    "characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. "
                    "'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
                    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
                )
            ],
            id="scheduling-gates-0-invalid-value",
        ),
        pytest.param(
            {"schedulingGates": [{"name": ""}]},
            [
                'spec.schedulingGates[0]: Invalid value: "": name part must be non-empty',
                (
                    'spec.schedulingGates[0]: Invalid value: "": name part must consist of alphanumeric '
                    "characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. "
                    "'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
                    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
                ),
            ],
            id="scheduling-gates-0-invalid-value-2",
        ),
        pytest.param(
            {"schedulingGates": [{"name": "example.com/a"}, {"name": "example.com/a"}]},
            ['spec.schedulingGates[1]: Duplicate value: "example.com/a"'],
            id="scheduling-gates-1-duplicate-value",
        ),
        pytest.param(
            {"activeDeadlineSeconds": -1},
            ["spec.activeDeadlineSeconds: Invalid value: -1: must be between 1 and 2147483647, inclusive"],
            id="active-deadline-seconds-invalid-value",
        ),
        pytest.param(
            {"activeDeadlineSeconds": 2147483648},
            ["spec.activeDeadlineSeconds: Invalid value: 2147483648: must be between 1 and 2147483647, inclusive"],
            id="active-deadline-seconds-invalid-value-2",
        ),
        pytest.param(
            {"nodeSelector": {"a": "b b"}},
            [
                (
                    'spec.nodeSelector: Invalid value: "b b": a valid label must be an empty string or consist '
                    "of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
                    "character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
                    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
                )
            ],
            id="node-selector-invalid-value",
        ),
        pytest.param(
            {"nodeSelector": {"a b": "c", "x": "y z"}},
            [
                (
                    'spec.nodeSelector: Invalid value: "a b": name part must consist of alphanumeric characters, '
                    "'-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or "
                    "'my.name',  or '123-abc', regex used for validation is "
                    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
                ),
                (
                    'spec.nodeSelector: Invalid value: "y z": a valid label must be an empty string or consist '
                    "of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
                    "character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
                    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
                ),
            ],
            id="node-selector-invalid-value-2",
        ),
        pytest.param(
            {"nodeName": "Bad_"},
            [
                (
                    'spec.nodeName: Invalid value: "Bad_": a lowercase RFC 1123 subdomain must consist of lower '
                    "case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric "
                    "character (e.g. 'example.com', regex used for validation is "
                    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
                )
            ],
            id="node-name-invalid-value",
        ),
    ],
)
def test_refused(fields: dict[str, Any], want: list[str]) -> None:
    found = specs.errors(**fields)
    assert found == want
