"""Replica sets and deployments."""

from typing import Any

import pytest

from drachma.validation import apps
from tests.unit.validation.podspec import specs


def _spec(**fields: Any) -> dict[str, Any]:
    """The spec of a workload, good but for what is given."""
    spec: dict[str, Any] = {
        "selector": {"matchLabels": {"a": "b"}},
        "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "x"}]}},
        **fields,
    }
    strategy = {"type": "RollingUpdate", **spec.get("strategy", {})}
    if strategy["type"] == "RollingUpdate":
        shares = {"maxUnavailable": "25%", "maxSurge": "25%"}
        strategy["rollingUpdate"] = {**shares, **strategy.get("rollingUpdate", {})}
    pod = {"restartPolicy": "Always", "dnsPolicy": "ClusterFirst", **spec["template"]["spec"]}
    pod["containers"] = [specs.container(**each) for each in pod["containers"]]
    return {**spec, "strategy": strategy, "template": {**spec["template"], "spec": pod}}


def test_a_good_one_passes() -> None:
    assert not list(apps.KINDS["ReplicaSet"].always({"spec": _spec()}))
    assert not list(apps.KINDS["Deployment"].always({"spec": _spec()}))


_BOTH = [
    pytest.param(
        {"selector": {}},
        ["spec.selector: Invalid value: {}: empty selector is invalid for deployment"],
        id="selector-invalid-value",
    ),
    pytest.param(
        {"selector": {"matchLabels": {"x": "y"}}},
        ['spec.template.metadata.labels: Invalid value: {"a":"b"}: `selector` does not match template `labels`'],
        id="template-metadata-labels-invalid-value",
    ),
    pytest.param(
        {"selector": {"matchExpressions": [{"key": "a", "operator": "Bogus"}]}},
        [
            'spec.selector.matchExpressions[0].operator: Invalid value: "Bogus": not a valid selector operator',
            (
                'spec.selector: Invalid value: {"matchExpressions":[{"key":"a","operator":"Bogus"}]}: '
                "invalid label selector"
            ),
        ],
        id="selector-match-expressions-0-operator-invalid-value",
    ),
    pytest.param(
        {"selector": {"matchLabels": {"a b": "c"}}},
        [
            (
                'spec.selector.matchLabels: Invalid value: "a b": name part must consist of alphanumeric characters, '
                "'-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or "
                "'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
            ),
            'spec.selector: Invalid value: {"matchLabels":{"a b":"c"}}: invalid label selector',
        ],
        id="selector-match-labels-invalid-value",
    ),
    pytest.param(
        {"replicas": -1, "minReadySeconds": -2},
        [
            "spec.replicas: Invalid value: -1: must be greater than or equal to 0",
            "spec.minReadySeconds: Invalid value: -2: must be greater than or equal to 0",
        ],
        id="replicas-invalid-value",
    ),
    pytest.param(
        {"template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [], "restartPolicy": "Never"}}},
        [
            "spec.template.spec.containers: Required value",
            'spec.template.spec.restartPolicy: Unsupported value: "Never": supported values: "Always"',
        ],
        id="template-spec-containers-required-value",
    ),
]
"""What is wrong with either of them."""


@pytest.mark.parametrize(("fields", "want"), _BOTH)
def test_a_replica_set_is_refused(fields: dict[str, Any], want: list[str]) -> None:
    found = [str(error) for error in apps.KINDS["ReplicaSet"].always({"spec": _spec(**fields)})]
    assert found == want


@pytest.mark.parametrize(
    ("fields", "want"),
    [
        *_BOTH,
        pytest.param(
            {"revisionHistoryLimit": -1, "progressDeadlineSeconds": -1},
            [
                "spec.revisionHistoryLimit: Invalid value: -1: must be greater than or equal to 0",
                "spec.progressDeadlineSeconds: Invalid value: -1: must be greater than or equal to 0",
                "spec.progressDeadlineSeconds: Invalid value: -1: must be greater than minReadySeconds",
            ],
            id="revision-history-limit-invalid-value",
        ),
        pytest.param(
            {"strategy": {"type": "Bogus"}},
            [
                (
                    'spec.strategy: Unsupported value: {"Type":"Bogus","RollingUpdate":null}: supported values: '
                    '"Recreate", "RollingUpdate"'
                )
            ],
            id="strategy-unsupported-value",
        ),
        pytest.param(
            {"strategy": {"type": "Recreate", "rollingUpdate": {"maxSurge": 1}}},
            ["spec.strategy.rollingUpdate: Forbidden: may not be specified when strategy `type` is 'Recreate'"],
            id="strategy-rolling-update-forbidden",
        ),
        pytest.param(
            {"strategy": {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 0}}},
            ["spec.strategy.rollingUpdate.maxUnavailable: Invalid value: 0: may not be 0 when `maxSurge` is 0"],
            id="strategy-rolling-update-max-unavailable-invalid-value",
        ),
        pytest.param(
            {"strategy": {"rollingUpdate": {"maxSurge": "x%", "maxUnavailable": "200%"}}},
            [
                (
                    'spec.strategy.rollingUpdate.maxSurge: Invalid value: "x%": a valid percent string must be a '
                    "numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation "
                    "is '[0-9]+%')"
                ),
                'spec.strategy.rollingUpdate.maxUnavailable: Invalid value: "200%": must not be greater than 100%',
            ],
            id="strategy-rolling-update-max-surge-invalid-value",
        ),
        pytest.param(
            {"progressDeadlineSeconds": 5, "minReadySeconds": 10},
            ["spec.progressDeadlineSeconds: Invalid value: 5: must be greater than minReadySeconds"],
            id="progress-deadline-seconds-invalid-value",
        ),
    ],
)
def test_a_deployment_is_refused(fields: dict[str, Any], want: list[str]) -> None:
    found = [str(error) for error in apps.KINDS["Deployment"].always({"spec": _spec(**fields)})]
    assert found == want
