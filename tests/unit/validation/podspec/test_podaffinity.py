"""Affinity of pods to other pods, and anti-affinity."""

from typing import Any

import pytest

from tests.unit.validation.podspec import specs

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


@pytest.mark.parametrize(
    ("affinity", "want"),
    [
        pytest.param(
            {"podAffinity": {REQUIRED: [{}]}},
            [
                f"podAffinity.{REQUIRED}[0].topologyKey: Required value: can not be empty",
                f'podAffinity.{REQUIRED}[0].topologyKey: Invalid value: "": name part must be non-empty',
                f'podAffinity.{REQUIRED}[0].topologyKey: Invalid value: "": {specs.LABEL_NAME}',
            ],
            id="no-topology-key",
        ),
        pytest.param(
            {"podAffinity": {REQUIRED: [{"topologyKey": "bad key"}]}},
            [f'podAffinity.{REQUIRED}[0].topologyKey: Invalid value: "bad key": {specs.LABEL_NAME}'],
            id="bad-topology-key",
        ),
        pytest.param(
            {"podAffinity": {REQUIRED: [{"topologyKey": "z", "labelSelector": {"matchLabels": {"a": "b b"}}}]}},
            [f'podAffinity.{REQUIRED}[0].labelSelector.matchLabels: Invalid value: "b b": {specs.LABEL_VALUE}'],
            id="bad-label",
        ),
        pytest.param(
            {
                "podAffinity": {
                    REQUIRED: [
                        {"topologyKey": "z", "labelSelector": {"matchExpressions": [{"key": "a", "operator": "In"}]}}
                    ]
                }
            },
            [
                (
                    f"podAffinity.{REQUIRED}[0].labelSelector.matchExpressions[0].values: Required value: must be "
                    "specified when `operator` is 'In' or 'NotIn'"
                )
            ],
            id="in-without-values",
        ),
        pytest.param(
            {
                "podAffinity": {
                    REQUIRED: [
                        {"topologyKey": "z", "labelSelector": {"matchExpressions": [{"key": "a", "operator": "Bogus"}]}}
                    ]
                }
            },
            [
                (
                    f'podAffinity.{REQUIRED}[0].labelSelector.matchExpressions[0].operator: Invalid value: "Bogus": '
                    "not a valid selector operator"
                )
            ],
            id="unknown-operator",
        ),
        pytest.param(
            {
                "podAntiAffinity": {
                    REQUIRED: [
                        {
                            "topologyKey": "z",
                            "labelSelector": {
                                "matchExpressions": [{"key": "a a", "operator": "Exists", "values": ["x"]}]
                            },
                        }
                    ]
                }
            },
            [
                (
                    f"podAntiAffinity.{REQUIRED}[0].labelSelector.matchExpressions[0].values: Forbidden: may not be "
                    "specified when `operator` is 'Exists' or 'DoesNotExist'"
                ),
                (
                    f'podAntiAffinity.{REQUIRED}[0].labelSelector.matchExpressions[0].key: Invalid value: "a a": '
                    f"{specs.LABEL_NAME}"
                ),
            ],
            id="exists-with-values-and-bad-key",
        ),
        pytest.param(
            {"podAffinity": {REQUIRED: [{"topologyKey": "z", "namespaces": ["Bad_"]}]}},
            [
                (
                    f'podAffinity.{REQUIRED}[0].namespace: Invalid value: "Bad_": a lowercase RFC 1123 label must '
                    "consist of lower case alphanumeric characters or '-', and must start and end with an "
                    "alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
                    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
                )
            ],
            id="bad-namespace",
        ),
        pytest.param(
            {"podAffinity": {PREFERRED: [{"weight": 0, "podAffinityTerm": {"topologyKey": "z"}}]}},
            [f"podAffinity.{PREFERRED}[0].weight: Invalid value: 0: must be in the range 1-100"],
            id="weight-zero",
        ),
        pytest.param(
            {"podAntiAffinity": {PREFERRED: [{"weight": 200, "podAffinityTerm": {"topologyKey": ""}}]}},
            [
                f"podAntiAffinity.{PREFERRED}[0].weight: Invalid value: 200: must be in the range 1-100",
                f"podAntiAffinity.{PREFERRED}[0].podAffinityTerm.topologyKey: Required value: can not be empty",
                (
                    f'podAntiAffinity.{PREFERRED}[0].podAffinityTerm.topologyKey: Invalid value: "": name part must '
                    "be non-empty"
                ),
                f'podAntiAffinity.{PREFERRED}[0].podAffinityTerm.topologyKey: Invalid value: "": {specs.LABEL_NAME}',
            ],
            id="anti-affinity-weight-above-the-limit",
        ),
        pytest.param(
            {"podAffinity": {REQUIRED: [{"topologyKey": "z", "matchLabelKeys": ["a"]}]}},
            [
                (
                    f"podAffinity.{REQUIRED}[0].matchLabelKeys: Forbidden: must not be specified when labelSelector "
                    "is not set"
                )
            ],
            id="match-label-keys-without-selector",
        ),
        pytest.param(
            {
                "podAffinity": {
                    REQUIRED: [
                        {
                            "topologyKey": "z",
                            "matchLabelKeys": ["a"],
                            "mismatchLabelKeys": ["a", "b b"],
                            "labelSelector": {"matchLabels": {"q": "r"}},
                        }
                    ]
                }
            },
            [
                f'podAffinity.{REQUIRED}[0].mismatchLabelKeys[1]: Invalid value: "b b": {specs.LABEL_NAME}',
                (
                    f'podAffinity.{REQUIRED}[0].matchLabelKeys[0]: Invalid value: "a": exists in both '
                    "matchLabelKeys and mismatchLabelKeys"
                ),
            ],
            id="label-keys-that-match-and-mismatch",
        ),
        pytest.param(
            {"podAffinity": {REQUIRED: [{"topologyKey": "z", "namespaceSelector": {"matchLabels": {"a b": "c"}}}]}},
            [f'podAffinity.{REQUIRED}[0].namespaceSelector.matchLabels: Invalid value: "a b": {specs.LABEL_NAME}'],
            id="bad-namespace-label",
        ),
    ],
)
def test_refused(affinity: dict[str, Any], want: list[str]) -> None:
    errors = specs.errors(affinity=affinity)
    assert errors == [f"spec.affinity.{each}" for each in want]
