"""Claims of v1alpha2 in a whole control plane: they wait, are allocated, shared, given back, beside claims of v1."""

import contextlib
import re
from collections.abc import AsyncIterator

import pytest

from drachma import errors
from drachma.api import meta, node, resourceclaim, resourceslice
from drachma.api.v1alpha2 import parameters
from drachma.api.v1alpha2 import resourceclaim as alpha
from drachma.api.v1alpha2 import resourceslice as alpha_slice
from drachma.client import patches
from drachma.structured import claims, counterpart
from drachma.testing import node as a_node
from tests import firstalpha
from tests.scenarios import controlplane

SLICE = """
kind: NodeResourceSlice
apiVersion: resource.k8s.io/v1alpha2
metadata: {name: worker-1-cards}
spec:
  nodeName: worker-1
  driverName: cards.dra.example.com
  namedResourcesWithAttributes:
  - name: gpu-0
    attributes:
    - {name: runtimeVersion, version: 12.1.42}
    - {name: memory, quantity: 16Gi}
  - name: gpu-1
    attributes:
    - {name: runtimeVersion, version: 12.1.42}
    - {name: memory, quantity: 32Gi}
"""
SLICE_OF_1_30 = """
kind: ResourceSlice
apiVersion: resource.k8s.io/v1alpha2
metadata: {name: worker-1-cards}
nodeName: worker-1
driverName: cards.dra.example.com
namedResources:
  instances:
  - name: gpu.1
    attributes:
    - {name: memory, quantity: 32Gi}
"""
PARAMETERS = """
kind: ResourceClaimParameters
apiVersion: resource.k8s.io/v1alpha2
metadata: {name: large}
vendorParameters: {kind: CardParameters, sharing: TimeSliced}
requests:
- driverName: cards.dra.example.com
  namedResourcesWithAttributes:
    required:
    - selector: attributes["runtimeVersion"] >= "v12.0.0" && attributes["memory"] >= "32Gi"
"""
PARAMETERS_OF_1_30 = """
kind: ResourceClaimParameters
apiVersion: resource.k8s.io/v1alpha2
metadata: {name: large}
shareable: true
driverRequests:
- driverName: cards.dra.example.com
  vendorParameters: {of: claim}
  requests:
  - vendorParameters: {of: request}
    namedResources: {selector: 'attributes.quantity["memory"].isGreaterThan(quantity("16Gi"))'}
"""
CLASS = """
kind: ResourceClass
apiVersion: resource.k8s.io/v1alpha2
metadata: {name: cards}
driverName: cards.dra.example.com
structuredParameters: true
"""
CLAIM = """
kind: ResourceClaim
apiVersion: resource.k8s.io/v1alpha2
metadata: {name: my}
spec:
  resourceClassName: cards
  parametersRef: {apiGroup: resource.k8s.io, kind: ResourceClaimParameters, name: large}
"""
POD = """
kind: Pod
apiVersion: v1
metadata: {name: NAME}
spec:
  containers: [{name: c, image: registry.example/app}]
  resourceClaims: [{name: gpu, resourceClaimName: my}]
"""


def a_pod(name: str = "p") -> str:
    return POD.replace("NAME", name)


@contextlib.asynccontextmanager
async def cluster(*manifests: str) -> AsyncIterator[controlplane.ControlPlane]:
    async with controlplane.control_plane(gates=firstalpha.GATES) as plane:
        await plane.create(a_node("worker-1"))
        await plane.apply(*manifests)
        yield plane


async def claim_of(plane: controlplane.ControlPlane, name: str = "my") -> alpha.ResourceClaim:
    return await plane.client.get(alpha.ResourceClaim, name, namespace="default")


async def resources(plane: controlplane.ControlPlane, name: str = "my") -> list[str]:
    """The names of what a claim was given."""
    allocation = (await claim_of(plane, name)).status.allocation
    if allocation is None:
        return []
    found: list[str] = []
    for handle in allocation.resource_handles:
        data = handle.structured_data
        assert data is not None
        if data.named_resources_with_attributes is not None:
            found += data.named_resources_with_attributes.resources
        found += [each.named_resources.name for each in data.results if each.named_resources is not None]
    return found


