"""Preparation of the cluster: nodes, devices, and claims that are allocated on random nodes."""

from __future__ import annotations

import asyncio
import random
import uuid
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Final

from drachma import allocator, errors
from drachma.allocator import features as allocator_features
from drachma.allocator import selectors
from drachma.api import deviceclass, devicetaintrule, node, resourceclaim, resourceslice, scheme
from drachma.cli.benchmark import objects, plainpods, workloads
from drachma.client import Client, patches, target

CONCURRENCY: Final = 64
"""Concurrent requests during preparation and creation of pods."""

_PRIORITY_CLASSES: Final = target.metadata_of(
    "scheduling.k8s.io", "v1", plural="priorityclasses", kind="PriorityClass", namespaced=False
)
"""Target of a kind that components do not read."""


async def run_concurrently(calls: Iterable[Callable[[], Awaitable[object]]], *, limit: int = CONCURRENCY) -> None:
    """Make all calls, started in order, with a limit on concurrent ones."""
    remaining_calls = iter(calls)

    async def work() -> None:
        for call in remaining_calls:
            await call()

    async with asyncio.TaskGroup() as group:
        for _ in range(limit):
            group.create_task(work())


async def create(client: Client, document: objects.Document) -> Any:
    """Create an object through the API, and return its document."""
    if document["kind"] == _PRIORITY_CLASSES.kind:
        return await client.create_document(_PRIORITY_CLASSES, document)
    kind = scheme.find(document["apiVersion"], document["kind"])
    return await client.create_document(target.of(kind.model), document)


async def prepare(client: Client, workload: workloads.Workload, *, rng: random.Random) -> None:
    """Create everything but the measured pods."""
    for name in (objects.INIT, objects.MEASURED):
        await create(client, objects.namespace(name))
        await create(client, objects.claim_template(name, workload.claim_spec))
    for policy in workload.policies:
        await create(client, policy)
    nodes = [
        objects.node(number, plainpods.zone_labels(number, workload.zones), pods=workload.node_pods)
        for number in range(workload.nodes)
    ]
    slices = [each for number in range(workload.nodes) for each in workload.slices(number)]
    await run_concurrently(_creation(client, document) for document in (*nodes, *slices))
    await _create_groups(client, workload)
    if workload.pods_share_claims:
        await _create_shared_claims(client, workload)
    if workload.claims:
        await _fill(client, workload, rng=rng)


async def _create_groups(client: Client, workload: workloads.Workload) -> None:
    """Create the groups of a workload, with their devices and named claims."""
    is_generated = workload.generates_group_claims
    for number in range(workload.groups):
        await create(client, objects.group_slice(number))
        if not is_generated:
            claim = objects.claim(number, workload.claim_spec)
            claim["metadata"] |= {"name": f"test-claim-{number}", "namespace": objects.MEASURED}
            await create(client, claim)
        await create(client, objects.pod_group(number, is_generated=is_generated))


async def _create_shared_claims(client: Client, workload: workloads.Workload) -> None:
    """Create the claims that pods use by name."""
    claims = []
    for namespace, pods in ((objects.INIT, workload.early_pods), (objects.MEASURED, workload.pods)):
        for number in range(-(-pods // objects.PODS_PER_CLAIM)):
            claim = objects.claim(number, workload.claim_spec)
            claim["metadata"]["namespace"] = namespace
            claims.append(claim)
    await run_concurrently(_creation(client, claim) for claim in claims)


def _creation(client: Client, document: objects.Document) -> Callable[[], Awaitable[object]]:
    return lambda: create(client, document)


async def _fill(client: Client, workload: workloads.Workload, *, rng: random.Random) -> None:
    """Create claims without pods, each allocated on the first node in a random order on which it fits."""
    spec = workload.early_claim_spec or workload.claim_spec
    documents = [objects.claim(number, spec) for number in range(workload.claims)]
    await run_concurrently(_creation(client, document) for document in documents)
    claims = (await client.list(resourceclaim.ResourceClaim)).items
    nodes = [allocator.Node(each.metadata.name, each.metadata.labels) for each in (await client.list(node.Node)).items]
    device_allocator = await _allocator(client)

    allocations = [(claim, _allocate(device_allocator, claim, nodes, rng=rng)) for claim in claims]
    await run_concurrently(_status_write(client, claim, result) for claim, result in allocations)


def _status_write(
    client: Client, claim: resourceclaim.ResourceClaim, result: resourceclaim.AllocationResult
) -> Callable[[], Awaitable[object]]:
    return lambda: client.patch(
        resourceclaim.ResourceClaim,
        claim.metadata.name,
        namespace=claim.metadata.namespace,
        subresource="status",
        patch=patches.merge({"status": {"allocation": result}}),
    )


def _allocate(
    device_allocator: allocator.Allocator,
    claim: resourceclaim.ResourceClaim,
    nodes: list[allocator.Node],
    *,
    rng: random.Random,
) -> resourceclaim.AllocationResult:
    rng.shuffle(nodes)
    for candidate in nodes:
        outcome = device_allocator.allocate(candidate, (claim,))
        if isinstance(outcome, allocator.Allocated):
            device_allocator.allocated.put_allocation(claim.metadata, outcome.results[0])
            return outcome.results[0]
    raise errors.InvalidValueError(
        f"claim {claim.metadata.namespace}/{claim.metadata.name}: fits on no node, so the cluster cannot be filled"
    )


async def _allocator(client: Client) -> allocator.Allocator:
    features = allocator_features.ALL
    catalog, classes = allocator.Catalog(), allocator.Classes()
    for each in (await client.list(resourceslice.ResourceSlice)).items:
        catalog.put(each)
    for rule in (await client.list(devicetaintrule.DeviceTaintRule)).items:
        catalog.put_rule(rule)
    for entry in (await client.list(deviceclass.DeviceClass)).items:
        classes.put(entry)
    return allocator.Allocator(
        catalog,
        classes=classes,
        allocated=allocator.AllocatedState(consumable_capacity=True),
        compiler=selectors.SelectorCompiler(features),
        features=features,
        share_ids=lambda: str(uuid.uuid4()),
    )
