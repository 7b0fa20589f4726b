"""The machine that an agent runs on, as its Node says it: what it has, and which boot this is."""

from __future__ import annotations

import os
import pathlib
import platform
import shutil
from typing import Any, Final

import drachma
from drachma import errors
from drachma.node.hardware import Machine

BOOT_ID: Final = pathlib.Path("/proc/sys/kernel/random/boot_id")

_MEMORY: Final = pathlib.Path("/proc/meminfo")
_MACHINE_ID: Final = pathlib.Path("/etc/machine-id")
_MOST_PODS: Final = 110
_ARCHITECTURES: Final = {"x86_64": "amd64", "aarch64": "arm64"}
"""Go's names of machines, where they are other ones."""


def describe(name: str, *, root: pathlib.Path, boot_id_file: pathlib.Path = BOOT_ID) -> Machine:
    """This machine as a node of a name; ``root`` is on the disk that pods use.

    Raises:
        errors.RefusedFileError: it cannot be read which boot this is.
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
        "kubeletVersion": f"drachma-{drachma.__version__}",
        "kubeProxyVersion": "",
    }
    status: dict[str, Any] = {
        "capacity": resources,
        "allocatable": resources,
        "nodeInfo": info,
        "addresses": [{"type": "Hostname", "address": name}],
    }
    metadata = {"name": name, "labels": labels}
    return Machine(node={"apiVersion": "v1", "kind": "Node", "metadata": metadata, "status": status})


def _memory() -> str:
    """All memory, in the unit that the kernel counts in."""
    for line in _MEMORY.read_text().splitlines():
        if line.startswith("MemTotal:"):
            return f"{line.split()[1]}Ki"
    raise errors.RefusedFileError(f"memory {_MEMORY}: it does not say MemTotal")
