"""Devices of a slice: names, taints, counters they consume, groups, nodes, conditions, node-allocatable resources."""

from typing import Any

import pytest

from tests.unit.validation.builders import SLICE, changed, create, setting

DEVICE = "spec.devices.0"
AT = "spec.devices[0]"
CONSUMES = [{"counterSet": "set", "counters": {"memory": {"value": "1"}}}]


@pytest.mark.parametrize(
    ("path", "value", "want"),
    [
        pytest.param(f"{DEVICE}.name", "a.b", f'{AT}.name: Invalid value: "a.b": must not contain dots', id="device"),
        pytest.param(
            f"{DEVICE}.taints",
            [{"key": "a", "effect": "NoSchedule"}] * 17,
            f"{AT}.taints: Too many: 17: must have at most 16 items",
            id="too-many-taints",
        ),
        pytest.param(
            f"{DEVICE}.taints", [{"key": "a"}], f"{AT}.taints[0].effect: Required value", id="taint-without-effect"
        ),
        pytest.param(
            f"{DEVICE}.consumesCounters",
            CONSUMES * 3,
            f"{AT}.consumesCounters: Too many: 3: must have at most 2 items",
            id="too-many-consumptions",
        ),
        pytest.param(
            f"{DEVICE}.consumesCounters",
            [{"counterSet": "a.b", "counters": {"m": {"value": "1"}}}],
            f'{AT}.consumesCounters[0].counterSet: Invalid value: "a.b": must not contain dots',
            id="counter-set-name",
        ),
        pytest.param(
            f"{DEVICE}.consumesCounters",
            [{**CONSUMES[0], "compatibilityGroups": ["a", "b", "c"]}],
            f"{AT}.consumesCounters[0].compatibilityGroups: Too many: 3: must have at most 2 items",
            id="too-many-groups",
        ),
        pytest.param(
            f"{DEVICE}.consumesCounters",
            [{**CONSUMES[0], "compatibilityGroups": ["a", "a"]}],
            f'{AT}.consumesCounters[0].compatibilityGroups[1]: Duplicate value: "a"',
            id="duplicate-group",
        ),
        pytest.param(
            f"{DEVICE}.nodeName",
            "x",
            f"{AT}: Invalid value: null: `nodeName`, `nodeSelector` and `allNodes` can only be set if "
            "`perDeviceNodeSelection` is set to true in the ResourceSlice spec",
            id="device-node-name",
        ),
        pytest.param(
            f"{DEVICE}.bindingConditions",
            ["a"],
            f"{AT}.bindingFailureConditions: Invalid value: null: bindingFailureConditions are required to use "
            "bindingConditions",
            id="binding-conditions-alone",
        ),
        pytest.param(
            f"{DEVICE}.nodeAllocatableResources",
            {"ephemeral-storage": {"mapping": {"deviceMultiplier": "1"}}},
            f'{AT}.nodeAllocatableResources[ephemeral-storage]: Invalid value: "ephemeral-storage": '
            "must be a node allocatable resource name",
            id="resource-that-devices-cannot-be",
        ),
        pytest.param(
            f"{DEVICE}.nodeAllocatableResources",
            {"cpu": {}},
            f"{AT}.nodeAllocatableResources[cpu]: Required value: at least one of mapping or overhead must be set",
            id="node-allocatable-empty",
        ),
        pytest.param(
            f"{DEVICE}.nodeAllocatableResources",
            {"cpu": {"mapping": {"capacityKey": "x", "capacityMultiplier": "1"}}},
            f'{AT}.nodeAllocatableResources[cpu].mapping.capacityKey: Not found: "x"',
            id="node-allocatable-capacity",
        ),
        pytest.param(
            f"{DEVICE}.nodeAllocatableResources",
            {"cpu": {"overhead": {"perPod": "-1"}}},
            f'{AT}.nodeAllocatableResources[cpu].overhead.perPod: Invalid value: "-1": must be non-negative',
            id="node-allocatable-overhead",
        ),
        pytest.param(
            f"{DEVICE}.nodeAllocatableResourceMappings",
            {"cpu": {"capacityKey": "x"}},
            f'{AT}.nodeAllocatableResourceMappings[cpu].capacityKey: Not found: "x"',
            id="node-allocatable-in-the-older-spelling",
        ),
    ],
)
def test_one_thing_wrong(path: str, value: Any, want: str) -> None:
    assert create(changed(SLICE, setting(path, value))) == [want]
