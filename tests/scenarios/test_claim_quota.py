"""Resource quotas that count what claims add to their pods (KEP-5517), behind a gate."""

import json

from drachma.api import gates as features
from drachma.api import pod, resourcequota
from tests.scenarios import controlplane
from tests.scenarios.test_scheduler_allocatable import ROOMY, able, accelerators, classes

GATES = features.ALL.switched({"DrachmaNodeAllocatableQuota": True})
QUOTA = """
apiVersion: v1
kind: ResourceQuota
metadata: {name: compute}
spec: {hard: {requests.cpu: "4", limits.cpu: "8", requests.memory: 64Gi}}
"""
CLAIM = """
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: NAME}
spec: {devices: {requests: [{name: x, exactly: {deviceClassName: gpu}}]}}
"""
USER = """
apiVersion: v1
kind: Pod
metadata: {name: NAME}
spec:
  containers:
  - name: c
    image: registry.example/app
    resources: {requests: {cpu: "1", memory: 1Gi}, limits: {cpu: "2"}, claims: [{name: x}]}
  resourceClaims: [{name: x, resourceClaimName: NAME}]
"""


async def used(plane: controlplane.ControlPlane) -> dict[str, str]:
    quota = await plane.client.get(resourcequota.ResourceQuota, "compute", namespace="default")
    return {name: str(amount) for name, amount in quota.status.used.items()}


async def begin(plane: controlplane.ControlPlane) -> None:
    await plane.create(able("n1", ROOMY), accelerators(), able("n2", ROOMY), accelerators("n2"), *classes())
    await plane.apply(QUOTA)
    await plane.settle()
    for name in ("a", "b"):
        await plane.apply(CLAIM.replace("NAME", name), USER.replace("NAME", name))
    await plane.advance(30)


async def test_a_pod_is_charged_for_its_devices_and_another_waits_until_they_are_free() -> None:
    async with controlplane.control_plane(gates=GATES) as plane:
        await begin(plane)
        # Each pod requests 1 cpu, and its device is 2 more: one of them has 3, and the other has no room for 2 more.
        assert [await plane.node_of(name) != "" for name in ("a", "b")] == [True, False]
        assert await used(plane) == {"limits.cpu": "6", "requests.cpu": "4", "requests.memory": "6Gi"}
        waiting = json.dumps([each.message for each in (await plane.pod("b")).status.conditions])
        assert (
            "exceeded quota: compute, requested: requests.cpu=2, used: requests.cpu=4, limited: requests.cpu=4"
            in waiting
        )
        await plane.delete(pod.Pod, "a")
        await plane.advance(60)
        assert await plane.node_of("b") != ""
        assert await used(plane) == {"limits.cpu": "4", "requests.cpu": "3", "requests.memory": "5Gi"}


async def test_without_the_gate_claims_cost_nothing_as_upstream() -> None:
    async with controlplane.control_plane() as plane:
        await begin(plane)
        assert [await plane.node_of(name) != "" for name in ("a", "b")] == [True, True]
        assert await used(plane) == {"limits.cpu": "4", "requests.cpu": "2", "requests.memory": "2Gi"}
