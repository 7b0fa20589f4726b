"""Claims from templates: made once, named in the pod's status, made again when lost, and events when it fails."""

import copy
from collections.abc import AsyncIterator
from typing import Any

import pytest
from msgspec import structs

from drachma import errors, testing
from drachma.api import gates, meta, namespace, pod, resourceclaim
from drachma.controllers.resourceclaim import ResourceClaimController
from drachma.values import generatedname
from tests.unit.controllers import builders, worlds

Claim = resourceclaim.ResourceClaim


@pytest.fixture
async def world() -> AsyncIterator[worlds.World]:
    async with worlds.world(ResourceClaimController) as running_world:
        yield running_world


def statuses(of: pod.Pod) -> dict[str, str | None]:
    return {status.name: status.resource_claim_name for status in of.status.resource_claim_statuses}


async def set_admin_access(world: worlds.World, value: str | None) -> None:
    default = await world.find(namespace.Namespace, "default")
    assert default is not None
    await world.patch(default, {"metadata": {"labels": {"resource.kubernetes.io/admin-access": value}}})


async def test_a_claim_is_made_for_the_pod(world: worlds.World) -> None:
    template = builders.a_template()
    content = structs.replace(
        template.spec, metadata=meta.ObjectMeta(labels={"team": "a"}, annotations={"note": "keep"})
    )
    await world.create(structs.replace(template, spec=content))
    owner = await world.create(builders.a_pod(gpu="t").build())
    await world.settle()
    (claim,) = await world.all_of(Claim)
    assert claim.metadata.name.startswith("p-gpu-")
    assert len(claim.metadata.name) == len("p-gpu-xxxxx")
    assert claim.metadata.labels == {"team": "a"}
    assert claim.metadata.annotations == {"note": "keep", "resource.kubernetes.io/pod-claim-name": "gpu"}
    assert claim.metadata.owner_references == (
        meta.OwnerReference(api_version="v1", kind="Pod", name="p", uid=owner.metadata.uid, controller=True),
    )
    assert claim.spec.devices.requests[0].exactly is not None
    assert claim.spec.devices.requests[0].exactly.device_class_name == builders.DRIVER
    assert statuses(await world.get(owner)) == {"gpu": claim.metadata.name}
    assert (
        world.metric(
            "dynamic_resource_allocation_resourceclaim_creates_total",
            status="success",
            admin_access="false",
            owner_api_group="",
            owner_api_kind="Pod",
        )
        == 1
    )


async def test_one_claim_for_each_entry(world: worlds.World) -> None:
    await world.create(builders.a_template())
    owner = await world.create(builders.a_pod(one="t", two="t").build())
    await world.create(builders.user("q", of="by-name").build())
    await world.settle()
    claim_names = {claim.metadata.name for claim in await world.all_of(Claim)}
    assert set(statuses(await world.get(owner)).values()) == claim_names
    assert len(claim_names) == 2, "nobody makes a claim that is referenced by name"


async def test_a_template_may_come_later(world: worlds.World) -> None:
    owner = await world.create(builders.a_pod(gpu="t").build())
    await world.settle()
    (event,) = await world.events()
    assert event == (
        'Warning FailedResourceClaimCreation: PodResourceClaim gpu: resource claim template "t": '
        'resourceclaimtemplate.resource.k8s.io "t" not found'
    )
    await world.create(builders.a_template())
    await world.settle()
    assert statuses(await world.get(owner)).keys() == {"gpu"}


async def test_a_deleted_claim_is_made_again(world: worlds.World) -> None:
    await world.create(builders.a_template())
    owner = await world.create(builders.a_pod(gpu="t").build())
    await world.settle()
    (first,) = await world.all_of(Claim)
    await world.delete(first)
    await world.settle()
    (second,) = await world.all_of(Claim)
    assert second.metadata.uid != first.metadata.uid
    assert statuses(await world.get(owner)) == {"gpu": second.metadata.name}


async def test_a_claim_of_somebody_else_is_not_used(world: worlds.World) -> None:
    """The status names a claim that the pod does not own, perhaps that of an earlier pod of this name."""
    await world.create(builders.a_claim("stolen"))
    owner = await world.create(builders.a_pod(gpu="t").build())
    await world.patch_status(owner, {"resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": "stolen"}]})
    await world.settle()
    assert statuses(await world.get(owner)) == {"gpu": "stolen"}, "news of the claim or the pod are waited for"
    stolen = await world.find(Claim, "stolen")
    assert stolen is not None
    await world.patch(stolen, {"metadata": {"finalizers": None}})
    await world.delete(stolen)
    await world.create(builders.a_template())
    await world.settle()
    (claim,) = await world.all_of(Claim)
    assert statuses(await world.get(owner)) == {"gpu": claim.metadata.name}


async def test_a_claim_that_is_not_needed_is_not_made(world: worlds.World) -> None:
    await world.create(builders.a_template())
    owner = builders.a_pod(gpu="t").build()
    made = await world.create(structs.replace(owner, metadata=structs.replace(owner.metadata, labels={"a": "b"})))
    await world.settle()
    for claim in await world.all_of(Claim):
        await world.patch_status(made, {"resourceClaimStatuses": [{"name": "gpu"}]})
        await world.settle()
        await world.delete(claim)
    await world.settle()
    assert await world.all_of(Claim) == ()


async def test_pods_that_have_ended_get_no_claims(world: worlds.World) -> None:
    await world.create(builders.a_pod(gpu="t").phase("Succeeded").build())
    await world.create(builders.a_template())
    await world.settle()
    assert await world.all_of(Claim) == ()


