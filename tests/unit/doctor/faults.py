"""Planted faults of a cluster, each with the finding that it must give."""

import datetime as dt
import re
from typing import Any

import pytest

Document = dict[str, Any]

NOW = dt.datetime(2026, 5, 1, 12, tzinfo=dt.UTC)
LONG_AGO = "2026-05-01T10:00:00Z"
DRIVER = "gpu.example.com"


def object_document(kind: str, name: str, **fields: Any) -> Document:
    versions = {"Pod": "v1", "Node": "v1", "ResourceQuota": "v1"}
    metadata = {"name": name, "uid": f"uid-{name}", "creationTimestamp": LONG_AGO, **fields.pop("metadata", {})}
    return {"apiVersion": versions.get(kind, "resource.k8s.io/v1"), "kind": kind, "metadata": metadata, **fields}


def slice_document(
    name: str = "n1-gpus", *, node_name: str = "n1", pool: Document | None = None, **spec: Any
) -> Document:
    full = {"name": node_name, "generation": 1, "resourceSliceCount": 1, **(pool or {})}
    devices = [{"name": "gpu-0", "attributes": {"model": {"string": "a"}}}, {"name": "gpu-1"}]
    return object_document(
        "ResourceSlice", name, spec={"driver": DRIVER, "nodeName": node_name, "pool": full, "devices": devices, **spec}
    )


def node_document(name: str = "n1", *, ready: str = "True", **allocatable: str) -> Document:
    resources = {key.replace("__", "/").replace("_", "."): value for key, value in allocatable.items()}
    return object_document(
        "Node", name, status={"conditions": [{"type": "Ready", "status": ready}], "allocatable": resources}
    )


def claim_document(
    name: str = "c", *, metadata: Document | None = None, status: Document | None = None, **exactly: Any
) -> Document:
    request = {"name": "r", "exactly": {"deviceClassName": "gpu", **exactly}}
    return object_document(
        "ResourceClaim",
        name,
        metadata={"namespace": "default", **(metadata or {})},
        spec={"devices": {"requests": [request]}},
        status=status or {},
    )


def allocation(device: str = "gpu-0", *, pool: str = "n1", **fields: Any) -> Document:
    result = {"request": "r", "driver": DRIVER, "pool": pool, "device": device, **fields}
    return {"devices": {"results": [result]}}


def reservation(name: str) -> Document:
    return {"resource": "pods", "name": name, "uid": f"uid-{name}"}


def pod_document(name: str = "p", **spec: Any) -> Document:
    containers = [{"name": "c", "image": "x"}]
    return object_document("Pod", name, metadata={"namespace": "default"}, spec={"containers": containers, **spec})


CLASS = object_document(
    "DeviceClass", "gpu", spec={"selectors": [{"cel": {"expression": f'device.driver == "{DRIVER}"'}}]}
)
OWNER = {"apiVersion": "v1", "kind": "Pod", "name": "gone", "uid": "uid-gone", "controller": True}
HEALTHY = [CLASS, node_document(), slice_document()]
USED = claim_document(status={"allocation": allocation(), "reservedFor": [reservation("p")]})

HARD = [f"{name}.deviceclass.resource.k8s.io/devices" for name in ("gpu", "gpuu")]

