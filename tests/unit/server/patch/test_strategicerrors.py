"""Strategic merge patches whose outcome does not fit: upstream's words for it."""

from typing import Any

import pytest

from drachma.server.patch import strategicerrors
from tests.unit.server import served

SLICES = served.schema("resource.k8s.io/v1", "ResourceSlice")


def _slice(**spec: Any) -> dict[str, Any]:
    return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": "a"}, "spec": spec}


@pytest.mark.parametrize(
    ("document", "want"),
    [
        pytest.param(_slice(driver="d", pool={"generation": 1.0}), "", id="a-whole-float-is-an-integer"),
        pytest.param(_slice(driver=None), "", id="null"),
        pytest.param(_slice(driver=5), "cannot convert int64 to string", id="integer-for-text"),
        pytest.param(_slice(driver=1.5), "unrecognized type: string", id="float-for-text"),
        pytest.param(_slice(pool="x"), "cannot restore struct from: string", id="text-for-object"),
        pytest.param(_slice(devices={}), "cannot restore slice from map", id="object-for-list"),
        pytest.param(_slice(devices=[{"attributes": []}]), "cannot restore map from slice", id="list-for-map"),
        pytest.param(_slice(allNodes=1), "unrecognized type: bool", id="number-for-boolean"),
        pytest.param(_slice(pool={"generation": "1"}), "unrecognized type: int64", id="text-for-integer"),
        pytest.param(_slice(pool={"generation": 1.5}), "cannot convert float64 to int64", id="fraction-for-integer"),
    ],
)
def test_explain(document: dict[str, Any], want: str) -> None:
    assert strategicerrors.explain(document, SLICES) == want


@pytest.mark.parametrize(
    ("content", "want"),
    [
        pytest.param({"k": 5}, "cannot restore slice from int64", id="number-for-bytes"),
        pytest.param({"k": "*"}, "error decoding from json: illegal base64 data at input byte 0", id="no-base64"),
        pytest.param({"k": "YQ=="}, "", id="base64"),
    ],
)
def test_bytes(content: dict[str, Any], want: str) -> None:
    assert strategicerrors.explain({"data": content}, served.schema("v1", "Secret")) == want


def test_a_time_is_not_told_where_it_is() -> None:
    document = {"metadata": {"creationTimestamp": 5}}
    want = "json: cannot unmarshal number into Go value of type string"
    assert strategicerrors.explain(document, SLICES) == want


def test_unknown_fields_are_named_without_the_keys_of_maps() -> None:
    document = _slice(devices=[{"name": "d", "attributes": {"a": {"strng": "x"}}, "bogus": 1}], extra=1)
    assert strategicerrors.unknown_fields(document, SLICES) == [
        'unknown field "spec.devices[0].attributes.strng"',
        'unknown field "spec.devices[0].bogus"',
        'unknown field "spec.extra"',
    ]
