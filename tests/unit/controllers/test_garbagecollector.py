"""Garbage collection: background, foreground and orphans, and owners that are wrong, late, or gone already."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from drachma.api import meta, pod, resourceclaim
from drachma.client import patches, target
from drachma.controllers.garbagecollector import GarbageCollector
from tests.unit.controllers import builders, worlds

CONFIG_MAPS = target.metadata_of("", "v1", plural="configmaps", kind="ConfigMap", namespaced=True)


@pytest.fixture
async def world() -> AsyncIterator[worlds.World]:
    async with worlds.world(GarbageCollector) as running_world:
        yield running_world


def reference(owner: meta.Object, **fields: Any) -> dict[str, Any]:
    """A reference to a config map."""
    metadata = owner.metadata
    return {"apiVersion": "v1", "kind": "ConfigMap", "name": metadata.name, "uid": metadata.uid, **fields}


async def config_map(
    world: worlds.World, name: str, *owners: dict[str, Any], namespace: str = "default", **metadata: Any
) -> meta.Object:
    document = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": namespace, "ownerReferences": owners, **metadata},
    }
    await world.client.create_document(CONFIG_MAPS, document)
    return await world.client.get(CONFIG_MAPS, name, namespace=namespace)


async def delete(world: worlds.World, known: meta.Object, **options: Any) -> None:
    await world.client.delete(CONFIG_MAPS, known.metadata.name, namespace=known.metadata.namespace, **options)


async def names(world: worlds.World) -> list[str]:
    return [each.metadata.name for each in await world.all_of(CONFIG_MAPS)]


async def finalize(world: worlds.World, known: meta.Object) -> None:
    patch = patches.merge({"metadata": {"finalizers": None}})
    await world.client.patch(CONFIG_MAPS, known.metadata.name, patch=patch, namespace=known.metadata.namespace)


async def test_dependents_follow_their_owner(world: worlds.World) -> None:
    owner = await config_map(world, "owner")
    child = await config_map(world, "child", reference(owner))
    await config_map(world, "grandchild", reference(child))
    await config_map(world, "other")
    await world.settle()
    assert await names(world) == ["child", "grandchild", "other", "owner"]
    await delete(world, owner)
    await world.settle()
    assert await names(world) == ["other"]


async def test_kinds_mix(world: worlds.World) -> None:
    """A pod's claim goes with the pod."""
    owner = await world.create(builders.a_pod().build())
    claim = worlds.renamed(builders.a_claim(), owner_references=builders.controlled_by(owner), finalizers=())
    await world.create(claim)
    await world.settle()
    await world.delete(owner, grace_period_seconds=0)
    await world.settle()
    assert await world.all_of(resourceclaim.ResourceClaim) == ()


async def test_one_owner_is_enough(world: worlds.World) -> None:
    owners = [await config_map(world, name) for name in ("a", "b")]
    await config_map(world, "child", *map(reference, owners))
    await delete(world, owners[0])
    await world.settle()
    assert await names(world) == ["b", "child"]
    child = await world.client.get(CONFIG_MAPS, "child", namespace="default")
    assert [owner.name for owner in child.metadata.owner_references] == ["b"], "the other is forgotten"
    await delete(world, owners[1])
    await world.settle()
    assert await names(world) == []


async def test_an_owner_that_never_was(world: worlds.World) -> None:
    ghost = meta.Object(metadata=meta.ObjectMeta(name="ghost", uid="uid-of-ghost"))
    await config_map(world, "child", reference(ghost))
    await world.settle()
    assert await names(world) == []


async def test_an_owner_that_was_replaced(world: worlds.World) -> None:
    owner = await config_map(world, "owner")
    await delete(world, owner)
    new = await config_map(world, "owner")
    await config_map(world, "child", reference(owner))
    await config_map(world, "new-child", reference(new))
    await world.settle()
    assert await names(world) == ["new-child", "owner"]


async def test_owners_that_went_before_the_start() -> None:
    async with worlds.world() as world:
        owner = await config_map(world, "owner")
        await config_map(world, "child", reference(owner))
        await delete(world, owner)
        await world.start(GarbageCollector)
        await world.settle()
        assert await names(world) == []


# Foreground


async def test_foreground_waits_for_those_that_block(world: worlds.World) -> None:
    owner = await config_map(world, "owner")
    blocking = await config_map(
        world, "blocking", reference(owner, blockOwnerDeletion=True), finalizers=["example.com/hold"]
    )
    await config_map(world, "free", reference(owner), finalizers=["example.com/hold"])
    await config_map(world, "gone", reference(owner, blockOwnerDeletion=True))
    await world.settle()
    await delete(world, owner, propagation="Foreground")
    await world.settle()
    assert await names(world) == ["blocking", "free", "owner"]
    await finalize(world, blocking)
    await world.settle()
    assert await names(world) == ["free"], "what does not block goes in its own time"


