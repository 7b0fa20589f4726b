"""Security contexts."""

from typing import Any

import pytest

from tests.unit.validation.podspec import specs


@pytest.mark.parametrize(
    ("fields", "want"),
    [
        pytest.param(
            {"hostPID": True, "shareProcessNamespace": True},
            [
                (
                    "spec.shareProcessNamespace: Invalid value: true: ShareProcessNamespace and HostPID cannot "
                    "both be enabled"
                )
            ],
            id="share-process-namespace-invalid-value",
        ),
        pytest.param(
            {"hostUsers": False, "hostNetwork": True},
            ["spec.hostNetwork: Forbidden: when `hostUsers` is false"],
            id="host-network-forbidden",
        ),
        pytest.param(
            {"securityContext": {"runAsUser": -1, "fsGroup": -1, "runAsGroup": 5}},
            [
                "spec.securityContext.fsGroup: Invalid value: -1: must be between 0 and 2147483647, inclusive",
                "spec.securityContext.runAsUser: Invalid value: -1: must be between 0 and 2147483647, inclusive",
            ],
            id="security-context-fs-group-invalid-value",
        ),
    ],
)
def test_refused(fields: dict[str, Any], want: list[str]) -> None:
    found = specs.errors(**fields)
    assert found == want
