"""The writes of a scheduler without its decisions, as a contender of :mod:`bench.schedulers`.

It gives the devices of the nodes out in order, and writes for each pod what drachma's scheduler writes: finalizer,
allocation and reservation of the claim, binding, event. Its pods a second are the limit of API server, load and client
on this machine, which no scheduler in Python can exceed with these writes.
"""

from __future__ import annotations

import asyncio
import itertools
import pathlib
import sys
from collections.abc import Iterator

import uvloop

from bench import schedulerload
from drachma.api import node, pod, resourceclaim, resourceslice
from drachma.claims import wellknown
from drachma.client import http, patches
from drachma.runtime import clock, events

_WRITERS = 64


async def main() -> None:
    async with http.HttpClient(http.find_access(pathlib.Path(sys.argv[1])), clock=clock.SystemClock()) as client:
        slices = (await client.list(resourceslice.ResourceSlice)).items
        names = [each.metadata.name for each in (await client.list(node.Node)).items]
        devices = itertools.cycle((part, each.name) for part in slices for each in part.spec.devices)
        await _bind_all(client, devices, itertools.cycle(names))


async def _bind_all(
    client: http.HttpClient, devices: Iterator[tuple[resourceslice.ResourceSlice, str]], names: Iterator[str]
) -> None:
    waiting: asyncio.Queue[pod.Pod] = asyncio.Queue()
    recorder = events.Recorder(client, component="limit")

    async def write() -> None:
        while True:
            subject = await waiting.get()
            if subject.spec.resource_claims:
                part, device = next(devices)
                place = part.spec.node_name or ""
                await _allocate(client, subject, part, device)
            else:
                place = next(names)
            await client.bind(subject, node=place)
            label = f"{subject.metadata.namespace}/{subject.metadata.name}"
            message = f"Successfully assigned {label} to {place}"
            await client.create(recorder.event(subject, type=events.NORMAL, reason="Scheduled", message=message))

    async with asyncio.TaskGroup() as group:
        for _ in range(_WRITERS):
            group.create_task(write())
        listed = await client.list(pod.Pod, schedulerload.SELECTION)
        seen = {each.metadata.uid for each in listed.items}
        for each in listed.items:
            if not each.spec.node_name:
                waiting.put_nowait(each)
        version = listed.resource_version
        while True:
            async with client.watch(pod.Pod, schedulerload.SELECTION, resource_version=version) as stream:
                while batch := await stream.batch():
                    for change in batch:
                        version = change.object.metadata.resource_version
                        if change.object.metadata.uid not in seen:
                            seen.add(change.object.metadata.uid)
                            waiting.put_nowait(change.object)


async def _allocate(client: http.HttpClient, subject: pod.Pod, part: resourceslice.ResourceSlice, device: str) -> None:
    name, namespace = subject.spec.resource_claims[0].resource_claim_name or "", subject.metadata.namespace
    kind = resourceclaim.ResourceClaim
    finalizer = patches.merge({"metadata": {"finalizers": [wellknown.CLAIM_FINALIZER]}})
    stored_claim = await client.patch(kind, name, namespace=namespace, patch=finalizer)
    request = stored_claim.spec.devices.requests[0].name
    result = {"request": request, "driver": part.spec.driver, "pool": part.spec.pool.name, "device": device}
    field = {"key": "metadata.name", "operator": "In", "values": [part.spec.node_name]}
    selector = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    consumer = {"resource": "pods", "name": subject.metadata.name, "uid": subject.metadata.uid}
    status = {"allocation": {"devices": {"results": [result]}, "nodeSelector": selector}, "reservedFor": [consumer]}
    await client.patch(kind, name, namespace=namespace, subresource="status", patch=patches.merge({"status": status}))


if __name__ == "__main__":
    uvloop.run(main())
