"""The scheduler on an API server over HTTP: the same code on the other client."""

import asyncio

from drachma.api import pod, resourceclaim
from drachma.client import protocol
from drachma.runtime import Informers, Surroundings
from drachma.scheduler.scheduler import Scheduler
from drachma.testing import claim, device_class, node, resource_slice
from drachma.testing import pod as a_pod
from tests import patience
from tests.scenarios import clusters, schedulers


async def test_pods_are_bound_over_http() -> None:
    async with clusters.http_cluster() as cluster, asyncio.timeout(patience.SECONDS):
        client = cluster.client
        for name in ("n1", "n2"):
            await client.create(node(name).build())
            devices = [f"gpu-{number}" for number in range(3)]
            made = resource_slice(name, driver="gpu.example.com").on_node(name).devices(*devices)
            await client.create(made.build())
        await client.create(device_class("gpu", 'device.driver == "gpu.example.com"').build())
        async with Informers(client) as shared:
            scheduler = Scheduler(Surroundings(client, shared_informers=shared))
            running = asyncio.create_task(scheduler.run())
            start = (await client.list(pod.Pod)).resource_version
            for number in range(6):
                await client.create(claim(f"c{number}").request("gpu", device_class="gpu").build())
                waiting = a_pod(f"p{number}").container("c", claims=("x",)).claim("x", claim=f"c{number}")
                await client.create(schedulers.completed(waiting.build()))
            bound: set[str] = set()
            async with client.watch(pod.Pod, protocol.Selection("default"), resource_version=start) as watch:
                while len(bound) < 6:
                    for event in await watch.batch():
                        if event.object.spec.node_name:
                            bound.add(event.object.metadata.name)
            held = [
                (result.pool, result.device)
                for each in (await client.list(resourceclaim.ResourceClaim)).items
                if each.status.allocation is not None
                for result in each.status.allocation.devices.results
            ]
            assert len(set(held)) == 6
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
