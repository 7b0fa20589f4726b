"""Claims in use and out of use: reservations, deallocation, finalizer, deletion; and the races between them."""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from msgspec import structs

from drachma.api import pod, resourceclaim
from drachma.claims import wellknown
from drachma.client import Change, target
from drachma.controllers.garbagecollector import GarbageCollector
from drachma.controllers.resourceclaim import ResourceClaimController
from drachma.testing import PodBuilder, subrequest
from drachma.testing import claim as build_claim
from drachma.values import quantity
from tests.unit.controllers import builders, worlds

Claim = resourceclaim.ResourceClaim


@pytest.fixture
async def world() -> AsyncIterator[worlds.World]:
    async with worlds.world(ResourceClaimController) as running_world:
        yield running_world


async def in_use(world: worlds.World, *pods: pod.Pod) -> Claim:
    """A claim that is allocated and reserved for these pods."""
    created_claim = await world.create(builders.a_claim())
    return await world.patch_status(
        created_claim, {"allocation": builders.allocation(), "reservedFor": builders.consumers(*pods)}
    )


async def running(world: worlds.World, name: str) -> pod.Pod:
    return await world.create(builders.user(name).on_node("n").phase("Running").build())


def shown(claim: Claim) -> str:
    """What a claim is, in one line."""
    parts = ["allocated" if claim.status.allocation is not None else "free"]
    parts += [f"for {each.name}" for each in claim.status.reserved_for]
    parts += ["protected"] if wellknown.CLAIM_FINALIZER in claim.metadata.finalizers else []
    return ", ".join(parts)


async def test_a_claim_in_use_is_left_alone(world: worlds.World) -> None:
    claim = await in_use(world, await running(world, "p"))
    await world.settle()
    assert shown(await world.get(claim)) == "allocated, for p, protected"


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
async def test_a_pod_that_ends_gives_back(world: worlds.World, phase: str) -> None:
    user = await running(world, "p")
    claim = await in_use(world, user)
    await world.patch_status(user, {"phase": phase})
    await world.settle()
    assert shown(await world.get(claim)) == "free"


async def test_a_pod_that_is_deleted_gives_back(world: worlds.World) -> None:
    user = await running(world, "p")
    claim = await in_use(world, user)
    await world.delete(user)
    await world.settle()
    assert shown(await world.get(claim)) == "allocated, for p, protected", "it may still run"
    await world.delete(user, grace_period_seconds=0)
    await world.settle()
    assert shown(await world.get(claim)) == "free"


async def test_all_is_given_back_in_one_version(world: worlds.World) -> None:
    """Where the server makes several changes at once; elsewhere the finalizer goes afterwards."""
    user = await running(world, "p")
    claim = await in_use(world, user)
    await world.settle()
    before = (await world.client.list(Claim)).resource_version
    async with world.client.watch(Claim, resource_version=before) as watch:
        await world.delete(user, grace_period_seconds=0)
        await world.settle()
        assert [shown(event.object) for event in await watch.batch()] == ["free"]
    assert shown(await world.get(claim)) == "free"


async def test_a_deleted_claim_goes_as_it_is_given_back(world: worlds.World) -> None:
    user = await running(world, "p")
    claim = await in_use(world, user)
    await world.delete(claim)
    await world.settle()
    before = (await world.client.list(Claim)).resource_version
    async with world.client.watch(Claim, resource_version=before) as watch:
        await world.delete(user, grace_period_seconds=0)
        await world.settle()
        (event,) = await watch.batch()
    assert (event.change, event.object.status.allocation) == (Change.DELETED, None)


async def test_a_pod_that_goes_before_it_had_a_node_gives_back(world: worlds.World) -> None:
    user = await world.create(builders.user("p").finalizer("example.com/hold").build())
    claim = await in_use(world, user)
    await world.delete(user)
    await world.settle()
    assert await world.exists(user)
    assert shown(await world.get(claim)) == "free"


