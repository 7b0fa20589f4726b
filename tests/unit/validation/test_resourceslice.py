"""ResourceSlice: every rule for pools, node selection, devices, capacities and counters."""

from typing import Any

import pytest

from drachma import validation
from drachma.api import gates
from tests.unit.validation import builders
from tests.unit.validation.builders import COUNTERS, SLICE, Document, changed, create, setting, stored, update

DEVICE = "spec.devices.0"
AT = "spec.devices[0]"
POLICY = f"{AT}.capacity[memory].requestPolicy"
CONSUMES = [{"counterSet": "set", "counters": {"memory": {"value": "1"}}}]
ONE_TERM = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]}]}


def shared(policy: Document) -> builders.Change:
    def change(document: Document) -> None:
        builders.put(document, f"{DEVICE}.allowMultipleAllocations", True)
        builders.put(document, f"{DEVICE}.capacity.memory.requestPolicy", policy)

    return change


def range_policy(default: str = "2", **bounds: str) -> Document:
    return {"default": default, "validRange": {"min": "1", **bounds}}


@pytest.mark.parametrize(
    "document",
    [
        pytest.param(SLICE, id="plain"),
        pytest.param(COUNTERS, id="counters"),
        pytest.param(changed(SLICE, setting("spec.pool.name", "a.b/c")), id="pool-with-slash"),
        pytest.param(changed(SLICE, setting("spec.driver", "Dra.Example.com")), id="driver-with-capitals"),
        pytest.param(changed(SLICE, setting(f"{DEVICE}.attributes", {"a/b/c": {"int": 1}})), id="two-slashes-pass"),
        pytest.param(changed(SLICE, shared(range_policy("3", max="9", step="2"))), id="range"),
        pytest.param(changed(SLICE, shared(range_policy("1500m", max="2", step="500m"))), id="fractional-range"),
        pytest.param(changed(SLICE, shared({"default": "2", "validValues": ["1", "2", "1Ki"][:2]})), id="values"),
        pytest.param(
            changed(SLICE, shared({"default": "1", "validValues": ["1", "1000m"]})), id="same-value-other-spelling"
        ),
    ],
)
def test_good(document: Document) -> None:
    assert create(document) == []


