"""Parts that upstream writes although they are empty."""

from typing import Any

import pytest

from drachma.server.schema import emptyfields
from tests.unit.server import served

V1 = "resource.k8s.io/v1"


@pytest.mark.parametrize(
    ("kind", "given", "want"),
    [
        pytest.param(
            "ResourceClaim",
            {},
            {"metadata": {}, "spec": {"devices": {"requests": None}}, "status": {}},
            id="empty-claim-has-null-requests",
        ),
        pytest.param(
            "ResourceClaim",
            {"spec": {"devices": {"requests": [{"name": "r"}]}}, "status": {"devices": [{"driver": "d"}]}},
            {
                "metadata": {},
                "spec": {"devices": {"requests": [{"name": "r"}]}},
                "status": {"devices": [{"driver": "d", "conditions": None}]},
            },
            id="device-status-has-null-conditions",
        ),
        pytest.param("DeviceClass", {}, {"metadata": {}, "spec": {}}, id="optional-lists-stay-away"),
    ],
)
def test_containers_of_device_kinds(kind: str, given: dict[str, Any], want: dict[str, Any]) -> None:
    emptyfields.fill_containers(given, served.schema(V1, kind))
    assert given == want
