"""Environment variables."""

from typing import Any

import pytest

from tests.unit.validation.podspec import specs


@pytest.mark.parametrize(
    ("fields", "want"),
    [
        pytest.param(
            {"containers": [{"name": "c", "image": "x", "env": [{}]}]},
            ["spec.containers[0].env[0].name: Required value"],
            id="containers-0-env-0-name-required-value",
        ),
        pytest.param(
            {"containers": [{"name": "c", "image": "x", "env": [{"name": "a b=c"}]}]},
            [
                (
                    'spec.containers[0].env[0].name: Invalid value: "a b=c": a valid environment variable name '
                    "must consist only of printable ASCII characters other than '='"
                )
            ],
            id="containers-0-env-0-name-invalid-value",
        ),
        pytest.param(
            {"containers": [{"name": "c", "image": "x", "env": [{"name": "A", "valueFrom": {}}]}]},
            [
                (
                    'spec.containers[0].env[0].valueFrom: Invalid value: "": must specify one of: `fieldRef`, '
                    "`resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"
                )
            ],
            id="containers-0-env-0-value-from-invalid-value",
        ),
        pytest.param(
            {
                "containers": [
                    {"name": "c", "image": "x", "env": [{"name": "A", "valueFrom": {"configMapKeyRef": {"name": "x"}}}]}
                ]
            },
            ["spec.containers[0].env[0].valueFrom.configMapKeyRef.key: Required value"],
            id="containers-0-env-0-value-from-config-map-key-ref-key-required-value",
        ),
        pytest.param(
            {
                "containers": [
                    {
                        "name": "c",
                        "image": "x",
                        "env": [{"name": "A", "valueFrom": {"resourceFieldRef": {"resource": "bogus"}}}],
                    }
                ]
            },
            [
                (
                    'spec.containers[0].env[0].valueFrom.resourceFieldRef.resource: Unsupported value: "bogus": '
                    'supported values: "limits.cpu", "limits.ephemeral-storage", "limits.memory", '
                    '"requests.cpu", "requests.ephemeral-storage", "requests.memory"'
                )
            ],
            id="containers-0-env-0-value-from-resource-field-ref-resource-unsupported",
        ),
        pytest.param(
            {"containers": [{"name": "c", "image": "x", "envFrom": [{}]}]},
            ['spec.containers[0].envFrom: Invalid value: "": must specify one of: `configMapRef` or `secretRef`'],
            id="containers-0-env-from-invalid-value",
        ),
        pytest.param(
            {
                "containers": [
                    {
                        "name": "c",
                        "image": "x",
                        "envFrom": [{"configMapRef": {"name": "x"}}, {"prefix": "a=", "secretRef": {}}],
                    }
                ]
            },
            [
                (
                    'spec.containers[0].envFrom[1].prefix: Invalid value: "a=": a valid environment variable '
                    "name must consist only of printable ASCII characters other than '='"
                ),
                "spec.containers[0].envFrom[1].secretRef.name: Required value",
            ],
            id="containers-0-env-from-1-prefix-invalid-value",
        ),
    ],
)
def test_refused(fields: dict[str, Any], want: list[str]) -> None:
    found = specs.errors(**fields)
    assert found == want
