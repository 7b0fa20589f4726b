"""The status of quotas: counted when they are made, when room is made, and now and then."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from drachma import errors
from drachma.api import deviceclass, pod, resourceclaimtemplate
from drachma.api.resourcequota import ResourceQuota
from drachma.api.v1alpha2 import resourceclaimtemplate as alpha
from drachma.client import patches, target
from drachma.controllers.resourcequota import ResourceQuotaController
from drachma.testing import claim
from tests.unit.controllers import builders, worlds
from tests.unit.server.kinds.apiextensions import widgets

MAPS = target.metadata_of("", "v1", plural="configmaps", kind="ConfigMap", namespaced=True)
DEVICES = "gpu.deviceclass.resource.k8s.io/devices"
HERE: dict[str, Any] = {"namespace": "default"}


@pytest.fixture
async def world() -> AsyncIterator[worlds.World]:
    async with worlds.world(ResourceQuotaController) as running_world:
        yield running_world


async def quota(world: worlds.World, hard: dict[str, str], **spec: Any) -> None:
    document = {"metadata": {"name": "q", "namespace": "default"}, "spec": {"hard": hard, **spec}}
    await world.client.create_document(ResourceQuota, document)
    await world.settle()


async def status(world: worlds.World) -> tuple[dict[str, str], dict[str, str]]:
    """Limits and use."""
    await world.settle()
    now = (await world.client.get(ResourceQuota, "q", **HERE)).status
    hard, used = ({name: str(amount) for name, amount in each.items()} for each in (now.hard, now.used))
    return hard, used


async def used(world: worlds.World) -> dict[str, str]:
    return (await status(world))[1]


async def config_map(world: worlds.World, name: str) -> None:
    await world.client.create_document(MAPS, {"metadata": {"name": name, **HERE}})


async def a_pod(world: worlds.World, name: str, **resources: dict[str, str]) -> pod.Pod:
    container = {"name": "c", "image": "x", "resources": resources}
    document = {"metadata": {"name": name, **HERE}, "spec": {"containers": [container]}}
    await world.client.create_document(pod.Pod, document)
    return await world.client.get(pod.Pod, name, **HERE)


async def test_a_quota_made_later_is_filled_in(world: worlds.World) -> None:
    await config_map(world, "a")
    await world.client.create(claim("c").request("r", device_class="gpu", count=3).build())
    hard = {"configmaps": "5", "count/configmaps": "0", DEVICES: "9", "example.com/unheard-of": "1"}
    await quota(world, {**hard, "count/replicationcontrollers": "2"})
    assert await status(world) == (
        {**hard, "count/replicationcontrollers": "2"},
        {"configmaps": "1", "count/configmaps": "1", DEVICES: "3", "count/replicationcontrollers": "0"},
    )


async def test_what_goes_makes_room(world: worlds.World) -> None:
    await quota(world, {"configmaps": "1", DEVICES: "2"})
    await config_map(world, "a")
    created_claim = await world.client.create(claim("c").request("r", device_class="gpu", count=2).build())
    with pytest.raises(errors.RefusedError, match="exceeded quota: q"):
        await config_map(world, "b")
    assert await used(world) == {"configmaps": "1", DEVICES: "2"}
    await world.client.delete(MAPS, "a", **HERE)
    await world.delete(created_claim)
    assert await used(world) == {"configmaps": "0", DEVICES: "0"}
    await config_map(world, "b")


async def test_a_pod_that_has_ended_makes_room(world: worlds.World) -> None:
    await quota(world, {"requests.cpu": "2", "count/pods": "5"})
    created_pod = await a_pod(world, "p", requests={"cpu": "1500m"})
    assert await used(world) == {"requests.cpu": "1500m", "count/pods": "1"}
    patch = patches.merge({"status": {"phase": "Succeeded"}})
    await world.client.patch(pod.Pod, created_pod.metadata.name, patch=patch, subresource="status", **HERE)
    assert await used(world) == {"requests.cpu": "0", "count/pods": "1"}


async def test_limits_are_taken_over(world: worlds.World) -> None:
    await quota(world, {"configmaps": "1", "secrets": "1"})
    await config_map(world, "a")
    patch = patches.merge({"spec": {"hard": {"configmaps": "3", "secrets": None}}})
    await world.client.patch(ResourceQuota, "q", patch=patch, **HERE)
    assert await status(world) == ({"configmaps": "3"}, {"configmaps": "1"})


async def test_a_status_that_is_wrong_is_put_right_in_time(world: worlds.World) -> None:
    await quota(world, {"configmaps": "5"})
    patch = patches.merge({"status": {"used": {"configmaps": "4"}}})
    await world.client.patch(ResourceQuota, "q", patch=patch, subresource="status", **HERE)
    assert await used(world) == {"configmaps": "4"}
    await world.advance(300)
    assert await used(world) == {"configmaps": "0"}


async def test_scopes_choose_pods(world: worlds.World) -> None:
    await a_pod(world, "p", requests={"cpu": "1"})
    await a_pod(world, "idle")
    await quota(world, {"pods": "5"}, scopes=["BestEffort"])
    assert await used(world) == {"pods": "1"}


async def test_a_class_that_gets_an_extended_resource_counts_for_it(world: worlds.World) -> None:
    name = "requests.example.com/gpu"
    device_class = await world.client.create(builders.a_class())
    await world.client.create(builders.a_claim())
    await quota(world, {name: "5"})
    assert await used(world) == {name: "0"}
    patch = patches.merge({"spec": {"extendedResourceName": "example.com/gpu"}})
    await world.client.patch(deviceclass.DeviceClass, device_class.metadata.name, patch=patch)
    assert await used(world) == {name: "1"}
    await world.delete(device_class)
    assert await used(world) == {name: "0"}


async def test_a_pod_pays_for_the_claim_of_its_extended_resources(world: worlds.World) -> None:
    name = "requests.example.com/gpu"
    document = {"metadata": {"name": "gpu"}, "spec": {"extendedResourceName": "example.com/gpu"}}
    await world.client.create_document(deviceclass.DeviceClass, document)
    created_pod = await a_pod(world, "p", limits={"example.com/gpu": "2"})
    special = claim("special").request("r", device_class="gpu", count=2).build()
    annotated = worlds.renamed(
        special,
        annotations={"resource.kubernetes.io/extended-resource-claim": "true"},
        owner_references=builders.controlled_by(created_pod),
    )
    await world.client.create(annotated)
    await quota(world, {name: "5", DEVICES: "5"})
    assert await used(world) == {name: "2", DEVICES: "2"}


async def test_what_comes_while_limits_are_written_is_counted() -> None:
    """Nobody charges an object that is made between counting and the first status."""
    late: list[str] = []

    async def before(verb: str, *arguments: Any, **_options: Any) -> None:
        if verb == "update" and isinstance(arguments[0], ResourceQuota) and not late:
            late.append("a")
            await config_map(cluster, "a")

    async with worlds.world(ResourceQuotaController, wrap=worlds.meddling(before)) as cluster:
        await quota(cluster, {"configmaps": "5"})
        assert late
        assert await used(cluster) == {"configmaps": "1"}


async def test_what_is_charged_while_it_counts_is_not_lost() -> None:
    late: list[str] = []

    async def before(verb: str, *arguments: Any, **_options: Any) -> None:
        if verb == "update" and isinstance(arguments[0], ResourceQuota) and len(late) == 1:
            late.append("b")
            await config_map(cluster, "b")

    async with worlds.world(ResourceQuotaController, wrap=worlds.meddling(before)) as cluster:
        await quota(cluster, {"configmaps": "5"})
        await config_map(cluster, "a")
        late.append("a")
        await cluster.client.delete(MAPS, "a", **HERE)
        await cluster.settle()
        await cluster.advance(1)
        assert late == ["a", "b"]
        assert await used(cluster) == {"configmaps": "1"}


DEFINITIONS = target.metadata_of(
    "apiextensions.k8s.io", "v1", plural="customresourcedefinitions", kind="CustomResourceDefinition", namespaced=False
)
WIDGETS = target.metadata_of(widgets.GROUP, "v1", plural="widgets", kind="Widget", namespaced=True)


async def test_custom_resources_are_counted(world: worlds.World) -> None:
    name = f"count/widgets.{widgets.GROUP}"
    await world.client.create_document(DEFINITIONS, widgets.definition())
    await world.settle()
    await quota(world, {name: "1"})
    assert await used(world) == {name: "0"}
    await world.client.create_document(WIDGETS, {**widgets.TYPE, "metadata": {"name": "w", **HERE}})
    with pytest.raises(errors.ForbiddenError, match="exceeded quota: q"):
        await world.client.create_document(WIDGETS, {**widgets.TYPE, "metadata": {"name": "x", **HERE}})
    await world.client.delete(WIDGETS, "w", **HERE)
    assert await used(world) == {name: "0"}


async def test_a_kind_that_is_defined_later_is_counted(world: worlds.World) -> None:
    name = f"count/widgets.{widgets.GROUP}"
    await quota(world, {name: "1"})
    assert await used(world) == {}
    await world.client.create_document(DEFINITIONS, widgets.definition())
    await world.advance(30)
    assert await used(world) == {name: "0"}


async def test_templates_are_counted_in_all_versions(world: worlds.World) -> None:
    """Those of the first alpha are other objects than those of v1."""
    spec = {"spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]}}}
    await world.client.create_document(
        resourceclaimtemplate.ResourceClaimTemplate, {"metadata": {"name": "a", **HERE}, "spec": spec}
    )
    name = "count/resourceclaimtemplates.resource.k8s.io"
    await quota(world, {name: "2"})
    content = {"spec": {"spec": {"resourceClassName": "cards"}}}
    await world.client.create_document(alpha.ResourceClaimTemplate, {"metadata": {"name": "b", **HERE}, **content})
    assert await used(world) == {name: "2"}
    with pytest.raises(errors.RefusedError, match="exceeded quota"):
        await world.client.create_document(alpha.ResourceClaimTemplate, {"metadata": {"name": "c", **HERE}, **content})
    await world.client.delete(alpha.ResourceClaimTemplate, "b", **HERE)
    assert await used(world) == {name: "1"}
