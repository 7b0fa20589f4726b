"""Rollback and re-enablement of feature gates with objects in use: nothing is lost, nothing is stuck."""

import contextlib
from collections.abc import AsyncIterator
from typing import NamedTuple

from msgspec import structs

from drachma.api import gates as features
from drachma.api import namespace, pod, resourceclaim, resourceslice
from drachma.api.v1alpha2 import resourceclaim as alpha
from drachma.client import patches
from drachma.store import memory
from drachma.testing import manualclock
from drachma.testing import node as a_node
from tests import firstalpha
from tests.scenarios import controlplane
from tests.scenarios.test_first_alpha import CLAIM, CLASS, PARAMETERS, SLICE, a_pod, claim_of, finish, resources


class _LastingStore(memory.MemoryStore):
    """A store that outlives the servers that close it."""

    async def close(self) -> None:
        return


class History:
    """One cluster over several runs of its control plane, each with gates of its own."""

    def __init__(self) -> None:
        self._store = _LastingStore()
        self._clock = manualclock.ManualClock()

    @contextlib.asynccontextmanager
    async def running(self, gates: features.Gates = features.ALL) -> AsyncIterator[controlplane.ControlPlane]:
        """Run the control plane on the objects that the previous run left."""
        async with controlplane.control_plane(store=self._store, gates=gates, clock=self._clock) as plane:
            yield plane


async def test_first_alpha_is_switched_off_and_on_with_claims_in_use() -> None:
    history = History()
    async with history.running(firstalpha.GATES) as plane:
        await plane.create(a_node("worker-1"))
        await plane.apply(SLICE, CLASS, PARAMETERS, CLAIM, a_pod())
        assert await resources(plane) == ["gpu-1"]
        own = await plane.client.get(resourceclaim.ResourceClaim, "my", namespace="default")
        published = await plane.all_of(resourceslice.ResourceSlice)
    async with history.running() as plane:
        await plane.advance(600)
        kept = await plane.client.get(resourceclaim.ResourceClaim, "my", namespace="default")
        assert (kept.metadata.uid, kept.metadata.deletion_timestamp) == (own.metadata.uid, None)
        assert kept.status == own.status, "the devices stay those of the running pod"
        assert await plane.all_of(resourceslice.ResourceSlice) == published
    async with history.running(firstalpha.GATES) as plane:
        await plane.advance(600)
        assert await resources(plane) == ["gpu-1"]
        assert [each.name for each in (await claim_of(plane)).status.reserved_for] == ["p"]
        await plane.apply(a_pod("next"))
        assert await plane.node_of("next") == "", "the claim is exclusive and its user still runs"
        await finish(plane)
        await plane.advance(60)
        assert await plane.node_of("next") == "worker-1"
        await finish(plane, "next")
        await plane.delete(alpha.ResourceClaim, "my")
        await plane.advance(60)
        assert await plane.all_of(alpha.ResourceClaim) == ()
        assert await plane.all_of(resourceclaim.ResourceClaim) == ()


async def test_a_pod_that_ends_while_first_alpha_is_off_frees_its_claim() -> None:
    history = History()
    async with history.running(firstalpha.GATES) as plane:
        await plane.create(a_node("worker-1"))
        await plane.apply(SLICE, CLASS, PARAMETERS, CLAIM, a_pod())
    async with history.running() as plane:
        await finish(plane)
        await plane.apply(a_pod("meanwhile"))
        assert await plane.node_of("meanwhile") == "worker-1", "pods go on with the claim that stands for it"
        await finish(plane, "meanwhile")
        await plane.delete(resourceclaim.ResourceClaim, "my")
    async with history.running(firstalpha.GATES) as plane:
        await plane.advance(60)
        await plane.apply(a_pod("afterwards"))
        await plane.advance(60)
        assert await plane.node_of("afterwards") == "worker-1"
        assert await resources(plane) == ["gpu-1"]


EVERYTHING = features.ALL.switched(dict.fromkeys(features.OWN | features.OFFERED, True))

