"""Clusters with one planted fault each: the doctor finds it and nothing else; a healthy cluster has no findings."""

import datetime as dt
import re
from typing import Any

import msgspec
import pytest

from drachma import doctor
from drachma.api import codec, resourceclaim
from drachma.client import patches
from drachma.doctor import visit
from drachma.doctor.cluster import EndpointSlice, WebhookConfiguration
from tests.unit.controllers import worlds

Document = dict[str, Any]

NOW = dt.datetime(2026, 5, 1, 12, tzinfo=dt.UTC)
LONG_AGO = "2026-05-01T10:00:00Z"
DRIVER = "gpu.example.com"


def _object(kind: str, name: str, **fields: Any) -> Document:
    versions = {"Pod": "v1", "Node": "v1", "ResourceQuota": "v1"}
    metadata = {"name": name, "uid": f"uid-{name}", "creationTimestamp": LONG_AGO, **fields.pop("metadata", {})}
    return {"apiVersion": versions.get(kind, "resource.k8s.io/v1"), "kind": kind, "metadata": metadata, **fields}


def _slice(name: str = "n1-gpus", *, node_name: str = "n1", pool: Document | None = None, **spec: Any) -> Document:
    full = {"name": node_name, "generation": 1, "resourceSliceCount": 1, **(pool or {})}
    devices = [{"name": "gpu-0", "attributes": {"model": {"string": "a"}}}, {"name": "gpu-1"}]
    return _object(
        "ResourceSlice", name, spec={"driver": DRIVER, "nodeName": node_name, "pool": full, "devices": devices, **spec}
    )


def _node(name: str = "n1", *, ready: str = "True", **allocatable: str) -> Document:
    resources = {key.replace("__", "/").replace("_", "."): value for key, value in allocatable.items()}
    return _object("Node", name, status={"conditions": [{"type": "Ready", "status": ready}], "allocatable": resources})


def _claim(
    name: str = "c", *, metadata: Document | None = None, status: Document | None = None, **exactly: Any
) -> Document:
    request = {"name": "r", "exactly": {"deviceClassName": "gpu", **exactly}}
    return _object(
        "ResourceClaim",
        name,
        metadata={"namespace": "default", **(metadata or {})},
        spec={"devices": {"requests": [request]}},
        status=status or {},
    )


def _allocation(device: str = "gpu-0", *, pool: str = "n1", **fields: Any) -> Document:
    result = {"request": "r", "driver": DRIVER, "pool": pool, "device": device, **fields}
    return {"devices": {"results": [result]}}


def _reserved(name: str) -> Document:
    return {"resource": "pods", "name": name, "uid": f"uid-{name}"}


def _pod(name: str = "p", **spec: Any) -> Document:
    containers = [{"name": "c", "image": "x"}]
    return _object("Pod", name, metadata={"namespace": "default"}, spec={"containers": containers, **spec})


CLASS = _object("DeviceClass", "gpu", spec={"selectors": [{"cel": {"expression": f'device.driver == "{DRIVER}"'}}]})
OWNER = {"apiVersion": "v1", "kind": "Pod", "name": "gone", "uid": "uid-gone", "controller": True}
HEALTHY = [CLASS, _node(), _slice()]
USED = _claim(status={"allocation": _allocation(), "reservedFor": [_reserved("p")]})

HARD = [f"{name}.deviceclass.resource.k8s.io/devices" for name in ("gpu", "gpuu")]

