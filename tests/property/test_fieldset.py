"""Laws of sets of fields, against Python's sets of their paths; and of apply, against what it promises."""

from datetime import UTC, datetime
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from drachma.server.ownership import apply, comparison, fieldset, managedfields, managers, merging
from tests.unit.server import served

_ELEMENTS = st.sampled_from(["f:a", "f:b", 'k:{"name":"x"}', 'v:"y"', "v:1"])
_PATHS = st.lists(st.lists(_ELEMENTS, min_size=1, max_size=3).map(tuple), max_size=6)
_SETS = _PATHS.map(fieldset.make_set)


def _paths(fields: fieldset.FieldSet) -> set[tuple[str, ...]]:
    return set(fieldset.paths(fields))


@given(_PATHS)
def test_a_set_has_the_paths_it_was_made_of(paths: list[tuple[str, ...]]) -> None:
    fields = fieldset.make_set(paths)
    assert _paths(fields) == set(paths)
    assert fieldset.decode(fieldset.encode(fields)) == fields


@given(_SETS, _SETS)
def test_algebra_is_that_of_sets_of_paths(left: fieldset.FieldSet, right: fieldset.FieldSet) -> None:
    a, b = _paths(left), _paths(right)
    assert _paths(fieldset.union(left, right)) == a | b
    assert _paths(fieldset.intersection(left, right)) == a & b
    assert _paths(fieldset.difference(left, right)) == a - b
    below = {path for path in a if not any(path[: len(other)] == other for other in b)}
    assert _paths(fieldset.recursive_difference(left, right)) == below
    assert (_paths(left), _paths(right)) == (a, b)


_VARIABLE: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {"name": st.sampled_from("EF"), "value": st.sampled_from("12")}
)
_OPTIONAL: dict[str, st.SearchStrategy[Any]] = {
    "image": st.sampled_from(["1", "2"]),
    "command": st.lists(st.sampled_from("xy"), min_size=1, max_size=2),
    "env": st.lists(_VARIABLE, min_size=1, max_size=2, unique_by=lambda each: each["name"]),
}
_CONTAINER: st.SearchStrategy[Any] = st.fixed_dictionaries({"name": st.sampled_from("abc")}, optional=_OPTIONAL)
_CONFIGURATIONS = st.lists(_CONTAINER, min_size=1, max_size=3, unique_by=lambda each: each["name"]).map(
    lambda containers: {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "d"},
        "spec": {"template": {"spec": {"containers": containers}}},
    }
)
_RESOURCE = served.CATALOG.find("apps", "v1", plural="deployments")
assert _RESOURCE is not None
_KIND = managers.Kind.of(_RESOURCE, "v1", convert=lambda document, _version: document)
_NOW = datetime(2026, 1, 1, tzinfo=UTC)
_SCHEMA = served.schema("apps/v1", "Deployment")


def _apply(live: dict[str, Any] | None, applied: dict[str, Any], manager: str) -> dict[str, Any]:
    return apply.apply(live, applied, manager=manager, kind=_KIND, now=_NOW, is_forced=True)


@settings(max_examples=60)
@given(st.lists(st.tuples(st.sampled_from(["one", "two"]), _CONFIGURATIONS), min_size=1, max_size=4))
def test_what_is_applied_is_there_and_owned(steps: list[tuple[str, dict[str, Any]]]) -> None:
    live = None
    for manager, applied in steps:
        live = _apply(live, applied, manager)
        assert merging.merge(managedfields.strip_owners(live), applied, schema=_SCHEMA) == managedfields.strip_owners(
            live
        ), "everything that was applied is there"
        owners = {each["manager"]: each["fieldsV1"] for each in live["metadata"]["managedFields"]}
        wanted = managers.stripped(comparison.fields_of(applied, schema=_SCHEMA))
        assert owners[manager] == fieldset.encode(wanted)
        assert _apply(live, applied, manager) == live, "applying again changes nothing"


@settings(max_examples=60)
@given(_CONFIGURATIONS, _CONFIGURATIONS)
def test_a_manager_alone_replaces_its_configuration(first: dict[str, Any], second: dict[str, Any]) -> None:
    live = _apply(_apply(None, first, "one"), second, "one")
    compared = comparison.compare(managedfields.strip_owners(live), second, schema=_SCHEMA)
    leftovers = [path for path in fieldset.paths(compared.removed) if path[0] != "f:status"]
    assert (compared.modified, compared.added) == ({}, {})
    assert not [
        path for path in leftovers if path[:2] == ("f:spec", "f:template") and path[-1].startswith(("k:", "v:"))
    ]
