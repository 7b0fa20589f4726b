"""The end of namespaces: pods first, then the rest, then the namespace; and what holds it up."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from drachma import errors
from drachma.api import namespace, pod, resourceclaim
from drachma.client import patches, target
from drachma.controllers.namespace import NamespaceController
from drachma.testing import namespace as build_namespace
from tests.unit.controllers import builders, worlds
from tests.unit.server.kinds.apiextensions import widgets

DEFINITIONS = target.metadata_of(
    "apiextensions.k8s.io", "v1", plural="customresourcedefinitions", kind="CustomResourceDefinition", namespaced=False
)
WIDGETS = target.metadata_of(widgets.GROUP, "v1", plural="widgets", kind="Widget", namespaced=True)
CONFIG_MAPS = target.metadata_of("", "v1", plural="configmaps", kind="ConfigMap", namespaced=True)


@pytest.fixture
async def world() -> AsyncIterator[worlds.World]:
    async with worlds.world(NamespaceController) as running_world:
        yield running_world


async def a_namespace(world: worlds.World, name: str = "team") -> namespace.Namespace:
    return await world.client.create(build_namespace(name).build())


async def config_map(world: worlds.World, name: str, *, place: str = "team", **metadata: Any) -> None:
    document = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": place, **metadata}}
    await world.client.create_document(CONFIG_MAPS, document)


async def conditions(world: worlds.World, name: str = "team") -> dict[str, str]:
    document = await world.client.get_document(namespace.Namespace, name)
    return {
        each["type"]: f"{each['status']} {each['reason']}: {each['message']}"
        for each in document["status"]["conditions"]
    }


async def test_an_empty_namespace_goes(world: worlds.World) -> None:
    created_namespace = await a_namespace(world)
    await world.delete(created_namespace)
    await world.advance(4)
    assert await world.exists(created_namespace), "other servers may still let objects in"
    await world.advance(1)
    assert not await world.exists(created_namespace)


async def test_all_contents_go_and_nothing_else(world: worlds.World) -> None:
    created_namespace = await a_namespace(world)
    await config_map(world, "a")
    await config_map(world, "b", place="default")
    await world.create(worlds.renamed(builders.a_template(), namespace="team"))
    await world.create(worlds.renamed(builders.a_claim(), namespace="team", finalizers=()))
    await world.delete(created_namespace)
    await world.advance(5)
    assert not await world.exists(created_namespace)
    assert [each.metadata.name for each in await world.all_of(CONFIG_MAPS)] == ["b"]
    assert await world.all_of(resourceclaim.ResourceClaim) == ()


async def test_a_namespace_that_stays_is_left_alone(world: worlds.World) -> None:
    await a_namespace(world)
    await config_map(world, "a")
    await world.advance(100)
    assert len(await world.all_of(CONFIG_MAPS)) == 1


async def test_pods_go_first_and_in_their_own_time(world: worlds.World) -> None:
    created_namespace = await a_namespace(world)
    await config_map(world, "a")
    running = await world.create(
        worlds.renamed(builders.a_pod().on_node("n").phase("Running").build(), namespace="team")
    )
    await world.delete(created_namespace)
    await world.advance(5)
    going = await world.get(running)
    assert going.metadata.deletion_timestamp is not None
    assert len(await world.all_of(CONFIG_MAPS)) == 1, "the pod may still use it"
    assert (await conditions(world))["NamespaceContentRemaining"] == (
        "True SomeResourcesRemain: Some resources are remaining: pods. has 1 resource instances"
    )
    await world.delete(running, grace_period_seconds=0)
    await world.settle()
    assert not await world.exists(created_namespace), "looked at again as soon as the last pod is gone"
    assert await world.all_of(CONFIG_MAPS) == ()


async def test_pods_that_go_early_do_not_hasten_what_has_to_settle(world: worlds.World) -> None:
    created_namespace = await a_namespace(world)
    waiting = await world.create(worlds.renamed(builders.a_pod().build(), namespace="team"))
    await world.delete(created_namespace)
    await world.delete(waiting)
    await world.advance(4)
    assert await world.exists(created_namespace), "other servers may still let objects in"
    await world.advance(1)
    assert not await world.exists(created_namespace)


async def test_finalizers_hold_it_up_and_are_told(world: worlds.World) -> None:
    created_namespace = await a_namespace(world)
    await config_map(world, "a", finalizers=["example.com/hold"])
    claim = await world.create(worlds.renamed(builders.a_claim(), namespace="team"))
    await world.delete(created_namespace)
    await world.advance(5)
    assert await conditions(world) == {
        "NamespaceDeletionDiscoveryFailure": "False ResourcesDiscovered: All resources successfully discovered",
        "NamespaceDeletionGroupVersionParsingFailure": (
            "False ParsedGroupVersions: All legacy kube types successfully parsed"
        ),
        "NamespaceDeletionContentFailure": (
            "False ContentDeleted: All content successfully deleted, may be waiting on finalization"
        ),
        "NamespaceContentRemaining": (
            "True SomeResourcesRemain: Some resources are remaining: configmaps. has 1 resource instances, "
            "resourceclaims.resource.k8s.io has 1 resource instances"
        ),
        "NamespaceFinalizersRemaining": (
            "True SomeFinalizersRemain: Some content in the namespace has finalizers remaining: "
            "example.com/hold in 1 resource instances, "
            "resource.kubernetes.io/delete-protection in 1 resource instances"
        ),
    }
    await world.patch(claim, {"metadata": {"finalizers": None}})
    patch = patches.merge({"metadata": {"finalizers": None}})
    await world.client.patch(CONFIG_MAPS, "a", patch=patch, namespace="team")
    await world.advance(8)
    assert not await world.exists(created_namespace)


async def test_finalizers_of_others_on_the_namespace_stay(world: worlds.World) -> None:
    document = {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": "team"},
        "spec": {"finalizers": ["kubernetes", "example.com/mine"]},
    }
    await world.client.create_document(namespace.Namespace, document)
    await world.client.delete(namespace.Namespace, "team")
    await world.advance(60)
    stored_namespace = await world.find(namespace.Namespace, "team")
    assert stored_namespace is not None
    assert stored_namespace.spec.finalizers == ("example.com/mine",)
    assert stored_namespace.status.phase == "Terminating"


async def test_what_fails_is_told_and_tried_again() -> None:
    is_failing = True

    def fail(verb: str, kind: Any, *_: Any, **options: Any) -> None:
        if is_failing and verb == "delete_collection" and target.of(kind).plural == "configmaps":
            raise errors.ServerFaultError({"message": "the disk is full", "code": 500})

    async with worlds.world(NamespaceController, wrap=worlds.meddling(fail)) as world:
        created_namespace = await a_namespace(world)
        await config_map(world, "a")
        await world.create(worlds.renamed(builders.a_template(), namespace="team"))
        await world.delete(created_namespace)
        await world.advance(6)
        assert (await conditions(world))["NamespaceDeletionContentFailure"] == (
            "True ContentDeletionFailed: Failed to delete all resource types, 1 remaining: the disk is full"
        )
        is_failing = False
        await world.advance(60)
        assert not await world.exists(created_namespace)


async def test_kinds_that_cannot_be_deleted_at_once_are_deleted_one_by_one() -> None:
    def refuse(verb: str, *_: Any, **options: Any) -> None:
        if verb == "delete_collection":
            raise errors.RefusedError({"message": "no such verb", "code": 405})

    async with worlds.world(NamespaceController, wrap=worlds.meddling(refuse)) as world:
        created_namespace = await a_namespace(world)
        await config_map(world, "a")
        await world.create(worlds.renamed(builders.a_pod().build(), namespace="team"))
        await world.delete(created_namespace)
        await world.advance(5)
        assert await world.all_of(pod.Pod) == ()
        assert not await world.exists(created_namespace)


async def test_no_time_to_settle_where_none_is_needed() -> None:
    async with worlds.world(lambda env: NamespaceController(env, settling_seconds=0)) as world:
        created_namespace = await a_namespace(world)
        await world.delete(created_namespace)
        await world.settle()
        assert not await world.exists(created_namespace)


async def test_custom_resources_go_and_hold_it_up_like_others(world: worlds.World) -> None:
    await world.client.create_document(DEFINITIONS, widgets.definition())
    await world.settle()
    created_namespace = await a_namespace(world)
    for name, finalizers in (("held", ["example.com/hold"]), ("free", [])):
        metadata = {"name": name, "namespace": "team", "finalizers": finalizers}
        await world.client.create_document(WIDGETS, {**widgets.TYPE, "metadata": metadata})
    await world.delete(created_namespace)
    await world.advance(5)
    told = await conditions(world)
    assert told["NamespaceContentRemaining"] == (
        f"True SomeResourcesRemain: Some resources are remaining: widgets.{widgets.GROUP} has 1 resource instances"
    )
    await world.client.patch(WIDGETS, "held", patch=patches.merge({"metadata": {"finalizers": None}}), namespace="team")
    await world.advance(15)
    assert not await world.exists(created_namespace)
