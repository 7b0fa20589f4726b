"""Resource quotas."""

from typing import Any

import pytest

from drachma.validation import quota


@pytest.mark.parametrize(
    ("content", "want"),
    [
        pytest.param(
            {"spec": {"hard": {"cpu": "1"}, "scopes": ["BestEffort"]}},
            ['spec.scopes: Invalid value: ["BestEffort"]: unsupported scope applied to resource'],
            id="scopes-invalid-value",
        ),
        pytest.param(
            {"spec": {"hard": {"pods": "1"}, "scopes": ["BestEffort", "NotBestEffort"]}},
            ['spec.scopes: Invalid value: ["BestEffort","NotBestEffort"]: conflicting scopes'],
            id="scopes-invalid-value-2",
        ),
        pytest.param(
            {"spec": {"hard": {"pods": "1"}, "scopes": ["Bogus"]}},
            ['spec.scopes: Invalid value: ["Bogus"]: unsupported scope'],
            id="scopes-invalid-value-3",
        ),
        pytest.param(
            {"spec": {"hard": {"resourceclaims.resource.k8s.io": "2"}}},
            [
                (
                    'spec.hard[resourceclaims.resource.k8s.io]: Invalid value: "resourceclaims.resource.k8s.io": '
                    "must be a standard resource type or fully qualified"
                ),
                (
                    'spec.hard[resourceclaims.resource.k8s.io]: Invalid value: "resourceclaims.resource.k8s.io": '
                    "must be a standard resource for quota"
                ),
            ],
            id="hard-resourceclaims-resource-k8s-io-invalid-value",
        ),
        pytest.param(
            {
                "spec": {
                    "hard": {"pods": "1"},
                    "scopeSelector": {"matchExpressions": [{"scopeName": "PriorityClass", "operator": "In"}]},
                }
            },
            [
                (
                    "spec.scopeSelector.matchExpressions.values: Required value: must be at least one value when "
                    "`operator` is 'In' or 'NotIn' for scope selector"
                )
            ],
            id="scope-selector-match-expressions-values-required-value",
        ),
        pytest.param(
            {
                "spec": {
                    "hard": {"pods": "1"},
                    "scopeSelector": {
                        "matchExpressions": [
                            {"scopeName": "BestEffort", "operator": "In", "values": ["a"]},
                            {"scopeName": "X", "operator": "Bogus"},
                        ]
                    },
                }
            },
            [
                (
                    "spec.scopeSelector.matchExpressions.operator: Invalid value: \"In\": must be 'Exists' when "
                    "scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, "
                    "ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or "
                    "ResourceQuotaScopeCrossNamespacePodAffinity"
                ),
                'spec.scopeSelector.matchExpressions.scopeName: Invalid value: "X": unsupported scope',
                ('spec.scopeSelector.matchExpressions.operator: Invalid value: "Bogus": not a valid selector operator'),
            ],
            id="scope-selector-match-expressions-operator-invalid-value",
        ),
        pytest.param(
            {
                "spec": {
                    "hard": {"cpu": "1"},
                    "scopeSelector": {
                        "matchExpressions": [{"scopeName": "BestEffort", "operator": "Exists", "values": ["x"]}]
                    },
                }
            },
            [
                (
                    "spec.scopeSelector.matchExpressions: Invalid value: "
                    '{"MatchExpressions":[{"ScopeName":"BestEffort","Operator":"Exists","Values":["x"]}]}: '
                    "unsupported scope applied to resource"
                ),
                (
                    'spec.scopeSelector.matchExpressions.values: Invalid value: ["x"]: must be no value when '
                    "`operator` is 'Exist' or 'DoesNotExist' for scope selector"
                ),
            ],
            id="scope-selector-match-expressions-invalid-value",
        ),
    ],
)
def test_refused(content: dict[str, Any], want: list[str]) -> None:
    found = [str(error) for error in quota.KINDS["ResourceQuota"].always(content)]
    assert found == want
