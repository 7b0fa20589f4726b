"""Disruption budgets: what their status counts, and evictions that nobody followed up."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from drachma import errors
from drachma.api import deployment, job, meta, pod, poddisruptionbudget, replicaset
from drachma.client import patches, target
from drachma.controllers.disruption import DisruptionController
from tests.unit.controllers import builders, worlds
from tests.unit.server.kinds.apiextensions import widgets

Budget = poddisruptionbudget.PodDisruptionBudget
LABELS = {"a": "b"}
SELECTOR = {"matchLabels": LABELS}
TEMPLATE: dict[str, Any] = {"metadata": {"labels": LABELS}, "spec": {"containers": [{"name": "c", "image": "x"}]}}


@pytest.fixture
async def world() -> AsyncIterator[worlds.World]:
    async with worlds.world(DisruptionController) as running_world:
        yield running_world


async def budget(world: worlds.World, **spec: Any) -> None:
    document = {"metadata": {"name": "b", "namespace": "default"}, "spec": {"selector": SELECTOR, **spec}}
    await world.client.create_document(Budget, document)
    await world.settle()


async def status(world: worlds.World) -> poddisruptionbudget.PodDisruptionBudgetStatus:
    await world.settle()
    return (await world.client.get(Budget, "b", namespace="default")).status


async def counts(world: worlds.World) -> tuple[int, int, int, int]:
    """Expected, desired, healthy, allowed."""
    current = await status(world)
    return current.expected_pods, current.desired_healthy, current.current_healthy, current.disruptions_allowed


async def running(world: worlds.World, name: str, *owners: meta.OwnerReference, ready: str = "True") -> pod.Pod:
    created_pod = worlds.renamed(builders.a_pod(name).on_node("n").build(), labels=LABELS, owner_references=owners)
    created = await world.client.create(created_pod)
    content = {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": ready}]}}
    where = {"namespace": "default", "subresource": "status"}
    return await world.client.patch(pod.Pod, created.metadata.name, patch=patches.merge(content), **where)


async def replica_set(world: worlds.World, replicas: int, *owners: dict[str, Any], name: str = "rs") -> Any:
    document = {
        "metadata": {"name": name, "namespace": "default", "ownerReferences": list(owners)},
        "spec": {"replicas": replicas, "selector": SELECTOR, "template": TEMPLATE},
    }
    await world.client.create_document(replicaset.ReplicaSet, document)
    return await world.client.get(replicaset.ReplicaSet, name, namespace="default")


def condition(current: poddisruptionbudget.PodDisruptionBudgetStatus) -> tuple[str, str, str]:
    (found,) = current.conditions
    assert found.type == "DisruptionAllowed"
    return found.status, found.reason, found.message


async def test_a_number_that_must_stay(world: worlds.World) -> None:
    await running(world, "p")
    await running(world, "q")
    await running(world, "sick", ready="False")
    await budget(world, minAvailable=1)
    assert await counts(world) == (3, 1, 2, 1)
    current = await status(world)
    assert condition(current) == ("True", "SufficientPods", "")
    assert current.observed_generation == 1


async def test_a_budget_without_pods_allows_nothing(world: worlds.World) -> None:
    await budget(world, minAvailable=0)
    assert await counts(world) == (0, 0, 0, 0)
    assert condition(await status(world)) == ("False", "InsufficientPods", "")
    assert await world.events() == ["Normal NoPods: No matching pods found"]


@pytest.mark.parametrize(
    ("spec", "want"),
    [
        pytest.param({"maxUnavailable": 1}, (4, 3, 2, 0), id="number-that-may-be-missing"),
        pytest.param({"maxUnavailable": "75%"}, (4, 1, 2, 1), id="percent-that-may-be-missing"),
        pytest.param({"minAvailable": "25%"}, (4, 1, 2, 1), id="percent-that-must-stay"),
        pytest.param({"maxUnavailable": 9}, (4, 0, 2, 2), id="more-than-there-are"),
    ],
)
async def test_what_the_owner_wants_is_counted(
    world: worlds.World, spec: dict[str, Any], want: tuple[int, int, int, int]
) -> None:
    owner = builders.owned_by(await replica_set(world, 4), controller=True)
    await running(world, "p", owner)
    await running(world, "q", owner)
    await budget(world, **spec)
    assert await counts(world) == want


async def test_replica_sets_of_one_deployment_are_one(world: worlds.World) -> None:
    document = {
        "metadata": {"name": "d", "namespace": "default"},
        "spec": {"replicas": 3, "selector": SELECTOR, "template": TEMPLATE},
    }
    await world.client.create_document(deployment.Deployment, document)
    created_deployment = await world.client.get(deployment.Deployment, "d", namespace="default")
    above = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "name": "d",
        "uid": created_deployment.metadata.uid,
        "controller": True,
    }
    for name in ("old", "new"):
        own = await replica_set(world, 2, above, name=name)
        await running(world, f"of-{name}", builders.owned_by(own, controller=True))
    await budget(world, maxUnavailable=1)
    assert await counts(world) == (3, 2, 2, 0)


async def test_the_scale_of_a_custom_resource_is_not_read(world: worlds.World) -> None:
    """Upstream reads it; budgets in percent then count its replicas."""
    scale = {"specReplicasPath": ".spec.n", "statusReplicasPath": ".status.n"}
    version = widgets.version(spec=widgets.fields(n={"type": "integer"}), subresources={"status": {}, "scale": scale})
    definitions = target.metadata_of(
        "apiextensions.k8s.io",
        "v1",
        plural="customresourcedefinitions",
        kind="CustomResourceDefinition",
        namespaced=False,
    )
    await world.client.create_document(definitions, widgets.definition(version))
    await world.settle()
    kind = target.metadata_of(widgets.GROUP, "v1", plural="widgets", kind="Widget", namespaced=True)
    document = {**widgets.widget(n=2), "metadata": {"name": "w", "namespace": "default"}}
    own = await world.client.create_document(kind, document)
    owner = meta.OwnerReference(
        api_version=own["apiVersion"], kind="Widget", name="w", uid=own["metadata"]["uid"], controller=True
    )
    await running(world, "p", owner)
    await running(world, "q", owner)
    await budget(world, maxUnavailable="50%")
    current = await status(world)
    assert (current.disruptions_allowed, condition(current)[:2]) == (0, ("False", "SyncFailed"))


async def test_an_owner_without_a_scale_allows_nothing(world: worlds.World) -> None:
    document = {"metadata": {"name": "j", "namespace": "default"}, "spec": {"template": _job_template()}}
    await world.client.create_document(job.Job, document)
    own = await world.client.get(job.Job, "j", namespace="default")
    await running(world, "p", builders.owned_by(own, controller=True))
    await budget(world, maxUnavailable=1)
    why = "jobs.batch does not implement the scale subresource"
    current = await status(world)
    assert (current.disruptions_allowed, condition(current)) == (0, ("False", "SyncFailed", why))
    assert f"Warning CalculateExpectedPodCountFailed: Failed to calculate the number of expected pods: {why}" in (
        await world.events()
    )


async def test_an_owner_that_is_gone_allows_nothing(world: worlds.World) -> None:
    owner = meta.OwnerReference(api_version="apps/v1", kind="ReplicaSet", name="gone", uid="u", controller=True)
    await running(world, "p", owner)
    await budget(world, maxUnavailable=1)
    assert condition(await status(world)) == ("False", "SyncFailed", 'found no controllers for pod "p"')


async def test_pods_that_nothing_controls_are_told_of(world: worlds.World) -> None:
    await running(world, "p")
    await budget(world, maxUnavailable=1)
    assert await counts(world) == (0, 0, 1, 0)
    assert any("UnmanagedPods" in each for each in await world.events())


async def test_pods_that_come_change_and_go(world: worlds.World) -> None:
    await budget(world, minAvailable=1)
    created_pod = await running(world, "p")
    await running(world, "q")
    assert await counts(world) == (2, 1, 2, 1)
    await world.patch(created_pod, {"metadata": {"labels": {"a": "other"}}})
    assert await counts(world) == (1, 1, 1, 0)
    await world.patch(created_pod, {"metadata": {"labels": LABELS}})
    assert await counts(world) == (2, 1, 2, 1)
    await world.delete(created_pod, grace_period_seconds=0)
    assert await counts(world) == (1, 1, 1, 0)


async def test_an_eviction_is_charged_until_the_pod_is_gone(world: worlds.World) -> None:
    first, second = await running(world, "p"), await running(world, "q")
    await budget(world, minAvailable=1)
    await world.client.evict(first)
    with pytest.raises(errors.ThrottledError):
        await world.client.evict(second)
    assert await counts(world) == (2, 1, 1, 0)
    assert not (await status(world)).disrupted_pods


async def test_a_pod_that_was_not_deleted_counts_again(world: worlds.World) -> None:
    await running(world, "p")
    await running(world, "q")
    await budget(world, minAvailable=1)
    since = world.clock.utc().replace(microsecond=0)
    content = {"status": {"disruptedPods": {"p": since}, "disruptionsAllowed": 0}}
    where = {"namespace": "default", "subresource": "status"}
    await world.client.patch(Budget, "b", patch=patches.merge(content), **where)
    assert await counts(world) == (2, 1, 1, 0)
    await world.advance(119)
    assert list((await status(world)).disrupted_pods) == ["p"]
    await world.advance(3)
    assert await counts(world) == (2, 1, 2, 1)
    assert not (await status(world)).disrupted_pods
    want = "Warning NotDeleted: Pod was expected by PDB default/default to be deleted but it wasn't"
    assert want in await world.events()


async def test_a_condition_of_a_pod_that_stayed_is_taken_back(world: worlds.World) -> None:
    created_pod = await running(world, "p")
    since = world.clock.utc().replace(microsecond=0)
    target = {"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI", "message": "m"}
    content = {"status": {"conditions": [{**target, "lastTransitionTime": since}]}}
    where = {"namespace": "default", "subresource": "status"}
    await world.client.patch(pod.Pod, "p", patch=patches.strategic(content), **where)
    await world.advance(118)
    assert _target(await world.get(created_pod)) == ("True", "EvictionByEvictionAPI", "m")
    await world.advance(3)
    assert _target(await world.get(created_pod)) == ("False", "", "")


def _target(of: pod.Pod) -> tuple[str, str, str]:
    (found,) = (each for each in of.status.conditions if each.type == "DisruptionTarget")
    return found.status, found.reason, found.message


def _job_template() -> dict[str, Any]:
    return {"spec": {**TEMPLATE["spec"], "restartPolicy": "Never"}}


async def test_all_budgets_of_a_pod_are_evaluated(world: worlds.World) -> None:
    await running(world, "p")
    await budget(world, minAvailable=1)
    document = {
        "metadata": {"name": "second", "namespace": "default"},
        "spec": {"selector": SELECTOR, "minAvailable": 0},
    }
    await world.client.create_document(Budget, document)
    assert await counts(world) == (1, 1, 1, 0)
    second = (await world.client.get(Budget, "second", namespace="default")).status
    assert (second.expected_pods, second.disruptions_allowed) == (1, 1)
    assert not any("MultiplePodDisruptionBudgets" in each for each in await world.events())