async def test_foreground_goes_deep(world: worlds.World) -> None:
    owner = await config_map(world, "a")
    child = await config_map(world, "b", reference(owner, blockOwnerDeletion=True))
    leaf = await config_map(world, "c", reference(child, blockOwnerDeletion=True), finalizers=["example.com/hold"])
    await world.settle()
    await delete(world, owner, propagation="Foreground")
    await world.settle()
    assert await names(world) == ["a", "b", "c"], "each waits for the next"
    await finalize(world, leaf)
    await world.settle()
    assert await names(world) == []


async def test_foreground_ends_when_the_reference_goes(world: worlds.World) -> None:
    owner = await config_map(world, "owner")
    await config_map(world, "child", reference(owner, blockOwnerDeletion=True), finalizers=["example.com/hold"])
    await world.settle()
    await delete(world, owner, propagation="Foreground")
    await world.settle()
    patch = patches.merge({"metadata": {"ownerReferences": None}})
    await world.client.patch(CONFIG_MAPS, "child", patch=patch, namespace="default")
    await world.settle()
    assert await names(world) == ["child"]


async def test_foreground_does_not_wait_for_what_others_keep(world: worlds.World) -> None:
    owners = [await config_map(world, name) for name in ("a", "b")]
    await config_map(world, "child", *(reference(owner, blockOwnerDeletion=True) for owner in owners))
    await world.settle()
    await delete(world, owners[0], propagation="Foreground")
    await world.settle()
    assert await names(world) == ["b", "child"]


async def test_foreground_in_a_circle(world: worlds.World) -> None:
    first = await config_map(world, "a")
    second = await config_map(world, "b", reference(first, blockOwnerDeletion=True))
    patch = patches.merge({"metadata": {"ownerReferences": [reference(second, blockOwnerDeletion=True)]}})
    await world.client.patch(CONFIG_MAPS, "a", patch=patch, namespace="default")
    await world.settle()
    await delete(world, first, propagation="Foreground")
    await world.advance(60)
    assert await names(world) == []


# Orphans


async def test_orphans_stay(world: worlds.World) -> None:
    owner = await config_map(world, "owner")
    other = await config_map(world, "other")
    await config_map(world, "child", reference(owner), reference(other))
    await config_map(world, "only-child", reference(owner))
    await world.settle()
    await delete(world, owner, propagation="Orphan")
    await world.settle()
    assert await names(world) == ["child", "only-child", "other"]
    for name, want in (("child", ["other"]), ("only-child", [])):
        known = await world.client.get(CONFIG_MAPS, name, namespace="default")
        assert [each.name for each in known.metadata.owner_references] == want


# References that are wrong


async def test_an_owner_in_another_namespace_does_not_count(world: worlds.World) -> None:
    owner = await config_map(world, "owner", namespace="kube-system")
    await world.settle()
    child = await config_map(world, "child", reference(owner))
    await world.settle()
    assert await names(world) == ["owner"]
    (event,) = await world.events()
    assert event == (
        f"Warning OwnerRefInvalidNamespace: ownerRef [v1/ConfigMap, namespace: default, name: owner, "
        f'uid: {owner.metadata.uid}] does not exist in namespace "{child.metadata.namespace}"'
    )


async def test_owners_of_cluster_scope(world: worlds.World) -> None:
    owner = await world.create(builders.a_class())
    dependent = worlds.renamed(builders.a_claim(), finalizers=(), owner_references=builders.controlled_by(owner))
    await world.create(dependent)
    await world.settle()
    assert len(await world.all_of(resourceclaim.ResourceClaim)) == 1
    await world.delete(owner)
    await world.settle()
    assert await world.all_of(resourceclaim.ResourceClaim) == ()


async def test_a_cluster_wide_object_cannot_belong_to_a_namespace(world: worlds.World) -> None:
    owner = await config_map(world, "owner")
    wrong = meta.OwnerReference(api_version="v1", kind="ConfigMap", name="owner", uid=owner.metadata.uid)
    device_class = await world.create(worlds.renamed(builders.a_class(), owner_references=(wrong,)))
    await world.advance(60)
    assert await world.exists(device_class), "nobody can tell, so nothing is deleted"


async def test_an_owner_of_an_unknown_kind_is_left_to_be(world: worlds.World) -> None:
    strange = {"apiVersion": "example.com/v1", "kind": "Machine", "name": "m", "uid": "uid-of-m"}
    await config_map(world, "child", strange)
    await world.advance(60)
    assert await names(world) == ["child"]


