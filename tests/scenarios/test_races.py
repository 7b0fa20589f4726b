"""The races of KEP-4381, "State and communication", on whole control planes: somebody acts between two writes."""

import pytest

from drachma.api import pod, resourceclaim
from drachma.claims import wellknown
from drachma.client import patches
from drachma.testing import claim, device_class, node, resource_slice
from drachma.testing import pod as build_pod
from tests.scenarios import controlplane, gatekeeper

Claim = resourceclaim.ResourceClaim
CLASS = "gpu.example.com"
CONTAINER = pod.Container(name="main", image="registry.example/app:1")


def a_class() -> object:
    return device_class(CLASS, f'device.driver == "{CLASS}"')


def gpus(on: str, *names: str) -> object:
    return resource_slice(on, driver=CLASS).on_node(on).devices(*names)


def a_claim(name: str = "c", **request: object) -> object:
    return claim(name).request("gpu", device_class=CLASS, **request)  # type: ignore[arg-type]


def user(name: str, *claims: str, **spec: object) -> object:
    made = build_pod(name).spec(containers=(CONTAINER,), **spec)
    for each in claims:
        made = made.claim(each, claim=each)
    return made


# A claim is deleted while it is being allocated


@pytest.mark.parametrize(
    ("verb", "subresource"),
    [pytest.param("patch", "", id="before-the-finalizer"), pytest.param("patch", "status", id="after-the-finalizer")],
)
async def test_delete_while_allocating(verb: str, subresource: str) -> None:
    keeper = gatekeeper.Gatekeeper()
    async with controlplane.control_plane(wrap=keeper.wrap) as plane:
        await plane.create(node("n"), a_class(), gpus("n", "gpu-0"), a_claim("c"))

        async def delete() -> None:
            await plane.client.delete(Claim, "c", namespace="default")

        keeper.before(verb, delete, name="c", subresource=subresource)
        await plane.create(user("p", "c"))
        await plane.advance(5)
        assert keeper.acted == 1
        assert await plane.node_of("p") == "", "it has nothing to run with"
        assert await plane.find(Claim, "c") is None, "nothing holds on to what nobody got"
        # The device is nobody's: another claim gets it.
        await plane.create(a_claim("d"), user("q", "d"))
        assert await plane.node_of("q") == "n"
        assert await plane.devices("d") == ["n/gpu-0"]


# A claim is deleted and made again while it is being allocated


async def test_delete_and_recreate_while_the_finalizer_is_added() -> None:
    keeper = gatekeeper.Gatekeeper()
    async with controlplane.control_plane(wrap=keeper.wrap) as plane:
        await plane.create(node("n"), a_class(), gpus("n", "gpu-0", "gpu-1"), a_claim("c"))
        first = await plane.claim("c")

        async def recreate() -> None:
            await plane.client.delete(Claim, "c", namespace="default")
            await plane.put(a_claim("c", count=2))

        keeper.before("patch", recreate, name="c")
        await plane.create(user("p", "c"))
        await plane.advance(5)
        assert keeper.acted == 1
        second = await plane.claim("c")
        assert second.metadata.uid != first.metadata.uid
        assert await plane.devices("c") == ["n/gpu-0", "n/gpu-1"], "what the new claim asks for, not the old one"
        assert await plane.users("c") == ["p"]
        assert await plane.node_of("p") == "n"


# Two schedulers on one claim


async def test_two_schedulers_on_one_unallocated_claim() -> None:
    """Both decide before either writes; only one allocation can be stored, and the loser follows the winner."""
    keeper = gatekeeper.Gatekeeper()
    async with controlplane.control_plane(schedulers=0, wrap=keeper.wrap) as plane:
        await plane.create(node("n1"), node("n2"), a_class(), gpus("n1", "gpu-0"), gpus("n2", "gpu-0"), a_claim("c"))
        meeting = gatekeeper.Barrier(2)
        keeper.before("patch", meeting.wait, name="c")
        keeper.before("patch", meeting.wait, name="c")
        for name in ("red", "blue"):
            await plane.start_scheduler(name, name=name, has_peers=True)
        for name in ("red", "blue"):
            await plane.put(user(f"p-{name}", "c", scheduler_name=name))
        await plane.advance(15)
        assert keeper.acted == 2, "both were about to write"
        assert len(await plane.devices("c")) == 1
        assert await plane.users("c") == ["p-blue", "p-red"]
        assert await plane.node_of("p-red") == await plane.node_of("p-blue") != ""


