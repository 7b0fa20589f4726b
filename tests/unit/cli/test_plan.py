"""What if, from the command line: plans, explanations, and the files they are made from."""

import json
import pathlib
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from drachma import errors
from drachma.cli.root import app

GPU = "gpu.example.com"


def node(name: str, cpu: str = "8") -> dict[str, Any]:
    status = {"allocatable": {"cpu": cpu, "memory": "32Gi", "pods": "110"}}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": status}


def slices(name: str, count: int) -> dict[str, Any]:
    pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
    devices = [{"name": f"gpu-{number}"} for number in range(count)]
    spec = {"driver": GPU, "nodeName": name, "pool": pool, "devices": devices}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": f"{name}-gpus"},
        "spec": spec,
    }


def group(name: str, *objects: dict[str, Any], **spec: Any) -> dict[str, Any]:
    content = {**spec, "template": {"objects": list(objects)}}
    return {"apiVersion": "drachma.dev/v1", "kind": "NodeGroup", "metadata": {"name": name}, "spec": content}


def pod(name: str, *, limits: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    container = {
        "name": "c",
        "image": "i",
        "resources": {"limits": limits or {"cpu": "1"}, "claims": [{"name": "gpu"}]},
    }
    claims = [{"name": "gpu", "resourceClaimTemplateName": "gpu"}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"containers": [container], "resourceClaims": claims, **spec},
    }


COMMON: list[dict[str, Any]] = [
    {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": GPU},
        "spec": {"selectors": [{"cel": {"expression": f'device.driver == "{GPU}"'}}]},
    },
    {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": "gpu"},
        "spec": {"spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": GPU}}]}}},
    },
]
BOXES = group("boxes", node("box"), slices("box", 2), price=4, max=3)


def run(tmp_path: pathlib.Path, *arguments: str, given: list[Any]) -> Any:
    (tmp_path / "cluster.yaml").write_text(yaml.safe_dump_all([*COMMON, *given]), encoding="utf-8")
    return CliRunner().invoke(app, [*arguments, "-f", str(tmp_path)])


def test_a_plan_as_a_document(tmp_path: pathlib.Path) -> None:
    result = run(tmp_path, "plan", "-o", "json", given=[BOXES, pod("a"), pod("b"), pod("c")])
    assert (result.exit_code, json.loads(result.stdout)) == (
        0,
        {
            "grow": {"boxes": 2},
            "placed": {"default/a": "boxes-new-2", "default/b": "boxes-new-1", "default/c": "boxes-new-1"},
            "pending": {},
            "price": 8.0,
        },
    )


def test_limits_are_requests_where_there_are_no_others(tmp_path: pathlib.Path) -> None:
    result = run(
        tmp_path, "plan", "-o", "json", given=[BOXES, pod("a", limits={"cpu": "8"}), pod("b", limits={"cpu": "8"})]
    )
    assert json.loads(result.stdout)["grow"] == {"boxes": 2}


def test_priorities_of_classes_count(tmp_path: pathlib.Path) -> None:
    urgent = {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": "urgent"},
        "value": 5,
    }
    pods = [pod("a"), pod("b"), pod("z", priorityClassName="urgent")]
    result = run(tmp_path, "plan", "-o", "json", "--max", "boxes=1", given=[BOXES, urgent, *pods])
    assert result.exit_code == 1
    assert set(json.loads(result.stdout)["placed"]) == {"default/z", "default/a"}


def job(name: str, count: int, **fields: Any) -> dict[str, Any]:
    template = {"metadata": {"labels": {"job": name}}, "spec": {**pod(name)["spec"], "restartPolicy": "Never"}}
    spec = {"parallelism": count, "template": template, **fields}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name, "uid": name}, "spec": spec}


def workload(name: str, count: int, *, of: str, **status: Any) -> dict[str, Any]:
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": of, "uid": of}
    template = {"spec": {**pod(name)["spec"], "restartPolicy": "Never"}}
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "Workload",
        "metadata": {"name": name, "ownerReferences": [owner]},
        "spec": {"podSets": [{"name": "main", "count": count, "template": template}]},
        "status": status,
    }