async def devices(plane: controlplane.ControlPlane, name: str) -> list[str]:
    """The pools and names of what a claim of v1 was given."""
    allocation = (await plane.client.get(resourceclaim.ResourceClaim, name, namespace="default")).status.allocation
    return [] if allocation is None else [f"{each.pool}/{each.device}" for each in allocation.devices.results]


async def finish(plane: controlplane.ControlPlane, name: str = "p") -> None:
    await plane.patch_status(await plane.pod(name), {"phase": "Succeeded"})
    await plane.settle()


async def test_a_claim_gets_what_its_selector_asks_for() -> None:
    async with cluster(SLICE, CLASS, PARAMETERS, CLAIM, a_pod()) as plane:
        assert await plane.node_of("p") == "worker-1"
        claim = await claim_of(plane)
        assert claim.metadata.finalizers == (claims.FINALIZER,)
        assert claim.status.driver_name == "cards.dra.example.com"
        assert [each.name for each in claim.status.reserved_for] == ["p"]
        allocation = claim.status.allocation
        assert allocation is not None
        assert allocation.available_on_nodes is not None
        [handle] = allocation.resource_handles
        assert handle.structured_data == alpha.StructuredResourceHandle(
            vendor_claim_parameters={"kind": "CardParameters", "sharing": "TimeSliced"},
            node_name="worker-1",
            named_resources_with_attributes=alpha.NamedResourcesWithAttributesResult(resources=("gpu-1",)),
        )
        await finish(plane)
        claim = await claim_of(plane)
        assert claim.status == alpha.ResourceClaimStatus()
        assert claim.metadata.finalizers == ()


async def test_the_spelling_of_1_30_is_answered_in_it() -> None:
    async with cluster(SLICE_OF_1_30, CLASS, PARAMETERS_OF_1_30, CLAIM, a_pod()) as plane:
        allocation = (await claim_of(plane)).status.allocation
        assert allocation is not None
        assert allocation.shareable
        [handle] = allocation.resource_handles
        assert handle.structured_data == alpha.StructuredResourceHandle(
            vendor_claim_parameters={"of": "claim"},
            node_name="worker-1",
            results=(
                alpha.DriverAllocationResult(
                    vendor_request_parameters={"of": "request"},
                    named_resources=alpha.NamedResourcesAllocationResult(name="gpu.1"),
                ),
            ),
        )


async def test_parameters_are_waited_for_with_the_reason_in_the_condition() -> None:
    async with cluster(SLICE, CLAIM, a_pod()) as plane:
        assert await plane.why("p") == (
            "0/1 nodes are available: resourceclaim default/my: resource class cards does not exist. "
            "preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling."
        )
        await plane.apply(CLASS)
        await plane.advance(60)
        assert "claim parameters default/large not found" in await plane.why("p")
        assert await plane.events("WaitingForParameters") == [
            "claim parameters default/large not found",
            "resource class cards does not exist",
        ]
        await plane.apply(PARAMETERS)
        await plane.advance(60)
        assert await resources(plane) == ["gpu-1"]


FILTER = """
kind: ResourceClassParameters
apiVersion: resource.k8s.io/v1alpha2
metadata: {name: small}
vendorParameters: {kind: CardClassParameters}
filters:
- driverName: cards.dra.example.com
  namedResourcesWithAttributes: {selector: 'attributes["memory"] <= "16Gi"'}
"""


async def test_class_filter_and_request_must_both_hold() -> None:
    reference = "parametersRef: {apiGroup: resource.k8s.io, kind: ResourceClassParameters, name: small}\n"
    async with cluster(SLICE, CLASS + reference, FILTER, PARAMETERS, CLAIM, a_pod()) as plane:
        assert await plane.why("p") == (
            "0/1 nodes are available: 1 cannot allocate all claims. "
            "preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling."
        )
        filter_ = await plane.client.get(parameters.ResourceClassParameters, "small")
        patch = patches.merge({"filters": []}, patches.same(filter_))
        await plane.client.patch(parameters.ResourceClassParameters, "small", patch=patch)
        await plane.advance(60)
        assert await resources(plane) == ["gpu-1"]
        allocation = (await claim_of(plane)).status.allocation
        assert allocation is not None
        data = allocation.resource_handles[0].structured_data
        assert data is not None
        assert data.vendor_class_parameters == {"kind": "CardClassParameters"}