FAULTS = [
    pytest.param(
        [_slice(pool={"resourceSliceCount": 2})],
        "error pool-incomplete: pool gpu.example.com/n1",
        id="a-slice-was-never-published",
    ),
    pytest.param(
        [_slice(pool={"resourceSliceCount": 2}), _slice("other", devices=[{"name": "gpu-9"}])],
        "error pool-count-contradicts: pool gpu.example.com/n1",
        id="slices-disagree-about-their-number",
    ),
    pytest.param(
        [_slice(pool={"generation": 2}), _slice("old")],
        "warning slice-stale: ResourceSlice old",
        id="a-slice-of-an-older-generation",
    ),
    pytest.param(
        [_slice(pool={"resourceSliceCount": 2}), _slice("other", pool={"resourceSliceCount": 2})],
        "error pool-duplicate-device: pool gpu.example.com/n1",
        id="a-device-twice",
    ),
    pytest.param(
        [
            _slice(pool={"resourceSliceCount": 2, "name": "gpus"}),
            _node("n2"),
            _slice("n2-gpus", node_name="n2", pool={"resourceSliceCount": 2, "name": "gpus"}),
        ],
        "error pool-name-shared: pool gpu.example.com/gpus",
        id="two-nodes-with-one-pool-name",
    ),
    pytest.param(
        [
            _slice(
                devices=[{"name": "part", "consumesCounters": [{"counterSet": "s", "counters": {"m": {"value": "1"}}}]}]
            )
        ],
        "error pool-counter-missing: pool gpu.example.com/n1",
        id="a-counter-that-does-not-exist",
    ),
    pytest.param(
        [_slice("lost", node_name="n9")],
        "warning slice-orphaned: ResourceSlice lost",
        id="a-slice-of-a-node-that-is-gone",
    ),
    pytest.param(
        [_node("n2", ready="Unknown"), _slice("n2-gpus", node_name="n2")],
        "warning slice-on-unready-node: ResourceSlice n2-gpus",
        id="a-node-is-not-ready",
    ),
    pytest.param(
        [_claim(status={"allocation": _allocation(), "reservedFor": [_reserved("gone")]})],
        "error reservation-without-pod: ResourceClaim default/c",
        id="a-reservation-for-a-pod-that-is-gone",
    ),
    pytest.param(
        [
            _claim(
                metadata={
                    "deletionTimestamp": LONG_AGO,
                    "finalizers": ["resource.kubernetes.io/delete-protection"],
                }
            )
        ],
        "error claim-stuck-deleting: ResourceClaim default/c",
        id="a-deletion-that-does-not-end",
    ),
    pytest.param(
        [_claim(metadata={"ownerReferences": [OWNER]})],
        "warning claim-orphaned: ResourceClaim default/c",
        id="the-owner-is-gone",
    ),
    pytest.param(
        [_pod(), _claim(status={"allocation": _allocation("gpu-7"), "reservedFor": [_reserved("p")]})],
        "error device-not-published: ResourceClaim default/c",
        id="a-device-that-vanished",
    ),
    pytest.param(
        [_pod(), USED, _pod("q"), _claim("d", status={"allocation": _allocation(), "reservedFor": [_reserved("q")]})],
        "critical device-allocated-twice: device gpu.example.com/n1/gpu-0",
        id="one-device-in-two-claims",
    ),
    pytest.param(
        [_pod(resourceClaims=[{"name": "g", "resourceClaimName": "none"}])],
        "error pod-claim-missing: Pod default/p",
        id="a-claim-that-does-not-exist",
    ),
    pytest.param(
        [{**_pod(resourceClaims=[{"name": "g", "resourceClaimName": "none"}]), "status": {"phase": "Running"}}],
        "critical pod-claim-missing: Pod default/p",
        id="a-claim-that-was-removed-by-force",
    ),
    pytest.param(
        [_pod(resourceClaims=[{"name": "g", "resourceClaimTemplateName": "none"}])],
        "error pod-claim-missing: Pod default/p",
        id="a-template-that-does-not-exist",
    ),
    pytest.param(
        [_claim(deviceClassName="gpus")],
        "error class-missing: ResourceClaim default/c",
        id="a-class-that-does-not-exist",
    ),
    pytest.param(
        [_claim(selectors=[{"cel": {"expression": 'device.attributes["gpu.example.com"].model == "b"'}}])],
        "warning selector-never-matches: ResourceClaim default/c",
        id="a-selector-that-matches-nothing",
    ),
    pytest.param(
        [_object("DeviceClass", "nic", spec={"selectors": [{"cel": {"expression": 'device.driver == "nic.x"'}}]})],
        "warning class-without-devices: DeviceClass nic",
        id="a-class-without-devices",
    ),
    pytest.param(
        [
            _object("DeviceClass", "one", spec={"extendedResourceName": "x.com/gpu"}),
            _object("DeviceClass", "two", spec={"extendedResourceName": "x.com/gpu"}),
        ],
        "warning extended-resource-ambiguous: extended resource x.com/gpu",
        id="two-classes-with-one-extended-resource",
    ),
    pytest.param(
        [_object("ResourceQuota", "q", metadata={"namespace": "default"}, spec={"hard": dict.fromkeys(HARD, "1")})],
        "warning quota-class-missing: ResourceQuota default/q",
        id="a-quota-of-a-class-that-does-not-exist",
    ),
    pytest.param(
        [_object("DeviceTaintRule", "all", spec={"taint": {"key": "k", "effect": "NoSchedule"}})],
        "warning taint-rule-for-everything: DeviceTaintRule all",
        id="a-rule-without-a-selector",
    ),
    pytest.param(
        [_node(example_com__gpu="2")],
        "error hardware-counted-twice: Node n1",
        id="a-device-plugin-next-to-a-driver",
    ),
]


