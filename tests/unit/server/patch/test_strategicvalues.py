"""Values of wrong types after a strategic merge patch, in upstream's words."""

from typing import Any

import pytest

from drachma.server.patch import strategicvalues
from tests.unit.server import served

POD = served.schema("v1", "Pod")


@pytest.mark.parametrize(
    ("document", "want"),
    [
        pytest.param({"metadata": {"labels": {"a": "b"}}, "spec": {"priority": 1.0}}, "", id="nothing-wrong"),
        pytest.param({"metadata": {"labels": "x"}}, "cannot restore map from string", id="text-for-a-map"),
        pytest.param({"metadata": {"labels": {"a": {}}}}, "unrecognized type: string", id="map-for-a-text"),
        pytest.param({"metadata": {"labels": {"a": 1}}}, "cannot convert int64 to string", id="number-for-a-text"),
        pytest.param({"metadata": {"finalizers": {}}}, "cannot restore slice from map", id="map-for-a-list"),
        pytest.param({"metadata": {"finalizers": [["a"]]}}, "unrecognized type: string", id="list-in-a-list"),
        pytest.param({"spec": []}, "cannot restore struct from: slice", id="list-for-an-object"),
        pytest.param({"spec": {"priority": 1.5}}, "cannot convert float64 to int32", id="fraction"),
        pytest.param({"spec": {"priority": "1"}}, "unrecognized type: int32", id="text-for-a-number"),
        pytest.param({"spec": {"hostNetwork": 1}}, "unrecognized type: bool", id="number-for-a-boolean"),
    ],
)
def test_problem(document: dict[str, Any], want: str) -> None:
    assert strategicvalues.problem(document, schema=POD) == want