async def test_dependents_of_a_version_that_is_not_served_are_kept(world: worlds.World) -> None:
    """The server has another version of the kind, and no object of the name in it."""
    owner = {"apiVersion": "apps/v1beta1", "kind": "Deployment", "name": "m", "uid": "uid-of-m"}
    await config_map(world, "child", owner)
    await world.advance(600)
    assert await names(world) == ["child"]


async def test_dependents_stay_if_they_name_a_deleted_owner_in_a_version_that_is_not_served(
    world: worlds.World,
) -> None:
    owner = await world.create(builders.a_class())
    stale = {"apiVersion": "resource.k8s.io/v1alpha1", "kind": "DeviceClass", "name": owner.metadata.name}
    await config_map(world, "child", {**stale, "uid": owner.metadata.uid})
    await world.settle()
    await world.delete(owner)
    await world.advance(600)
    assert await names(world) == ["child"]


async def test_dependents_of_every_served_version_follow_their_owner(world: worlds.World) -> None:
    owner = await world.create(builders.a_class())
    for version in ("v1", "v1beta2", "v1beta1"):
        own = {"apiVersion": f"resource.k8s.io/{version}", "kind": "DeviceClass", "name": owner.metadata.name}
        await config_map(world, f"child-{version}", {**own, "uid": owner.metadata.uid})
    await world.settle()
    assert len(await names(world)) == 3
    await world.delete(owner)
    await world.settle()
    assert await names(world) == []


# Races


async def test_an_owner_that_is_not_seen_yet_counts() -> None:
    """The informer of pods hears of nothing, and yet the pod's claim is kept."""
    async with worlds.world(GarbageCollector) as world:
        pods = world.surroundings.informers.of(pod.Pod)
        pods._handle = lambda event: None  # type: ignore[method-assign]
        owner = await world.create(builders.a_pod().build())
        claim = worlds.renamed(builders.a_claim(), owner_references=builders.controlled_by(owner))
        created_claim = await world.create(claim)
        await world.advance(600)
        assert await world.exists(created_claim)


async def test_another_owner_comes_in_the_last_moment() -> None:
    adopted = False
    world: worlds.World

    async def adopt(verb: str, kind: Any, name: str = "", *_: Any, **options: Any) -> None:
        nonlocal adopted
        if verb == "delete" and name == "child" and not adopted:
            adopted = True
            parent = await config_map(world, "parent")
            patch = patches.merge({"metadata": {"ownerReferences": [reference(parent)]}})
            await world.client.patch(CONFIG_MAPS, "child", patch=patch, namespace="default")

    async with worlds.world(GarbageCollector, wrap=worlds.meddling(adopt)) as running_world:
        world = running_world
        owner = await config_map(world, "owner")
        await config_map(world, "child", reference(owner))
        await world.settle()
        await delete(world, owner)
        await world.advance(10)
        assert adopted
        assert await names(world) == ["child", "parent"]


async def test_other_changes_do_not_hold_it_up() -> None:
    changes = 0
    world: worlds.World

    async def change(verb: str, kind: Any, name: str = "", *_: Any, **options: Any) -> None:
        nonlocal changes
        if verb == "delete" and name == "child" and changes < 3:
            changes += 1
            patch = patches.merge({"metadata": {"labels": {"n": str(changes)}}})
            await world.client.patch(CONFIG_MAPS, "child", patch=patch, namespace="default")

    async with worlds.world(GarbageCollector, wrap=worlds.meddling(change)) as running_world:
        world = running_world
        owner = await config_map(world, "owner")
        await config_map(world, "child", reference(owner))
        await delete(world, owner)
        await world.settle()
        assert changes == 3
        assert await names(world) == []


async def test_an_orphan_is_left_to_its_finalizers_first(world: worlds.World) -> None:
    owner = await config_map(world, "owner")
    child = await config_map(world, "child", reference(owner), finalizers=["example.com/hold"])
    await world.settle()
    await delete(world, owner)
    await world.settle()
    held = await world.client.get(CONFIG_MAPS, "child", namespace="default")
    assert held.metadata.deletion_timestamp is None
    await finalize(world, child)
    await world.settle()
    assert await names(world) == [], "nobody holds it any more, and nothing is to be waited for"


async def test_an_orphan_is_not_left_for_long(world: worlds.World) -> None:
    owner = await config_map(world, "owner")
    child = await config_map(world, "child", reference(owner), finalizers=["example.com/hold"])
    await world.settle()
    await delete(world, owner)
    await world.advance(1)
    held = await world.client.get(CONFIG_MAPS, "child", namespace="default")
    assert held.metadata.deletion_timestamp is not None
    await finalize(world, child)
    await world.settle()
    assert await names(world) == []