@pytest.mark.parametrize(
    ("given", "want"),
    [
        pytest.param([job("a", 3, suspend=True)], ["default/a-0", "default/a-1", "default/a-2"], id="suspended-job"),
        pytest.param([job("a", 3)], [], id="job-that-has-its-pods"),
        pytest.param(
            [job("a", 2, suspend=True), workload("w", 2, of="a")],
            ["default/w-main-0", "default/w-main-1"],
            id="job-that-waits-in-a-queue",
        ),
        pytest.param([workload("w", 2, of="a", admission={"clusterQueue": "q"})], [], id="admitted"),
    ],
)
def test_pods_that_would_come_count(tmp_path: pathlib.Path, given: list[Any], want: list[str]) -> None:
    result = run(tmp_path, "plan", "-o", "json", given=[BOXES, *given])
    assert result.exit_code == 0, result.output
    assert sorted(json.loads(result.stdout)["placed"]) == want


def queue(kind: str, name: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": kind, "metadata": {"name": name}, "spec": spec}


def queued(name: str, count: int, queue_name: str = "jobs") -> dict[str, Any]:
    template = {
        "spec": {
            "containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}],
            "restartPolicy": "Never",
        }
    }
    spec = {"queueName": queue_name, "podSets": [{"name": "main", "count": count, "template": template}]}
    return queue("Workload", name, spec)


def test_no_nodes_for_workloads_that_get_no_quota(tmp_path: pathlib.Path) -> None:
    quota = {"name": "spot", "resources": [{"name": "cpu", "nominalQuota": "3"}]}
    groups = [{"coveredResources": ["cpu"], "flavors": [quota]}]
    queues = [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}},
        queue("ResourceFlavor", "spot", {}),
        queue("ClusterQueue", "team", {"namespaceSelector": {}, "resourceGroups": groups}),
        queue("LocalQueue", "jobs", {"clusterQueue": "team"}),
    ]
    lost = {**job("lost", 1, suspend=True)}
    lost["metadata"] = {**lost["metadata"], "labels": {"kueue.x-k8s.io/queue-name": "nowhere"}}
    given = [BOXES, *queues, queued("a", 2), queued("b", 2), queued("c", 1, "elsewhere"), lost]
    result = run(tmp_path, "plan", "-o", "json", given=given)
    assert result.exit_code == 1, result.output
    document = json.loads(result.stdout)
    assert sorted(document["placed"]) == ["default/a-main-0", "default/a-main-1"]
    assert sorted(document["held"]) == ["job default/lost", "workload default/b", "workload default/c"]
    assert "insufficient" in document["held"]["workload default/b"]
    assert document["held"]["job default/lost"] == "local queue default/nowhere does not exist"
    lines = run(tmp_path, "plan", given=given).stdout.splitlines()
    assert lines[0].startswith("workload default/b: nodes would not help, because it gets no quota: ")


def test_shrinking(tmp_path: pathlib.Path) -> None:
    result = run(tmp_path, "plan", "--shrink", given=[node("n1"), slices("n1", 2), node("n2")])
    assert result.stdout == (
        "node n1 could go: 0 of 2 devices in use\nnode n2 could go: nothing in use\n2 of 2 nodes could go\n"
    )


def used(name: str, node_name: str, device: str) -> list[dict[str, Any]]:
    """Return a pod of a ReplicaSet on a node, and its claim."""
    running = pod(name, nodeName=node_name)
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "rs", "uid": "rs", "controller": True}
    running["metadata"] |= {"uid": name, "ownerReferences": [owner]}
    running["status"] = {"resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": f"{name}-gpu"}]}
    result = {"request": "r", "driver": GPU, "pool": node_name, "device": device}
    reference = {"apiVersion": "v1", "kind": "Pod", "name": name, "uid": name, "controller": True}
    claim = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": f"{name}-gpu", "uid": f"{name}-gpu", "ownerReferences": [reference]},
        "spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": GPU}}]}},
        "status": {
            "allocation": {"devices": {"results": [result]}},
            "reservedFor": [{"resource": "pods", "name": name, "uid": name}],
        },
    }
    return [running, claim]