async def test_others_go_on_using(world: worlds.World) -> None:
    users = [await running(world, name) for name in ("p", "q", "r")]
    claim = await in_use(world, *users)
    await world.patch_status(users[1], {"phase": "Succeeded"})
    await world.settle()
    assert shown(await world.get(claim)) == "allocated, for p, for r, protected"


async def test_pods_that_went_while_nobody_watched(world: worlds.World) -> None:
    """Among them one that was replaced by another of its name."""
    keeps = await running(world, "keeps")
    new = await running(world, "new")
    old = worlds.renamed(new, uid="uid-of-old")
    gone = worlds.renamed(keeps, name="gone", uid="uid-of-gone")
    claim = await in_use(world, gone, keeps, old)
    await world.settle()
    stored_claim = await world.get(claim)
    assert stored_claim.status.reserved_for == builders.consumers(keeps, new), (
        "and the new one runs with the claim: repaired"
    )


async def test_a_pod_that_is_not_known_yet_keeps_its_claim() -> None:
    """The claim's news overtake those of the pod: the server knows better than the cache."""
    async with worlds.world(ResourceClaimController) as world:
        pods = world.surroundings.informers.of(pod.Pod)
        pods._handle = lambda event: None  # type: ignore[method-assign]
        claim = await in_use(world, await running(world, "p"))
        await world.settle()
        assert shown(await world.get(claim)) == "allocated, for p, protected"


async def test_users_that_are_no_pods_are_kept(world: worlds.World) -> None:
    created_claim = await world.create(builders.a_claim())
    other = resourceclaim.ResourceClaimConsumerReference(
        api_group="example.com", resource="machines", name="m", uid="uid-of-m"
    )
    content = {"allocation": builders.allocation(), "reservedFor": (other,)}
    claim = await world.patch_status(created_claim, content)
    await world.settle()
    assert shown(await world.get(claim)) == "allocated, for m, protected"


async def test_allocated_but_not_reserved_is_left_alone(world: worlds.World) -> None:
    created_claim = await world.create(builders.a_claim())
    claim = await world.patch_status(created_claim, {"allocation": builders.allocation()})
    await world.settle()
    assert shown(await world.get(claim)) == "allocated, protected"


async def test_a_deleted_claim_goes_when_nobody_uses_it(world: worlds.World) -> None:
    created_claim = await world.create(builders.a_claim())
    claim = await world.patch_status(created_claim, {"allocation": builders.allocation()})
    await world.delete(claim)
    await world.settle()
    assert not await world.exists(claim)


async def test_a_deleted_claim_stays_while_it_is_used(world: worlds.World) -> None:
    user = await running(world, "p")
    claim = await in_use(world, user)
    await world.delete(claim)
    await world.settle()
    assert shown(await world.get(claim)) == "allocated, for p, protected"
    await world.delete(user, grace_period_seconds=0)
    await world.settle()
    assert not await world.exists(claim)


async def test_finalizers_of_others_stay(world: worlds.World) -> None:
    made = await world.create(
        worlds.renamed(builders.a_claim(), finalizers=(wellknown.CLAIM_FINALIZER, "example.com/mine"))
    )
    await world.delete(made)
    await world.settle()
    assert (await world.get(made)).metadata.finalizers == ("example.com/mine",)


async def test_generated_claims_go_when_their_pod_has_ended(world: worlds.World) -> None:
    await world.create(builders.a_template())
    owner = await world.create(builders.a_pod(gpu="t").build())
    await world.settle()
    (claim,) = await world.all_of(Claim)
    await world.patch(claim, {"metadata": {"finalizers": [wellknown.CLAIM_FINALIZER]}})
    await world.patch_status(claim, {"allocation": builders.allocation(), "reservedFor": builders.consumers(owner)})
    await world.settle()
    assert shown(await world.get(claim)) == "allocated, for p, protected"
    await world.patch_status(owner, {"phase": "Succeeded"})
    await world.advance(3600)
    assert await world.all_of(Claim) == (), "and none is made again"


