"""Machines that are only imagined, by profile: what a node has, and what the drivers on it publish."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import msgspec

from drachma import errors

GPU_DRIVER: Final = "gpu.simulation.drachma.dev"
NIC_DRIVER: Final = "nic.simulation.drachma.dev"

_GPUS: Final = 8
_NICS: Final = 4
_GPUS_PER_ROOT: Final = 2


class Machine(msgspec.Struct, frozen=True, kw_only=True):
    """A machine: its Node as a document, and the slices that its drivers publish."""

    node: dict[str, Any]
    slices: tuple[dict[str, Any], ...] = ()

    @property
    def name(self) -> str:
        return str(self.node["metadata"]["name"])

    @property
    def drivers(self) -> frozenset[str]:
        return frozenset(str(each["spec"]["driver"]) for each in self.slices)


class Hardware(msgspec.Struct, frozen=True):
    """Machines, and the device classes that go with what they have."""

    machines: tuple[Machine, ...]
    classes: tuple[dict[str, Any], ...]


def build(profile: str, count: int) -> Hardware:
    """So many machines of a profile, ``node-0`` and so on.

    Raises:
        errors.InvalidValueError: there is no such profile.
    """
    if profile not in PROFILES:
        raise errors.InvalidValueError(f"profile {profile!r}: there are {', '.join(sorted(PROFILES))}")
    machines = tuple(PROFILES[profile](f"node-{number}") for number in range(count))
    return Hardware(machines, _classes(machines))


def _classes(machines: Iterable[Machine]) -> tuple[dict[str, Any], ...]:
    drivers = sorted({driver for machine in machines for driver in machine.drivers})
    return tuple(
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "DeviceClass",
            "metadata": {"name": driver},
            "spec": {"selectors": [{"cel": {"expression": f'device.driver == "{driver}"'}}]},
        }
        for driver in drivers
    )


def _node(name: str, *, cpu: int, memory: str, labels: Mapping[str, str] | None = None) -> dict[str, Any]:
    resources = {"cpu": str(cpu), "memory": memory, "ephemeral-storage": "100Gi", "pods": "110"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {
                "kubernetes.io/hostname": name,
                "kubernetes.io/os": "linux",
                "kubernetes.io/arch": "amd64",
                **(labels or {}),
            },
        },
        "status": {"capacity": resources, "allocatable": resources},
    }


def _slice(name: str, driver: str, devices: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": f"{name}-{driver}"},
        "spec": {
            "driver": driver,
            "nodeName": name,
            "pool": {"name": name, "generation": 1, "resourceSliceCount": 1},
            "devices": devices,
        },
    }


def _place(root: int) -> dict[str, Any]:
    return {
        "resource.kubernetes.io/pcieRoot": {"string": f"pci0000:{root:02x}"},
        "numaNode": {"int": root // 2},
    }


def _gpu(number: int) -> dict[str, Any]:
    return {
        "name": f"gpu-{number}",
        "attributes": {
            "type": {"string": "gpu"},
            "model": {"string": "simulated-80"},
            "index": {"int": number},
            **_place(number // _GPUS_PER_ROOT),
        },
        "capacity": {"memory": {"value": "80Gi"}},
    }


def _nic(number: int) -> dict[str, Any]:
    return {
        "name": f"nic-{number}",
        "attributes": {"type": {"string": "nic"}, "index": {"int": number}, **_place(number)},
        "allowMultipleAllocations": True,
        "capacity": {
            "bandwidth": {
                "value": "100G",
                "requestPolicy": {"default": "1G", "validRange": {"min": "1G", "max": "100G", "step": "1G"}},
            }
        },
    }


def _cpu_server(name: str) -> Machine:
    return Machine(node=_node(name, cpu=32, memory="128Gi"))


def _gpu_server(name: str) -> Machine:
    return Machine(
        node=_node(name, cpu=96, memory="1Ti"),
        slices=(
            _slice(name, GPU_DRIVER, [_gpu(number) for number in range(_GPUS)]),
            _slice(name, NIC_DRIVER, [_nic(number) for number in range(_NICS)]),
        ),
    )


PROFILES: Final[Mapping[str, Callable[[str], Machine]]] = {"cpu": _cpu_server, "gpu-server": _gpu_server}
