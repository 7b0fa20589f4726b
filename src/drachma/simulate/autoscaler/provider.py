"""Providers of nodes: for simulations, or any other source by a command."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import tempfile
from collections.abc import Sequence
from typing import IO, Final, Protocol

from drachma import errors
from drachma.api import codec, resourceslice
from drachma.api import node as nodes
from drachma.client import Client, patches, protocol
from drachma.simulate import nodegroup


class ProviderError(errors.DrachmaError):
    """Error of a provider, with the reason. The group is paused."""


class Provider(Protocol):
    """Source of nodes."""

    @property
    def keeps_names(self) -> bool:
        """True if nodes get the requested names."""

    async def grow(self, group: nodegroup.NodeGroup, names: Sequence[str]) -> None:
        """Request nodes of a group, one for each name. Return once the request is accepted. Raises ProviderError."""

    async def remove(self, group: nodegroup.NodeGroup, node: str) -> None:
        """Remove an empty node. Raises ProviderError."""


_SCHEME: Final = "drachma://"
"""Beginning of the ``providerID`` of a simulated node, by which cluster-autoscaler knows it."""


class SimulatedProvider:
    """Creates Nodes and their slices from the template of their group, and deletes them."""

    keeps_names: Final = True

    def __init__(self, client: Client) -> None:
        self._client: Final = client

    async def grow(self, group: nodegroup.NodeGroup, names: Sequence[str]) -> None:
        """Create the nodes. Slices come before their node, so that no component sees the node without its devices."""
        try:
            for name in names:
                node, *slices = group.make(name)
                for each in slices:
                    await self._client.create_document(type(each), codec.encode(each))
                document = codec.encode(node)
                document["spec"] = {"providerID": f"{_SCHEME}{name}", **document.get("spec", {})}
                await self._client.create_document(nodes.Node, document)
                status = patches.merge({"status": document.get("status", {})})
                await self._client.patch(nodes.Node, name, patch=status, subresource="status")
        except errors.RefusedError as error:
            raise ProviderError(str(error)) from error

    async def remove(self, group: nodegroup.NodeGroup, node: str) -> None:
        """Delete a node and its slices, if they exist."""
        try:
            selection = protocol.Selection(fields=f"spec.nodeName={node}")
            await self._client.delete_collection(resourceslice.ResourceSlice, selection)
            with contextlib.suppress(errors.ObjectNotFoundError):
                await self._client.delete(nodes.Node, node)
        except errors.RefusedError as error:
            raise ProviderError(str(error)) from error


_MOST_BYTES: Final = 2000
"""Limit for the error output of a command."""


class CommandProvider:
    """Provider that runs a command, one call at a time."""

    keeps_names: Final = False

    def __init__(self, command: Sequence[str], *, seconds: float = 300.0) -> None:
        self._command: Final = tuple(command)
        self._seconds: Final = seconds

    async def grow(self, group: nodegroup.NodeGroup, names: Sequence[str]) -> None:
        """Request as many nodes as there are names. The command chooses the names."""
        await self._run(group, "grow", group.name, str(len(names)))

    async def remove(self, group: nodegroup.NodeGroup, node: str) -> None:
        """Remove a node."""
        await self._run(group, "remove", group.name, node)

    async def _run(self, group: nodegroup.NodeGroup, *arguments: str) -> None:
        title = " ".join((*self._command, *arguments))
        environment = {
            **os.environ,
            "DRACHMA_NODE_GROUP": group.name,
            "DRACHMA_NODE_PRICE": f"{group.price:g}",
            "DRACHMA_NODE_LABELS": json.dumps(dict(group.labels)),
        }
        # A pipe would stay open for as long as any process that the command leaves behind.
        with tempfile.TemporaryFile() as output:
            try:
                process = await asyncio.create_subprocess_exec(
                    *self._command,
                    *arguments,
                    env=environment,
                    stdin=asyncio.subprocess.DEVNULL,
                    stdout=asyncio.subprocess.DEVNULL,
                    stderr=output,
                )
            except OSError as error:
                raise ProviderError(f"{title}: {error.strerror or error}") from error
            try:
                async with asyncio.timeout(self._seconds):
                    await process.wait()
            except TimeoutError:
                raise ProviderError(f"{title}: has not ended after {self._seconds:g} seconds") from None
            finally:
                if process.returncode is None:
                    process.kill()
                    await process.wait()
            if process.returncode:
                text = _last_bytes(output).decode(errors="replace").strip()
                raise ProviderError(f"{title}: ended with {process.returncode}: {text}")


def _last_bytes(output: IO[bytes]) -> bytes:
    size = output.seek(0, os.SEEK_END)
    output.seek(max(size - _MOST_BYTES, 0))
    return output.read(_MOST_BYTES)