async def test_two_schedulers_on_a_claim_for_one_pod() -> None:
    """A claim with node-allocatable devices may be used by one pod only: the second has to wait for it."""
    keeper = gatekeeper.Gatekeeper()
    async with controlplane.control_plane(schedulers=0, wrap=keeper.wrap) as plane:
        await plane.apply(ONE_POD_CLAIM)
        meeting = gatekeeper.Barrier(2)
        keeper.before("patch", meeting.wait, name="c")
        keeper.before("patch", meeting.wait, name="c")
        for name in ("red", "blue"):
            await plane.start_scheduler(name, name=name, has_peers=True)
        for name in ("red", "blue"):
            await plane.put(user(f"p-{name}", "c", scheduler_name=name))
        await plane.advance(15)
        assert keeper.acted == 2
        nodes = {name: await plane.node_of(name) for name in ("p-red", "p-blue")}
        assert sorted(nodes.values()) == ["", "n"], nodes
        winner = next(name for name, found in nodes.items() if found)
        loser = next(name for name, found in nodes.items() if not found)
        assert await plane.users("c") == [winner]
        await plane.delete(pod.Pod, winner)
        await plane.advance(30)
        assert await plane.node_of(loser) == "n"
        assert await plane.users("c") == [loser]


ONE_POD_CLAIM = """
apiVersion: v1
kind: Node
metadata: {name: n}
status:
  capacity: {cpu: "8", memory: 8Gi, pods: "110"}
  allocatable: {cpu: "8", memory: 8Gi, pods: "110"}
  conditions: [{type: Ready, status: "True"}]
  declaredFeatures: [DRANodeAllocatableResources]
---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: gpu.example.com}
spec: {}
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: n}
spec:
  driver: gpu.example.com
  nodeName: n
  pool: {name: n, generation: 1, resourceSliceCount: 1}
  devices:
  - name: gpu-0
    nodeAllocatableResources: {cpu: {mapping: {deviceMultiplier: "2"}}}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: c}
spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu.example.com}}]}}
"""


# Two pods on one unallocated claim


@pytest.mark.parametrize("schedulers", [1, 2, 3])
async def test_two_pods_on_one_unallocated_claim(schedulers: int) -> None:
    """It is allocated once, for one of them; the other shares it where it is."""
    async with controlplane.control_plane(schedulers=schedulers) as plane:
        await plane.create(node("n1"), node("n2"), a_class(), gpus("n1", "gpu-0"), gpus("n2", "gpu-0"))
        await plane.put(user("p", "c"))
        await plane.put(user("q", "c"))
        await plane.put(a_claim("c"))
        await plane.advance(15)
        assert len(await plane.devices("c")) == 1
        assert await plane.users("c") == ["p", "q"]
        assert await plane.node_of("p") == await plane.node_of("q") != ""


# A claim is being deallocated while another pod arrives


async def test_deallocation_while_another_pod_arrives() -> None:
    """A pod's two claims are allocated on different nodes, so one that is unused must be given back first. A second
    pod that wants the very claim comes between the decision and the write; it must not get what is being taken away.
    """
    keeper = gatekeeper.Gatekeeper()
    async with controlplane.control_plane(wrap=keeper.wrap) as plane:
        await plane.create(node("n1"), node("n2", labels={"zone": "b"}), a_class())
        await plane.create(gpus("n1", "gpu-0"), gpus("n2", "gpu-0", "gpu-1"), a_claim("a"), a_claim("b"))
        # "a" is left over on n1: allocated, and used by nobody. "b" is in use on n2.
        await allocate(plane, "a", "n1")
        await plane.create(user("holder", "b", node_selector={"zone": "b"}))
        assert await plane.node_of("holder") == "n2"

        async def arrive() -> None:
            await plane.put(user("late", "a"))

        keeper.before("patch", arrive, name="a", subresource="status")
        await plane.create(user("p", "a", "b"))
        await plane.advance(30)
        assert keeper.acted == 1
        # Whoever of the two came first with "a", both have it, on one node, and so has "p" both of its claims.
        assert await plane.node_of("p") == "n2"
        assert await plane.node_of("late") == "n2"
        assert await plane.users("a") == ["late", "p"]
        assert await plane.users("b") == ["holder", "p"]
        devices = [*await plane.devices("a"), *await plane.devices("b")]
        assert sorted(devices) == ["n2/gpu-0", "n2/gpu-1"]


async def allocate(plane: controlplane.ControlPlane, name: str, on: str) -> None:
    """Allocates a claim by hand, for nobody."""
    result = resourceclaim.DeviceRequestAllocationResult(request="gpu", driver=CLASS, pool=on, device="gpu-0")
    content = {
        "devices": {"results": [result]},
        "nodeSelector": {
            "nodeSelectorTerms": [
                {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [on]}]},
            ]
        },
    }
    known = await plane.claim(name)
    await plane.client.patch(
        Claim,
        name,
        namespace="default",
        patch=patches.merge({"metadata": {"finalizers": [wellknown.CLAIM_FINALIZER]}}, patches.unchanged(known)),
    )
    await plane.patch_status(known, {"allocation": content})