FEATURES = """
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: gpu}
spec:
  selectors: [{cel: {expression: 'device.driver == "gpu.example.com"'}}]
  extendedResourceName: example.com/gpu
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: worker-1-gpus}
spec:
  driver: gpu.example.com
  nodeName: worker-1
  pool: {name: worker-1, generation: 1, resourceSliceCount: 1}
  devices:
  - {name: plain}
  - name: tainted
    taints: [{key: example.com/broken, effect: NoSchedule}]
  - name: listed
    attributes: {models: {strings: [a, b]}}
  - name: parts
    allowMultipleAllocations: true
    capacity: {memory: {value: 16Gi}}
  - name: mapped
    attributes: {cores: {int: 1}}
    nodeAllocatableResources: {cpu: {mapping: {deviceMultiplier: "1"}, accountingPolicy: AddPerClaim}}
  - {name: spare}
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: worker-1-partitions}
spec:
  driver: gpu.example.com
  nodeName: worker-1
  pool: {name: zz-partitions, generation: 1, resourceSliceCount: 2}
  sharedCounters: [{name: card, counters: {slots: {value: "4"}}}]
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: worker-1-partitions-devices}
spec:
  driver: gpu.example.com
  nodeName: worker-1
  pool: {name: zz-partitions, generation: 1, resourceSliceCount: 2}
  devices:
  - name: half
    attributes: {partition: {bool: true}}
    consumesCounters: [{counterSet: card, counters: {slots: {value: "2"}}}]
---
apiVersion: v1
kind: ResourceQuota
metadata: {name: compute}
spec: {hard: {requests.ephemeral-storage: "1Ti", pods: "100"}}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: partitioned}
spec:
  devices:
    requests:
    - name: r
      exactly:
        deviceClassName: gpu
        selectors: [{cel: {expression: 'has(device.attributes["gpu.example.com"].partition)'}}]
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: allocatable}
spec:
  devices:
    requests:
    - name: r
      exactly:
        deviceClassName: gpu
        selectors: [{cel: {expression: 'has(device.attributes["gpu.example.com"].cores)'}}]
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: admin}
spec:
  devices:
    requests:
    - name: r
      exactly: {deviceClassName: gpu, adminAccess: true}
---
apiVersion: resource.k8s.io/v1
kind: DeviceTaintRule
metadata: {name: nobody}
spec:
  deviceSelector: {driver: other.example.com}
  taint: {key: example.com/off, effect: NoExecute}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: prioritized}
spec:
  devices:
    requests:
    - name: r
      firstAvailable:
      - {name: absent, deviceClassName: absent}
      - {name: there, deviceClassName: gpu, selectors: [{cel: {expression: 'device.capacity.size() == 0'}}]}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: shared}
spec:
  devices:
    requests:
    - name: r
      exactly:
        deviceClassName: gpu
        capacity: {requests: {memory: 4Gi}}
        selectors: [{cel: {expression: 'device.allowMultipleAllocations'}}]
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: tolerant}
spec:
  devices:
    requests:
    - name: r
      exactly:
        deviceClassName: gpu
        tolerations: [{key: example.com/broken, operator: Exists}]
"""
USER = """
apiVersion: v1
kind: Pod
metadata: {name: NAME}
spec:
  containers: [{name: c, image: registry.example/app, resources: {claims: [{name: x}]}}]
  resourceClaims: [{name: x, resourceClaimName: NAME}]
"""
EXTENDED = """
apiVersion: v1
kind: Pod
metadata: {name: extended}
spec:
  containers: [{name: c, image: registry.example/app, resources: {limits: {example.com/gpu: 1}}}]
"""
NAMES = ("prioritized", "shared", "tolerant", "partitioned", "allocatable", "admin")
ADMINS = {"metadata": {"labels": {"resource.kubernetes.io/admin-access": "true"}}}


class InUse(NamedTuple):
    """Everything that must survive: pods with their nodes, and claims with devices and consumers."""

    pods: dict[str, tuple[str, str]]
    claims: dict[str, tuple[str, object, resourceclaim.ResourceClaimStatus]]


async def in_use(plane: controlplane.ControlPlane) -> InUse:
    return InUse(
        {each.metadata.name: (each.metadata.uid, each.spec.node_name) for each in await plane.all_of(pod.Pod)},
        {
            each.metadata.name: (each.metadata.uid, each.metadata.deletion_timestamp, each.status)
            for each in await plane.all_of(resourceclaim.ResourceClaim)
        },
    )


async def test_every_gate_is_switched_off_and_on_with_objects_in_use() -> None:
    """One after the other: pods keep their nodes, and claims their devices, whatever is off for a while."""
    history = History()
    async with history.running(EVERYTHING) as plane:
        made = a_node("worker-1").build()
        able = structs.replace(made.status, declared_features=("DRANodeAllocatableResources",))
        await plane.create(structs.replace(made, status=able))
        await plane.client.patch(namespace.Namespace, "default", patch=patches.merge(ADMINS))
        await plane.apply(FEATURES, *(USER.replace("NAME", name) for name in NAMES), EXTENDED)
        before = await in_use(plane)
        assert sorted(before.pods) == sorted((*NAMES, "extended"))
        for name, (_, node) in before.pods.items():
            assert node == "worker-1", f"{name}: {await plane.condition(name)}"
    for gate in EVERYTHING.enabled:
        async with history.running(EVERYTHING.switched({gate: False})) as plane:
            await plane.advance(35)
            assert await in_use(plane) == before, f"without {gate}"
    async with history.running(EVERYTHING) as plane:
        await plane.advance(120)
        assert await in_use(plane) == before
        for name in (*NAMES, "extended"):
            await plane.delete(pod.Pod, name)
        await plane.advance(60)
        left = await plane.all_of(resourceclaim.ResourceClaim)
        assert {each.metadata.name: each.status.allocation for each in left} == dict.fromkeys(NAMES)
        for name in NAMES:
            await plane.delete(resourceclaim.ResourceClaim, name)
        await plane.advance(60)
        assert await plane.all_of(resourceclaim.ResourceClaim) == (), "nothing is stuck"
