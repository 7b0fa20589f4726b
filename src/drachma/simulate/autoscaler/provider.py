"""Providers: those who can bring nodes and take them away. Written for a cloud, a rack, or a simulation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from drachma import errors
from drachma.simulate import nodegroup


class ProviderError(errors.DrachmaError):
    """A provider could not do what it was asked for; the text says why. The group is left alone for a while."""


class Provider(Protocol):
    """Where nodes come from."""

    @property
    def keeps_names(self) -> bool:
        """Whether nodes come under the names that were asked for."""

    async def grow(self, group: nodegroup.NodeGroup, names: Sequence[str]) -> None:
        """Asks for more nodes of a group, one a name; returns once that is under way. Raises ProviderError."""

    async def remove(self, group: nodegroup.NodeGroup, node: str) -> None:
        """Takes a node away on which nothing runs any more. Raises ProviderError."""
