"""Types of documents: the notation of the tables, and that tables, structs and catalogue agree."""

import pytest
from msgspec import inspect

from drachma.api import scheme
from drachma.server import schema
from drachma.server.schema import kinds, notation
from drachma.server.surface import resources


def test_notation() -> None:
    table = notation.Table(
        """\
@io.k8s.api.core.v1
Thing!: name=str*
    port=int32/80 parts={Part:key,kind}*~ whole=Part!~+ tags={str}~ rest=[Part]~key labels=<str> fixed=<<str>>
Part: key=str* kind=str/x
"""
    )
    thing, part = table.object("Thing"), table.object("Part")
    fields = thing.fields
    assert (thing.definition, thing.atomic, part.atomic) == ("io.k8s.api.core.v1.Thing", True, False)
    assert (fields["name"].required, fields["name"].default, fields["port"].default) == (True, "", 80)
    assert fields["parts"].type == schema.ListOf(part, ("key", "kind"))
    assert (fields["parts"].merges, fields["parts"].merge_key) == (True, "key")
    assert (fields["whole"].filled, fields["whole"].merges, fields["whole"].retains_keys) == (True, False, True)
    assert (fields["tags"].type, fields["tags"].merge_key) == (schema.ListOf(part.fields["key"].type, ()), "")
    assert (fields["rest"].type, fields["rest"].merge_key) == (schema.ListOf(part), "key")
    assert isinstance(fields["labels"].type, schema.MapOf)
    assert isinstance(fields["fixed"].type, schema.MapOf)
    assert fields["fixed"].type.atomic


@pytest.mark.parametrize("text", ["name", "name=[str", "na-me=str", "name=str&"])
def test_malformed_fields_are_refused(text: str) -> None:
    with pytest.raises((ValueError, KeyError)):
        notation.Table("").field(text)


def test_every_type_of_the_tables_can_be_made() -> None:
    for name in kinds.TABLE.names():
        assert kinds.TABLE.object(name).name == name


@pytest.mark.parametrize(
    ("api_version", "kind"),
    [
        pytest.param(each.api_version(version), each.kind, id=f"{each.api_version(version)}-{each.kind}")
        for each in resources.CATALOG.resources
        for version in each.versions
    ],
)
def test_every_served_kind_has_a_type(api_version: str, kind: str) -> None:
    found = schema.of(api_version, kind)
    assert found.name == kind
    assert {"apiVersion", "kind", "metadata"} <= set(found.fields)


def test_subresources_of_other_kinds_have_types() -> None:
    for each in resources.CATALOG.resources:
        for below in each.subresources:
            if below.kind:
                assert schema.of(below.api_version, below.kind).name == below.kind


def test_unknown_kinds_have_none() -> None:
    with pytest.raises(KeyError):
        schema.of("v1", "Nope")
    with pytest.raises(KeyError):
        schema.of("v1", "Deployment")


@pytest.mark.parametrize("kind", [pytest.param(kind, id=kind.name) for kind in scheme.KINDS if not kind.complete])
def test_partial_structs_read_only_fields_that_exist(kind: scheme.Kind) -> None:
    _assert_known(inspect.type_info(kind.model), schema.of(kind.api_versions[0], kind.name))


_OURS = {("NodeAllocatableResourceClaimStatus", "resources")}
"""Spelled as the enhancement proposal has it."""


def _assert_known(info: inspect.Type, found: schema.Type) -> None:
    if isinstance(info, inspect.UnionType):
        info = next(each for each in info.types if not isinstance(each, inspect.NoneType))
    match info:
        case inspect.StructType():
            assert isinstance(found, schema.Object)
            for field in info.fields:
                if (found.name, field.encode_name) not in _OURS:
                    _assert_known(field.type, found.fields[field.encode_name].type)
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
    assert schema.empty(schema.of(api_version, kind)) == want
