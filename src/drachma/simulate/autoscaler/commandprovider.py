"""A provider that runs a command for every change, so that any cloud's own tool can be used.

The command is called as ``COMMAND grow GROUP COUNT`` and ``COMMAND remove GROUP NODE``. It has the group's name, price
and labels in its environment, too. It is done when it has asked for the change; nodes register themselves, with the
label ``drachma.dev/node-group`` or the labels of their group. An exit code other than 0, or no end in time, is a
failure, and what it wrote to standard error says why.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Sequence
from typing import Final

from drachma.simulate import nodegroup
from drachma.simulate.autoscaler.provider import ProviderError

_MOST_BYTES: Final = 2000
"""Of what a command says about its failure."""


class CommandProvider:
    """Runs the command, one call at a time."""

    keeps_names: Final = False

    def __init__(self, command: Sequence[str], *, seconds: float = 300.0) -> None:
        self._command: Final = tuple(command)
        self._seconds: Final = seconds

    async def grow(self, group: nodegroup.NodeGroup, names: Sequence[str]) -> None:
        """Asks for as many nodes as there are names; what they will be called is up to whoever brings them."""
        await self._run(group, "grow", group.name, str(len(names)))

    async def remove(self, group: nodegroup.NodeGroup, node: str) -> None:
        """Takes a node away."""
        await self._run(group, "remove", group.name, node)

    async def _run(self, group: nodegroup.NodeGroup, *arguments: str) -> None:
        title = " ".join((*self._command, *arguments))
        environment = {
            **os.environ,
            "DRACHMA_NODE_GROUP": group.name,
            "DRACHMA_NODE_PRICE": f"{group.price:g}",
            "DRACHMA_NODE_LABELS": json.dumps(dict(group.labels)),
        }
        try:
            process = await asyncio.create_subprocess_exec(
                *self._command,
                *arguments,
                env=environment,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.PIPE,
            )
        except OSError as error:
            raise ProviderError(f"{title}: {error.strerror or error}") from error
        try:
            async with asyncio.timeout(self._seconds):
                _, said = await process.communicate()
        except TimeoutError:
            raise ProviderError(f"{title}: has not ended after {self._seconds:g} seconds") from None
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        if process.returncode:
            text = said[-_MOST_BYTES:].decode(errors="replace").strip()
            raise ProviderError(f"{title}: ended with {process.returncode}: {text}")