async def test_exclusive_claims_have_one_user_at_a_time() -> None:
    async with cluster(SLICE, CLASS, PARAMETERS, CLAIM, a_pod("first"), a_pod("second")) as plane:
        assert "resourceclaim in use" in await plane.why("second")
        await finish(plane, "first")
        await plane.advance(60)
        assert await plane.node_of("second") == "worker-1"


async def test_two_pods_at_once_do_not_both_get_an_exclusive_claim() -> None:
    immediate = CLAIM + "  allocationMode: Immediate\n"
    async with cluster(SLICE, CLASS, PARAMETERS, immediate, a_pod("earlier")) as plane:
        await finish(plane, "earlier")
        # It is allocated and nobody uses it: both are decided before either is written.
        await plane.apply(a_pod("first") + "---" + a_pod("second"))
        await plane.advance(60)
        [user] = (await claim_of(plane)).status.reserved_for
        assert [await plane.node_of(name) for name in ("first", "second")].count("worker-1") == 1
        await finish(plane, user.name)
        await plane.advance(60)
        assert {await plane.node_of(name) for name in ("first", "second")} == {"worker-1"}


@pytest.mark.parametrize(
    ("parameters", "users", "message"),
    [
        pytest.param(
            PARAMETERS, 2, "status.reservedFor: Forbidden: may not be reserved more than once", id="exclusive"
        ),
        pytest.param(
            PARAMETERS + "shareable: true\n",
            33,
            "status.reservedFor: Too many: 33: must have at most 32 items",
            id="shareable",
        ),
    ],
)
async def test_the_server_refuses_more_users_than_a_claim_may_have(parameters: str, users: int, message: str) -> None:
    async with cluster(SLICE, CLASS, parameters, CLAIM, a_pod()) as plane:
        own = await plane.client.get(resourceclaim.ResourceClaim, "my", namespace="default")
        more = [{"resource": "pods", "name": f"p{n}", "uid": f"u{n}"} for n in range(users - 1)]
        reserved = [*own.status.reserved_for, *more]
        patch = patches.merge({"status": {"reservedFor": reserved}}, patches.unchanged(own))
        with pytest.raises(errors.DrachmaError, match=re.escape(message)):
            await plane.client.patch(
                resourceclaim.ResourceClaim, "my", patch=patch, namespace="default", subresource="status"
            )


async def test_shareable_claims_have_several() -> None:
    async with cluster(SLICE, CLASS, PARAMETERS + "shareable: true\n", CLAIM, a_pod("a"), a_pod("b")) as plane:
        await plane.advance(60)
        assert sorted(each.name for each in (await claim_of(plane)).status.reserved_for) == ["a", "b"]


async def test_immediate_claims_stay_allocated() -> None:
    immediate = CLAIM + "  allocationMode: Immediate\n"
    async with cluster(SLICE, CLASS, PARAMETERS, immediate) as plane:
        assert await resources(plane) == []
        await plane.apply(a_pod())
        await finish(plane)
        assert await resources(plane) == ["gpu-1"]
        assert (await claim_of(plane)).status.reserved_for == ()
        await plane.apply(a_pod("next"))
        await plane.advance(60)
        assert [each.name for each in (await claim_of(plane)).status.reserved_for] == ["next"]
        await finish(plane, "next")
        await plane.delete(alpha.ResourceClaim, "my")
        assert await plane.find(alpha.ResourceClaim, "my") is None
        assert await plane.find(resourceclaim.ResourceClaim, "my") is None


async def test_a_claim_in_use_is_kept_when_it_is_deleted() -> None:
    async with cluster(SLICE, CLASS, PARAMETERS, CLAIM, a_pod()) as plane:
        await plane.delete(alpha.ResourceClaim, "my")
        assert (await claim_of(plane)).metadata.deletion_timestamp is not None
        await finish(plane)
        assert await plane.find(alpha.ResourceClaim, "my") is None
        assert await plane.find(resourceclaim.ResourceClaim, "my") is None


