"""Containers: names, ports, policies."""

from typing import Any

import pytest

from tests.unit.validation.podspec import specs


@pytest.mark.parametrize(
    ("fields", "want"),
    [
        pytest.param(
            {"containers": [{"name": "c", "image": "x", "ports": [{"containerPort": 80, "protocol": "tcp"}]}]},
            [
                (
                    'spec.containers[0].ports[0].protocol: Unsupported value: "tcp": supported values: "SCTP", '
                    '"TCP", "UDP"'
                )
            ],
            id="containers-0-ports-0-protocol-unsupported-value",
        ),
        pytest.param(
            {"containers": [{"name": "c", "image": "x", "imagePullPolicy": "No"}]},
            [
                (
                    'spec.containers[0].imagePullPolicy: Unsupported value: "No": supported values: "Always", '
                    '"IfNotPresent", "Never"'
                )
            ],
            id="containers-0-image-pull-policy-unsupported-value",
        ),
        pytest.param(
            {"containers": [{"name": "c", "image": "x", "terminationMessagePolicy": "No"}]},
            [
                (
                    'spec.containers[0].terminationMessagePolicy: Unsupported value: "No": supported values: '
                    '"File", "FallbackToLogsOnError"'
                )
            ],
            id="containers-0-termination-message-policy-unsupported-value",
        ),
        pytest.param(
            {"containers": [{"name": "c", "image": "x", "restartPolicy": "Bogus"}]},
            [
                (
                    'spec.containers[0].restartPolicy: Unsupported value: "Bogus": supported values: "Always", '
                    '"Never", "OnFailure"'
                )
            ],
            id="containers-0-restart-policy-unsupported-value",
        ),
        pytest.param(
            {"containers": [{}]},
            ["spec.containers[0].name: Required value", "spec.containers[0].image: Required value"],
            id="containers-0-name-required-value",
        ),
        pytest.param(
            {"containers": [{"name": "", "image": ""}]},
            ["spec.containers[0].name: Required value", "spec.containers[0].image: Required value"],
            id="containers-0-name-required-value-2",
        ),
        pytest.param(
            {"initContainers": [{"name": "c", "image": "x"}]},
            ['spec.initContainers[0].name: Duplicate value: "c"'],
            id="init-containers-0-name-duplicate-value",
        ),
        pytest.param(
            {"initContainers": [{"name": "i", "image": "x", "livenessProbe": {"exec": {"command": ["x"]}}}]},
            [
                (
                    "spec.initContainers[0].livenessProbe: Forbidden: may not be set for init containers without "
                    "restartPolicy=Always"
                )
            ],
            id="init-containers-0-liveness-probe-forbidden",
        ),
        pytest.param(
            {"initContainers": [{"name": "i", "image": "x"}, {"name": "i", "image": "x"}]},
            ['spec.initContainers[1].name: Duplicate value: "i"'],
            id="init-containers-1-name-duplicate-value",
        ),
        pytest.param(
            {"initContainers": [{"name": "i", "image": "x", "lifecycle": {"preStop": {"exec": {"command": ["x"]}}}}]},
            [
                (
                    "spec.initContainers[0].lifecycle: Forbidden: may not be set for init containers without "
                    "restartPolicy=Always"
                )
            ],
            id="init-containers-0-lifecycle-forbidden",
        ),
        pytest.param(
            {"initContainers": [{}]},
            ["spec.initContainers[0].name: Required value", "spec.initContainers[0].image: Required value"],
            id="init-containers-0-name-required-value",
        ),
        pytest.param(
            {
                "containers": [
                    {"name": "c", "image": "x", "resizePolicy": [{"resourceName": "x", "restartPolicy": "y"}]}
                ]
            },
            [
                'spec.containers[0].resizePolicy: Unsupported value: "x": supported values: "cpu", "memory"',
                (
                    'spec.containers[0].resizePolicy: Unsupported value: "y": supported values: "NotRequired", '
                    '"RestartContainer"'
                ),
            ],
            id="containers-0-resize-policy-unsupported-value",
        ),
    ],
)
def test_refused(fields: dict[str, Any], want: list[str]) -> None:
    found = specs.errors(**fields)
    assert found == want
