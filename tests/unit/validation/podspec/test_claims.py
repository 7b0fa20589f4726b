"""Resource claims of pods."""

from typing import Any

import pytest

from tests.unit.validation.podspec import specs


@pytest.mark.parametrize(
    ("fields", "want"),
    [
        pytest.param(
            {
                "containers": [{"name": "c", "image": "x", "resources": {"claims": [{"name": "r", "request": "A_"}]}}],
                "resourceClaims": [{"name": "r", "resourceClaimName": "a"}],
            },
            ['spec.containers[0].resources.claims[0].request: Invalid value: "A_": a lowercase RFC 1123 la'],
            id="containers-0-resources-claims-0-request-invalid-value",
        ),
        pytest.param(
            {"resourceClaims": [{}]},
            [
                "spec.resourceClaims[0].name: Required value",
                'spec.resourceClaims[0]: Invalid value: {"Name":"","ResourceClaimName":null,"ResourceClaimTem',
            ],
            id="resource-claims-0-name-required-value",
        ),
        pytest.param(
            {"resourceClaims": [{"name": "r", "resourceClaimName": ""}]},
            ['spec.resourceClaims[0].resourceClaimName: Invalid value: "": a lowercase RFC 1123 subdomain'],
            id="resource-claims-0-resource-claim-name-invalid-value",
        ),
    ],
)
def test_refused(fields: dict[str, Any], want: list[str]) -> None:
    found = specs.errors(**fields)
    assert len(found) == len(want), found
    assert all(error.startswith(start) for error, start in zip(found, want, strict=True)), found