async def test_what_somebody_else_allocated_is_asked_back() -> None:
    async with cluster(CLASS.replace("true", "false"), CLAIM) as plane:
        claim = await claim_of(plane)
        patch = patches.merge({"metadata": {"finalizers": ["example.com/driver"]}})
        await plane.client.patch(alpha.ResourceClaim, "my", patch=patch, namespace="default")
        handle = {"driverName": "cards.dra.example.com", "data": "opaque"}
        await plane.patch_status(
            claim, {"driverName": handle["driverName"], "allocation": {"resourceHandles": [handle]}}
        )
        await plane.delete(alpha.ResourceClaim, "my")
        assert (await claim_of(plane)).status.deallocation_requested


TEMPLATE = """
kind: ResourceClaimTemplate
apiVersion: resource.k8s.io/v1alpha2
metadata: {name: large}
spec:
  metadata: {labels: {of: template}}
  spec:
    resourceClassName: cards
    parametersRef: {apiGroup: resource.k8s.io, kind: ResourceClaimParameters, name: large}
"""
OWN_CLAIM = """
kind: Pod
apiVersion: v1
metadata: {name: p}
spec:
  containers: [{name: c, image: registry.example/app}]
  resourceClaims: [{name: gpu, resourceClaimTemplateName: large}]
"""


async def test_claims_are_made_from_templates_and_go_with_their_pods() -> None:
    async with cluster(SLICE, CLASS, PARAMETERS, OWN_CLAIM, TEMPLATE) as plane:
        await plane.advance(60)
        [status] = (await plane.pod("p")).status.resource_claim_statuses
        claim = await claim_of(plane, status.resource_claim_name or "")
        assert claim.metadata.labels == {"of": "template"}
        assert [owner.name for owner in claim.metadata.owner_references] == ["p"]
        assert await resources(plane, claim.metadata.name) == ["gpu-1"]
        await finish(plane)
        assert await plane.find(alpha.ResourceClaim, claim.metadata.name) is None
        assert await plane.find(resourceclaim.ResourceClaim, claim.metadata.name) is None


V1_SLICE = """
kind: ResourceSlice
apiVersion: resource.k8s.io/v1
metadata: {name: v1-cards}
spec:
  driver: cards.dra.example.com
  nodeName: worker-1
  pool: {name: worker-1, generation: 1, resourceSliceCount: 1}
  devices:
  - name: gpu-1
    attributes: {runtimeVersion: {version: 12.1.42}}
    capacity: {memory: {value: 32Gi}}
"""
V1_CLASS = """
kind: DeviceClass
apiVersion: resource.k8s.io/v1
metadata: {name: cards}
spec: {selectors: [{cel: {expression: 'device.driver == "cards.dra.example.com"'}}]}
"""
V1_CLAIM = """
kind: ResourceClaim
apiVersion: resource.k8s.io/v1
metadata: {name: new}
spec:
  devices:
    requests:
    - name: card
      exactly:
        deviceClassName: cards
        selectors:
        - cel: {expression: 'device.capacity["cards.dra.example.com"].memory.compareTo(quantity("32Gi")) >= 0'}
"""


@pytest.mark.parametrize("publishes_both", [pytest.param(True, id="both"), pytest.param(False, id="first-alpha")])
async def test_there_is_one_inventory(publishes_both: bool) -> None:
    manifests = [SLICE, *([V1_SLICE] if publishes_both else []), CLASS, PARAMETERS, CLAIM, V1_CLASS, V1_CLAIM]
    async with cluster(*manifests) as plane:
        published = [
            device.name for each in await plane.all_of(resourceslice.ResourceSlice) for device in each.spec.devices
        ]
        assert sorted(published) == ["gpu-0", "gpu-1"]
        await plane.apply(a_pod("old"), a_pod("new").replace("my", "new"))
        await plane.advance(60)
        new = await plane.client.get(resourceclaim.ResourceClaim, "new", namespace="default")
        users = [bool(await resources(plane)), new.status.allocation is not None]
        assert sorted(users) == [False, True]


