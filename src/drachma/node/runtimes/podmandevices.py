"""What podman is told about CDI devices.

Those of ``/etc/cdi`` and ``/var/run/cdi`` it knows by their names. The versions that Debian has look nowhere else: what
devices of other directories change in a container is said in podman's own words, as far as it has any.
"""

from __future__ import annotations

import pathlib
from collections.abc import Iterator, Sequence

from drachma import errors
from drachma.node.runtimes import podmanmounts
from drachma.nodewire.cdi import registry, spec


def words(devices: Sequence[str], directories: Sequence[pathlib.Path]) -> list[str]:
    """The options that give a container these devices.

    Raises:
        errors.InvalidValueError: nobody knows a device, or it needs what podman has no option for.
    """
    own = registry.read().devices
    others = [each for each in devices if each not in own]
    options = [word for each in devices if each in own for word in ("--device", each)]
    return [*options, *of_edits(registry.read(directories).container_edits(others))] if others else options


def of_edits(edits: spec.ContainerEdits) -> list[str]:
    """The options that make these edits.

    Raises:
        errors.InvalidValueError: there is none for one of them.
    """
    needs = [f"hook {hook.hook_name} ({hook.path})" for hook in edits.hooks]
    needs += [f"network device {each.host_interface_name}" for each in edits.net_devices]
    needs += ["intelRdt"] if edits.intel_rdt is not None else []
    if needs:
        raise errors.InvalidValueError(f"needs {', '.join(needs)}, which podman does in /etc/cdi and /var/run/cdi only")
    options = [word for variable in edits.env for word in ("--env", variable)]
    options += [word for node in edits.device_nodes for word in _node(node)]
    for mount in edits.mounts:
        options += podmanmounts.words(mount.host_path, mount.container_path, _options(mount))
    return [*options, *(word for group in edits.additional_gids for word in ("--group-add", str(group)))]


def _node(node: spec.DeviceNode) -> Iterator[str]:
    source = node.host_path or node.path
    for path in (source, node.path):
        podmanmounts.check(path)
    yield "--device"
    yield f"{source}:{node.path}:{node.permissions or 'rwm'}"


def _options(mount: spec.Mount) -> str:
    """Those of a mount; that it is one is the option's own meaning."""
    return ",".join(each for each in mount.options if each not in ("bind", "rbind"))
