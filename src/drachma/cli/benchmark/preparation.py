"""The cluster before the measurement: nodes, devices, and claims that are allocated already, on nodes drawn by lot."""

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
from drachma.cli.benchmark import objects, workloads
from drachma.client import Client, patches, target

AT_ONCE: Final = 64
"""Requests under way at once while the cluster is made and pods are created."""


async def side_by_side(acts: Iterable[Callable[[], Awaitable[object]]], *, at_once: int = AT_ONCE) -> None:
    """Does all of it, some at a time, begun in order."""
    waiting = iter(acts)

    async def work() -> None:
        for act in waiting:
            await act()

    async with asyncio.TaskGroup() as group:
        for _ in range(at_once):
            group.create_task(work())


async def create(client: Client, document: objects.Document) -> Any:
    """Creates an object through the API."""
    kind = scheme.find(document["apiVersion"], document["kind"])
    return await client.create_document(target.of(kind.model), document)


async def prepare(client: Client, workload: workloads.Workload, *, chance: random.Random) -> None:
    """Everything but pods."""
    for name in (objects.INIT, objects.MEASURED):
        await create(client, objects.namespace(name))
        await create(client, objects.claim_template(name, workload.wanted))
    for policy in workload.policies:
        await create(client, policy)
    nodes = [objects.node(number) for number in range(workload.nodes)]
    slices = [each for number in range(workload.nodes) for each in workload.slices(number)]
    await side_by_side(_creating(client, document) for document in (*nodes, *slices))
    if workload.claims:
        await _fill(client, workload, chance=chance)


def _creating(client: Client, document: objects.Document) -> Callable[[], Awaitable[object]]:
    return lambda: create(client, document)


async def _fill(client: Client, workload: workloads.Workload, *, chance: random.Random) -> None:
    """Claims that nobody uses, allocated one after the other on the first node in a random order that has room."""
    wanted = workload.early_wanted or workload.wanted
    documents = [objects.claim(number, wanted) for number in range(workload.claims)]
    await side_by_side(_creating(client, document) for document in documents)
    claims = (await client.list(resourceclaim.ResourceClaim)).items
    places = [allocator.Node(each.metadata.name, each.metadata.labels) for each in (await client.list(node.Node)).items]
    chooser = await _allocator(client)

    chosen = [(claim, _choose(chooser, claim, places, chance=chance)) for claim in claims]
    await side_by_side(_allocating(client, claim, result) for claim, result in chosen)


def _allocating(
    client: Client, claim: resourceclaim.ResourceClaim, result: resourceclaim.AllocationResult
) -> Callable[[], Awaitable[object]]:
    return lambda: client.patch(
        resourceclaim.ResourceClaim,
        claim.metadata.name,
        namespace=claim.metadata.namespace,
        subresource="status",
        patch=patches.merge({"status": {"allocation": result}}),
    )


def _choose(
    chooser: allocator.Allocator,
    claim: resourceclaim.ResourceClaim,
    places: list[allocator.Node],
    *,
    chance: random.Random,
) -> resourceclaim.AllocationResult:
    chance.shuffle(places)
    for place in places:
        outcome = chooser.allocate(place, (claim,))
        if isinstance(outcome, allocator.Allocated):
            chooser.allocated.put_allocation(claim.metadata, outcome.results[0])
            return outcome.results[0]
    raise errors.InvalidValueError(
        f"claim {claim.metadata.namespace}/{claim.metadata.name}: no node has room, so the cluster cannot be filled"
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