async def test_the_claim_for_extended_resources_goes_too(world: worlds.World) -> None:
    """The scheduler makes it, and only the pod's status names it."""
    one = quantity.Quantity.parse("1")
    resources = pod.ResourceRequirements(requests={"example.com/gpu": one}, limits={"example.com/gpu": one})
    container = structs.replace(builders.CONTAINER, resources=resources)
    builder = builders.a_pod().spec(containers=(container,)).on_node("n").phase("Running")
    owner = await world.create(builder.build())
    made = await world.create(
        worlds.renamed(
            builders.a_claim("p-extended-resources-abcde"),
            owner_references=builders.controlled_by(owner),
            annotations={"resource.kubernetes.io/extended-resource-claim": "true"},
        )
    )
    await world.patch_status(made, {"allocation": builders.allocation(), "reservedFor": builders.consumers(owner)})
    mapping = {"containerName": "main", "resourceName": "example.com/gpu", "requestName": "container-0-request-0"}
    extended = {"resourceClaimName": made.metadata.name, "requestMappings": [mapping]}
    await world.patch_status(owner, {"extendedResourceClaimStatus": extended})
    await world.settle()
    labels = {"allocated": "true", "admin_access": "false", "source": "extended_resource"}
    assert world.metric("dynamic_resource_allocation_resource_claims", **labels) == 1
    await world.patch_status(owner, {"phase": "Failed"})
    await world.settle()
    assert not await world.exists(made)


# Pods that were given a node without their claims


@pytest.mark.parametrize(
    ("builder", "want"),
    [
        pytest.param(builders.user("q").on_node("n"), "allocated, for p, for q, protected", id="scheduled"),
        pytest.param(builders.user("q"), "allocated, for p, protected", id="the-scheduler-will-do-it"),
        pytest.param(builders.user("q").on_node("n").phase("Failed"), "allocated, for p, protected", id="has-ended"),
    ],
)
async def test_reservations_are_repaired(world: worlds.World, builder: PodBuilder, want: str) -> None:
    claim = await in_use(world, await running(world, "p"))
    await world.create(builder.build())
    await world.settle()
    assert shown(await world.get(claim)) == want


async def test_an_unallocated_claim_is_not_reserved(world: worlds.World) -> None:
    claim = await world.create(builders.a_claim())
    await running(world, "p")
    await world.settle()
    assert shown(await world.get(claim)) == "free, protected"


# Races


async def raced(
    meddle: Callable[[worlds.World], Awaitable[object]], *, before: str, subresource: str = ""
) -> tuple[worlds.World, Claim]:
    """A pod ends, and something happens just before the controller's first write to its claim."""
    happened = False
    world: worlds.World

    async def interfere(verb: str, kind: Any, *_: Any, **options: Any) -> None:
        nonlocal happened
        if verb == before and kind is Claim and options.get("subresource", "") == subresource and not happened:
            happened = True
            await meddle(world)

    async with worlds.world(ResourceClaimController, wrap=worlds.meddling(interfere)) as running_world:
        world = running_world
        user = await running(world, "p")
        claim = await in_use(world, user)
        await world.settle()
        await world.patch_status(user, {"phase": "Succeeded"})
        await world.advance(1)
        assert happened
        return world, (await world.find(Claim, "c")) or claim


async def test_another_pod_arrives_while_the_claim_is_given_back() -> None:
    """KEP-4381, race conditions: the one whose write comes first wins, and nobody's reservation is lost."""

    async def arrive(world: worlds.World) -> None:
        claim = await world.find(Claim, "c")
        assert claim is not None
        new = await running(world, "new")
        reserved = (*claim.status.reserved_for, *builders.consumers(new))
        await world.patch_status(claim, {"reservedFor": reserved})

    _, claim = await raced(arrive, before="patch", subresource="status")
    assert shown(claim) == "allocated, for new, protected"


