"""Types of documents: that records and structs agree."""

import pytest
from msgspec import inspect

from drachma.api import scheme, types
from drachma.api.types import model
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
    result = served.schema(api_version, kind)
    assert result.name == kind
    assert {"apiVersion", "kind", "metadata"} <= set(result.fields)


def test_subresources_of_other_kinds_have_types() -> None:
    for each in served.CATALOG.resources:
        for below in each.subresources:
            if below.kind and not below.connects:
                assert below.schema is not None
                assert below.schema.name == below.kind


@pytest.mark.parametrize("kind", [pytest.param(kind, id=kind.name) for kind in scheme.KINDS if not kind.complete])
def test_partial_structs_read_only_fields_that_exist(kind: scheme.Kind) -> None:
    _assert_known(inspect.type_info(kind.model), served.schema(kind.api_versions[0], kind.name))


@pytest.mark.parametrize(
    ("api_version", "kind"),
    [
        pytest.param(api_version, kind, id=f"{api_version}-{kind.name}")
        for kind in scheme.KINDS
        if kind.complete
        for api_version in kind.api_versions
    ],
)
def test_complete_structs_have_all_fields(api_version: str, kind: scheme.Kind) -> None:
    version = api_version if kind.group else f"core/{api_version}"
    result = types.get(f"{version}.{kind.name}")
    envelope = {"apiVersion", "kind"}
    assert set(result.fields) >= envelope
    body = result.replaced({name: field for name, field in result.fields.items() if name not in envelope})
    _assert_same(inspect.type_info(kind.shape(api_version)), body)


def _assert_same(info: inspect.Type, found: types.Type) -> None:
    """Struct and type have the same fields, down to structs that other groups share."""
    if isinstance(info, inspect.UnionType):
        info = next(each for each in info.types if not isinstance(each, inspect.NoneType))
    match info:
        case inspect.StructType(cls=shape):
            assert isinstance(found, types.Object)
            if shape.__module__ not in {"drachma.api.meta", "drachma.api.nodeselector"}:
                assert {field.encode_name for field in info.fields} == set(found.fields), found.definition
                for field in info.fields:
                    _assert_same(field.type, found.fields[field.encode_name].type)
        case inspect.DictType(value_type=element):
            assert isinstance(found, types.MapOf)
            _assert_same(element, found.element)
        case inspect.VarTupleType(item_type=element):
            assert isinstance(found, types.ListOf)
            _assert_same(element, found.element)


_OURS = {("NodeAllocatableResourceClaimStatus", "resources")}
"""Spelled as the enhancement proposal has it."""


def _assert_known(info: inspect.Type, found: types.Type) -> None:
    if found is model.INT_OR_STRING:
        assert isinstance(info, inspect.UnionType)
        assert {type(each) for each in info.types} == {inspect.IntType, inspect.StrType, inspect.NoneType}
        return
    if isinstance(info, inspect.UnionType):
        info = next(each for each in info.types if not isinstance(each, inspect.NoneType))
    match info:
        case inspect.StructType():
            assert isinstance(found, types.Object)
            for field in info.fields:
                if (found.name, field.encode_name) not in _OURS:
                    _assert_known(field.type, found.fields[field.encode_name].type)
        case inspect.DictType(value_type=inspect.AnyType()):
            assert isinstance(found, types.Object), "what is kept as it is written"
        case inspect.DictType():
            assert isinstance(found, types.MapOf)
            _assert_known(info.value_type, found.element)
        case inspect.VarTupleType():
            assert isinstance(found, types.ListOf)
            _assert_known(info.item_type, found.element)
        case inspect.IntType():
            assert isinstance(found, types.Scalar)
            assert found.json == "integer"
        case inspect.BoolType():
            assert isinstance(found, types.Scalar)
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
    assert types.empty(served.schema(api_version, kind)) == want
