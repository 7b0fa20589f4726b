"""Tables and bare metadata: columns by kind, what rows carry, and lists without items."""

from datetime import UTC, datetime
from typing import Any

import pytest

from drachma.server.presentation import table
from drachma.server.surface import resources
from tests.unit.server import served

NOW = datetime(2026, 1, 1, 0, 0, 10, tzinfo=UTC)
META = {"name": "x", "resourceVersion": "7", "creationTimestamp": "2026-01-01T00:00:00Z"}


def _resource(plural: str) -> resources.Resource:
    return next(each for each in served.CATALOG.resources if each.plural == plural)


@pytest.mark.parametrize("resource", [pytest.param(each, id=each.plural) for each in served.CATALOG.resources])
def test_a_bare_object_fills_every_column(resource: resources.Resource) -> None:
    layout = resource.layout
    row = layout.cells({"metadata": META}, NOW)
    assert len(row) == len(layout.columns)
    assert row[[column.name for column in layout.columns].index("Name")] == "x"
    assert all(column.description for column in layout.columns)


@pytest.mark.parametrize(
    ("plural", "document", "want"),
    [
        pytest.param("resourceclaims", {}, ["x", "pending", "10s"], id="claim-pending"),
        pytest.param(
            "resourceclaims",
            {"status": {"allocation": {}, "reservedFor": [{}]}},
            ["x", "allocated,reserved", "10s"],
            id="claim-reserved",
        ),
        pytest.param(
            "resourceclaims",
            {"metadata": {**META, "deletionTimestamp": "2026-01-01T00:00:00Z"}, "status": {"allocation": {}}},
            ["x", "deleted,allocated", "10s"],
            id="claim-deleted",
        ),
        pytest.param(
            "resourceslices",
            {"spec": {"driver": "d", "nodeName": "n", "pool": {"name": "p"}}},
            ["x", "n", "d", "p", "10s"],
            id="slice",
        ),
        pytest.param(
            "devicetaintrules",
            {"spec": {"taint": {"key": "k", "effect": "NoExecute", "timeAdded": "2026-01-01T00:00:05Z"}}},
            ["x", "k", "", "NoExecute", "5s", "10s"],
            id="taint-rule",
        ),
        pytest.param(
            "nodes",
            {
                "metadata": {**META, "labels": {"node-role.kubernetes.io/gpu": ""}},
                "spec": {"unschedulable": True},
                "status": {"conditions": [{"type": "Ready", "status": "True"}], "nodeInfo": {"kubeletVersion": "v1"}},
            },
            ["x", "Ready,SchedulingDisabled", "gpu", "10s", "v1", *["<none>"] * 2, *["<unknown>"] * 3],
            id="node",
        ),
        pytest.param(
            "resourcequotas",
            {"status": {"hard": {"limits.cpu": "2000m", "pods": "10"}, "used": {"pods": "3"}}},
            ["x", "pods: 3/10", "limits.cpu: 0/2", "10s"],
            id="quota",
        ),
        pytest.param(
            "jobs",
            {"spec": {"parallelism": 2}, "status": {"startTime": "2026-01-01T00:00:00Z", "succeeded": 1}},
            ["x", "Running", "1/1 of 2", "10s", "10s", "", "", "<none>"],
            id="job",
        ),
        pytest.param(
            "deployments",
            {
                "spec": {
                    "replicas": 3,
                    "selector": {"matchLabels": {"a": "1"}, "matchExpressions": [{"key": "b", "operator": "Exists"}]},
                    "template": {"spec": {"containers": [{"name": "c", "image": "i"}, {"name": "d", "image": "j"}]}},
                },
                "status": {"readyReplicas": 2},
            },
            ["x", "2/3", 0, 0, "10s", "c,d", "i,j", "a=1,b"],
            id="deployment",
        ),
        pytest.param(
            "events",
            {
                "type": "Normal",
                "reason": "R",
                "message": " m\n",
                "involvedObject": {"kind": "Pod", "name": "p"},
                "source": {"component": "c", "host": "h"},
                "lastTimestamp": "2026-01-01T00:00:04Z",
                "firstTimestamp": "2026-01-01T00:00:00Z",
                "count": 2,
            },
            ["6s", "Normal", "R", "pod/p", "", "c, h", "m", "10s", 2, "x"],
            id="event",
        ),
    ],
)
def test_cells(plural: str, document: dict[str, Any], want: list[Any]) -> None:
    assert _resource(plural).layout.cells({"metadata": META, **document}, NOW) == want


def test_a_list_becomes_a_table() -> None:
    listing = {"metadata": {"resourceVersion": "9"}, "items": [{"metadata": META, "status": {"phase": "Succeeded"}}]}
    made = table.make_list_table(listing, _resource("pods"), now=NOW)
    assert (made["kind"], made["apiVersion"], made["metadata"]) == ("Table", "meta.k8s.io/v1", {"resourceVersion": "9"})
    (row,) = made["rows"]
    assert row["object"] == {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": META}
    assert row["conditions"][0]["reason"] == "Succeeded"


def test_an_empty_list_has_columns_and_no_rows() -> None:
    made = table.make_list_table({"metadata": {}, "items": []}, _resource("resourceclaims"), now=NOW)
    assert made["rows"] == []
    assert [column["name"] for column in made["columnDefinitions"]] == ["Name", "State", "Age"]


@pytest.mark.parametrize(
    ("include", "want"),
    [
        pytest.param("Object", {"metadata": META}, id="object"),
        pytest.param("None", None, id="none"),
    ],
)
def test_rows_carry_what_was_asked_for(include: str, want: Any) -> None:
    made = table.make_object_table({"metadata": META}, _resource("configmaps"), now=NOW, include=include)
    assert made["rows"][0]["object"] == want


def test_later_events_of_a_watch_have_no_columns() -> None:
    made = table.make_object_table({"metadata": META}, _resource("configmaps"), now=NOW, is_headless=True)
    assert made["columnDefinitions"] is None
    assert made["metadata"] == {"resourceVersion": "7"}


def test_bare_metadata_of_a_list() -> None:
    made = table.metadata_of_list({"metadata": {"resourceVersion": "9"}, "items": [{"metadata": META, "spec": {}}]})
    assert made["kind"] == "PartialObjectMetadataList"
    assert made["items"] == [table.metadata_of({"metadata": META})]
