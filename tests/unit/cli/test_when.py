"""``drachma when`` and ``drachma whatif`` on files."""

import json
import pathlib
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from drachma import errors
from drachma.cli.root import app

NODE: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "a"},
    "status": {"allocatable": {"cpu": "4", "memory": "16Gi", "pods": "110"}},
}


def pod(name: str, cpu: str, **spec: Any) -> dict[str, Any]:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [container], **spec}}


@pytest.fixture
def cluster(tmp_path: pathlib.Path) -> str:
    path = tmp_path / "cluster.yaml"
    objects = [NODE, pod("busy", "4", nodeName="a"), pod("wait", "2")]
    path.write_text(yaml.safe_dump_all(objects), encoding="utf-8")
    return str(path)


def when(cluster: str, *more: str) -> Any:
    arguments = ["when", "pod", "wait", "--cluster", cluster, "-o", "json", *more]
    return CliRunner().invoke(app, arguments, catch_exceptions=False)


def test_a_history_bounds_the_estimate(cluster: str, tmp_path: pathlib.Path) -> None:
    history = tmp_path / "times.txt"
    history.write_text("1h\n\n2h\n", encoding="utf-8")
    result = when(cluster, "--history", str(history))
    document = json.loads(result.stdout)
    assert result.exit_code == 0
    assert document["range"] == [1500.0, 7200.0], "ranges begin earlier than the earliest futures"
    assert not document["startsNow"]


def test_only_whether_it_starts_now(cluster: str) -> None:
    result = when(cluster, "--now", "--assume", "1h")
    document = json.loads(result.stdout)
    assert result.exit_code == 1
    assert (document["startsNow"], document["samples"], document["startSeconds"]) == (False, 0, None)
    assert "Insufficient cpu" in document["reason"]


@pytest.mark.parametrize(
    ("content", "more", "problem"),
    [
        pytest.param("soon\n", [], "times.txt, line 1 'soon': must be a duration", id="no-duration"),
        pytest.param("\n", [], "has no running time", id="empty"),
        pytest.param("1h\n", ["--assume", "1h"], "--history: goes without --assume", id="both"),
    ],
)
def test_a_bad_history_is_refused(
    cluster: str, tmp_path: pathlib.Path, content: str, more: list[str], problem: str
) -> None:
    history = tmp_path / "times.txt"
    history.write_text(content, encoding="utf-8")
    with pytest.raises(errors.InvalidValueError, match=problem):
        when(cluster, "--history", str(history), *more)


def test_without_a_running_time_the_pod_does_not_start(cluster: str) -> None:
    assert when(cluster).exit_code == 1


GROUP: dict[str, Any] = {
    "apiVersion": "drachma.dev/v1",
    "kind": "NodeGroup",
    "metadata": {"name": "boxes"},
    "spec": {"price": 2.5, "labels": {"pool": "boxes"}, "template": {"objects": [NODE]}},
}


@pytest.fixture
def groups(tmp_path: pathlib.Path) -> str:
    path = tmp_path / "groups.yaml"
    path.write_text(yaml.safe_dump(GROUP), encoding="utf-8")
    return str(path)


def whatif(cluster: str, *more: str) -> Any:
    return CliRunner().invoke(app, ["whatif", "--cluster", cluster, *more], catch_exceptions=False)


def test_new_nodes_of_a_group_have_their_price(cluster: str, groups: str) -> None:
    result = whatif(cluster, "--node-groups", groups, "--grow", "boxes=2")
    assert result.stdout.splitlines() == [
        "default/wait starts on boxes-new-1",
        "node group boxes has 2 nodes instead of 0",
        "the nodes of all groups cost 5 instead of 0",
    ]
    document = json.loads(whatif(cluster, "--node-groups", groups, "--grow", "boxes=1", "-o", "json").stdout)
    assert document["groups"] == {"boxes": {"price": 2.5, "before": 0, "after": 1}}
    assert document["price"] == {"before": 0, "after": 2.5}


def test_a_removed_node_is_not_paid_for(tmp_path: pathlib.Path, groups: str) -> None:
    path = tmp_path / "labelled.yaml"
    node = {**NODE, "metadata": {"name": "a", "labels": {"pool": "boxes"}}}
    path.write_text(yaml.safe_dump_all([node, pod("busy", "4", nodeName="a")]), encoding="utf-8")
    lines = whatif(str(path), "--node-groups", groups, "--remove-node", "a").stdout.splitlines()
    assert lines[-2:] == [
        "node group boxes has 0 nodes instead of 1",
        "the nodes of all groups cost 0 instead of 2.5",
    ]


@pytest.mark.parametrize(
    ("option", "problem"),
    [
        pytest.param("boxes", "--grow boxes: expected GROUP=N", id="no-number"),
        pytest.param("racks=1", "--grow racks=1: there is no node group racks, but boxes", id="unknown"),
    ],
)
def test_a_bad_growth_is_refused(cluster: str, groups: str, option: str, problem: str) -> None:
    with pytest.raises(errors.DecodeError, match=problem):
        whatif(cluster, "--node-groups", groups, "--grow", option)
