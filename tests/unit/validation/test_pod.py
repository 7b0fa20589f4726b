"""Pods: claims in the spec, their use in containers, and what status says about them."""

from typing import Any

import pytest

from drachma.api import gates
from drachma.validation import podfields
from tests.unit.validation import builders
from tests.unit.validation.builders import POD, Document, changed, create, setting, update

CLAIMS = "spec.containers.0.resources.claims"
AT = "spec.containers[0].resources.claims"


def test_good() -> None:
    assert create(POD) == []


@pytest.mark.parametrize(
    ("path", "value", "want"),
    [
        pytest.param(
            "spec.resourceClaims.0",
            {"name": "gpu"},
            [('spec.resourceClaims[0]: Invalid value: {"Name":"gpu","ResourceClaimName":null,'
             '"ResourceClaimTemplateName":null}: must specify one of: `resourceClaimName`, '
             "`resourceClaimTemplateName`")],
            id="no-source",
        ),
        pytest.param(
            "spec.resourceClaims.0.resourceClaimTemplateName",
            "t",
            [('spec.resourceClaims[0]: Invalid value: {"Name":"gpu","ResourceClaimName":"claim",'
             '"ResourceClaimTemplateName":"t"}: at most one of `resourceClaimName` or '
             "`resourceClaimTemplateName` may be specified")],
            id="two-sources",
        ),
        pytest.param(
            "spec.resourceClaims",
            [{"name": "gpu", "resourceClaimName": "a"}, {"name": "gpu", "resourceClaimName": "b"}],
            ['spec.resourceClaims[1].name: Duplicate value: "gpu"'],
            id="duplicate-name",
        ),
        pytest.param(
            CLAIMS,
            [{"name": "gpu", "request": "a"}, {"name": "gpu"}],
            [f'{AT}[1]: Duplicate value: "gpu"'],
            id="whole-claim-after-a-request",
        ),
        pytest.param(
            CLAIMS,
            [{"name": "gpu"}, {"name": "gpu", "request": "a"}],
            [f'{AT}[1]: Duplicate value: "gpu"'],
            id="request-after-whole-claim",
        ),
        pytest.param(
            CLAIMS,
            [{"name": "gpu", "request": "a"}, {"name": "gpu", "request": "b"}],
            [],
            id="two-requests",
        ),
        pytest.param(CLAIMS, [{}], [f"{AT}[0]: Required value"], id="no-name"),
        pytest.param(
            CLAIMS,
            [{"name": "x"}],
            [f'{AT}[0]: Not found: "x": must be one of the names in pod.spec.resourceClaims: gpu'],
            id="unknown-claim",
        ),
        pytest.param(
            "spec.resources",
            {"claims": [{"name": "gpu"}]},
            ["spec.resources.claims: Forbidden: claims may not be set for Resources at pod-level"],
            id="claims-of-the-whole-pod",
        ),
        pytest.param(
            "metadata.annotations",
            {"kubernetes.io/config.mirror": "x"},
            ["[]: Forbidden: static pods do not support resource claims"],
            id="static-pod",
        ),
    ],
)  # fmt: skip
def test_create(path: str, value: Any, want: list[str]) -> None:
    assert create(changed(POD, setting(path, value))) == want


def test_claims_cannot_be_changed() -> None:
    new = changed(POD, setting("spec.resourceClaims.0.resourceClaimName", "other"))
    (found,) = update(new, POD)
    assert found.startswith("spec: Forbidden: pod updates may not change fields other than ")


@pytest.mark.parametrize(
    ("status", "want"),
    [
        pytest.param({"resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": "x"}]}, [], id="good"),
        pytest.param(
            {"resourceClaimStatuses": [{"name": "other"}, {"name": "other"}]},
            [
                ('status.resourceClaimStatuses[0].name: Invalid value: "other": must match the name of an entry in '
                "`spec.resourceClaims`"),
                ('status.resourceClaimStatuses[1].name: Invalid value: "other": must match the name of an entry in '
                "`spec.resourceClaims`"),
                'status.resourceClaimStatuses[1].name: Duplicate value: "other"',
            ],
            id="claim-statuses",
        ),
        pytest.param(
            {"extendedResourceClaimStatus": {}},
            [
                ("status.extendedResourceClaimStatus.requestMappings: Required value: "
                "at least one request mapping is required"),
                "status.extendedResourceClaimStatus.resourceClaimName: Required value",
            ],
            id="extended-empty",
        ),
        pytest.param(
            {
                "extendedResourceClaimStatus": {
                    "resourceClaimName": "c",
                    "requestMappings": [
                        {"containerName": "main", "resourceName": "example.com/y", "requestName": "r"},
                        {"containerName": "other", "resourceName": "example.com/x", "requestName": "r"},
                    ],
                }
            },
            [
                ("status.extendedResourceClaimStatus.requestMappings[0].resourceName: "
                'Invalid value: "example.com/y": must match the extended resource name of an entry in '
                "spec.initContainers.resources.requests or spec.containers.resources.requests"),
                ("status.extendedResourceClaimStatus.requestMappings[1].containerName: "
                'Invalid value: "other": must match the name of an entry in spec.initContainers.name or '
                "spec.containers.name"),
            ],
            id="extended-mappings",
        ),
        pytest.param(
            {"nodeAllocatableResourceClaimStatuses": [{"resourceClaimName": "other", "mapping": [{"name": "disk"}]}]},
            [
                ("status.nodeAllocatableResourceClaimStatuses[0].resourceClaimName: "
                'Invalid value: "other": no mapping found in pod reference'),
                ("status.nodeAllocatableResourceClaimStatuses[0].mapping[0].name: "
                'Invalid value: "disk": must be a node allocatable resource name'),
                "status.nodeAllocatableResourceClaimStatuses[0].mapping[0].quantity: Required value",
            ],
            id="node-allocatable",
        ),
    ],
)  # fmt: skip
def test_status(status: Document, want: list[str]) -> None:
    assert builders.update_status(changed(POD, setting("status", status)), POD) == want


def test_old_clients_do_not_lose_claim_statuses() -> None:
    old = changed(POD, setting("status", {"resourceClaimStatuses": [{"name": "gpu"}], "phase": "Pending"}))
    new = changed(POD, setting("status", {"phase": "Running"}))
    assert podfields.keep_status(new, old)["status"] == {
        "phase": "Running",
        "resourceClaimStatuses": [{"name": "gpu"}],
    }
    cleared = changed(POD, setting("status", {"resourceClaimStatuses": []}))
    assert podfields.keep_status(cleared, old) == cleared


@pytest.mark.parametrize(
    ("old", "is_dropped"),
    [pytest.param(None, True, id="new-pod"), pytest.param(POD, False, id="pod-that-uses-claims")],
)
def test_claims_are_dropped_where_the_core_is_off(old: Document | None, *, is_dropped: bool) -> None:
    off = gates.ALL.switched({"DynamicResourceAllocation": False})
    result = podfields.drop_disabled(POD, old=old, gates=off)
    assert ("resourceClaims" not in result["spec"]) is is_dropped
    assert ("claims" not in result["spec"]["containers"][0]["resources"]) is is_dropped
    assert podfields.drop_disabled(POD, old=None, gates=gates.ALL) == POD
