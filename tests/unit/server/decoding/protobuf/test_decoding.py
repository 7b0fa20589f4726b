"""Bodies in protobuf: written here by hand, field by field, and read as the documents they stand for."""

from typing import Any

import pytest

from drachma import errors
from drachma.api.types import model
from drachma.server.decoding import protobuf
from drachma.server.decoding.protobuf import decoding
from tests.unit.server import served
from tests.unit.server.client import PODS, Client


def varint(value: int) -> bytes:
    value &= 2**64 - 1
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def field(number: int, value: bytes | str | int) -> bytes:
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def envelope(api_version: str, kind: str, message: bytes) -> bytes:
    return b"k8s\x00" + field(1, field(1, api_version) + field(2, kind)) + field(2, message)


def _decode(body: bytes) -> dict[str, Any]:
    return protobuf.decode(body, SURFACE.schema)


SURFACE = served.surface()
METADATA = field(1, "p") + field(2, "") + field(7, 0) + field(8, b"") + field(11, field(1, "app") + field(2, "x"))


def test_a_pod_with_everything_that_is_special() -> None:
    port = field(3, 80)
    claim = field(1, "gpu")
    resources_ = field(1, field(1, "cpu") + field(2, field(1, "2"))) + field(3, claim)
    probe = field(1, field(2, field(1, "/") + field(2, field(1, 1) + field(3, "http"))))
    container = field(1, "main") + field(2, "img") + field(6, port) + field(8, resources_) + field(10, probe)
    volume = field(1, "v") + field(2, field(2, b""))
    spec = field(1, volume) + field(2, container) + field(3, "") + field(4, 0) + field(11, 0) + field(25, -5)
    status = field(7, field(1, 1_700_000_000))
    body = envelope("v1", "Pod", field(1, METADATA) + field(2, spec) + field(3, status))
    assert _decode(body) == {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "labels": {"app": "x"}},
        "spec": {
            "volumes": [{"name": "v", "emptyDir": {}}],
            "containers": [
                {
                    "name": "main",
                    "image": "img",
                    "ports": [{"containerPort": 80}],
                    "resources": {"limits": {"cpu": "2"}, "claims": [{"name": "gpu"}]},
                    "livenessProbe": {"httpGet": {"path": "/", "port": "http"}},
                }
            ],
            "terminationGracePeriodSeconds": 0,
            "priority": -5,
        },
        "status": {"startTime": "2023-11-14T22:13:20Z"},
    }


def test_devices() -> None:
    attribute = field(1, "model") + field(2, field(4, "A"))
    parameters = field(1, b'{"a":[1]}')
    device = field(1, "gpu-0") + field(2, attribute) + field(3, field(1, "mem") + field(2, field(1, field(1, "1Gi"))))
    spec = field(1, "d.example.com") + field(3, "n") + field(5, 0) + field(6, device)
    document = _decode(envelope("resource.k8s.io/v1", "ResourceSlice", field(2, spec)))
    assert document["spec"] == {
        "driver": "d.example.com",
        "nodeName": "n",
        "allNodes": False,
        "devices": [{"name": "gpu-0", "attributes": {"model": {"string": "A"}}, "capacity": {"mem": {"value": "1Gi"}}}],
    }
    opaque = field(1, field(1, "d.example.com") + field(2, parameters))
    config = field(1, "r") + field(2, opaque)
    claim = envelope("resource.k8s.io/v1beta1", "ResourceClaim", field(2, field(1, field(3, config))))
    assert _decode(claim)["spec"]["devices"]["config"] == [
        {"requests": ["r"], "opaque": {"driver": "d.example.com", "parameters": {"a": [1]}}}
    ]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        pytest.param(b"{}", "does not appear to be a protobuf message", id="no-magic"),
        pytest.param(b"k8s\x00\x0a\xff", "unexpected EOF", id="cut-off"),
        pytest.param(b"k8s\x00\x0b", "illegal wireType 3", id="group"),
        pytest.param(b"k8s\x00" + b"\xff" * 11, "integer overflow", id="endless-integer"),
        pytest.param(envelope("v1", "Pod", field(1, 5)), "expected bytes, found an integer", id="wrong-type"),
        pytest.param(envelope("v1", "Pod", field(1, field(1, b"\xff"))), "not UTF-8", id="no-text"),
    ],
)
def test_refused(body: bytes, message: str) -> None:
    with pytest.raises(errors.DecodeError, match=message):
        _decode(body)


def test_every_field_of_every_kind_has_a_number() -> None:
    """Except those that came after, or before, the Kubernetes whose numbers these are."""
    known = {
        "Device.nodeAllocatableResourceMappings",
        "BasicDevice.nodeAllocatableResourceMappings",
        "DeviceClassSpec.managesNativeResources",
        "DeviceClassSpec.managesNodeAllocatableResources",
        "DeviceClassSpec.nodeAllocatableResourceAccountingPolicies",
        "NodeAllocatableResource.accountingPolicy",
    }
    lacking: set[str] = set()
    seen: set[str] = set()

    def walk(kind: model.Type) -> None:
        match kind:
            case model.ListOf() | model.MapOf():
                walk(kind.element)
            case model.Object() if kind.definition not in seen and "v1alpha3.Topology" not in kind.definition:
                seen.add(kind.definition)
                if "Mapping" in kind.name or "WorkloadPodGroup" in kind.name:
                    return
                plan = kind.plan(decoding._Plan).fields
                named = {each.name for each in plan.values()}
                for each in plan.values():
                    if each.form == "embedded":
                        named |= {inner.name for inner in each.read.args[0].values()}  # type: ignore[attr-defined]
                        for inner in each.read.args[0].values():  # type: ignore[attr-defined]
                            if inner.form == "embedded":
                                named |= {deep.name for deep in inner.read.args[0].values()}
                lacking.update(
                    f"{kind.name}.{name}" for name in kind.fields if name not in named | {"apiVersion", "kind"}
                )
                for each_field in kind.fields.values():
                    walk(each_field.type)

    for resource in served.CATALOG.resources:
        for version in resource.versions:
            walk(resource.schema(version))
    assert lacking == known


async def test_the_server_reads_it(server: Client) -> None:
    container = field(1, "main") + field(2, "img")
    body = envelope("v1", "Pod", field(1, field(1, "p")) + field(2, field(2, container)))
    answer = await server.send("POST", PODS, body, content_type="application/vnd.kubernetes.protobuf")
    assert (answer.code, answer.body["spec"]["containers"][0]["name"]) == (201, "main")
    other = envelope("v1", "ConfigMap", b"")
    assert (await server.send("POST", PODS, other, content_type="application/vnd.kubernetes.protobuf")).code == 400
    options: Any = envelope("v1", "DeleteOptions", field(1, 0) + field(2, field(1, "other")))
    refused = await server.send("DELETE", f"{PODS}/p", options, content_type="application/vnd.kubernetes.protobuf")
    assert refused.code == 409