async def test_a_scheduler_allocates_again_before_the_finalizer_goes() -> None:
    async def allocate(world: worlds.World) -> None:
        claim = await world.find(Claim, "c")
        assert claim is not None
        new = await running(world, "new")
        content = {"allocation": builders.allocation("gpu-1"), "reservedFor": builders.consumers(new)}
        await world.patch_status(claim, content)

    _, claim = await raced(allocate, before="patch", subresource="")
    assert shown(claim) == "allocated, for new, protected"
    assert claim.status.allocation == builders.allocation("gpu-1")


async def test_the_claim_is_replaced_while_it_is_given_back() -> None:
    """Deleted by force and made anew: the new claim has nothing to do with the old reservation."""

    async def replace(world: worlds.World) -> None:
        claim = await world.find(Claim, "c")
        assert claim is not None
        await world.patch(claim, {"metadata": {"finalizers": None}})
        await world.delete(claim)
        new = await running(world, "new")
        await in_use(world, new)

    _, claim = await raced(replace, before="patch", subresource="status")
    assert shown(claim) == "allocated, for new, protected"


async def test_metrics_of_claims(world: worlds.World) -> None:
    await in_use(world, await running(world, "p"))
    await world.create(builders.a_template())
    await world.create(builders.a_pod("q", gpu="t").build())
    await world.settle()
    name = "dynamic_resource_allocation_resource_claims"
    assert world.metric(name, allocated="true", admin_access="false", source="") == 1
    assert world.metric(name, allocated="false", admin_access="false", source="resource_claim_template") == 1
    assert world.metric("resourceclaim_controller_resource_claims", prioritized_list="false") == 2
    assert world.metric("resourceclaim_controller_allocated_resource_claims", prioritized_list="false") == 1
    assert (world.metric("workqueue_adds_total", name="resource_claim") or 0) > 0


async def test_metrics_tell_which_alternative_was_used(world: worlds.World) -> None:
    claim = build_claim("c").first_available("gpu", subrequest("big", "cards"), subrequest("small", "cards")).build()
    created_claim = await world.create(claim)
    await world.settle()
    assert world.metric("resourceclaim_controller_resource_claims", prioritized_list="true") == 1
    assert world.metric("resourceclaim_controller_allocated_resource_claims", prioritized_list="true") == 0
    allocation = {"devices": {"results": [{"request": "gpu/small", "driver": "d", "pool": "p", "device": "x"}]}}
    await world.patch_status(created_claim, {"allocation": allocation, "reservedFor": builders.consumers()})
    await world.settle()
    assert world.metric("resourceclaim_controller_allocated_resource_claims", prioritized_list="true") == 1
    assert world.metric("drachma_prioritized_list_allocations", rank="2") == 1
    assert world.metric("drachma_prioritized_list_allocations", rank="1") is None


async def test_a_pod_costs_no_more_requests_than_it_must() -> None:
    """From its creation to the end of its claim: nothing is asked, nothing refused, nothing written twice."""
    requests: list[str] = []

    def note(verb: str, *args: Any, **kwargs: Any) -> None:
        if verb != "list":
            kind = target.of(args[0] if isinstance(args[0], type | target.Target) else type(args[0])).kind
            requests.append(f"{verb} {kind} {kwargs.get('subresource', '')}".strip())

    async with worlds.world(wrap=worlds.meddling(after=note)) as world:
        await world.create(builders.a_template())
        await world.start(ResourceClaimController, GarbageCollector)
        requests.clear()
        user = await world.create(builders.a_pod(gpu="t").build())
        await world.settle()
        (claim,) = await world.all_of(Claim)
        claim = await world.patch(claim, {"metadata": {"finalizers": [wellknown.CLAIM_FINALIZER]}})
        await world.patch_status(claim, {"allocation": builders.allocation(), "reservedFor": builders.consumers(user)})
        await world.client.bind(user, node="n")
        await world.settle()
        assert requests == ["create ResourceClaim", "patch Pod status"]
        requests.clear()
        await world.delete(user, grace_period_seconds=0)
        await world.settle()
        assert requests == ["patch ResourceClaim status", "patch ResourceClaim", "delete ResourceClaim"]
        assert await world.all_of(Claim) == ()
        await world.advance(60)
        assert len(requests) == 3