def _cluster(documents: list[Document], **facts: Any) -> doctor.Cluster:
    """Return a healthy cluster, with objects replaced by those of the same kind and name."""
    merged = {(each["kind"], each["metadata"]["name"]): each for each in [*HEALTHY, *documents]}
    cluster = doctor.Cluster.of([codec.decode(each) for each in merged.values()], now=NOW)
    return msgspec.structs.replace(cluster, **facts)


def _shown(findings: list[doctor.Finding]) -> list[str]:
    return [f"{each.severity} {each.check}: {each.subject}" for each in findings]


def test_a_healthy_cluster_has_no_findings() -> None:
    users = [_pod(resourceClaims=[{"name": "g", "resourceClaimName": "c"}]), USED]
    assert doctor.examine(_cluster(users)) == []


@pytest.mark.parametrize(("documents", "want"), FAULTS)
def test_one_fault(documents: list[Document], want: str) -> None:
    findings = doctor.examine(_cluster(documents))
    assert _shown(findings) == [want]
    assert findings[0].repair is not None or findings[0].advice


WEBHOOK = msgspec.convert(
    {
        "metadata": {"name": "queues"},
        "webhooks": [
            {
                "name": "w.example.com",
                "failurePolicy": "Fail",
                "clientConfig": {"service": {"namespace": "kueue-system", "name": "webhooks"}},
            }
        ],
    },
    WebhookConfiguration,
)
ENDPOINTS = msgspec.convert(
    {
        "metadata": {
            "name": "e",
            "namespace": "kueue-system",
            "labels": {"kubernetes.io/service-name": "webhooks"},
        },
        "endpoints": [{"conditions": {"ready": True}}],
    },
    EndpointSlice,
)


@pytest.mark.parametrize(
    ("facts", "want"),
    [
        pytest.param({"webhooks": (WEBHOOK,), "endpoints": (ENDPOINTS,)}, [], id="a-webhook-that-answers"),
        pytest.param(
            {"webhooks": (WEBHOOK,), "endpoints": ()},
            ["error webhook-without-endpoints: webhook w.example.com of queues"],
            id="a-webhook-that-was-left-behind",
        ),
        pytest.param(
            {"unserved": ("resourceclaims.resource.k8s.io",)},
            ["critical kind-not-served: resource resourceclaims.resource.k8s.io"],
            id="the-api-is-off",
        ),
        pytest.param(
            {"unserved": ("devicetaintrules.resource.k8s.io",)},
            ["info kind-not-served: resource devicetaintrules.resource.k8s.io"],
            id="a-feature-is-off",
        ),
        pytest.param({"api_version": "v1beta1"}, ["info old-api-version: resource.k8s.io"], id="an-old-api-version"),
        pytest.param(
            {"server_version": "v1.36.2", "kubelet_versions": {"n1": "v1.37.0", "n2": "v1.32.4", "n3": "v1.35.0"}},
            ["warning version-skew: Node n1", "warning version-skew: Node n2"],
            id="kubelets-that-are-too-new-and-too-old",
        ),
    ],
)
def test_facts_about_the_api_server(facts: dict[str, Any], want: list[str]) -> None:
    assert _shown(doctor.examine(_cluster([], **facts))) == want


def _apart(value: Any, number: int) -> Any:
    """Return documents of one fault with names of its own, so that many faults fit into one cluster."""
    if isinstance(value, dict):
        return {_apart(key, number): _apart(each, number) for key, each in value.items()}
    if isinstance(value, list):
        return [_apart(each, number) for each in value]
    if not isinstance(value, str):
        return value
    if value in _NAMES or value.startswith("uid-"):
        return f"{value}-{number}"
    return value.replace(DRIVER, f"gpu-{number}.example.com").replace("gpu.deviceclass", f"gpu-{number}.deviceclass")


