"""Where an agent and its drivers meet: the kubelet's directories, below one root or each where it is said to be."""

from __future__ import annotations

import pathlib
from typing import Final

import msgspec

_MODE: Final = 0o750


class Directories(msgspec.Struct, frozen=True, kw_only=True):
    """The places of one agent."""

    root: pathlib.Path
    """What the agent keeps for itself: checkpoints."""
    registry: pathlib.Path
    """Where drivers put the sockets by which they register."""
    plugins: pathlib.Path
    """Where drivers have directories of their own."""

    @classmethod
    def below(
        cls, root: pathlib.Path, *, registry: pathlib.Path | None = None, plugins: pathlib.Path | None = None
    ) -> Directories:
        """Those of a root, by the kubelet's names where no other is given."""
        return cls(root=root, registry=registry or root / "plugins_registry", plugins=plugins or root / "plugins")

    @property
    def pod_resources(self) -> pathlib.Path:
        """The socket on which the agent tells which devices pods have."""
        return self.root / "pod-resources" / "kubelet.sock"

    def make(self) -> None:
        """Makes what is not there yet."""
        for each in (self.root, self.registry, self.plugins, self.pod_resources.parent):
            each.mkdir(mode=_MODE, parents=True, exist_ok=True)