FAULTS = [
    pytest.param(
        [slice_document(pool={"resourceSliceCount": 2})],
        "error pool-incomplete: pool gpu.example.com/n1",
        id="a-slice-was-never-published",
    ),
    pytest.param(
        [slice_document(pool={"resourceSliceCount": 2}), slice_document("other", devices=[{"name": "gpu-9"}])],
        "error pool-count-contradicts: pool gpu.example.com/n1",
        id="slices-disagree-about-their-number",
    ),
    pytest.param(
        [slice_document(pool={"generation": 2}), slice_document("old")],
        "warning slice-stale: ResourceSlice old",
        id="a-slice-of-an-older-generation",
    ),
    pytest.param(
        [slice_document(pool={"resourceSliceCount": 2}), slice_document("other", pool={"resourceSliceCount": 2})],
        "error pool-duplicate-device: pool gpu.example.com/n1",
        id="a-device-twice",
    ),
    pytest.param(
        [
            slice_document(pool={"resourceSliceCount": 2, "name": "gpus"}),
            node_document("n2"),
            slice_document("n2-gpus", node_name="n2", pool={"resourceSliceCount": 2, "name": "gpus"}),
        ],
        "error pool-name-shared: pool gpu.example.com/gpus",
        id="two-nodes-with-one-pool-name",
    ),
    pytest.param(
        [
            slice_document(
                devices=[{"name": "part", "consumesCounters": [{"counterSet": "s", "counters": {"m": {"value": "1"}}}]}]
            )
        ],
        "error pool-counter-missing: pool gpu.example.com/n1",
        id="a-counter-that-does-not-exist",
    ),
    pytest.param(
        [slice_document("lost", node_name="n9")],
        "warning slice-orphaned: ResourceSlice lost",
        id="a-slice-of-a-node-that-is-gone",
    ),
    pytest.param(
        [node_document("n2", ready="Unknown"), slice_document("n2-gpus", node_name="n2")],
        "warning slice-on-unready-node: ResourceSlice n2-gpus",
        id="a-node-is-not-ready",
    ),
    pytest.param(
        [claim_document(status={"allocation": allocation(), "reservedFor": [reservation("gone")]})],
        "error reservation-without-pod: ResourceClaim default/c",
        id="a-reservation-for-a-pod-that-is-gone",
    ),
    pytest.param(
        [
            claim_document(
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
        [claim_document(metadata={"ownerReferences": [OWNER]})],
        "warning claim-orphaned: ResourceClaim default/c",
        id="the-owner-is-gone",
    ),
    pytest.param(
        [pod_document(), claim_document(status={"allocation": allocation("gpu-7"), "reservedFor": [reservation("p")]})],
        "error device-not-published: ResourceClaim default/c",
        id="a-device-that-vanished",
    ),
    pytest.param(
        [
            pod_document(),
            USED,
            pod_document("q"),
            claim_document("d", status={"allocation": allocation(), "reservedFor": [reservation("q")]}),
        ],
        "critical device-allocated-twice: device gpu.example.com/n1/gpu-0",
        id="one-device-in-two-claims",
    ),
    pytest.param(
        [pod_document(resourceClaims=[{"name": "g", "resourceClaimName": "none"}])],
        "error pod-claim-missing: Pod default/p",
        id="a-claim-that-does-not-exist",
    ),
    pytest.param(
        [{**pod_document(resourceClaims=[{"name": "g", "resourceClaimName": "none"}]), "status": {"phase": "Running"}}],
        "critical pod-claim-missing: Pod default/p",
        id="a-claim-that-was-removed-by-force",
    ),
    pytest.param(
        [pod_document(resourceClaims=[{"name": "g", "resourceClaimTemplateName": "none"}])],
        "error pod-claim-missing: Pod default/p",
        id="a-template-that-does-not-exist",
    ),
    pytest.param(
        [claim_document(deviceClassName="gpus")],
        "error class-missing: ResourceClaim default/c",
        id="a-class-that-does-not-exist",
    ),
    pytest.param(
        [claim_document(selectors=[{"cel": {"expression": 'device.attributes["gpu.example.com"].model == "b"'}}])],
        "warning selector-never-matches: ResourceClaim default/c",
        id="a-selector-that-matches-nothing",
    ),
    pytest.param(
        [
            object_document(
                "DeviceClass", "nic", spec={"selectors": [{"cel": {"expression": 'device.driver == "nic.x"'}}]}
            )
        ],
        "warning class-without-devices: DeviceClass nic",
        id="a-class-without-devices",
    ),
    pytest.param(
        [
            object_document("DeviceClass", "one", spec={"extendedResourceName": "x.com/gpu"}),
            object_document("DeviceClass", "two", spec={"extendedResourceName": "x.com/gpu"}),
        ],
        "warning extended-resource-ambiguous: extended resource x.com/gpu",
        id="two-classes-with-one-extended-resource",
    ),
    pytest.param(
        [
            object_document(
                "ResourceQuota", "q", metadata={"namespace": "default"}, spec={"hard": dict.fromkeys(HARD, "1")}
            )
        ],
        "warning quota-class-missing: ResourceQuota default/q",
        id="a-quota-of-a-class-that-does-not-exist",
    ),
    pytest.param(
        [object_document("DeviceTaintRule", "all", spec={"taint": {"key": "k", "effect": "NoSchedule"}})],
        "warning taint-rule-for-everything: DeviceTaintRule all",
        id="a-rule-without-a-selector",
    ),
    pytest.param(
        [node_document(example_com__gpu="2")],
        "error hardware-counted-twice: Node n1",
        id="a-device-plugin-next-to-a-driver",
    ),
]


def rename(value: Any, number: int) -> Any:
    """Return documents of one fault with names of its own, so that many faults fit into one cluster."""
    if isinstance(value, dict):
        return {rename(key, number): rename(each, number) for key, each in value.items()}
    if isinstance(value, list):
        return [rename(each, number) for each in value]
    if not isinstance(value, str):
        return value
    if value in _NAMES or value.startswith("uid-"):
        return f"{value}-{number}"
    return value.replace(DRIVER, f"gpu-{number}.example.com").replace("gpu.deviceclass", f"gpu-{number}.deviceclass")


def planted() -> list[tuple[list[Document], str]]:
    """Return the objects of each fault with its finding."""
    values: list[Any] = [each.values for each in FAULTS]
    return [(documents, expected) for documents, expected in values]


def combined() -> tuple[list[Document], list[str]]:
    """Return the objects of one cluster with all faults, and their findings."""
    documents: list[Document] = []
    findings: list[str] = []
    for number, (own, expected) in enumerate(planted()):
        merged = {(each["kind"], each["metadata"]["name"]): each for each in [*HEALTHY, *own]}
        documents += rename(list(merged.values()), number)
        findings.append(_renamed_finding(expected, number))
    return documents, findings


def _renamed_finding(want: str, number: int) -> str:
    """Return the finding that is expected for documents with names of their own."""
    if "extended resource" in want:
        return want
    return re.sub(r"[\w.-]+", lambda word: str(rename(word[0], number)), want)


_NAMES = frozenset({"n1", "n2", "n9", "gpu", "c", "d", "p", "q", "n1-gpus", "n2-gpus", "old", "other", "lost", "gone",
                    "gpus", "nic", "one", "two", "all"})  # fmt: skip