def _planted() -> list[tuple[list[Document], str]]:
    values: list[Any] = [each.values for each in FAULTS]
    return [(documents, expected) for documents, expected in values]


def _shown_apart(want: str, number: int) -> str:
    """Return the finding that is expected for documents with names of their own."""
    if "extended resource" in want:
        return want
    return re.sub(r"[\w.-]+", lambda word: str(_apart(word[0], number)), want)


_NAMES = frozenset({"n1", "n2", "n9", "gpu", "c", "d", "p", "q", "n1-gpus", "n2-gpus", "old", "other", "lost", "gone",
                    "gpus", "nic", "one", "two", "all"})  # fmt: skip


def test_all_faults_in_one_cluster() -> None:
    documents: list[Document] = []
    want: list[str] = []
    for number, (planted, expected) in enumerate(_planted()):
        merged = {(each["kind"], each["metadata"]["name"]): each for each in [*HEALTHY, *planted]}
        documents += _apart(list(merged.values()), number)
        want.append(_shown_apart(expected, number))
    cluster = doctor.Cluster.of([codec.decode(each) for each in documents], now=NOW)
    facts: dict[str, Any] = {
        "webhooks": (WEBHOOK,),
        "endpoints": (),
        "unserved": ("devicetaintrules.resource.k8s.io",),
        "server_version": "v1.36.2",
        "kubelet_versions": {"n1-0": "v1.37.0"},
    }
    want += [
        "error webhook-without-endpoints: webhook w.example.com of queues",
        "info kind-not-served: resource devicetaintrules.resource.k8s.io",
        "warning version-skew: Node n1-0",
    ]
    assert len(want) == 26
    assert sorted(_shown(doctor.examine(msgspec.structs.replace(cluster, **facts)))) == sorted(want)


_REPAIRED = frozenset(
    {"slice-stale", "slice-orphaned", "reservation-without-pod", "claim-stuck-deleting", "claim-orphaned"}
)
"""Checks that propose a repair, which the next test carries out."""


def test_no_other_check_proposes_a_repair() -> None:
    findings = [finding for documents, _ in _planted() for finding in doctor.examine(_cluster(documents))]
    assert {each.check for each in findings if each.repair is not None} == _REPAIRED


async def test_repairs_are_carried_out_and_end_the_findings() -> None:
    """Every repair is a request that the real server takes."""
    stuck = {"finalizers": ["resource.kubernetes.io/delete-protection"]}
    documents = [
        CLASS,
        _node(),
        _slice(pool={"generation": 2}),
        _slice("old"),
        _slice("lost", node_name="n9"),
        _claim("reserved"),
        _claim("stuck", metadata=stuck),
        _claim("orphan", metadata={"ownerReferences": [OWNER]}),
    ]
    async with worlds.world() as cluster:
        for document in documents:
            document["metadata"].pop("uid")
            document.pop("status", None)
            await cluster.client.create_document(type(codec.decode(document)), document)
        status = {"allocation": _allocation(), "reservedFor": [_reserved("gone")]}
        await cluster.client.patch(
            resourceclaim.ResourceClaim,
            "reserved",
            namespace="default",
            subresource="status",
            patch=patches.merge({"status": status}),
        )
        await cluster.client.delete(resourceclaim.ResourceClaim, "stuck", namespace="default")
        later = cluster.clock.utc() + dt.timedelta(hours=1)
        findings = doctor.examine(await visit.read(cluster.client, now=later))
        repairs = [each.repair for each in findings if each.repair is not None]
        assert {each.check for each in findings if each.repair is not None} == _REPAIRED
        for repair in repairs:
            await visit.carry_out(cluster.client, repair)
        after = doctor.examine(await visit.read(cluster.client, now=later))
        assert [each.check for each in after if each.repair is not None] == []


def test_devices_with_capacity() -> None:
    """Quantities are part of what tells devices apart."""
    published = _slice(devices=[{"name": "gpu-0", "capacity": {"memory": {"value": "80Gi"}}}])
    assert doctor.examine(_cluster([published])) == []
