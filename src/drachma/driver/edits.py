"""CDI edits of a container for a device (variables, device nodes, mounts), and metadata that the container can read."""

from collections.abc import Iterable, Mapping
from typing import TypeAlias

import msgspec

from drachma.nodewire.cdi import spec

Edits: TypeAlias = spec.ContainerEdits


def edits(
    *,
    env: Mapping[str, str] | None = None,
    device_nodes: Iterable[str | spec.DeviceNode] = (),
    mounts: Mapping[str, str] | Iterable[spec.Mount] = (),
) -> Edits:
    """Return edits: variables by name, device nodes by path, read-only mounts from host paths to container paths.

    ``drachma.nodewire.cdi.spec`` has all of CDI. Edits can be added with ``+``.
    """
    bound = (
        [
            spec.Mount(host_path=host, container_path=container, options=("ro", "nosuid", "nodev", "bind"))
            for host, container in mounts.items()
        ]
        if isinstance(mounts, Mapping)
        else mounts
    )
    return Edits(
        env=tuple(f"{name}={value}" for name, value in (env or {}).items()),
        device_nodes=tuple(spec.DeviceNode(path=each) if isinstance(each, str) else each for each in device_nodes),
        mounts=tuple(bound),
    )


class Prepared(msgspec.Struct, frozen=True, kw_only=True):
    """Prepared device with metadata for containers, in addition to its edits."""

    edits: Edits = spec.NO_EDITS
    attributes: Mapping[str, bool | int | str] = {}
    """Attributes in the container's metadata file."""
    network_data: Mapping[str, object] | None = None
    """Of a network device ``interfaceName``, ``ips`` and ``hardwareAddress``."""


class DeviceMetadata(msgspec.Struct, frozen=True, kw_only=True):
    """Metadata about a device that is known only after it was prepared."""

    pool: str
    device: str
    attributes: Mapping[str, bool | int | str] = {}
    network_data: Mapping[str, object] | None = None
