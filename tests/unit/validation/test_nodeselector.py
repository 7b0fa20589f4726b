"""Which nodes have the devices of a slice: node selectors, for all of it or per device."""

import pytest

from tests.unit.validation.builders import SLICE, Document, changed, create

ONE_TERM = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]}]}


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
            [
                (
                    "spec.devices[0]: Required value: exactly one of `nodeName`, `nodeSelector`, or `allNodes` "
                    "is required when `perDeviceNodeSelection` is set to true in the ResourceSlice spec"
                )
            ],
            id="none",
        ),
        pytest.param(
            {"nodeName": "a", "allNodes": True},
            [
                (
                    'spec.devices[0]: Invalid value: "{`nodeName`, `allNodes`}": exactly one of `nodeName`, '
                    "`nodeSelector`, or `allNodes` is required when `perDeviceNodeSelection` is set to true in "
                    "the ResourceSlice spec"
                )
            ],
            id="two",
        ),
    ],
)
def test_selection_per_device(device: Document, want: list[str]) -> None:
    def change(document: Document) -> None:
        del document["spec"]["nodeName"]
        document["spec"].update(perDeviceNodeSelection=True, devices=[{"name": "d", **device}])

    found = create(changed(SLICE, change))
    assert found == want
