"""A driver's instance on a control plane in process, and calls to it as a node agent makes them."""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

from drachma import driver
from drachma.api import gates, node, resourceclaim, resourceslice
from drachma.client import Client
from drachma.driver.instance import NodeInstance, Place
from drachma.nodewire.rpc import services
from drachma.process import embedded
from drachma.runtime import Surroundings
from drachma.store import memory
from tests import patience

Line = dict[str, Any]
CALL_SECONDS = patience.SECONDS
WAIT_SECONDS = patience.SECONDS


class Machine:
    """A node's directories; names are short, since paths of sockets are limited."""

    def __init__(self, folder: Path, client: Client, name: str = "worker") -> None:
        self.folder = folder
        self.client = client
        self.name = name

    def place(self, of: type[driver.Driver], *, pod_uid: str = "") -> Place:
        return Place(
            node=self.name,
            plugins=self.folder / "p" / of.name,
            registry=self.folder / "r",
            cdi=self.folder / "c",
            pod_uid=pod_uid,
        )

    @contextlib.asynccontextmanager
    async def running(self, made: driver.Driver, *, pod_uid: str = "") -> AsyncIterator[NodeInstance]:
        """An instance, from the moment at which its slices are visible until it has stopped."""
        around = Surroundings(self.client)
        instance = NodeInstance(made, around, place=self.place(type(made), pod_uid=pod_uid))
        async with around.informers:
            task = asyncio.create_task(instance.run())
            try:
                waiting = asyncio.create_task(instance.wait_visible())
                await asyncio.wait({task, waiting}, return_when=asyncio.FIRST_COMPLETED, timeout=WAIT_SECONDS)
                waiting.cancel()
                if task.done():
                    await task
                assert instance.is_visible
                yield instance
            finally:
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await task

    async def call(
        self, of: type[driver.Driver], method: str, *claims: Line, pod_uid: str = "", version: int = 0
    ) -> Line:
        """By the uid of each claim what the driver answers."""
        service = services.DRA[version]
        path = self.place(of, pod_uid=pod_uid).endpoints.dra
        async with services.channel(path) as channel:
            request = service.method(method).request(claims=claims)
            response = await services.call(channel, service, method, request, timeout=CALL_SECONDS)
        return {uid: response.claims[uid] for uid in response.claims}

    async def slices(self) -> Sequence[resourceslice.ResourceSlice]:
        return (await self.client.list(resourceslice.ResourceSlice)).items


@contextlib.asynccontextmanager
async def machine(name: str = "worker", *, features: gates.Gates = gates.ALL) -> AsyncIterator[Machine]:
    """A machine, and an API server that has its Node, and these features."""
    with tempfile.TemporaryDirectory(prefix="d") as folder:
        async with embedded.server(memory.MemoryStore(), gates=features) as server:
            await server.client.create_document(
                node.Node, {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}
            )
            yield Machine(Path(folder), server.client, name)


def reference(claim: Any) -> Line:
    metadata = claim.metadata
    return {"namespace": metadata.namespace, "name": metadata.name, "uid": metadata.uid}


async def allocated(
    client: Client, name: str, *, of: str, devices: Sequence[str], pool: str = "worker", **more: Any
) -> resourceclaim.ResourceClaim:
    """A claim that was given devices of a driver."""
    claim = await client.create_document(
        resourceclaim.ResourceClaim,
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaim",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": of}}]}},
        },
    )
    claim["status"] = {
        "allocation": {
            "devices": {
                "results": [{"request": "r", "driver": of, "pool": pool, "device": device} for device in devices],
                **more,
            }
        }
    }
    await client.update_document(resourceclaim.ResourceClaim, claim, subresource="status")
    return await client.get(resourceclaim.ResourceClaim, name, namespace="default")