@pytest.mark.parametrize(
    ("path", "value", "want"),
    [
        pytest.param("spec.driver", "", "spec.driver: Required value", id="driver-required"),
        pytest.param("spec.driver", "d" * 64, "spec.driver: Too long: may not be more than 63 bytes", id="driver-long"),
        pytest.param("spec.pool.name", "", "spec.pool.name: Required value", id="pool-required"),
        pytest.param(
            "spec.pool.resourceSliceCount",
            0,
            "spec.pool.resourceSliceCount: Invalid value: 0: must be greater than zero",
            id="slice-count",
        ),
        pytest.param(
            "spec.pool.generation",
            -1,
            "spec.pool.generation: Invalid value: -1: must be greater than or equal to zero",
            id="generation",
        ),
        pytest.param(
            "spec.allNodes",
            True,
            'spec: Invalid value: "{`nodeName`, `allNodes`}": exactly one of `nodeName`, `nodeSelector`, `allNodes`, '
            "`perDeviceNodeSelection` is required, but multiple fields are set",
            id="two-selections",
        ),
        pytest.param(
            "spec.allNodes",
            False,
            "spec.allNodes: Invalid value: false: must be either unset or set to true",
            id="all-nodes-false",
        ),
        pytest.param(
            "spec.sharedCounters",
            [],
            'spec: Invalid value: "": only one of `sharedCounters` or `devices` is allowed',
            id="devices-and-empty-counters",
        ),
        pytest.param(f"{DEVICE}.name", "a.b", f'{AT}.name: Invalid value: "a.b": must not contain dots', id="device"),
        pytest.param(
            "spec.devices",
            [{"name": "a"}, {"name": "a"}],
            'spec.devices[1]: Duplicate value: "a"',
            id="duplicate-device",
        ),
        pytest.param(
            "spec.devices",
            [{"name": f"d{i}"} for i in range(129)],
            "spec.devices: Too many: 129: must have at most 128 items",
            id="too-many-devices",
        ),
        pytest.param(
            "spec.devices",
            [{"name": f"d{i}", "attributes": {"a": {"ints": [1]}}} for i in range(65)],
            "spec.devices: Too many: 65: must have at most 64 items",
            id="too-many-devices-with-lists",
        ),
        pytest.param(
            f"{DEVICE}.attributes",
            {f"a{i}": {"int": 1} for i in range(32)},
            f"{AT}: Invalid value: 33: the total number of attributes and capacities must not exceed 32",
            id="too-many-attributes",
        ),
        pytest.param(
            f"{DEVICE}.attributes",
            {"a": {"ints": list(range(49))}},
            f"{AT}: Invalid value: 49: the total number of attribute values must not exceed 48",
            id="too-many-attribute-values",
        ),
        pytest.param(
            f"{DEVICE}.attributes",
            {"/a": {"int": 1}},
            f'{AT}.attributes: Invalid value: "": the domain must not be empty',
            id="attribute-domain-empty",
        ),
        pytest.param(
            f"{DEVICE}.attributes",
            {"a/": {"int": 1}},
            f'{AT}.attributes: Invalid value: "": the name must not be empty',
            id="attribute-name-empty",
        ),
        pytest.param(
            f"{DEVICE}.attributes",
            {"a" * 33: {"int": 1}},
            f"{AT}.attributes: Too long: may not be more than 32 bytes",
            id="attribute-name-long",
        ),
        pytest.param(
            f"{DEVICE}.attributes",
            {"a": {}},
            f'{AT}.attributes[a]: Invalid value: "": must specify one of: `int`, `bool`, `string`, '
            "`version`, `ints`, `bools`, `strings`, `versions`",
            id="attribute-without-value",
        ),
        pytest.param(
            f"{DEVICE}.attributes.model",
            {"int": 1, "string": "x"},
            f'{AT}.attributes[model]: Invalid value: "{{int, string}}": must specify exactly one of: `int`, `bool`, '
            "`string`, `version`, `ints`, `bools`, `strings`, `versions`",
            id="attribute-with-two-values",
        ),
        pytest.param(
            f"{DEVICE}.attributes.model",
            {"string": "é" * 33},
            f"{AT}.attributes[model].string: Too long: may not be more than 64 bytes",
            id="attribute-text-long",
        ),
        pytest.param(
            f"{DEVICE}.attributes.model",
            {"version": "1.2"},
            f'{AT}.attributes[model].version: Invalid value: "1.2": must be a string compatible with semver.org spec '
            "2.0.0",
            id="attribute-version",
        ),
        pytest.param(
            f"{DEVICE}.attributes.model",
            {"versions": ["1.2.3", "01.2.3"]},
            f'{AT}.attributes[model].versions[1]: Invalid value: "01.2.3": must be a string compatible with '
            "semver.org spec 2.0.0",
            id="attribute-versions",
        ),
        pytest.param(
            f"{DEVICE}.capacity.memory.requestPolicy",
            {},
            f"{POLICY}: Forbidden: allowMultipleAllocations must be true",
            id="policy-on-exclusive-device",
        ),
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
        pytest.param(
            "spec.partitionTypeAttribute",
            "dra.example.com/model",
            'spec.partitionTypeAttribute: Invalid value: "dra.example.com/model": may only be set on a slice which '
            "declares devices that consume counters",
            id="partition-type-without-counters",
        ),
        pytest.param(
            "spec.skipNodeOperations",
            ["NodeUnprepareResources", "Nothing"],
            'spec.skipNodeOperations[1]: Unsupported value: "Nothing": supported values: "*", "NodePrepareResources", '
            '"NodeUnprepareResources"',
            id="unknown-operation",
        ),
    ],
)
def test_one_thing_wrong(path: str, value: Any, want: str) -> None:
    assert create(changed(SLICE, setting(path, value))) == [want]


def test_a_long_pool_name_breaks_two_rules() -> None:
    found = create(changed(SLICE, setting("spec.pool.name", "p" * 254)))
    assert found == [
        "spec.pool.name: Too long: may not be more than 253 bytes",
        f'spec.pool.name: Invalid value: "{"p" * 254}": must be no more than 253 characters',
    ]