async def test_a_device_in_use_is_not_given_again_when_it_is_published_in_v1() -> None:
    async with cluster(SLICE, CLASS, PARAMETERS, CLAIM, V1_CLASS, V1_CLAIM, a_pod("old")) as plane:
        assert await resources(plane) == ["gpu-1"]
        await plane.apply(V1_SLICE, a_pod("new").replace("my", "new"))
        await plane.advance(60)
        assert await plane.why("new")
        assert await devices(plane, "new") == []
        await finish(plane, "old")
        await plane.advance(60)
        assert await devices(plane, "new") == ["worker-1/gpu-1"]


async def test_a_device_in_use_is_not_given_again_when_it_is_no_longer_published_in_v1() -> None:
    manifests = [SLICE, V1_SLICE, CLASS, PARAMETERS, CLAIM, V1_CLASS, V1_CLAIM]
    async with cluster(*manifests, a_pod("new").replace("my", "new")) as plane:
        assert await devices(plane, "new") == ["worker-1/gpu-1"]
        await plane.delete(resourceslice.ResourceSlice, "v1-cards")
        await plane.apply(a_pod("old"))
        await plane.advance(60)
        assert await resources(plane) == []
        await finish(plane, "new")
        await plane.advance(60)
        assert await resources(plane) == ["gpu-1"]


async def test_a_device_that_is_published_twice_for_a_moment_is_given_once() -> None:
    """The controller that takes one of them away is not there."""
    async with cluster(SLICE, V1_CLASS) as plane:
        await plane.stop("controllers")
        any_two = V1_CLAIM.partition("        selectors")[0] + "        count: 3\n"
        await plane.apply(V1_SLICE, any_two, a_pod("new").replace("my", "new"))
        await plane.advance(60)
        assert await devices(plane, "new") == []
        assert "cannot allocate all claims" in await plane.why("new")


async def test_a_pod_can_mix_both() -> None:
    mixed = a_pod().replace("[{name: gpu", "[{name: any, resourceClaimName: any}, {name: gpu")
    any_card = V1_CLAIM.replace("name: new", "name: any").partition("        selectors")[0]
    async with cluster(SLICE, CLASS, PARAMETERS, CLAIM, V1_CLASS, any_card, mixed) as plane:
        assert await plane.node_of("p") == "worker-1"
        assert await resources(plane) == ["gpu-1"]


async def test_suitable_nodes() -> None:
    suitable = """
suitableNodes:
  nodeSelectorTerms: [{matchExpressions: [{key: cards, operator: Exists}]}]
"""
    async with cluster(SLICE, CLASS + suitable.lstrip(), PARAMETERS, CLAIM, a_pod()) as plane:
        assert "1 node is not suitable for the resource class" in await plane.why("p")
        worker = await plane.client.get(node.Node, "worker-1")
        patch = patches.merge({"metadata": {"labels": {"cards": "yes"}}}, patches.same(worker))
        await plane.client.patch(node.Node, "worker-1", patch=patch)
        await plane.advance(60)
        assert await resources(plane) == ["gpu-1"]


async def test_a_slice_of_an_unknown_model_is_skipped_and_said_so() -> None:
    empty = SLICE.partition("  namedResourcesWithAttributes")[0]
    async with cluster(empty) as plane:
        assert await plane.all_of(resourceslice.ResourceSlice) == ()
        assert await plane.events("ResourcesOmitted") == [
            "slice worker-1-cards: its structured model is not known here"
        ]


async def test_a_slice_that_shrinks_is_survived() -> None:
    async with cluster(SLICE, CLASS, PARAMETERS, CLAIM, a_pod()) as plane:
        patch = patches.merge({"spec": {"namedResourcesWithAttributes": []}})
        await plane.client.patch(alpha_slice.NodeResourceSlice, "worker-1-cards", patch=patch)
        await plane.settle()
        assert await plane.all_of(resourceslice.ResourceSlice) == ()
        assert await resources(plane) == ["gpu-1"]
        await plane.apply(a_pod("next"), SLICE.replace("worker-1-cards", "again"))
        await finish(plane)
        await plane.advance(60)
        assert await resources(plane) == ["gpu-1"]


