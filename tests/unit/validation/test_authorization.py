"""Parts of a claim's status that need permissions of their own."""

import pytest

from drachma.api import gates
from tests.unit.validation import builders
from tests.unit.validation.builders import ALLOCATED, CLAIM, changed, setting, stored

REPORT = [{"driver": "dra.example.com", "pool": "pool", "device": "gpu-0"}]
ON_NODE = {"nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["node-1"]}]}]}


class FakeAuthorizer:
    """Allows what it was given, as (verb, subresource)."""

    def __init__(self, *allowed: tuple[str, str], node_name: str = "") -> None:
        self.verb = "update"
        self.node_name = node_name
        self.asked: list[tuple[str, str, str, str]] = []
        self._allowed = allowed

    def refusal(self, *, verb: str, subresource: str, namespace: str, name: str) -> str | None:
        self.asked.append((verb, subresource, namespace, name))
        return None if (verb, subresource) in self._allowed else "no"


def test_allocation_needs_binding_permission_in_the_whole_cluster() -> None:
    authorizer = FakeAuthorizer()
    found = builders.update_status(ALLOCATED, stored(CLAIM), authorizer=authorizer)
    assert found == [
        (
            "status.allocation: Forbidden: changing status.allocation or status.reservedFor requires "
            'resource="resourceclaims/binding", verb="update" permission: no'
        )
    ]
    assert authorizer.asked == [("update", "binding", "", "")]
    allowed = FakeAuthorizer(("update", "binding"))
    assert builders.update_status(ALLOCATED, stored(CLAIM), authorizer=allowed) == []


@pytest.mark.parametrize(
    ("authorizer", "is_allowed"),
    [
        pytest.param(FakeAuthorizer(), False, id="nothing"),
        pytest.param(FakeAuthorizer(("arbitrary-node:update", "driver")), True, id="any-node"),
        pytest.param(FakeAuthorizer(("associated-node:update", "driver")), False, id="associated-but-elsewhere"),
        pytest.param(
            FakeAuthorizer(("associated-node:update", "driver"), node_name="node-1"), True, id="associated-on-its-node"
        ),
    ],
)
def test_reports_need_permission_for_their_driver(authorizer: FakeAuthorizer, *, is_allowed: bool) -> None:
    old = changed(ALLOCATED, setting("status.allocation.nodeSelector", ON_NODE))
    found = builders.update_status(changed(old, setting("status.devices", REPORT)), old, authorizer=authorizer)
    assert (found == []) is is_allowed
    assert all(asked[2:] == ("default", "dra.example.com") for asked in authorizer.asked)


def test_message_names_the_verbs_that_were_tried() -> None:
    old = changed(ALLOCATED, setting("status.allocation.nodeSelector", ON_NODE))
    new = changed(old, setting("status.devices", REPORT))
    (found,) = builders.update_status(new, old, authorizer=FakeAuthorizer(node_name="node-1"))
    assert found == (
        'status.devices: Forbidden: changing status.devices requires resource="resourceclaims/driver", '
        'verb="[associated-node:update arbitrary-node:update]" permission: no'
    )


def test_unchanged_parts_need_nothing() -> None:
    authorizer = FakeAuthorizer()
    assert builders.update_status(ALLOCATED, ALLOCATED, authorizer=authorizer) == []
    assert authorizer.asked == []


def test_gate_off() -> None:
    off = gates.ALL.switched({"DRAResourceClaimGranularStatusAuthorization": False})
    assert builders.update_status(ALLOCATED, stored(CLAIM), authorizer=FakeAuthorizer(), gates=off) == []