def test_long_keys_are_shortened_in_hand_written_paths_only() -> None:
    key = "x" * 120
    found = create(changed(SLICE, setting(f"{DEVICE}.attributes", {key: {}})))
    shortened = "x" * 47 + "..." + "x" * 46
    assert [error.partition(": ")[0] for error in found] == [
        f"{AT}.attributes",
        f"{AT}.attributes[{shortened}]",
        f"{AT}.attributes[{key}]",
    ]


@pytest.mark.parametrize(
    ("policy", "want"),
    [
        pytest.param(
            {"validValues": ["1"]},
            [f"{POLICY}.default: Required value: required when validValues is defined"],
            id="values-without-default",
        ),
        pytest.param(
            {"validRange": {"min": "1"}},
            [f"{POLICY}.default: Required value: required when validRange is defined"],
            id="range-without-default",
        ),
        pytest.param(
            {"default": "1", "validValues": ["1"], "validRange": {"min": "1"}},
            [
                (
                    f'{POLICY}: Forbidden: exactly one policy can be specified, cannot specify "validValues" and '
                    '"validRange" at the same time'
                )
            ],
            id="two-policies",
        ),
        pytest.param(
            {"default": "2", "validValues": ["2", "1"]},
            [f'{POLICY}.validValues[1]: Invalid value: "1": values must be sorted in ascending order'],
            id="not-sorted",
        ),
        pytest.param(
            {"default": "1", "validValues": ["1", "11"]},
            [f'{POLICY}.validValues[1]: Invalid value: "11": option is larger than capacity value: 10'],
            id="larger-than-capacity",
        ),
        pytest.param(
            {"default": "1", "validValues": ["1", "1"]},
            [f'{POLICY}.validValues[1]: Duplicate value: "1"'],
            id="duplicate-value",
        ),
        pytest.param(
            {"default": "3", "validValues": ["1"]},
            [f'{POLICY}.validValues: Invalid value: "3": default value is not valid according to the requestPolicy'],
            id="default-not-among-values",
        ),
        pytest.param(
            {"default": "1", "validRange": {"max": "2"}},
            [f"{POLICY}.validRange.min: Required value: required when validRange is defined"],
            id="range-without-min",
        ),
        pytest.param(
            range_policy("0"),
            [f'{POLICY}.validRange.default: Invalid value: "0": default is less than min: 1'],
            id="default-below-min",
        ),
        pytest.param(
            range_policy("9", max="8"),
            [f'{POLICY}.validRange.default: Invalid value: "9": default is more than max: 8'],
            id="default-above-max",
        ),
        pytest.param(
            range_policy("2", max="11"),
            [f'{POLICY}.validRange.max: Invalid value: "11": max is larger than capacity value: 10'],
            id="max-beyond-capacity",
        ),
        pytest.param(
            range_policy("2", step="0"),
            [f'{POLICY}.validRange.step: Invalid value: "0": must be greater than zero'],
            id="step-not-positive",
        ),
        pytest.param(
            range_policy("2", step="2"),
            [f'{POLICY}.validRange.step: Invalid value: "2": value is not a multiple of a given step (2) from (1)'],
            id="default-off-the-steps",
        ),
        pytest.param(
            range_policy("1", step="10"),
            [f'{POLICY}.validRange.step: Invalid value: "10": one step 11 is larger than capacity value: 10'],
            id="step-beyond-capacity",
        ),
        pytest.param(
            range_policy("1", step="1u"),
            [f'{POLICY}.validRange.step: Invalid value: "1u": value cannot be represented as a milli value'],
            id="finer-than-milli",
        ),
    ],
)
def test_request_policies(policy: Document, want: list[str]) -> None:
    assert create(changed(SLICE, shared(policy))) == want


def test_too_many_options_hide_the_default() -> None:
    policy = {"default": "1", "validValues": [f"{i}" for i in range(11)]}
    assert create(changed(SLICE, shared(policy))) == [
        f"{POLICY}.validValues: Too many: 11: must have at most 10 items",
        f'{POLICY}.validValues: Invalid value: "1": default value is not valid according to the requestPolicy',
    ]


def test_without_fractions_options_are_compared_as_integers() -> None:
    off = gates.ALL.switched({"DRAFractionalCapacityRange": False})
    document = changed(SLICE, shared({"default": "1", "validValues": ["500m", "1"]}))
    assert create(document, gates=off) == [f'{POLICY}.validValues[1]: Duplicate value: "1"']


