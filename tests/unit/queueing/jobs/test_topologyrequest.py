"""Topology requests: the strictest annotation counts, and values that are none are refused."""

from typing import Any

import pytest

from drachma import errors
from drachma.queueing.jobs import topologyrequest

_PREFIX = "kueue.x-k8s.io/podset-"


@pytest.mark.parametrize(
    ("said", "request_"),
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
    ],
)
def test_request(said: dict[str, str], request_: dict[str, Any]) -> None:
    annotations = {f"{_PREFIX}{key}": value for key, value in said.items()}

    made = topologyrequest.of_annotations(annotations, index_label="index")

    assert made == {"podIndexLabel": "index", **request_}


@pytest.mark.parametrize(
    "said",
    [
        pytest.param({"unconstrained-topology": "yes"}, id="no truth value"),
        pytest.param({"slice-required-topology": "rack", "slice-size": "four"}, id="no number"),
    ],
)
def test_values_that_are_none_are_refused(said: dict[str, str]) -> None:
    with pytest.raises(errors.InvalidValueError, match="invalid syntax"):
        topologyrequest.of_annotations({f"{_PREFIX}{key}": value for key, value in said.items()}, index_label="index")
