"""Pods of device drivers: they register with the kubelet through its plugin directories."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from drachma.api.pod import Volume

_DIRECTORIES: Final = ("/var/lib/kubelet/plugins/", "/var/lib/kubelet/plugins_registry/")


def is_driver(volumes: Iterable[Volume]) -> bool:
    """Return True if a pod with these volumes sees a plugin directory of the kubelet, as every driver does."""
    paths = [each.host_path.path for each in volumes if each.host_path is not None]
    return any(f"{path.rstrip('/')}/".startswith(_DIRECTORIES) for path in paths)
