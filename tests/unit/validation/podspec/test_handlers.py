"""Probes and lifecycle handlers."""

from typing import Any

import pytest

from tests.unit.validation.podspec import specs


@pytest.mark.parametrize(
    ("fields", "want"),
    [
        pytest.param(
            {
                "containers": [
                    {"name": "c", "image": "x", "lifecycle": {"preStop": {"exec": {"command": ["x"]}}, "postStart": {}}}
                ]
            },
            ["spec.containers[0].lifecycle.postStart: Required value: must specify a handler type"],
            id="containers-0-lifecycle-post-start-required-value",
        ),
        pytest.param(
            {"containers": [{"name": "c", "image": "x", "lifecycle": {"preStop": {"sleep": {"seconds": 50}}}}]},
            [
                (
                    "spec.containers[0].lifecycle.preStop.sleep: Invalid value: 50: must be non-negative and "
                    "less than terminationGracePeriodSeconds (30)"
                )
            ],
            id="containers-0-lifecycle-pre-stop-sleep-invalid-value",
        ),
    ],
)
def test_refused(fields: dict[str, Any], want: list[str]) -> None:
    found = specs.errors(**fields)
    assert found == want
