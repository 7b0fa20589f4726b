"""A provider that makes the objects of nodes at once: for simulations, and where nodes are pretended."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Final

from drachma import errors
from drachma.api import codec, resourceslice
from drachma.api import node as nodes
from drachma.client import Client, patches, protocol
from drachma.simulate import nodegroup
from drachma.simulate.autoscaler.provider import ProviderError


class SimulatedProvider:
    """Creates Nodes and their slices from the template of their group, and deletes them."""

    keeps_names: Final = True

    def __init__(self, client: Client) -> None:
        self._client: Final = client

    async def grow(self, group: nodegroup.NodeGroup, names: Sequence[str]) -> None:
        """Makes all of them; a node comes after its slices, so that nobody sees it without its devices."""
        try:
            for name in names:
                node, *slices = group.make(name)
                for each in slices:
                    await self._client.create_document(type(each), codec.encode(each))
                document = codec.encode(node)
                await self._client.create_document(nodes.Node, document)
                status = patches.merge({"status": document.get("status", {})})
                await self._client.patch(nodes.Node, name, patch=status, subresource="status")
        except errors.RefusedError as error:
            raise ProviderError(str(error)) from error

    async def remove(self, group: nodegroup.NodeGroup, node: str) -> None:
        """Deletes a node and its slices; what is gone already is no matter."""
        try:
            selection = protocol.Selection(fields=f"spec.nodeName={node}")
            await self._client.delete_collection(resourceslice.ResourceSlice, selection)
            with contextlib.suppress(errors.ObjectNotFoundError):
                await self._client.delete(nodes.Node, node)
        except errors.RefusedError as error:
            raise ProviderError(str(error)) from error
