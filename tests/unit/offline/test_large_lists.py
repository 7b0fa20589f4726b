"""Large lists of a dump: their members are decoded one by one, with the results and problems of small files."""

import json
import pathlib
from typing import Any

import pytest

from drachma.offline import clusterfiles, manifestfiles


def pod(name: str, **more: Any) -> dict[str, Any]:
    container = {"name": "c", "resources": {"requests": {"cpu": "100m"}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}"},
        "spec": {"nodeName": "a", "containers": [container], "volumes": None},
        **more,
    }


OTHER_OBJECTS: list[dict[str, Any]] = [
    {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a"}, "status": {"allocatable": {"cpu": 4}}},
    {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "data": {"x": "eA=="}},
    {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j", "uid": "j"}, "spec": {"suspend": False}},
    {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": "c", "namespace": "default", "uid": "c"},
        "spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]}},
    },
]


def write(path: pathlib.Path, items: list[Any]) -> str:
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}), encoding="utf-8")
    return str(path)


def both_ways(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> tuple[clusterfiles.ClusterFiles, clusterfiles.ClusterFiles]:
    """Return the cluster as read from a small file and from a large one."""
    small = clusterfiles.read([path], expects_pods=True, with_queues=True)
    monkeypatch.setattr(manifestfiles, "_LARGE_BYTES", 1)
    return small, clusterfiles.read([path], expects_pods=True, with_queues=True)


def test_members_are_read_as_in_a_small_file(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "list.json", [*OTHER_OBJECTS, *(pod(f"p{number}") for number in range(20))])
    small, large = both_ways(path, monkeypatch)
    assert not small.problems
    assert len(small.state.objects) == 22
    assert large == small


@pytest.mark.parametrize(
    ("item", "problem"),
    [
        pytest.param(pod("p0"), "items[1]: Pod default/p0: is given twice", id="given-twice"),
        pytest.param(
            pod("bad", spec={"containers": [{"name": 3}]}),
            "items[1]: Pod default/bad: spec.containers[0].name: expected",
            id="wrong-type",
        ),
        pytest.param({"apiVersion": "v1"}, "items[1]: kind: expected a non-empty string", id="no-kind"),
        pytest.param(7, "items[1]: expected an object", id="no-object"),
        pytest.param(
            {"apiVersion": "v1", "kind": "Node", "metadata": {}},
            "items[1]: Node (unnamed): metadata.name",
            id="no-name",
        ),
    ],
)
def test_problems_name_the_member(
    item: Any, problem: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path / "list.json", [pod("p0"), item])
    small, large = both_ways(path, monkeypatch)
    assert large.problems == small.problems
    assert problem in large.problems[0]
