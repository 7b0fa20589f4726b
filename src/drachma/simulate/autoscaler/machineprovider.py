"""Provider whose nodes are simulated machines of this process, each with an agent and drivers, that run pods."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence
from typing import Final

from drachma import errors
from drachma.api import codec
from drachma.api import node as nodes
from drachma.client import Client
from drachma.node.agents import Agents
from drachma.node.registration.machine import Machine
from drachma.simulate import nodegroup
from drachma.simulate.autoscaler import provider


class MachineProvider:
    """Starts machines from the template of their group, and stops them."""

    keeps_names: Final = True

    def __init__(self, agents: Agents, client: Client) -> None:
        self._agents: Final = agents
        self._client: Final = client
        self._objects: Final = provider.SimulatedProvider(client)

    async def grow(self, group: nodegroup.NodeGroup, names: Sequence[str]) -> None:
        """Start a machine for each name. Their drivers publish slices soon after."""
        try:
            for name in names:
                await self._agents.start(_machine(group, name))
        except (errors.RefusedError, errors.InvalidValueError) as error:
            raise provider.ProviderError(str(error)) from error

    async def remove(self, group: nodegroup.NodeGroup, node: str) -> None:
        """Stop a machine, and delete its node and slices."""
        await self._agents.stop(node)
        await self._objects.remove(group, node)

    async def resume(self, groups: Iterable[nodegroup.NodeGroup]) -> None:
        """Start the machines of nodes of these groups that exist from before this process."""
        by_name = {group.name: group for group in groups}
        for member in (await self._client.list(nodes.Node)).items:
            group = by_name.get(member.metadata.labels.get(nodegroup.LABEL, ""))
            if group is not None:
                # A machine that runs needs nothing.
                with contextlib.suppress(errors.InvalidValueError):
                    await self._agents.start(_machine(group, str(member.metadata.name)))


def _machine(group: nodegroup.NodeGroup, name: str) -> Machine:
    node, *slices = map(codec.encode, group.make(name))
    return Machine(node=node, slices=tuple(slices))