def test_without_fractions_a_negative_bound_is_refused() -> None:
    off = gates.ALL.switched({"DRAFractionalCapacityRange": False})
    policy = {"default": "1", "validRange": {"min": "-1", "step": "1"}}
    assert create(changed(SLICE, shared(policy)), gates=off) == [
        f'{POLICY}.validRange.min: Invalid value: "-1": must be greater than or equal to 0'
    ]


def test_stored_capacity_is_not_checked_again() -> None:
    old = changed(stored(SLICE), shared({"validValues": ["99"]}))
    assert update(changed(old, setting("metadata.labels", {"a": "b"})), old) == []
    touched = update(changed(old, setting(f"{DEVICE}.capacity.memory.value", "11")), old)
    assert touched == [f"{POLICY}.default: Required value: required when validValues is defined"]


@pytest.mark.parametrize(
    ("terms", "want"),
    [
        pytest.param(
            {},
            [
                "nodeSelectorTerms: Required value: must have at least one node selector term",
                "nodeSelectorTerms: Invalid value: null: must have exactly one node selector term",
            ],
            id="none",
        ),
        pytest.param(
            {"nodeSelectorTerms": [{}, {}]},
            [
                (
                    'nodeSelectorTerms: Invalid value: [{"MatchExpressions":null,"MatchFields":null},'
                    '{"MatchExpressions":null,"MatchFields":null}]: must have exactly one node selector term'
                )
            ],
            id="two",
        ),
        pytest.param(
            {"nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "In"}]}]},
            [
                (
                    "nodeSelectorTerms[0].matchExpressions[0].values: Required value: "
                    "must be specified when `operator` is 'In' or 'NotIn'"
                )
            ],
            id="in-without-values",
        ),
        pytest.param(
            {"nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "Exists", "values": ["x"]}]}]},
            [
                (
                    "nodeSelectorTerms[0].matchExpressions[0].values: Forbidden: "
                    "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
                )
            ],
            id="exists-with-values",
        ),
        pytest.param(
            {"nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "Gt", "values": ["1", "2"]}]}]},
            [
                (
                    "nodeSelectorTerms[0].matchExpressions[0].values: Required value: "
                    "must be specified single value when `operator` is 'Lt' or 'Gt'"
                )
            ],
            id="greater-than-two-values",
        ),
        pytest.param(
            {"nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "Like"}]}]},
            ['nodeSelectorTerms[0].matchExpressions[0].operator: Invalid value: "Like": not a valid selector operator'],
            id="unknown-operator",
        ),
        pytest.param(
            {"nodeSelectorTerms": [{"matchFields": [{"key": "spec.x", "operator": "In", "values": ["a", "b"]}]}]},
            [
                (
                    "nodeSelectorTerms[0].matchFields[0].values: Required value: "
                    "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
                ),
                'nodeSelectorTerms[0].matchFields[0].key: Invalid value: "spec.x": not a valid field selector key',
            ],
            id="field",
        ),
    ],
)
def test_node_selectors(terms: Document, want: list[str]) -> None:
    def change(document: Document) -> None:
        del document["spec"]["nodeName"]
        document["spec"]["nodeSelector"] = terms

    assert create(changed(SLICE, change)) == [f"spec.nodeSelector.{error}" for error in want]


@pytest.mark.parametrize(
    ("device", "want"),
    [
        pytest.param({"nodeName": "a"}, [], id="by-name"),
        pytest.param({"nodeSelector": ONE_TERM}, [], id="by-selector"),
        pytest.param({"allNodes": True}, [], id="all"),
        pytest.param(
            {},
            ["spec.devices[0]: Required value: exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required"],
            id="none",
        ),
        pytest.param(
            {"nodeName": "a", "allNodes": True},
            ['spec.devices[0]: Invalid value: "{`nodeName`, `allNodes`}": exactly one of'],
            id="two",
        ),
    ],
)
def test_selection_per_device(device: Document, want: list[str]) -> None:
    def change(document: Document) -> None:
        del document["spec"]["nodeName"]
        document["spec"].update(perDeviceNodeSelection=True, devices=[{"name": "d", **device}])

    found = create(changed(SLICE, change))
    assert len(found) == len(want)
    assert all(error.startswith(start) for error, start in zip(found, want, strict=True))


@pytest.mark.parametrize(
    ("path", "value", "want"),
    [
        pytest.param("spec.sharedCounters.0.name", "", "spec.sharedCounters[0].name: Required value", id="name"),
        pytest.param(
            "spec.sharedCounters.0.counters", {}, "spec.sharedCounters[0].counters: Required value", id="no-counters"
        ),
        pytest.param(
            "spec.sharedCounters.0.counters",
            {f"c{i}": {"value": "1"} for i in range(33)},
            "spec.sharedCounters[0].counters: Too many: 33: must have at most 32 items",
            id="too-many-counters",
        ),
        pytest.param(
            "spec.sharedCounters.0.counters",
            {"a.b": {"value": "1"}},
            'spec.sharedCounters[0].counters: Invalid value: "a.b": must not contain dots',
            id="counter-name",
        ),
        pytest.param(
            "spec.sharedCounters",
            COUNTERS["spec"]["sharedCounters"] * 2,
            'spec.sharedCounters[1]: Duplicate value: {"name":"set","counters":{"memory":{"value":"1"}}}',
            id="duplicate-set",
        ),
        pytest.param(
            "spec.sharedCounters",
            [{"name": f"s{i}", "counters": {"m": {"value": "1"}}} for i in range(9)],
            "spec.sharedCounters: Too many: 9: must have at most 8 items",
            id="too-many-sets",
        ),
    ],
)
def test_shared_counters(path: str, value: Any, want: str) -> None:
    assert create(changed(COUNTERS, setting(path, value))) == [want]


def test_partition_type_must_be_a_string_on_every_partition() -> None:
    def change(document: Document) -> None:
        document["spec"]["partitionTypeAttribute"] = "dra.example.com/profile"
        document["spec"]["devices"] = [
            {"name": "bare", "attributes": {"profile": {"string": "1g"}}, "consumesCounters": CONSUMES},
            {"name": "whole"},
            {"name": "lacking", "consumesCounters": CONSUMES},
            {"name": "number", "attributes": {"profile": {"int": 1}}, "consumesCounters": CONSUMES},
        ]

    found = create(changed(SLICE, change))
    assert [error.partition(": ")[0] for error in found] == [
        "spec.devices[2].attributes[dra.example.com/profile]",
        "spec.devices[3].attributes[dra.example.com/profile]",
    ]
    assert '{"IntValue":1,"BoolValue":null,' in found[1]


@pytest.mark.parametrize(
    ("path", "value", "field"),
    [
        pytest.param("spec.driver", "other.example.com", "spec.driver", id="driver"),
        pytest.param("spec.pool.name", "other", "spec.pool.name", id="pool"),
        pytest.param("spec.nodeName", "other", "spec.nodeName", id="node"),
    ],
)
def test_identity_is_immutable(path: str, value: str, field: str) -> None:
    found = update(changed(stored(SLICE), setting(path, value)), stored(SLICE))
    assert found == [f'{field}: Invalid value: "{value}": field is immutable']


def test_generation_counts_changes_of_the_spec() -> None:
    given = builders.read(SLICE)
    first = validation.create(given, builders.context()).object
    assert first.metadata.generation == 1
    relabelled = builders.read(changed(stored(SLICE), setting("metadata.labels", {"a": "b"})))
    assert validation.update(relabelled, first, builders.context()).object.metadata.generation == 1
    grown = builders.read(changed(stored(SLICE), setting("spec.pool.generation", 2)))
    assert validation.update(grown, first, builders.context()).object.metadata.generation == 2


def test_capital_letters_in_a_driver_name_are_warned_about() -> None:
    given = builders.read(changed(SLICE, setting("spec.driver", "Dra.example.com")))
    assert validation.create(given, builders.context()).warnings == (
        'spec.driver: driver names should be lowercase; "Dra.example.com" contains uppercase characters',
    )


def test_v1beta1_devices_have_their_own_paths() -> None:
    def change(document: Document) -> None:
        document["apiVersion"] = "resource.k8s.io/v1beta1"
        document["spec"]["devices"] = [{"name": "d", "basic": {"attributes": {"a": {}}}}]

    (found,) = create(changed(SLICE, change))
    assert found.startswith("spec.devices[0].basic.attributes[a]: Invalid value: ")
