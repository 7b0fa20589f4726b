"""Messages of protobuf: what is encoded is what the server's decoder reads."""

from typing import Any

import pytest

from drachma.api import types
from drachma.api.types import protobuf
from drachma.server.decoding.protobuf import decoding

_NODE = {
    "metadata": {
        "name": "n1",
        "labels": {"a": "1", "b": "2"},
        "creationTimestamp": "2026-11-18T10:00:00Z",
        "finalizers": ["x", "y"],
    },
    "spec": {
        "providerID": "aws:///i-1",
        "unschedulable": True,
        "taints": [{"key": "k", "effect": "NoSchedule"}],
    },
    "status": {
        "allocatable": {"cpu": "4", "memory": "8Gi", "ephemeral-storage": "-1"},
        "conditions": [{"type": "Ready", "status": "True"}],
        "images": [{"names": ["a", "b"], "sizeBytes": 2**40}],
    },
}
_SLICE = {
    "metadata": {"name": "s1"},
    "spec": {
        "driver": "gpu.example.com",
        "nodeName": "n1",
        "pool": {"name": "n1", "generation": 3, "resourceSliceCount": 1},
        "devices": [
            {
                "name": "gpu-0",
                "attributes": {"model": {"string": "A100"}, "count": {"int": -5}, "ecc": {"bool": False}},
                "capacity": {"memory": {"value": "80Gi"}},
            }
        ],
    },
}


def _envelope(api_version: str, kind: str, message: bytes) -> bytes:
    """Return a message in the envelope of a request's body."""

    def text(number: int, data: bytes) -> bytes:
        return bytes([number << 3 | 2]) + protobuf._sized(data)

    head = text(1, api_version.encode()) + text(2, kind.encode())
    return decoding.MAGIC + text(1, head) + text(2, message)


@pytest.mark.parametrize(
    ("api_version", "kind", "name", "document"),
    [
        pytest.param("v1", "Node", "core/v1.Node", _NODE, id="node"),
        pytest.param("resource.k8s.io/v1", "ResourceSlice", "resource.k8s.io/v1.ResourceSlice", _SLICE, id="slice"),
    ],
)
def test_round_trip(api_version: str, kind: str, name: str, document: dict[str, Any]) -> None:
    schema = types.get(name)
    body = _envelope(api_version, kind, protobuf.encode(document, schema))
    decoded = decoding.decode(body, lambda *_: schema)
    assert decoded == {"apiVersion": api_version, "kind": kind, **document}
