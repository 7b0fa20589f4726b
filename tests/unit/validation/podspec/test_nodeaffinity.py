"""Affinity of pods to nodes."""

from typing import Any

import pytest

from tests.unit.validation.podspec import specs

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


@pytest.mark.parametrize(
    ("affinity", "want"),
    [
        pytest.param(
            {REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "In"}]}]}},
            [
                (
                    f"{REQUIRED}.nodeSelectorTerms[0].matchExpressions[0].values: Required value: must be specified "
                    "when `operator` is 'In' or 'NotIn'"
                )
            ],
            id="in-without-values",
        ),
        pytest.param(
            {
                REQUIRED: {
                    "nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "Exists", "values": ["x"]}]}]
                }
            },
            [
                (
                    f"{REQUIRED}.nodeSelectorTerms[0].matchExpressions[0].values: Forbidden: may not be specified "
                    "when `operator` is 'Exists' or 'DoesNotExist'"
                )
            ],
            id="exists-with-values",
        ),
        pytest.param(
            {
                REQUIRED: {
                    "nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "Gt", "values": ["1", "2"]}]}]
                }
            },
            [
                (
                    f"{REQUIRED}.nodeSelectorTerms[0].matchExpressions[0].values: Required value: must be specified "
                    "single value when `operator` is 'Lt' or 'Gt'"
                )
            ],
            id="gt-with-two-values",
        ),
        pytest.param(
            {REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "Lt"}]}]}},
            [
                (
                    f"{REQUIRED}.nodeSelectorTerms[0].matchExpressions[0].values: Required value: must be specified "
                    "single value when `operator` is 'Lt' or 'Gt'"
                )
            ],
            id="lt-without-values",
        ),
        pytest.param(
            {REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "Bogus"}]}]}},
            [
                (
                    f'{REQUIRED}.nodeSelectorTerms[0].matchExpressions[0].operator: Invalid value: "Bogus": not a '
                    "valid selector operator"
                )
            ],
            id="unknown-operator",
        ),
        pytest.param(
            {
                REQUIRED: {
                    "nodeSelectorTerms": [{"matchExpressions": [{"key": "bad key", "operator": "In", "values": ["x"]}]}]
                }
            },
            [f'{REQUIRED}.nodeSelectorTerms[0].matchExpressions[0].key: Invalid value: "bad key": {specs.LABEL_NAME}'],
            id="bad-key",
        ),
        pytest.param(
            {
                REQUIRED: {
                    "nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "In", "values": ["-bad-"]}]}]
                }
            },
            [
                (
                    f'{REQUIRED}.nodeSelectorTerms[0].matchExpressions[0].values[0]: Invalid value: "-bad-": '
                    f"{specs.LABEL_VALUE}"
                )
            ],
            id="bad-value",
        ),
        pytest.param(
            {
                REQUIRED: {
                    "nodeSelectorTerms": [
                        {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1", "n2"]}]}
                    ]
                }
            },
            [
                (
                    f"{REQUIRED}.nodeSelectorTerms[0].matchFields[0].values: Required value: must be only one value "
                    "when `operator` is 'In' or 'NotIn' for node field selector"
                )
            ],
            id="field-in-with-two-values",
        ),
        pytest.param(
            {REQUIRED: {"nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "Exists"}]}]}},
            [
                (
                    f'{REQUIRED}.nodeSelectorTerms[0].matchFields[0].operator: Invalid value: "Exists": not a valid '
                    "selector operator"
                )
            ],
            id="field-with-exists",
        ),
        pytest.param(
            {
                REQUIRED: {
                    "nodeSelectorTerms": [{"matchFields": [{"key": "spec.x", "operator": "In", "values": ["n1"]}]}]
                }
            },
            [
                (
                    f'{REQUIRED}.nodeSelectorTerms[0].matchFields[0].key: Invalid value: "spec.x": not a valid '
                    "field selector key"
                )
            ],
            id="unknown-field",
        ),
        pytest.param(
            {
                REQUIRED: {
                    "nodeSelectorTerms": [
                        {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["Bad_"]}]}
                    ]
                }
            },
            [
                (
                    f'{REQUIRED}.nodeSelectorTerms[0].matchFields[0].values[0]: Invalid value: "Bad_": a '
                    "lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', "
                    "and must start and end with an alphanumeric character (e.g. 'example.com', regex used for "
                    "validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
                )
            ],
            id="bad-name-of-a-node",
        ),
        pytest.param(
            {
                PREFERRED: [
                    {
                        "weight": 101,
                        "preference": {"matchExpressions": [{"key": "a", "operator": "In", "values": ["-bad-"]}]},
                    }
                ]
            },
            [f"{PREFERRED}[0].weight: Invalid value: 101: must be in the range 1-100"],
            id="weight-above-the-limit",
        ),
        pytest.param(
            {PREFERRED: [{"preference": {"matchExpressions": [{"key": "a", "operator": "In"}]}}]},
            [
                f"{PREFERRED}[0].weight: Invalid value: 0: must be in the range 1-100",
                (
                    f"{PREFERRED}[0].preference.matchExpressions[0].values: Required value: must be specified when "
                    "`operator` is 'In' or 'NotIn'"
                ),
            ],
            id="weight-absent",
        ),
        pytest.param(
            {REQUIRED: {"nodeSelectorTerms": []}},
            [f"{REQUIRED}.nodeSelectorTerms: Required value: must have at least one node selector term"],
            id="no-terms",
        ),
        pytest.param(
            {REQUIRED: {}},
            [f"{REQUIRED}.nodeSelectorTerms: Required value: must have at least one node selector term"],
            id="terms-absent",
        ),
    ],
)
def test_refused(affinity: dict[str, Any], want: list[str]) -> None:
    errors = specs.errors(affinity={"nodeAffinity": affinity})
    assert errors == [f"spec.affinity.nodeAffinity.{each}" for each in want]