async def test_claims_and_their_names_are_one_commit(world: worlds.World) -> None:
    await world.create(builders.a_template())
    owner = await world.create(builders.a_pod(gpu="t", nic="t").build())
    await world.settle()
    claims = await world.all_of(Claim)
    versions = sorted(int(each.metadata.resource_version) for each in (*claims, await world.get(owner)))
    assert versions == [*range(versions[0], versions[0] + 3)]
    assert set(statuses(await world.get(owner)).values()) == {claim.metadata.name for claim in claims}
    assert all(claim.metadata.generate_name == claim.metadata.name[:-5] for claim in claims)


async def test_a_name_that_is_taken_is_drawn_again(world: worlds.World) -> None:
    """Whatever the controller draws: somebody has a claim of that name."""
    await world.create(builders.a_template())
    drawn = generatedname.draw("p-gpu-", chance=copy.copy(world.surroundings.rng))
    await world.create(testing.claim(drawn).request("gpu", device_class=builders.DRIVER).build())
    owner = await world.create(builders.a_pod(gpu="t").build())
    await world.settle()
    (name,) = statuses(await world.get(owner)).values()
    assert name not in (None, drawn)
    assert len(await world.all_of(Claim)) == 2


async def test_failure_to_write_the_status_does_not_make_a_second_claim() -> None:
    failures = 3

    def fail(verb: str, kind: Any, *_: Any, **options: Any) -> None:
        nonlocal failures
        if verb == "patch" and kind is pod.Pod and failures:
            failures -= 1
            raise errors.UnreachableError("no answer")

    async with worlds.world(ResourceClaimController, wrap=worlds.meddling(fail)) as world:
        await world.create(builders.a_template())
        owner = await world.create(builders.a_pod(gpu="t").build())
        await world.advance(1)
        assert failures == 0
        (claim,) = await world.all_of(Claim)
        assert statuses(await world.get(owner)) == {"gpu": claim.metadata.name}


async def test_a_stale_cache_does_not_make_a_second_claim() -> None:
    """The informer of claims hears of nothing, and yet the claim that was made is found."""
    async with worlds.world(ResourceClaimController) as world:
        claims = world.surroundings.informers.of(Claim)
        claims._handle = lambda event: None  # type: ignore[method-assign]
        await world.create(builders.a_template())
        owner = await world.create(builders.a_pod(gpu="t").build())
        await world.settle()
        await world.patch(owner, {"metadata": {"labels": {"some": "news"}}})
        await world.settle()
        assert len(await world.all_of(Claim)) == 1


async def test_a_pod_that_was_replaced_is_not_written_to() -> None:
    """Deleted and made anew between the claim and the status: the new pod has nothing to do with the old claim."""
    replaced: list[pod.Pod] = []
    world: worlds.World

    async def replace(verb: str, kind: Any, *_: Any, **options: Any) -> None:
        if verb == "patch" and kind is pod.Pod and not replaced:
            old = await world.find(pod.Pod, "p")
            assert old is not None
            await world.delete(old, grace_period_seconds=0)
            replaced.append(await world.create(builders.a_pod(gpu="t").build()))

    async with worlds.world(ResourceClaimController, wrap=worlds.meddling(replace)) as running_world:
        world = running_world
        await world.create(builders.a_template())
        await world.create(builders.a_pod(gpu="t").build())
        await world.advance(1)
        new = await world.get(replaced[0])
        owners = {c.metadata.name: c.metadata.owner_references[0].uid for c in await world.all_of(Claim)}
        name = statuses(new)["gpu"]
        assert name is not None
        assert owners[name] == new.metadata.uid


async def test_refused_claims_are_counted_and_told(world: worlds.World) -> None:
    await set_admin_access(world, "true")
    await world.create(builders.a_template("t", admin_access=True))
    await set_admin_access(world, None)
    await world.create(builders.a_pod(gpu="t").build())
    await world.settle()
    (event,) = await world.events()
    assert event.startswith("Warning FailedResourceClaimCreation: PodResourceClaim gpu: create ResourceClaim : ")
    assert "admin access" in event
    labels = {"status": "failure", "admin_access": "true", "owner_api_group": "", "owner_api_kind": "Pod"}
    name = "dynamic_resource_allocation_resourceclaim_creates_total"
    assert (world.metric(name, **labels) or 0) >= 1
    assert (world.metric("resourceclaim_controller_create_failures_total") or 0) >= 1


@pytest.mark.parametrize(
    ("gate", "template", "want"),
    [
        pytest.param(
            gates.Gate.ADMIN_ACCESS,
            builders.a_template(admin_access=True),
            "admin access is requested, but the feature is disabled",
            id="admin-access",
        ),
        pytest.param(
            gates.Gate.PRIORITIZED_LIST,
            builders.a_prioritized_template(),
            "template includes a prioritized list of subrequests, but the feature is disabled",
            id="prioritized-list",
        ),
    ],
)
async def test_features_that_are_off(gate: gates.Gate, template: Any, want: str) -> None:
    async with worlds.world(ResourceClaimController, gates=gates.ALL.switched({gate: False})) as world:
        await set_admin_access(world, "true")
        await world.create(template)
        await world.create(builders.a_pod(gpu="t").build())
        await world.settle()
        assert await world.events() == [f"Warning FailedResourceClaimCreation: PodResourceClaim gpu: {want}"]
        failures = world.metric("resourceclaim_controller_create_failures_total")
        assert (failures or 0) >= 1
        assert world.metric("resourceclaim_controller_creates_total") == failures
