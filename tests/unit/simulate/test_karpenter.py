"""Karpenter's NodePools as node groups, learned from the nodes that they have."""

import json
import pathlib
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from drachma import errors
from drachma.api import codec, node
from drachma.cli.root import app
from drachma.simulate import ClusterState, karpenter, nodegroup

Document = dict[str, Any]


def _pool(name: str = "gpus", **spec: Any) -> Document:
    return {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": name}, "spec": spec}


def _node(
    name: str, *, pool: str = "gpus", instance_type: str = "g5.xlarge", taints: list[Document] | None = None
) -> Document:
    labels = {"karpenter.sh/nodepool": pool, "node.kubernetes.io/instance-type": instance_type}
    resources = {"cpu": "4", "memory": "16Gi", "pods": "10"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": {"taints": taints or []},
        "status": {"capacity": resources, "allocatable": resources},
    }


def _slice(node: str) -> Document:
    pool = {"name": node, "generation": 3, "resourceSliceCount": 1}
    spec = {"driver": "gpu.example.com", "nodeName": node, "pool": pool, "devices": [{"name": "gpu-0"}]}
    return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": node}, "spec": spec}


def _learn(pool: Document, *objects: Document) -> list[nodegroup.NodeGroup]:
    state = ClusterState.of([codec.decode(each) for each in objects])
    return [nodegroup.read(each.document) for each in karpenter.learn(state, [karpenter.read(pool)])]


def test_a_group_for_each_instance_type() -> None:
    groups = _learn(
        _pool(), _node("a"), _slice("a"), _node("b"), _node("c", instance_type="p5.48xlarge"), _node("d", pool="other")
    )
    assert [each.name for each in groups] == ["gpus-g5-xlarge", "gpus-p5-48xlarge"]
    assert groups[0].labels == {
        "karpenter.sh/nodepool": "gpus",
        "node.kubernetes.io/instance-type": "g5.xlarge",
    }
    assert [device.name for each in groups[0].slices for device in each.spec.devices] == ["gpu-0"]
    member = codec.decode(_node("b"))
    assert isinstance(member, node.Node)
    assert groups[0].has(member), "nodes of the pool belong to the group"


@pytest.mark.parametrize(
    ("spec", "want"),
    [
        pytest.param({"limits": {"cpu": "18", "memory": "1Ti"}}, (0, 4), id="the-tightest-limit"),
        pytest.param({"limits": {"nodes": 3}}, (0, 3), id="nodes"),
        pytest.param({"limits": {"example.com/fpga": "1"}}, (0, 1000), id="a-resource-that-nodes-lack"),
        pytest.param({"replicas": 2}, (2, 2), id="static"),
    ],
)
def test_limits(spec: Document, want: tuple[int, int]) -> None:
    [group] = _learn(_pool(**spec), _node("a"))
    assert (group.min, group.max) == want


def test_startup_taints_are_left_out() -> None:
    taints = [{"key": "starting", "effect": "NoSchedule"}, {"key": "gpus-only", "effect": "NoSchedule"}]
    template = {"spec": {"startupTaints": [{"key": "starting", "effect": "NoSchedule"}]}}
    [group] = _learn(_pool(template=template), _node("a", taints=taints))
    assert [each.key for each in group.node.spec.taints] == ["gpus-only"]


@pytest.mark.parametrize(
    ("spec", "want"),
    [
        pytest.param({"limits": {"cpu": "many"}}, r"spec.limits\[cpu\]", id="quantity"),
        pytest.param({"replicas": -1}, "spec: ", id="replicas"),
        pytest.param({"template": []}, "spec: ", id="template"),
    ],
)
def test_refused(spec: Document, want: str) -> None:
    with pytest.raises(errors.DecodeError, match=want):
        karpenter.read(_pool(**spec))


def test_the_command_writes_groups_for_plan(tmp_path: pathlib.Path) -> None:
    pools, cluster = tmp_path / "pools.yaml", tmp_path / "cluster.yaml"
    pools.write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "List", "items": [_pool(), _pool("empty")]}))
    cluster.write_text("\n---\n".join(map(json.dumps, [_node("a"), _slice("a")])))
    result = CliRunner().invoke(app, ["nodegroups", "karpenter", str(pools), "-f", str(cluster)])
    assert result.exit_code == 0, result.output
    assert "NodePool empty: has no node to learn from" in result.stderr
    [document] = yaml.safe_load_all(result.stdout)
    assert nodegroup.read(document).name == "gpus-g5-xlarge"
