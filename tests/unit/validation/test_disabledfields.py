"""Fields of features that are off: dropped from new objects, kept where the stored object uses them."""

from typing import Any

import pytest

from drachma.api import codec, gates
from drachma.validation import writes
from tests.unit.validation import builders
from tests.unit.validation.builders import ALLOCATED, CLAIM, SLICE, Change, Document, changed, setting, stored

EXACTLY = "spec.devices.requests.0.exactly"
SUB = "spec.devices.requests.1.firstAvailable.0"
DEVICE = "spec.devices.0"
RESULT = "status.allocation.devices.results.0"
CONSUMES = [{"counterSet": "s", "counters": {"m": {"value": "1"}}, "compatibilityGroups": ["g"]}]


def found(document: Document, path: str) -> Any:
    value: Any = document
    for step in path.split("."):
        value = value[int(step)] if isinstance(value, list) else value.get(step)
        if value is None:
            return None
    return value


def off(gate: str) -> gates.Gates:
    return gates.ALL.switched({gate: False})


CASES = [
    pytest.param(CLAIM, "DRAPrioritizedList", "spec.devices.requests.1.firstAvailable", None, id="first-available"),
    pytest.param(CLAIM, "DRADeviceTaints", f"{EXACTLY}.tolerations", [{"operator": "Exists"}], id="tolerations"),
    pytest.param(CLAIM, "DRADeviceTaints", f"{SUB}.tolerations", [{"operator": "Exists"}], id="sub-tolerations"),
    pytest.param(CLAIM, "DRAAdminAccess", f"{EXACTLY}.adminAccess", False, id="admin-access"),
    pytest.param(CLAIM, "DRAConsumableCapacity", f"{EXACTLY}.capacity", {"requests": {"a": "1"}}, id="capacity"),
    pytest.param(CLAIM, "DRADerivedAttributes", f"{SUB}.derivedAttributes", [{"name": "a/b"}], id="derived-attributes"),
    pytest.param(SLICE, "DRADeviceTaints", f"{DEVICE}.taints", [{"key": "a", "effect": "None"}], id="taints"),
    pytest.param(SLICE, "DRAPartitionableDevices", f"{DEVICE}.consumesCounters", CONSUMES, id="consumed-counters"),
    pytest.param(SLICE, "DRAPartitionableDevices", "spec.perDeviceNodeSelection", True, id="per-device-selection"),
    pytest.param(SLICE, "DRADeviceBindingConditions", f"{DEVICE}.bindingConditions", ["a"], id="binding-conditions"),
    pytest.param(SLICE, "DRAResourceClaimDeviceStatus", f"{DEVICE}.bindsToNode", True, id="binding-needs-reports"),
    pytest.param(SLICE, "DRAConsumableCapacity", f"{DEVICE}.allowMultipleAllocations", True, id="shared-device"),
    pytest.param(
        SLICE, "DRAConsumableCapacity", f"{DEVICE}.capacity.memory.requestPolicy", {"default": "1"}, id="request-policy"
    ),
    pytest.param(
        SLICE, "DRANodeAllocatableResources", f"{DEVICE}.nodeAllocatableResources", {"cpu": {}}, id="node-allocatable"
    ),
    pytest.param(SLICE, "DRAListTypeAttributes", f"{DEVICE}.attributes.model.ints", [1], id="list-attribute"),
    pytest.param(SLICE, "DRAPartitionableDevicesType", "spec.partitionTypeAttribute", "a/b", id="partition-type"),
    pytest.param(SLICE, "DRAOptionalNodeOperations", "spec.skipNodeOperations", ["*"], id="skipped-operations"),
]


def used(document: Document, path: str, value: Any) -> Document:
    return document if value is None else changed(document, setting(path, value))


@pytest.mark.parametrize(("document", "gate", "path", "value"), CASES)
def test_dropped_from_new_objects(document: Document, gate: str, path: str, value: Any) -> None:
    given = builders.read(used(document, path, value))
    created = writes.create(given, builders.context(gates=off(gate))).object
    assert found(codec.encode(created), path) is None
    kept = writes.create(given, builders.context()).object
    assert found(codec.encode(kept), path) is not None


@pytest.mark.parametrize(("document", "gate", "path", "value"), CASES)
def test_kept_where_the_stored_object_uses_it(document: Document, gate: str, path: str, value: Any) -> None:
    old = builders.read(stored(used(document, path, value)))
    updated = writes.update(old, old, builders.context(gates=off(gate))).object
    assert found(codec.encode(updated), path) is not None


def test_compatibility_groups_go_without_their_counters() -> None:
    given = builders.read(changed(SLICE, setting(f"{DEVICE}.consumesCounters", CONSUMES)))
    created = writes.create(given, builders.context(gates=off("DRADeviceCompatibilityGroups"))).object
    (consumption,) = created.spec.devices[0].consumes_counters
    assert consumption.counter_set == "s"
    assert consumption.compatibility_groups == ()


@pytest.mark.parametrize(
    ("gate", "change", "path"),
    [
        pytest.param("DRAAdminAccess", setting(f"{RESULT}.adminAccess", False), f"{RESULT}.adminAccess", id="admin"),
        pytest.param("DRAConsumableCapacity", setting(f"{RESULT}.shareID", "x"), f"{RESULT}.shareID", id="share"),
        pytest.param(
            "DRAConsumableCapacity",
            setting(f"{RESULT}.consumedCapacity", {"a": "1"}),
            f"{RESULT}.consumedCapacity",
            id="consumed-capacity",
        ),
        pytest.param(
            "DRADeviceBindingConditions",
            setting(f"{RESULT}.bindingConditions", ["a"]),
            f"{RESULT}.bindingConditions",
            id="binding-conditions",
        ),
        pytest.param(
            "DRAOptionalNodeOperations",
            setting(f"{RESULT}.skipNodeOperations", ["*"]),
            f"{RESULT}.skipNodeOperations",
            id="skipped-operations",
        ),
        pytest.param(
            "DRAResourceClaimDeviceStatus",
            setting("status.devices", [{"driver": "dra.example.com", "pool": "pool", "device": "gpu-0"}]),
            "status.devices",
            id="device-status",
        ),
    ],
)
def test_status(gate: str, change: Change, path: str) -> None:
    new = builders.read(changed(ALLOCATED, change))
    context = builders.context(gates=off(gate))
    dropped = writes.update_status(new, builders.read(stored(CLAIM)), context).object
    assert found(codec.encode(dropped), path) is None
    kept = writes.update_status(new, new, context).object
    assert found(codec.encode(kept), path) is not None
