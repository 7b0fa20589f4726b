"""Ownership through ordinary writes: who is recorded, who loses, what is never owned."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from drachma import errors
from drachma.api import codec
from drachma.server import parts
from drachma.server.ownership import managedfields, managers
from tests.unit.server import served

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def _convert(document: dict[str, Any], api_version: str) -> dict[str, Any]:
    if api_version == "resource.k8s.io/v1alpha2":
        raise LookupError(api_version)
    return codec.encode(codec.decode(document), api_version=api_version)


def _kind(plural: str, *, group: str = "", version: str = "v1", subresource: str = "") -> managers.Kind:
    resource = served.CATALOG.find(group, version, plural=plural)
    assert resource is not None
    return managers.Kind.of(resource, version, convert=_convert, subresource=subresource)


CONFIG_MAPS = _kind("configmaps")
CLAIMS = _kind("resourceclaims", group="resource.k8s.io")


def _config_map(**data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "uid": "u"}, "data": data}


def _claim(**metadata: Any) -> dict[str, Any]:
    requests = [{"name": "gpu", "exactly": {"deviceClassName": "g"}}]
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": "c", "namespace": "default", **metadata},
        "spec": {"devices": {"requests": requests}},
        "status": {},
    }


def _record(old: dict[str, Any] | None, new: dict[str, Any], **how: Any) -> dict[str, Any]:
    """The new document with the entries that it gets."""
    entries = managedfields.entries_after_update(old, new, interner=parts.Interner(), **how)
    clean = managedfields.strip_owners(new)
    return {**clean, "metadata": {**clean["metadata"], "managedFields": entries}} if entries else clean


def _owners(document: dict[str, Any]) -> dict[str, Any]:
    return {each["manager"]: each["fieldsV1"] for each in document["metadata"].get("managedFields", [])}


def test_a_create_owns_everything_but_identity_and_status() -> None:
    made = _record(None, _claim(labels={"a": "1"}), manager="m", kind=CLAIMS, now=NOW)
    assert made["metadata"]["managedFields"] == [
        {
            "manager": "m",
            "operation": "Update",
            "apiVersion": "resource.k8s.io/v1",
            "time": "2026-01-02T03:04:05Z",
            "fieldsType": "FieldsV1",
            "fieldsV1": {
                "f:metadata": {"f:labels": {".": {}, "f:a": {}}},
                "f:spec": {"f:devices": {"f:requests": {}}},
            },
        }
    ]


def test_who_changes_a_field_takes_it() -> None:
    first = _record(None, _config_map(a="1", b="1"), manager="one", kind=CONFIG_MAPS, now=NOW)
    second = _record(first, _config_map(a="2", b="1"), manager="two", kind=CONFIG_MAPS, now=NOW)
    assert _owners(second) == {"one": {"f:data": {".": {}, "f:b": {}}}, "two": {"f:data": {"f:a": {}}}}


def test_who_owns_nothing_any_more_goes() -> None:
    first = _record(None, _config_map(a="1"), manager="one", kind=CONFIG_MAPS, now=NOW)
    second = _record(first, _config_map(), manager="two", kind=CONFIG_MAPS, now=NOW)
    assert _owners(second) == {"one": {"f:data": {}}}


def test_no_change_leaves_the_time() -> None:
    first = _record(None, _config_map(a="1"), manager="one", kind=CONFIG_MAPS, now=NOW)
    later = NOW + timedelta(hours=1)
    again = _record(first, _config_map(a="1"), manager="one", kind=CONFIG_MAPS, now=later)
    assert again == first


def test_an_object_without_managers_stays_without() -> None:
    updated = _record(_config_map(a="1"), _config_map(a="2"), manager="m", kind=CONFIG_MAPS, now=NOW)
    assert "managedFields" not in updated["metadata"]


@pytest.mark.parametrize(
    ("sent", "want"),
    [
        pytest.param([], {}, id="reset"),
        pytest.param([{}], {}, id="reset-by-an-empty-entry"),
        pytest.param([{"manager": "x"}], {"one": {"f:data": {".": {}, "f:a": {}}}}, id="broken-is-ignored"),
        pytest.param(
            [
                {
                    "manager": "x",
                    "operation": "Apply",
                    "apiVersion": "v1",
                    "fieldsType": "FieldsV1",
                    "fieldsV1": {"f:z": {}},
                }
            ],
            {"x": {"f:z": {}}},
            id="replaced",
        ),
    ],
)
def test_entries_that_clients_send(sent: list[Any], want: dict[str, Any]) -> None:
    first = _record(None, _config_map(a="1"), manager="one", kind=CONFIG_MAPS, now=NOW)
    new = _config_map(a="1")
    new["metadata"]["managedFields"] = sent
    assert _owners(_record(first, new, manager="two", kind=CONFIG_MAPS, now=NOW)) == want


def test_a_status_write_owns_status_only() -> None:
    kind = _kind("resourceclaims", group="resource.k8s.io", subresource="status")
    first = _record(None, _claim(), manager="one", kind=CLAIMS, now=NOW)
    new = {**_claim(labels={"x": "y"}), "status": {"reservedFor": [{"resource": "pods", "name": "p", "uid": "u"}]}}
    second = _record(first, new, manager="two", kind=kind, now=NOW)
    entry = second["metadata"]["managedFields"][1]
    assert entry["subresource"] == "status"
    assert entry["fieldsV1"] == {
        "f:status": {
            "f:reservedFor": {
                ".": {},
                'k:{"uid":"u"}': {".": {}, "f:name": {}, "f:resource": {}, "f:uid": {}},
            }
        }
    }


def test_owners_in_other_versions_lose_what_changes_there() -> None:
    kind = _kind("resourceclaims", group="resource.k8s.io", version="v1beta1")
    old = _record(
        None, _convert(_claim(labels={"a": "1"}), "resource.k8s.io/v1beta1"), manager="beta", kind=kind, now=NOW
    )
    live = {**_claim(labels={"a": "1"}), "metadata": old["metadata"]}
    new = _record(live, _claim(labels={"a": "2"}), manager="stable", kind=CLAIMS, now=NOW)
    assert _owners(new) == {
        "beta": {"f:metadata": {"f:labels": {}}, "f:spec": {"f:devices": {"f:requests": {}}}},
        "stable": {"f:metadata": {"f:labels": {"f:a": {}}}},
    }


def test_owners_in_versions_that_are_gone_are_dropped() -> None:
    entry = {
        "manager": "old",
        "operation": "Update",
        "apiVersion": "resource.k8s.io/v1alpha2",
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:spec": {"f:x": {}}},
    }
    live = _claim(managedFields=[entry])
    new = _record(live, _claim(labels={"a": "1"}), manager="m", kind=CLAIMS, now=NOW)
    assert set(_owners(new)) == {"m"}


def test_the_oldest_updaters_share_an_entry() -> None:
    live: dict[str, Any] | None = None
    data: dict[str, str] = {}
    for number in range(12):
        data[f"k{number:02}"] = "1"
        when = NOW + timedelta(seconds=number)
        live = _record(live, _config_map(**data), manager=f"m{number}", kind=CONFIG_MAPS, now=when)
    assert live is not None
    owners = _owners(live)
    assert len(owners) == managers.MAX_UPDATERS
    assert owners["ancient-changes"] == {"f:data": {".": {}, "f:k00": {}, "f:k01": {}, "f:k02": {}}}


def test_entries_differ_in_time_where_owners_and_fields_are_the_same() -> None:
    def entries(manager: str, now: datetime, **data: str) -> list[dict[str, Any]]:
        written = _record(None, _config_map(**data), manager=manager, kind=CONFIG_MAPS, now=now)
        owners: list[dict[str, Any]] = written["metadata"]["managedFields"]
        return owners

    later = NOW + timedelta(hours=1)
    first = entries("one", NOW, a="1")
    assert managedfields.differ_in_time(first, entries("one", later, a="1"))
    assert not managedfields.differ_in_time(first, entries("one", NOW, a="1"))
    assert not managedfields.differ_in_time(first, entries("two", later, a="1"))
    assert not managedfields.differ_in_time(first, entries("one", later, a="1", b="1"))
    assert not managedfields.differ_in_time(first, [])


@pytest.mark.parametrize(
    ("entry", "want"),
    [
        pytest.param({"operation": "Frob"}, "operation must be `Apply` or `Update`", id="operation"),
        pytest.param({"operation": "Apply"}, "apiVersion must not be empty", id="api-version"),
        pytest.param(
            {"operation": "Apply", "apiVersion": "v1"}, "missing fieldsType in managed fields entry 0", id="no-type"
        ),
        pytest.param(
            {"operation": "Apply", "apiVersion": "v1", "fieldsType": "V2"},
            'invalid fieldsType "V2" in managed fields entry 0',
            id="other-type",
        ),
    ],
)
def test_decode_refuses(entry: dict[str, Any], want: str) -> None:
    with pytest.raises(errors.InvalidValueError, match=want):
        managedfields.decode([entry])
