"""Slices whose devices stand for resources of nodes: only for nodes that say they can account for them."""

from typing import Any

import pytest

from tests.unit.server.client import SLICES, Client

FEATURE = "DRANodeAllocatableResources"
NODES = "/api/v1/nodes"


def slice_(**where: Any) -> dict[str, Any]:
    device = {"name": "cpu0", "nodeAllocatableResourceMappings": {"cpu": {"allocationMultiplier": "1"}}}
    pool = {"name": "p", "generation": 1, "resourceSliceCount": 1}
    return {"metadata": {"name": "s"}, "spec": {"driver": "d.example.com", "pool": pool, "devices": [device], **where}}


async def node(server: Client, name: str, *features: str) -> None:
    await server.call("POST", NODES, {"metadata": {"name": name}, "status": {"declaredFeatures": list(features)}})


@pytest.mark.parametrize(
    ("where", "message"),
    [
        pytest.param({"nodeName": "able"}, "", id="a-node-that-declares-it"),
        pytest.param(
            {"nodeName": "unable"}, f'node "unable" does not support {FEATURE} feature', id="a-node-that-does-not"
        ),
        pytest.param({"nodeName": "none"}, 'node "none" not found for device "cpu0"', id="no-such-node"),
        pytest.param({"allNodes": True}, f'node "unable" does not support {FEATURE} feature', id="all-nodes"),
    ],
)
async def test_creation(server: Client, where: dict[str, Any], message: str) -> None:
    await node(server, "able", FEATURE)
    await node(server, "unable")
    answer = await server.call("POST", SLICES, slice_(**where))
    if not message:
        assert answer.code == 201, answer.body
        return
    assert answer.code == 403
    assert answer.body["message"] == f'resourceslices.resource.k8s.io "s" is forbidden: {message}'
