"""Machines: the Node that an agent registers and the slices that its drivers publish; and the local machine as one."""

from __future__ import annotations

import os
import pathlib
import platform
import shutil
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from drachma import errors

BOOT_ID: Final = pathlib.Path("/proc/sys/kernel/random/boot_id")

_MEMORY: Final = pathlib.Path("/proc/meminfo")
_MACHINE_ID: Final = pathlib.Path("/etc/machine-id")
_MOST_PODS: Final = 110
_EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_ARCHITECTURES: Final = {"x86_64": "amd64", "aarch64": "arm64"}
"""Go's names of architectures that Python names otherwise."""


class Machine(msgspec.Struct, frozen=True, kw_only=True):
    """A machine: its Node as a document, and the slices that its drivers publish."""

    node: dict[str, Any]
    slices: tuple[dict[str, Any], ...] = ()
    remote_drivers: frozenset[str] = frozenset()
    """Drivers of devices that the machine reaches but that are not in it."""
    has_any_driver: bool = False
    """True if every driver counts as running on the machine, because its devices are not known."""
    lease_holder: str = ""
    """Holder of the node's lease, if it is not the node itself."""

    @property
    def name(self) -> str:
        return str(self.node["metadata"]["name"])

    @property
    def drivers(self) -> frozenset[str]:
        """All drivers that run on the machine."""
        return frozenset(str(each["spec"]["driver"]) for each in self.slices) | self.remote_drivers


def pretended(name: str) -> Machine:
    """Return the machine of a Node that another client created: nothing but the Node is known of it."""
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}
    return Machine(node=node, has_any_driver=True, lease_holder=f"{name}_pretended")


def parse_taints(text: str) -> tuple[dict[str, str], ...]:
    """Return the taints of a text such as ``key=value:NoSchedule,other:NoExecute``, as a kubelet reads it.

    Raises:
        errors.InvalidValueError: a taint has no key, or an effect that does not exist.
    """
    taints = []
    for part in filter(None, text.split(",")):
        name, _, effect = part.partition(":")
        key, _, value = name.partition("=")
        if not key or effect not in _EFFECTS:
            raise errors.InvalidValueError(f"taint {part!r}: expected KEY[=VALUE]:EFFECT with {', '.join(_EFFECTS)}")
        taints.append({"key": key, **({"value": value} if value else {}), "effect": effect})
    return tuple(taints)


def describe_local(
    name: str, *, root: pathlib.Path, boot_id_file: pathlib.Path = BOOT_ID, taints: Sequence[dict[str, str]] = ()
) -> Machine:
    """Return the machine that this process runs on, as a node of the given name; ``root`` is on the disk that pods use.

    The Node is created with the taints; those of a Node that exists stay as they are.

    Raises:
        errors.RefusedFileError: the boot id cannot be read.
    """
    try:
        boot_id = boot_id_file.read_text().strip()
    except OSError as error:
        raise errors.RefusedFileError(f"boot id {boot_id_file}: {error.strerror}") from None
    system = platform.uname()
    architecture = _ARCHITECTURES.get(system.machine, system.machine)
    resources = {
        "cpu": str(len(os.sched_getaffinity(0))),
        "memory": _memory(),
        "ephemeral-storage": str(shutil.disk_usage(root).total),
        "pods": str(_MOST_PODS),
    }
    labels = {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": architecture}
    info = {
        "architecture": architecture,
        "operatingSystem": "linux",
        "kernelVersion": system.release,
        "osImage": platform.freedesktop_os_release().get("PRETTY_NAME", system.system),
        "bootID": boot_id,
        "machineID": _MACHINE_ID.read_text().strip() if _MACHINE_ID.exists() else "",
        "systemUUID": "",
        "kubeProxyVersion": "",
    }
    status: dict[str, Any] = {
        "capacity": resources,
        "allocatable": resources,
        "nodeInfo": info,
        "addresses": [{"type": "Hostname", "address": name}],
    }
    metadata = {"name": name, "labels": labels}
    spec = {"spec": {"taints": list(taints)}} if taints else {}
    return Machine(node={"apiVersion": "v1", "kind": "Node", "metadata": metadata, **spec, "status": status})


def _memory() -> str:
    """Return all memory, in the unit of the kernel."""
    for line in _MEMORY.read_text().splitlines():
        if line.startswith("MemTotal:"):
            return f"{line.split()[1]}Ki"
    raise errors.RefusedFileError(f"memory {_MEMORY}: it has no MemTotal")
