"""ResourceClaimTemplate: a claim's rules one level down, bare metadata, and an immutable spec."""

from typing import Any

import pytest

from tests.unit.validation.builders import TEMPLATE, changed, create, setting, stored, update


def test_good() -> None:
    assert create(TEMPLATE) == []


@pytest.mark.parametrize(
    ("path", "value", "want"),
    [
        pytest.param(
            "spec.spec.devices.requests.0.exactly.deviceClassName",
            "",
            "spec.spec.devices.requests[0].exactly.deviceClassName: Required value",
            id="claim-rule",
        ),
        pytest.param("spec.metadata.name", "x", "spec.metadata.name: Forbidden: cannot be set", id="name"),
        pytest.param("spec.metadata.uid", "x", "spec.metadata.uID: Forbidden: cannot be set", id="uid-as-go-spells-it"),
        pytest.param(
            "spec.metadata.finalizers", [], "spec.metadata.finalizers: Forbidden: cannot be set", id="empty-finalizers"
        ),
        pytest.param(
            "spec.metadata.deletionGracePeriodSeconds",
            0,
            "spec.metadata.deletionGracePeriodSeconds: Forbidden: cannot be set",
            id="zero-grace-period",
        ),
        pytest.param(
            "spec.spec.devices.requests.0.exactly.adminAccess",
            True,
            "spec.devices.requests[0].adminAccess: Forbidden: admin access to devices requires the "
            "`resource.kubernetes.io/admin-access: true` label on the containing namespace",
            id="admin-access-at-the-path-of-a-claim",
        ),
    ],
)
def test_one_thing_wrong(path: str, value: Any, want: str) -> None:
    assert create(changed(TEMPLATE, setting(path, value))) == [want]


def test_spec_is_immutable_and_shown_as_the_server_has_it() -> None:
    new = changed(stored(TEMPLATE), setting("spec.spec.devices.requests", []))
    assert update(new, stored(TEMPLATE)) == [
        (
            'spec: Invalid value: {"labels":{"app":"x"},"Spec":{"Devices":{"Requests":[],"Constraints":null,'
            '"Config":null}}}: field is immutable'
        )
    ]
