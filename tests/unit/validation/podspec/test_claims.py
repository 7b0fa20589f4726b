"""Resource claims of pods."""

from typing import Any

import pytest

from tests.unit.validation.podspec import specs

AT = "spec.containers[0].resources.claims"


def using(*claims: dict[str, str], **fields: Any) -> dict[str, Any]:
    """A pod with a claim "gpu" and a container that uses these."""
    container = {"name": "c", "image": "x", "resources": {"claims": list(claims)}}
    return {"containers": [container], "resourceClaims": [{"name": "gpu", "resourceClaimName": "a"}], **fields}


@pytest.mark.parametrize(
    ("fields", "want"),
    [
        pytest.param(
            {"resourceClaims": [{"name": "gpu"}]},
            [
                (
                    "spec.resourceClaims[0]: Invalid value: "
                    '{"Name":"gpu","ResourceClaimName":null,"ResourceClaimTemplateName":null}: must specify one '
                    "of: `resourceClaimName`, `resourceClaimTemplateName`"
                )
            ],
            id="no-source",
        ),
        pytest.param(
            {"resourceClaims": [{"name": "gpu", "resourceClaimName": "claim", "resourceClaimTemplateName": "t"}]},
            [
                (
                    "spec.resourceClaims[0]: Invalid value: "
                    '{"Name":"gpu","ResourceClaimName":"claim","ResourceClaimTemplateName":"t"}: at most one of '
                    "`resourceClaimName` or `resourceClaimTemplateName` may be specified"
                )
            ],
            id="two-sources",
        ),
        pytest.param(
            {"resourceClaims": [{"name": "gpu", "resourceClaimName": name} for name in "ab"]},
            ['spec.resourceClaims[1].name: Duplicate value: "gpu"'],
            id="duplicate-name",
        ),
        pytest.param(
            using({"name": "gpu", "request": "a"}, {"name": "gpu"}),
            [f'{AT}[1]: Duplicate value: "gpu"'],
            id="whole-claim-after-a-request",
        ),
        pytest.param(
            using({"name": "gpu"}, {"name": "gpu", "request": "a"}),
            [f'{AT}[1]: Duplicate value: "gpu"'],
            id="request-after-whole-claim",
        ),
        pytest.param(using({"name": "gpu", "request": "a"}, {"name": "gpu", "request": "b"}), [], id="two-requests"),
        pytest.param(using({}), [f"{AT}[0]: Required value"], id="no-name"),
        pytest.param(
            using({"name": "x"}),
            [f'{AT}[0]: Not found: "x": must be one of the names in pod.spec.resourceClaims: gpu'],
            id="unknown-claim",
        ),
        pytest.param(
            using(resources={"claims": [{"name": "gpu"}]}),
            ["spec.resources.claims: Forbidden: claims may not be set for Resources at pod-level"],
            id="claims-of-the-whole-pod",
        ),
        pytest.param(
            {
                "containers": [{"name": "c", "image": "x", "resources": {"claims": [{"name": "r", "request": "A_"}]}}],
                "resourceClaims": [{"name": "r", "resourceClaimName": "a"}],
            },
            [
                (
                    'spec.containers[0].resources.claims[0].request: Invalid value: "A_": a lowercase RFC 1123 '
                    "label must consist of lower case alphanumeric characters or '-', and must start and end "
                    "with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
                    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
                )
            ],
            id="containers-0-resources-claims-0-request-invalid-value",
        ),
        pytest.param(
            {"resourceClaims": [{}]},
            [
                "spec.resourceClaims[0].name: Required value",
                (
                    "spec.resourceClaims[0]: Invalid value: "
                    '{"Name":"","ResourceClaimName":null,"ResourceClaimTemplateName":null}: must specify one of: '
                    "`resourceClaimName`, `resourceClaimTemplateName`"
                ),
            ],
            id="resource-claims-0-name-required-value",
        ),
        pytest.param(
            {"resourceClaims": [{"name": "r", "resourceClaimName": ""}]},
            [
                (
                    'spec.resourceClaims[0].resourceClaimName: Invalid value: "": a lowercase RFC 1123 subdomain '
                    "must consist of lower case alphanumeric characters, '-' or '.', and must start and end with "
                    "an alphanumeric character (e.g. 'example.com', regex used for validation is "
                    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
                )
            ],
            id="resource-claims-0-resource-claim-name-invalid-value",
        ),
    ],
)
def test_refused(fields: dict[str, Any], want: list[str]) -> None:
    found = specs.errors(**fields)
    assert found == want
