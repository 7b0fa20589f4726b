"""Topology requests from the annotations of pod templates."""

from typing import Any

import pytest

from drachma import errors
from drachma.queueing.configuration.gates import DEFAULT
from drachma.queueing.jobs import topologyrequest
from drachma.queueing.jobs.topologyrequest import SliceLayer

_PREFIX = "kueue.x-k8s.io/podset-"
_CONSTRAINTS = "slice-required-topology-constraints"
_LAYERS = "podsetSliceRequiredTopologyConstraints"


def _annotations(values: dict[str, str]) -> dict[str, str]:
    return {f"{_PREFIX}{key}": value for key, value in values.items()}


@pytest.mark.parametrize(
    ("values", "want"),
    [
        pytest.param({}, {}, id="nothing"),
        pytest.param({"required-topology": "rack", "preferred-topology": "zone"}, {"required": "rack"}, id="required"),
        pytest.param(
            {"preferred-topology": "zone", "group-name": "g"},
            {"preferred": "zone", "podSetGroupName": "g"},
            id="preferred, in a group",
        ),
        pytest.param(
            {"unconstrained-topology": "true", "group-name": "g"}, {"unconstrained": True}, id="unconstrained, no group"
        ),
        pytest.param(
            {"slice-required-topology": "rack", "slice-size": "4"},
            {"podSetSliceRequiredTopology": "rack", "podSetSliceSize": 4},
            id="slices",
        ),
        pytest.param(
            {_CONSTRAINTS: '[{"topology": "rack", "size": 4}, {"topology": "host", "size": 2}]', "slice-size": "8"},
            {_LAYERS: [{"topology": "rack", "size": 4}, {"topology": "host", "size": 2}]},
            id="slice layers",
        ),
    ],
)
def test_request_of_a_job_that_numbers_its_pods(values: dict[str, str], want: dict[str, Any]) -> None:
    request = topologyrequest.build(_annotations(values), DEFAULT, index_label="index")

    assert request == {"podIndexLabel": "index", **want}


def test_no_request_without_annotations_and_labels() -> None:
    assert topologyrequest.build({}, DEFAULT) is None


def test_slice_layers_are_not_read_without_their_gate() -> None:
    gates = DEFAULT.switched({"TASMultiLayerTopology": False})

    request = topologyrequest.build(_annotations({"required-topology": "rack", _CONSTRAINTS: "x"}), gates)

    assert request == {"required": "rack"}


@pytest.mark.parametrize(
    ("values", "want"),
    [
        pytest.param({"unconstrained-topology": "yes"}, "invalid syntax", id="not a boolean"),
        pytest.param({"slice-required-topology": "rack", "slice-size": "four"}, "invalid syntax", id="not a number"),
        pytest.param(
            {"slice-required-topology": "rack", "slice-size": "2147483648"}, "value out of range", id="32 bits exceeded"
        ),
        pytest.param(
            {"slice-required-topology": "rack", "slice-size": "9" * 5000}, "value out of range", id="many digits"
        ),
        pytest.param({_CONSTRAINTS: "x"}, "failed to parse multi-layer topology constraints", id="not JSON"),
        pytest.param({_CONSTRAINTS: "[" * 100_000}, "failed to parse multi-layer topology constraints", id="deep JSON"),
        pytest.param({_CONSTRAINTS: "{}"}, "cannot unmarshal object into Go value", id="not an array"),
        pytest.param({_CONSTRAINTS: "[1]"}, "cannot unmarshal number 1 into Go value", id="not an object"),
        pytest.param({_CONSTRAINTS: '[{"topology": 1}]'}, "of type string", id="topology is not a text"),
        pytest.param({_CONSTRAINTS: '[{"size": true}]'}, "cannot unmarshal bool into Go struct field", id="boolean"),
        pytest.param({_CONSTRAINTS: '[{"size": 2.0}]'}, "of type int32", id="size is not an integer"),
        pytest.param({_CONSTRAINTS: "null"}, "between 1 and 3 entries: got 0", id="no layer"),
        pytest.param({_CONSTRAINTS: "[{}, {}, {}, {}]"}, "between 1 and 3 entries: got 4", id="four layers"),
    ],
)
def test_annotations_with_wrong_values_are_refused(values: dict[str, str], want: str) -> None:
    with pytest.raises(errors.InvalidValueError, match=want):
        topologyrequest.build(_annotations(values), DEFAULT, index_label="index")


def test_slice_layers_are_read_as_go_reads_them() -> None:
    layers = topologyrequest.parse_layers('[null, {"Topology": "rack", "SIZE": 2, "other": []}, {"size": null}]')

    assert layers == [SliceLayer(), SliceLayer("rack", 2), SliceLayer()]
