"""All controllers together: whole lives of workloads, in process on a moved clock, and over HTTP."""

import asyncio
import contextlib
import functools
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from drachma import errors
from drachma.api import gates, job, namespace, node, pod, resourceclaim
from drachma.claims import wellknown
from drachma.client import Client, Selection, patches
from drachma.controllers import descriptors
from drachma.controllers.namespace import NamespaceController
from drachma.process import components, embedded
from drachma.runtime import Surroundings, controller
from drachma.testing import claim_template, taint_rule
from drachma.testing import namespace as build_namespace
from drachma.testing import node as build_node
from tests import patience
from tests.scenarios import clusters
from tests.unit.controllers import builders, worlds

Claim = resourceclaim.ResourceClaim
EVERYTHING = tuple(each.make for each in descriptors.ALL if each.name not in worlds.NEEDING_CREDENTIALS)


@pytest.fixture
async def world() -> AsyncIterator[worlds.World]:
    async with worlds.world(*EVERYTHING) as made:
        yield made


def batch_job(name: str, *, place: str = "default", **spec: Any) -> dict[str, Any]:
    """A job whose pods get a claim each."""
    container = {"name": "main", "image": "registry.example/pause:3.10", "resources": {"claims": [{"name": "gpu"}]}}
    entries = [{"name": "gpu", "resourceClaimTemplateName": "t"}]
    template = {"spec": {"restartPolicy": "Never", "containers": [container], "resourceClaims": entries}}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": place},
        "spec": {"template": template, **spec},
    }


async def schedule(client: Client, waiting: pod.Pod, on: str = "n") -> None:
    """What a scheduler does for a pod with generated claims: allocates, reserves and binds."""
    for status in waiting.status.resource_claim_statuses:
        assert status.resource_claim_name is not None
        place = waiting.metadata.namespace
        claim = await client.get(Claim, status.resource_claim_name, namespace=place)
        finalizers = patches.merge({"metadata": {"finalizers": [wellknown.CLAIM_FINALIZER]}}, patches.unchanged(claim))
        claim = await client.patch(Claim, claim.metadata.name, patch=finalizers, namespace=place)
        content = {"allocation": builders.allocation(), "reservedFor": builders.consumers(waiting)}
        await client.patch(
            Claim,
            claim.metadata.name,
            patch=patches.merge({"status": content}, patches.unchanged(claim)),
            namespace=place,
            subresource="status",
        )
    await client.bind(waiting, node=on)


async def test_a_job_with_claims_runs_and_leaves_nothing(world: worlds.World) -> None:
    await world.create(builders.a_template())
    await world.client.create_document(
        job.Job, batch_job("j", completions=2, parallelism=2, ttlSecondsAfterFinished=60)
    )
    await world.settle()
    running = await world.all_of(pod.Pod)
    assert len(running) == 2
    assert len(await world.all_of(Claim)) == 2
    for each in running:
        await schedule(world.client, each)
    await world.settle()
    assert all(claim.status.reserved_for for claim in await world.all_of(Claim))
    await world.patch_status(running[0], {"phase": "Succeeded"})
    await world.settle()
    assert len(await world.all_of(Claim)) == 1, "the claim goes when its pod has ended, long before the pod does"
    await world.patch_status(running[1], {"phase": "Succeeded"})
    await world.advance(59)
    assert len(await world.all_of(pod.Pod)) == 2
    await world.advance(5)
    assert await world.all_of(job.Job) == ()
    assert await world.all_of(pod.Pod) == ()
    assert await world.all_of(Claim) == ()


async def test_a_namespace_with_everything_in_it_goes(world: worlds.World) -> None:
    made = await world.client.create(build_namespace("team").build())
    await world.create(worlds.renamed(builders.a_template(), namespace="team"))
    await world.client.create_document(job.Job, batch_job("j", place="team", completions=3, parallelism=3))
    await world.create(worlds.renamed(builders.a_claim(), namespace="team"))
    await world.settle()
    waiting, running, _ = await world.all_of(pod.Pod)
    await world.client.create(build_node("n").build())
    await schedule(world.client, running)
    await world.patch_status(running, {"phase": "Running"})
    await world.delete(made)
    await world.advance(20)
    assert not await world.exists(waiting), "what never had a node goes at once"
    going = await world.get(running)
    assert going.metadata.deletion_timestamp is not None
    (claim,) = [each for each in await world.all_of(Claim) if each.status.allocation is not None]
    assert claim.status.reserved_for, "the pod may still use it"
    await world.delete(running, grace_period_seconds=0)
    await world.advance(60)
    assert not await world.exists(made)
    assert await world.all_of(Claim) == ()
    assert await world.all_of(job.Job) == ()


