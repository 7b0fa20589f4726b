"""ResourceSlice: pools, drivers, what a slice as a whole must be, and what an update may change."""

from typing import Any

import pytest

from drachma.validation import writes
from tests.unit.validation import builders
from tests.unit.validation.builders import COUNTERS, SLICE, Document, changed, create, setting, stored, update

CONSUMES = [{"counterSet": "set", "counters": {"memory": {"value": "1"}}}]


@pytest.mark.parametrize(
    "document",
    [
        pytest.param(SLICE, id="plain"),
        pytest.param(COUNTERS, id="counters"),
        pytest.param(changed(SLICE, setting("spec.pool.name", "a.b/c")), id="pool-with-slash"),
        pytest.param(changed(SLICE, setting("spec.driver", "Dra.Example.com")), id="driver-with-capitals"),
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
    first = writes.create(given, builders.context()).object
    assert first.metadata.generation == 1
    relabelled = builders.read(changed(stored(SLICE), setting("metadata.labels", {"a": "b"})))
    assert writes.update(relabelled, first, builders.context()).object.metadata.generation == 1
    grown = builders.read(changed(stored(SLICE), setting("spec.pool.generation", 2)))
    assert writes.update(grown, first, builders.context()).object.metadata.generation == 2


def test_capital_letters_in_a_driver_name_are_warned_about() -> None:
    given = builders.read(changed(SLICE, setting("spec.driver", "Dra.example.com")))
    assert writes.create(given, builders.context()).warnings == (
        'spec.driver: driver names should be lowercase; "Dra.example.com" contains uppercase characters',
    )


def test_v1beta1_devices_have_their_own_paths() -> None:
    def change(document: Document) -> None:
        document["apiVersion"] = "resource.k8s.io/v1beta1"
        document["spec"]["devices"] = [{"name": "d", "basic": {"attributes": {"a": {}}}}]

    (found,) = create(changed(SLICE, change))
    assert found == (
        'spec.devices[0].basic.attributes[a]: Invalid value: "": must specify one of: `int`, `bool`, `string`, '
        "`version`, `ints`, `bools`, `strings`, `versions`"
    )