def test_defragmenting(tmp_path: pathlib.Path) -> None:
    nodes = [node("n1"), slices("n1", 2), node("n2"), slices("n2", 2)]
    given = [*nodes, *used("a", "n1", "gpu-0"), *used("b", "n2", "gpu-0")]
    result = run(tmp_path, "plan", "--defragment", given=given)
    assert result.stdout.splitlines() == [
        "1. move pod default/a from n1 (gpu-0) to n2 (gpu-1)",
        "   node n1 is whole again (2 devices)",
        "node n2 stays in use: it takes pods of others",
        "1 of 2 nodes would be whole instead of 0, with 1 move",
    ]
    document = json.loads(run(tmp_path, "plan", "--defragment", "-o", "json", given=given).stdout)
    assert document["moves"] == [
        {
            "pod": "default/a",
            "from": {"node": "n1", "devices": [f"{GPU}/n1/gpu-0"]},
            "to": {"node": "n2", "devices": [f"{GPU}/n2/gpu-1"]},
            "gain": "node n1 is whole again (2 devices)",
        }
    ]
    assert (document["broughtBack"], document["wholeAfter"], document["fewest"]) == (["n1"], 1, True)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        pytest.param(["--carry-out"], "--carry-out: expected --defragment, and no -f", id="carry-out"),
        pytest.param(["--defragment", "--shrink"], "--defragment: goes without --shrink", id="shrink"),
        pytest.param(["--defragment", "--bring-back", "racks"], "expected nodes or devices", id="goal"),
    ],
)
def test_defragmenting_what_cannot_be(tmp_path: pathlib.Path, arguments: list[str], problem: str) -> None:
    with pytest.raises(errors.InvalidValueError, match=problem):
        CliRunner().invoke(app, ["plan", *arguments, "-f", str(tmp_path)], catch_exceptions=False)


def test_explaining(tmp_path: pathlib.Path) -> None:
    result = run(
        tmp_path, "explain", "pod", "b", "--verbose", given=[node("n1"), slices("n1", 1), pod("a"), pod("b"), BOXES]
    )
    assert result.exit_code == 1
    lines = result.stdout.splitlines()
    assert lines[0] == "pod default/b is pending: 0/1 nodes are available: 1 cannot allocate all claims."
    assert "  one more node of group boxes would help" in lines
    assert "      1 of 1: already allocated" in lines


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        pytest.param(
            [group("g", node("a"), node("b"))],
            "NodeGroup g: spec.template.objects: expected one Node, found 2",
            id="two-nodes",
        ),
        pytest.param(
            [group("g", node("a"), min=3, max=2)], "NodeGroup g: spec.max: 2: must not be less than min, 3", id="max"
        ),
        pytest.param(
            [group("g", node("a"), prize=3)],
            "NodeGroup g: spec: Object contains unknown field `prize`",
            id="typing-error",
        ),
        pytest.param(
            [group("g", pod("a"))],
            "NodeGroup g: spec.template.objects[0]: Pod a: only a Node and its ResourceSlices belong here",
            id="a-pod",
        ),
        pytest.param([node("n"), node("n")], "Node n: is given twice, first in", id="twice"),
        pytest.param([pod("a", containers=[])], 'Pod "a" is invalid: spec.containers: Required value', id="invalid"),
        pytest.param(
            [pod("a", priorityClassName="x")], "spec.priorityClassName: x: there is no such class", id="class"
        ),
    ],
)
def test_what_cannot_be_read(tmp_path: pathlib.Path, given: list[Any], problem: str) -> None:
    result = run(tmp_path, "plan", given=given)
    assert result.exit_code == 2
    assert problem in result.stderr


# Node groups


def test_a_group_is_learned_from_a_node_and_nothing_is_wrong_with_it(tmp_path: pathlib.Path) -> None:
    cluster = tmp_path / "cluster.yaml"
    device_class = {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": GPU}, "spec": {}}
    cluster.write_text(yaml.safe_dump_all([node("n1"), slices("n1", 2), device_class]), encoding="utf-8")
    result = CliRunner().invoke(app, ["nodegroups", "learn", "n1", "--name", "boxes", "-f", str(cluster)])
    assert result.exit_code == 0, result.output
    learned = tmp_path / "groups.yaml"
    learned.write_text(result.stdout, encoding="utf-8")
    assert yaml.safe_load(result.stdout)["spec"]["template"]["objects"][1]["spec"]["pool"]["name"] == "boxes"
    checked = CliRunner().invoke(app, ["nodegroups", "lint", str(learned), "-f", str(cluster)])
    assert (checked.exit_code, checked.stdout) == (0, "no findings\n")


def test_findings_are_shown(tmp_path: pathlib.Path) -> None:
    published = slices("box", 1)
    published["spec"]["pool"]["resourceSliceCount"] = 0
    groups = tmp_path / "groups.yaml"
    groups.write_text(yaml.safe_dump(group("boxes", node("box"), published)), encoding="utf-8")
    result = CliRunner().invoke(app, ["nodegroups", "lint", str(groups), "-f", "-"], input=yaml.safe_dump(node("n1")))
    assert result.exit_code == 1
    assert "spec.pool.resourceSliceCount: 0: the pool never is complete" in result.stdout
    assert result.stdout.endswith("1 finding\n")
