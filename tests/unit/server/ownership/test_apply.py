"""Server-side apply: merging, conflicts, force, removal, shared ownership and kubectl's way over from client-side."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from drachma.server import parts, status
from drachma.server.ownership import apply, managedfields, managers
from tests.unit.server import served

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def _no_other_version(_document: dict[str, Any], api_version: str) -> dict[str, Any]:
    raise LookupError(api_version)


def _kind(plural: str, *, group: str = "") -> managers.Kind:
    resource = served.CATALOG.find(group, "v1", plural=plural)
    assert resource is not None
    return managers.Kind.of(resource, "v1", convert=_no_other_version)


CONFIG_MAPS = _kind("configmaps")
DEPLOYMENTS = _kind("deployments", group="apps")


def _config_map(**data: str | None) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": data}


def _created(document: dict[str, Any], **how: Any) -> dict[str, Any]:
    """A new document as an ordinary write leaves it."""
    entries = managedfields.entries_after_create(document, interner=parts.Interner(), **how)
    return {**document, "metadata": {**document["metadata"], "managedFields": list(entries)}}


def _apply(
    live: dict[str, Any] | None, applied: dict[str, Any], *, manager: str, is_forced: bool = False
) -> dict[str, Any]:
    kind = CONFIG_MAPS if applied["kind"] == "ConfigMap" else DEPLOYMENTS
    return apply.apply(live, applied, manager=manager, kind=kind, now=NOW, is_forced=is_forced)


def _owners(document: dict[str, Any]) -> dict[str, Any]:
    return {each["manager"]: each["fieldsV1"] for each in document["metadata"].get("managedFields", [])}


def test_an_object_is_made_by_applying_it() -> None:
    made = _apply(None, _config_map(a="1"), manager="one")
    assert made["data"] == {"a": "1"}
    assert made["metadata"]["managedFields"] == [
        {
            "manager": "one",
            "operation": "Apply",
            "apiVersion": "v1",
            "time": "2026-01-02T03:04:05Z",
            "fieldsType": "FieldsV1",
            "fieldsV1": {"f:data": {"f:a": {}}},
        }
    ]


def test_what_is_no_longer_applied_goes() -> None:
    live = _apply(None, _config_map(a="1", b="2"), manager="one")
    assert _apply(live, _config_map(a="1"), manager="one")["data"] == {"a": "1"}


def test_what_others_own_stays() -> None:
    live = _apply(None, _config_map(a="1", b="2"), manager="one")
    live = _apply(live, _config_map(b="2"), manager="two")
    live = _apply(live, _config_map(a="1"), manager="one")
    assert live["data"] == {"a": "1", "b": "2"}
    assert _owners(live) == {"one": {"f:data": {"f:a": {}}}, "two": {"f:data": {"f:b": {}}}}


def test_the_same_value_is_shared_and_the_newcomer_has_no_time() -> None:
    live = _apply(None, _config_map(a="1"), manager="one")
    live = _apply(live, _config_map(a="1"), manager="two")
    assert [each.get("time") for each in live["metadata"]["managedFields"]] == [None, "2026-01-02T03:04:05Z"]


def test_one_conflict() -> None:
    live = _apply(None, _config_map(a="1"), manager="one")
    with pytest.raises(status.StatusError) as refused:
        _apply(live, _config_map(a="2"), manager="two")
    assert refused.value.document == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": 'Apply failed with 1 conflict: conflict with "one": .data.a',
        "reason": "Conflict",
        "details": {
            "causes": [{"reason": "FieldManagerConflict", "message": 'conflict with "one"', "field": ".data.a"}]
        },
        "code": 409,
    }


def test_many_conflicts_are_listed_by_manager() -> None:
    live = _created(
        {**_config_map(a="1"), "metadata": {"name": "c", "labels": {"x": "1"}}},
        manager="writer",
        kind=CONFIG_MAPS,
        now=NOW,
    )
    live = _apply(live, _config_map(a="2", b="1"), manager="one", is_forced=True)
    wanted = {**_config_map(a="3", b="2"), "metadata": {"name": "c", "labels": {"x": "2"}}}
    with pytest.raises(status.StatusError) as refused:
        _apply(live, wanted, manager="two")
    assert refused.value.document["message"] == (
        'Apply failed with 3 conflicts: conflicts with "one":\n- .data.a\n- .data.b\n'
        'conflicts with "writer" using v1:\n- .metadata.labels.x'
    )


def test_force_takes_the_field() -> None:
    live = _apply(None, _config_map(a="1", b="1"), manager="one")
    live = _apply(live, _config_map(a="2"), manager="two", is_forced=True)
    assert live["data"] == {"a": "2", "b": "1"}
    assert _owners(live) == {"one": {"f:data": {"f:b": {}}}, "two": {"f:data": {"f:a": {}}}}


def test_the_first_apply_finds_the_owner_of_what_was_there() -> None:
    live = {**_config_map(a="1"), "metadata": {"name": "c", "uid": "u"}}
    with pytest.raises(status.StatusError, match=r'conflict with "before-first-apply" using v1: \.data\.a'):
        _apply(live, _config_map(a="2"), manager="one")


def test_nulls_are_owned_and_left_to_the_decoder() -> None:
    live = _apply(None, _config_map(a=None, b="1"), manager="one")
    assert live["data"] == {"a": None, "b": "1"}
    assert _owners(live) == {"one": {"f:data": {"f:a": {}, "f:b": {}}}}


def _deployment(*containers: dict[str, Any], **spec: Any) -> dict[str, Any]:
    template = {"spec": {"containers": list(containers)}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "d"},
        "spec": {"template": template, **spec},
    }


def test_items_of_lists_are_owned_one_by_one() -> None:
    live = _apply(None, _deployment({"name": "a", "image": "1"}, {"name": "b", "image": "1"}), manager="one")
    live = _apply(live, _deployment({"name": "c", "image": "1"}), manager="two")
    live = _apply(live, _deployment({"name": "a", "image": "2"}), manager="one")
    assert live["spec"]["template"]["spec"]["containers"] == [
        {"name": "a", "image": "2"},
        {"name": "c", "image": "1"},
    ]


def test_conflict_inside_an_item_shows_its_keys() -> None:
    port = {"containerPort": 80, "name": "http"}
    live = _apply(None, _deployment({"name": "a", "image": "1", "ports": [port]}), manager="one")
    other = {"containerPort": 80, "name": "web", "protocol": "TCP"}
    with pytest.raises(status.StatusError) as refused:
        _apply(live, _deployment({"name": "a", "ports": [other]}), manager="two")
    (cause,) = refused.value.document["details"]["causes"]
    want = '.spec.template.spec.containers[name="a"].ports[containerPort=80,protocol="TCP"].name'
    assert cause["field"] == want


def test_kubectl_may_change_what_it_applied_client_side() -> None:
    last = json.dumps(_config_map(a="1", b="1"))
    live = _created(
        {**_config_map(a="1", b="9"), "metadata": {"name": "c", "annotations": {apply.ANNOTATION: last}}},
        manager="kubectl-client-side-apply",
        kind=CONFIG_MAPS,
        now=NOW,
    )
    changed = _apply(live, _config_map(a="2"), manager="kubectl")
    assert changed["data"] == {"a": "2", "b": "9"}
    annotation = json.loads(changed["metadata"]["annotations"][apply.ANNOTATION])
    assert annotation == _config_map(a="2")
    with pytest.raises(status.StatusError, match=r"1 conflict: conflict with .*: \.data\.b"):
        _apply(live, _config_map(a="2", b="2"), manager="kubectl")


@pytest.mark.parametrize(
    ("applied", "code", "want"),
    [
        pytest.param({"kind": "Secret"}, 400, "invalid object type: /v1, Kind=Secret", id="other-kind"),
        pytest.param({"apiVersion": "v2"}, 400, "invalid object type: /v2, Kind=ConfigMap", id="other-version"),
        pytest.param(
            {"metadata": {"name": "c", "managedFields": []}}, 400, "metadata.managedFields must be nil", id="managers"
        ),
        pytest.param(
            {"bogus": 1},
            500,
            "failed to create typed patch object (/c; /v1, Kind=ConfigMap): .bogus: field not declared in schema",
            id="unknown-field",
        ),
        pytest.param(
            {"metadata": {"name": "c", "namespace": "n", "finalizers": ["a", "a"]}, "data": {"x": 1}},
            500,
            "failed to create typed patch object (n/c; /v1, Kind=ConfigMap): errors:\n"
            '  .metadata.finalizers: duplicate entries for key [="a"]\n'
            "  .data.x: expected string, got &value.valueUnstructured{Value:1}",
            id="several-problems",
        ),
    ],
)
def test_refused_configurations(applied: dict[str, Any], code: int, want: str) -> None:
    with pytest.raises(status.StatusError) as refused:
        apply.apply(None, {**_config_map(), **applied}, manager="m", kind=CONFIG_MAPS, now=NOW, is_forced=False)
    assert (refused.value.code, refused.value.document["message"]) == (code, want)


def test_applying_again_changes_nothing_but_is_not_later() -> None:
    live = _apply(None, _config_map(a="1"), manager="one")
    later = NOW + timedelta(hours=1)
    again = apply.apply(live, _config_map(a="1"), manager="one", kind=CONFIG_MAPS, now=later, is_forced=False)
    assert again == live
