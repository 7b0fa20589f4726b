"""Types of documents: that records and structs agree."""

import pytest
from msgspec import inspect

from drachma.api import scheme
from drachma.server import schema
from drachma.server.schema import model
from tests.unit.server import served


@pytest.mark.parametrize(
    ("api_version", "kind"),
    [
        pytest.param(each.api_version(version), each.kind, id=f"{each.api_version(version)}-{each.kind}")
        for each in served.CATALOG.resources
        for version in each.versions
    ],
)
def test_every_served_kind_has_a_type(api_version: str, kind: str) -> None:
    found = served.schema(api_version, kind)
    assert found.name == kind
    assert {"apiVersion", "kind", "metadata"} <= set(found.fields)


def test_subresources_of_other_kinds_have_types() -> None:
    for each in served.CATALOG.resources:
        for below in each.subresources:
            if below.kind and not below.connects:
                assert below.schema is not None
                assert below.schema.name == below.kind


@pytest.mark.parametrize("kind", [pytest.param(kind, id=kind.name) for kind in scheme.KINDS if not kind.complete])
def test_partial_structs_read_only_fields_that_exist(kind: scheme.Kind) -> None:
    _assert_known(inspect.type_info(kind.model), served.schema(kind.api_versions[0], kind.name))


_OURS = {("NodeAllocatableResourceClaimStatus", "resources")}
"""Spelled as the enhancement proposal has it."""


def _assert_known(info: inspect.Type, found: schema.Type) -> None:
    if found is model.INT_OR_STRING:
        assert isinstance(info, inspect.UnionType)
        assert {type(each) for each in info.types} == {inspect.IntType, inspect.StrType, inspect.NoneType}
        return
    if isinstance(info, inspect.UnionType):
        info = next(each for each in info.types if not isinstance(each, inspect.NoneType))
    match info:
        case inspect.StructType():
            assert isinstance(found, schema.Object)
            for field in info.fields:
                if (found.name, field.encode_name) not in _OURS:
                    _assert_known(field.type, found.fields[field.encode_name].type)
        case inspect.DictType(value_type=inspect.AnyType()):
            assert isinstance(found, schema.Object), "what is kept as it is written"
        case inspect.DictType():
            assert isinstance(found, schema.MapOf)
            _assert_known(info.value_type, found.element)
        case inspect.VarTupleType():
            assert isinstance(found, schema.ListOf)
            _assert_known(info.item_type, found.element)
        case inspect.IntType():
            assert isinstance(found, schema.Scalar)
            assert found.json == "integer"
        case inspect.BoolType():
            assert isinstance(found, schema.Scalar)
            assert found.json == "boolean"


@pytest.mark.parametrize(
    ("api_version", "kind", "want"),
    [
        pytest.param(
            "resource.k8s.io/v1",
            "ResourceClaim",
            {"metadata": {}, "spec": {"devices": {"requests": None}}, "status": {}},
            id="claim",
        ),
        pytest.param(
            "v1", "Pod", {"metadata": {}, "spec": {"containers": None}, "status": {}}, id="pod-with-required-containers"
        ),
        pytest.param("v1", "ConfigMap", {"metadata": {}}, id="config-map"),
    ],
)
def test_empty(api_version: str, kind: str, want: object) -> None:
    assert schema.empty(served.schema(api_version, kind)) == want
