"""A provider whose nodes are simulated machines of this process: they have an agent each, drivers, and run pods."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence
from typing import Final

from drachma import errors
from drachma.api import codec
from drachma.api import node as nodes
from drachma.client import Client
from drachma.node import agent, hardware
from drachma.simulate import nodegroup
from drachma.simulate.autoscaler.provider import ProviderError
from drachma.simulate.autoscaler.simulatedprovider import SimulatedProvider


class MachineProvider:
    """Starts machines from the template of their group, and switches them off."""

    keeps_names: Final = True

    def __init__(self, agents: agent.Agents, client: Client) -> None:
        self._agents: Final = agents
        self._client: Final = client
        self._objects: Final = SimulatedProvider(client)

    async def grow(self, group: nodegroup.NodeGroup, names: Sequence[str]) -> None:
        """Starts a machine for each name; their drivers publish what they have soon after."""
        try:
            for name in names:
                await self._agents.start(_machine(group, name))
        except (errors.RefusedError, errors.InvalidValueError) as error:
            raise ProviderError(str(error)) from error

    async def remove(self, group: nodegroup.NodeGroup, node: str) -> None:
        """Switches a machine off, and has its node and slices deleted."""
        await self._agents.stop(node)
        await self._objects.remove(group, node)

    async def resume(self, groups: Iterable[nodegroup.NodeGroup]) -> None:
        """Starts the machines of nodes that are there from before this process, as far as a group has them."""
        by_name = {group.name: group for group in groups}
        for member in (await self._client.list(nodes.Node)).items:
            group = by_name.get(member.metadata.labels.get(nodegroup.LABEL, ""))
            if group is not None:
                # One that runs already needs nothing.
                with contextlib.suppress(errors.InvalidValueError):
                    await self._agents.start(_machine(group, str(member.metadata.name)))


def _machine(group: nodegroup.NodeGroup, name: str) -> hardware.Machine:
    node, *slices = map(codec.encode, group.make(name))
    return hardware.Machine(node=node, slices=tuple(slices))
