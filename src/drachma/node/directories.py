"""Directories that an agent shares with its drivers: the kubelet's, below one root or each at a given path."""

from __future__ import annotations

import pathlib
from typing import Final

import msgspec

_MODE: Final = 0o750


class Directories(msgspec.Struct, frozen=True, kw_only=True):
    """Directories of one agent."""

    root: pathlib.Path
    """Directory of the agent's own files, such as checkpoints."""
    registry: pathlib.Path
    """Directory of the sockets by which drivers register."""
    plugins: pathlib.Path
    """Directory of the directories of drivers."""

    @classmethod
    def below(
        cls, root: pathlib.Path, *, registry: pathlib.Path | None = None, plugins: pathlib.Path | None = None
    ) -> Directories:
        """Return the directories below a root, with the kubelet's names by default."""
        return cls(root=root, registry=registry or root / "plugins_registry", plugins=plugins or root / "plugins")

    @property
    def pod_resources(self) -> pathlib.Path:
        """Path of the pod resources socket."""
        return self.root / "pod-resources" / "kubelet.sock"

    def make(self) -> None:
        """Make the missing directories."""
        for each in (self.root, self.registry, self.plugins, self.pod_resources.parent):
            each.mkdir(mode=_MODE, parents=True, exist_ok=True)
