"""Our OpenAPI schemas against those of a real API server: the same but for texts, enumerations and our own fields."""

from typing import Any

import msgspec
import pytest

from tests.conformance import vectors
from tests.unit.server import served as surfaces

_DOCUMENTS = {
    "api/v1": "api_v1.json",
    "apis/batch/v1": "apis_batch_v1.json",
    "apis/resource.k8s.io/v1": "apis_resource.k8s.io_v1.json",
    "apis/resource.k8s.io/v1beta1": "apis_resource.k8s.io_v1beta1.json",
    "apis/resource.k8s.io/v1beta2": "apis_resource.k8s.io_v1beta2.json",
}
_ABOUT = {"description", "enum", "default", "x-kubernetes-unions", "x-kubernetes-group-version-kind"}
_OURS = {
    "accountingPolicy",
    "managesNativeResources",
    "managesNodeAllocatableResources",
    "nodeAllocatableResourceAccountingPolicies",
    "nodeAllocatableResourceMappings",
}
"""Fields of the enhancement proposals that Kubernetes 1.37 does not have."""

_THEIRS = {"shardInfo"}
"""Lists are never sharded here."""


def _shape(value: Any) -> Any:
    """A schema without what it says about itself; a property may be called description, too."""
    if isinstance(value, list):
        return [_shape(part) for part in value]
    if not isinstance(value, dict):
        return value
    shape = {key: _shape(part) for key, part in value.items() if key not in _ABOUT and key != "properties"}
    if shape.get("x-kubernetes-map-type") == "granular":
        # What maps are anyway; but for the reference of a volume to its claim, which has one owner here.
        del shape["x-kubernetes-map-type"]
    if "properties" in value:
        apart = _OURS | _THEIRS
        shape["properties"] = {key: _shape(part) for key, part in value["properties"].items() if key not in apart}
        shape["required"] = sorted(value.get("required", []))
    # A reference stands alone, or with a text beside it in a list of one.
    return shape["allOf"][0] if set(shape) == {"allOf"} else shape


@pytest.mark.parametrize("path", [pytest.param(path, id=path) for path in _DOCUMENTS])
def test_schemas_are_those_of_the_real_server(path: str) -> None:
    want = vectors.openapi(_DOCUMENTS[path])
    served = surfaces.surface().openapi_document(path)
    assert served is not None
    found = msgspec.json.decode(served.data)["components"]["schemas"]
    differing = [name for name in found if name in want and _shape(found[name]) != _shape(want[name])]
    assert differing == []
    assert [name for name in found if name not in want] == [name for name in found if "ResourceMapping" in name], (
        "only types of our own are not there"
    )
