"""Pods: what their status says about claims, and what becomes of that where clients or gates do not know it."""

import pytest

from drachma.api import gates
from drachma.validation import podfields
from drachma.validation.podspec import status as status_rules
from tests.unit.validation import builders
from tests.unit.validation.builders import POD, Document, changed, setting


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
    new, old = builders.read(changed(POD, setting("status", status))), builders.read(POD)
    assert list(map(str, status_rules.check_claim_statuses(new, old))) == want


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