async def test_slices_go_with_their_node() -> None:
    async with cluster(SLICE) as plane:
        [published] = await plane.all_of(alpha_slice.NodeResourceSlice)
        assert [owner.name for owner in published.metadata.owner_references] == ["worker-1"]
        await plane.delete(node.Node, "worker-1")
        await plane.advance(60)
        assert await plane.all_of(alpha_slice.NodeResourceSlice) == ()
        assert await plane.all_of(resourceslice.ResourceSlice) == ()


async def test_a_v1_claim_in_the_way_is_left_alone() -> None:
    async with cluster(SLICE, CLASS, V1_CLASS, V1_CLAIM.replace("name: new", "name: my"), PARAMETERS, CLAIM) as plane:
        own = await plane.client.get(resourceclaim.ResourceClaim, "my", namespace="default")
        assert counterpart.CLAIM not in own.metadata.annotations
        assert await plane.events("NameConflict") == ["a resource.k8s.io/v1 ResourceClaim default/my is in the way"]


async def test_a_claim_without_parameters_gets_anything_of_its_class() -> None:
    bare = CLAIM.partition("  parametersRef")[0]
    async with cluster(SLICE, CLASS, bare, a_pod()) as plane:
        assert await resources(plane) == ["gpu-0"]


async def test_run_time_errors_name_claim_request_and_resource() -> None:
    wrong = PARAMETERS.replace('attributes["memory"] >= "32Gi"', 'attributes["nope"] >= "32Gi"')
    async with cluster(SLICE, CLASS, wrong, CLAIM, a_pod()) as plane:
        why = await plane.why("p")
        assert "claim default/my" in why
        assert "request-0" in why or "selector #0" in why
        assert "no such key: nope" in why


async def test_a_generation_is_one_of_all_slices() -> None:
    names = [alpha_slice.NamedResource(name=f"gpu-{number}") for number in range(130)]
    spec = alpha_slice.NodeResourceSliceSpec(
        node_name="worker-1", driver_name="cards.dra.example.com", named_resources_with_attributes=tuple(names)
    )
    async with cluster() as plane:
        await plane.create(alpha_slice.NodeResourceSlice(metadata=meta.ObjectMeta(name="many"), spec=spec))
        published = await plane.all_of(resourceslice.ResourceSlice)
        assert [len(each.spec.devices) for each in published] == [128, 2]
        patch = patches.merge({"spec": {"namedResourcesWithAttributes": [{"name": "gpu-0"}]}})
        await plane.client.patch(alpha_slice.NodeResourceSlice, "many", patch=patch)
        await plane.settle()
        [published_now] = await plane.all_of(resourceslice.ResourceSlice)
        pool = published_now.spec.pool
        assert (pool.generation, pool.resource_slice_count) == (published[0].spec.pool.generation + 1, 1)


QUOTA = """
kind: ResourceQuota
apiVersion: v1
metadata: {name: claims}
spec: {hard: {count/resourceclaims.resource.k8s.io: "1"}}
"""


async def test_quotas_count_the_counterpart() -> None:
    async with cluster(QUOTA, SLICE, CLASS, PARAMETERS, CLAIM, CLAIM.replace("name: my", "name: second")) as plane:
        assert await plane.find(resourceclaim.ResourceClaim, "my") is not None
        assert await plane.find(resourceclaim.ResourceClaim, "second") is None


async def test_metrics_count_structured_classes_and_allocated_claims() -> None:
    foreign = CLASS.replace("name: cards", "name: foreign").replace("structuredParameters: true\n", "")
    async with cluster(SLICE, CLASS, foreign, PARAMETERS, CLAIM) as plane:
        assert plane.metric("drachma_structured_parameters_classes") == 1
        assert plane.metric("drachma_structured_parameters_allocated_claims") == 0
        await plane.apply(a_pod())
        assert plane.metric("drachma_structured_parameters_allocated_claims") == 1