async def test_a_dead_node_gives_its_devices_back(world: worlds.World) -> None:
    """The node falls silent; after five minutes its pods have to go; somebody says that it is out of service."""
    await world.create(builders.a_template())
    for name in ("n", "other"):
        made = await world.client.create(build_node(name).build())
        await world.patch_status(made, {"conditions": [{"type": "Ready", "status": "True"}]})
    await world.create(builders.a_pod("p", gpu="t").build())
    await world.settle()
    (waiting,) = await world.all_of(pod.Pod)
    await schedule(world.client, waiting)
    await world.patch_status(waiting, {"phase": "Running"})
    dead = await world.find(node.Node, "n")
    assert dead is not None
    await world.patch_status(dead, {"conditions": [{"type": "Ready", "status": "Unknown"}]})
    await world.advance(310)
    going = await world.get(waiting)
    assert going.metadata.deletion_timestamp is not None
    assert any(each.type == "DisruptionTarget" for each in going.status.conditions)
    (claim,) = await world.all_of(Claim)
    assert claim.status.allocation is not None, "nobody knows whether the pod still runs"
    dead = await world.get(dead)
    taint = {"key": "node.kubernetes.io/out-of-service", "value": "nodeshutdown", "effect": "NoExecute"}
    await world.patch(dead, {"spec": {"taints": [*dead.spec.taints, taint]}})
    await world.advance(30)
    assert not await world.exists(going)
    assert await world.all_of(Claim) == ()


async def test_a_tainted_device_costs_a_job_a_pod(world: worlds.World) -> None:
    """The pod leaves the device, counts as failed, and another one takes its place."""
    await world.create(builders.a_template())
    await world.client.create_document(job.Job, batch_job("j"))
    await world.settle()
    (first,) = await world.all_of(pod.Pod)
    await schedule(world.client, first)
    await world.create(taint_rule("r", key="broken", effect="NoExecute", driver=builders.DRIVER).build())
    await world.settle()
    assert (await world.get(first)).metadata.deletion_timestamp is not None
    await world.delete(first, grace_period_seconds=0)
    await world.advance(10)
    (second,) = await world.all_of(pod.Pod)
    assert second.metadata.uid != first.metadata.uid
    assert len(second.status.resource_claim_statuses) == 1
    status = (await world.all_of(job.Job))[0].status
    assert (status.active, status.failed) == (1, 1)


async def test_a_restart_in_the_middle_changes_nothing() -> None:
    """Controllers are killed after every few turns of the event loop and start again knowing nothing."""
    async with worlds.world() as world:
        await world.create(builders.a_template())
        await world.client.create_document(job.Job, batch_job("j", completions=4, parallelism=2))
        for turns in range(1, 60):
            world.launch(*EVERYTHING)
            for _ in range(turns * 3):
                await asyncio.sleep(0)
            await world.stop()
        await world.start(*EVERYTHING)
        for _ in range(10):
            for each in await world.all_of(pod.Pod):
                if each.status.phase == "Pending":
                    await world.patch_status(each, {"phase": "Succeeded"})
            await world.advance(30)
        (found,) = await world.all_of(job.Job)
        assert (found.status.active, found.status.succeeded, found.status.failed) == (0, 4, 0)
        assert len(await world.all_of(pod.Pod)) == 4, "no pod was made twice"
        assert await world.all_of(Claim) == ()


# Over HTTP


def _namespace_controller(surroundings: Surroundings) -> controller.Controller:
    return NamespaceController(surroundings, settling_seconds=0)


@contextlib.asynccontextmanager
async def http_controllers() -> AsyncIterator[Client]:
    """A server on loopback and all controllers as a client of it."""
    makes = [
        each._replace(make=_namespace_controller) if each.name == "namespace-controller" else each
        for each in descriptors.chosen(gates=gates.ALL)
    ]
    component = functools.partial(components.controllers, selected=tuple(makes))
    async with (
        asyncio.timeout(patience.SECONDS),
        clusters.http_cluster() as cluster,
        embedded.running(Surroundings(cluster.client), component),
    ):
        yield cluster.client


async def watched(client: Client, kind: Any, condition: Callable[[], Awaitable[Any]]) -> Any:
    """Waits for something to become so, looking whenever an object of a kind changes."""
    start = (await client.list(kind)).resource_version
    async with client.watch(kind, resource_version=start) as watch:
        while not (found := await condition()):
            assert await watch.batch(), "the watch ended early"
        return found


async def test_claims_and_jobs_over_http() -> None:
    async with http_controllers() as client:
        await client.create(builders.a_template())
        await client.create_document(job.Job, batch_job("j", completions=1))

        async def pod_with_claim() -> pod.Pod | None:
            listed = (await client.list(pod.Pod, Selection("default"))).items
            return next((each for each in listed if each.status.resource_claim_statuses), None)

        waiting = await watched(client, pod.Pod, pod_with_claim)
        await schedule(client, waiting)
        patch = patches.merge({"status": {"phase": "Succeeded"}})
        await client.patch(pod.Pod, waiting.metadata.name, patch=patch, namespace="default", subresource="status")

        async def is_complete() -> bool:
            found = await client.get(job.Job, "j", namespace="default")
            return any(each.type == "Complete" for each in found.status.conditions)

        async def no_claims() -> bool:
            return not (await client.list(Claim)).items

        await watched(client, job.Job, is_complete)
        await watched(client, Claim, no_claims)
        await client.delete(job.Job, "j", namespace="default", propagation="Foreground")

        async def no_pods() -> bool:
            return not (await client.list(pod.Pod)).items

        await watched(client, pod.Pod, no_pods)


async def test_a_namespace_goes_over_http() -> None:
    async with http_controllers() as client:
        await client.create(build_namespace("team").build())
        template = claim_template("t", namespace="team").request("gpu", device_class=builders.DRIVER).build()
        await client.create(template)
        await client.delete(namespace.Namespace, "team")

        async def is_gone() -> bool:
            try:
                await client.get(namespace.Namespace, "team")
            except errors.ObjectNotFoundError:
                return True
            return False

        await watched(client, namespace.Namespace, is_gone)
