"""Devices that are gone, or in use, when a pod starts: simulated drivers refuse them, and say so."""

import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest

from drachma.api import gates, pod, resourceclaim, resourceslice
from drachma.client import patches
from drachma.node.simulation import hardware
from drachma.process import components, nodeagents
from drachma.runtime import Surroundings
from tests.scenarios import controlplane

DRIVER = "gpu.simulation.drachma.dev"
REQUEST = {"name": "gpu", "exactly": {"deviceClassName": DRIVER}}
TEMPLATE = f"""
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {{name: one-gpu}}
spec: {{spec: {{devices: {{requests: [{{name: gpu, exactly: {{deviceClassName: {DRIVER}}}}}]}}}}}}
"""


@contextlib.asynccontextmanager
async def _cluster(nodes: int = 1, *, has_checks: bool = False) -> AsyncIterator[controlplane.ControlPlane]:
    """A cluster of simulated nodes; with or without the gate DrachmaDeviceChecks."""
    enabled = gates.ALL.switched({"DrachmaDeviceChecks": has_checks})

    def agents(around: Surroundings) -> components.Run:
        own = Surroundings(around.client, shared_informers=around.informers, clock=around.clock, gates=enabled)
        return nodeagents.simulated_machines(own, hardware.build("gpu-server", nodes))

    async with controlplane.control_plane() as cluster:
        cluster.launch("agents", agents)
        await cluster.settle()
        await cluster.apply(TEMPLATE)
        yield cluster


async def _allocate(cluster: controlplane.ControlPlane, name: str, *, node: str, device: str, pool: str) -> None:
    """Create a pod on a node with a claim that is allocated by hand."""
    await cluster.client.create_document(
        resourceclaim.ResourceClaim,
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaim",
            "metadata": {
                "name": name,
                "namespace": "default",
                "finalizers": ["resource.kubernetes.io/delete-protection"],
            },
            "spec": {"devices": {"requests": [REQUEST]}},
        },
    )
    await cluster.client.create_document(
        pod.Pod,
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {
                "nodeName": node,
                "containers": [{"name": "c", "image": "i", "resources": {"claims": [{"name": "gpu"}]}}],
                "resourceClaims": [{"name": "gpu", "resourceClaimName": name}],
            },
        },
    )
    claim = await cluster.client.get(resourceclaim.ResourceClaim, name, namespace="default")
    user = {"resource": "pods", "name": name, "uid": (await cluster.pod(name)).metadata.uid}
    result = {"request": "gpu", "driver": DRIVER, "pool": pool, "device": device}
    await cluster.patch_status(claim, {"allocation": {"devices": {"results": [result]}}, "reservedFor": [user]})


async def _pod_of_template(cluster: controlplane.ControlPlane, name: str) -> None:
    document: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "containers": [{"name": "c", "image": "i", "resources": {"claims": [{"name": "gpu"}]}}],
            "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "one-gpu"}],
        },
    }
    await cluster.client.create_document(pod.Pod, document)
    await cluster.settle()


@pytest.mark.parametrize(
    ("pool", "device"),
    [pytest.param("node-1", "gpu-99", id="never-published"), pytest.param("node-0", "gpu-0", id="of-another-node")],
)
async def test_a_device_that_the_node_does_not_have_is_not_prepared(pool: str, device: str) -> None:
    async with _cluster(nodes=2) as cluster:
        await _allocate(cluster, "p", node="node-1", pool=pool, device=device)
        await cluster.advance(5)
        assert (await cluster.pod("p")).status.phase == "Pending"
        problem = f"device unavailable: {DRIVER}/{pool}/{device} is not published for node node-1"
        assert any(problem in each for each in await cluster.events("FailedPrepareDynamicResources"))


async def _remove_device(cluster: controlplane.ControlPlane, device: str) -> None:
    name = f"node-0-{DRIVER}"
    stored_slice = await cluster.client.get_document(resourceslice.ResourceSlice, name)
    devices = [each for each in stored_slice["spec"]["devices"] if each["name"] != device]
    stored_slice["spec"]["devices"] = devices
    await cluster.client.update_document(resourceslice.ResourceSlice, stored_slice)


async def test_a_pod_starts_when_its_device_comes_back() -> None:
    async with _cluster() as cluster:
        before = await cluster.client.get_document(resourceslice.ResourceSlice, f"node-0-{DRIVER}")
        await _remove_device(cluster, "gpu-3")
        await cluster.settle()
        await _allocate(cluster, "p", node="node-0", pool="node-0", device="gpu-3")
        await cluster.advance(3)
        assert (await cluster.pod("p")).status.phase == "Pending"
        current = await cluster.client.get_document(resourceslice.ResourceSlice, f"node-0-{DRIVER}")
        current["spec"]["devices"] = before["spec"]["devices"]
        await cluster.client.update_document(resourceslice.ResourceSlice, current)
        await cluster.advance(70)
        assert (await cluster.pod("p")).status.phase == "Running"


async def test_a_slice_that_is_about_to_be_published_again_does_not_count_as_gone() -> None:
    async with _cluster(has_checks=True) as cluster:
        await cluster.client.delete(resourceslice.ResourceSlice, f"node-0-{DRIVER}")
        await _allocate(cluster, "p", node="node-0", pool="node-0", device="gpu-3")
        await cluster.settle()
        assert (await cluster.pod("p")).status.phase == "Running"


async def test_a_lost_device_ends_the_pod_behind_a_gate_and_its_owner_makes_another() -> None:
    async with _cluster(has_checks=True) as cluster:
        await _remove_device(cluster, "gpu-3")
        await cluster.settle()
        await _allocate(cluster, "p", node="node-0", pool="node-0", device="gpu-3")
        await cluster.advance(5)
        status = (await cluster.client.get_document(pod.Pod, "p", namespace="default"))["status"]
        assert (status["phase"], status["reason"]) == ("Failed", "DeviceUnavailable")
        assert f"{DRIVER}/node-0/gpu-3 is not published for node node-0" in status["message"]
        claim = await cluster.client.get(resourceclaim.ResourceClaim, "p", namespace="default")
        assert claim.status.allocation is None, "so that another pod gets another device"


@pytest.mark.parametrize("has_checks", [False, True])
async def test_a_device_is_not_prepared_for_two_claims_after_a_claim_was_removed_by_force(*, has_checks: bool) -> None:
    async with _cluster(has_checks=has_checks) as cluster:
        await cluster.apply("""
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: first}
spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu.simulation.drachma.dev, count: 8}}]}}
---
apiVersion: v1
kind: Pod
metadata: {name: first}
spec:
  resourceClaims: [{name: gpu, resourceClaimName: first}]
  containers: [{name: c, image: i, resources: {claims: [{name: gpu}]}}]
""")
        await cluster.settle()
        assert (await cluster.pod("first")).status.phase == "Running"
        await cluster.client.delete(resourceclaim.ResourceClaim, "first", namespace="default")
        patch = patches.merge({"metadata": {"finalizers": None}})
        await cluster.client.patch(resourceclaim.ResourceClaim, "first", namespace="default", patch=patch)
        await _pod_of_template(cluster, "second")
        await cluster.advance(3)
        second = await cluster.pod("second")
        assert (second.spec.node_name, second.status.phase) == ("node-0", "Pending")
        (problem,) = set(await cluster.events("FailedPrepareDynamicResources"))
        assert f"device in use: {DRIVER}/node-0/gpu-0 is prepared for ResourceClaim default/first" in problem
        await cluster.client.delete(pod.Pod, "first", namespace="default")
        await cluster.advance(70)
        assert (await cluster.pod("second")).status.phase == "Running"
