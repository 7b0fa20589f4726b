"""Machines that are only imagined, by profile: what a node has, and what the drivers on it publish."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import msgspec

from drachma import errors

GPU_DRIVER: Final = "gpu.simulation.drachma.dev"
NIC_DRIVER: Final = "nic.simulation.drachma.dev"

_GPUS: Final = 8
_NICS: Final = 4
_GPUS_PER_ROOT: Final = 2
_PARTITIONED_GPUS: Final = 4
_SLOTS: Final = 7
_PARTITIONS: Final = (
    ("7g.80gb", 7, "80Gi", (0,)),
    ("3g.40gb", 3, "40Gi", (0, 4)),
    ("2g.20gb", 2, "20Gi", (0, 2, 4)),
    ("1g.10gb", 1, "10Gi", (0, 1, 2, 3, 4, 5, 6)),
)
"""How a GPU can be parted: a profile, how many slots and how much memory it takes, and where it may begin."""


class Machine(msgspec.Struct, frozen=True, kw_only=True):
    """A machine: its Node as a document, and the slices that its drivers publish."""

    node: dict[str, Any]
    slices: tuple[dict[str, Any], ...] = ()
    has_any_driver: bool = False
    """Whether any driver that is asked for is there: of a machine that somebody else described, nobody knows."""

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
        there_are = ", ".join(sorted(PROFILES))
        raise errors.InvalidValueError(f"profile {profile!r}: there are {there_are}, or the name of a file")
    machines = tuple(PROFILES[profile](f"node-{number}") for number in range(count))
    return Hardware(machines, _classes(machines))


def copies(documents: Iterable[Mapping[str, Any]], count: int) -> Hardware:
    """So many copies of a machine that documents describe: its Node, its ResourceSlices, and DeviceClasses.

    Copies are called as the node with a number behind it; slices and pools that have the node's name get the copy's.
    Where there is no class at all, each driver gets one of its name.

    Raises:
        errors.InvalidValueError: there is not exactly one Node, or there is something else.
    """
    parts: dict[str, list[Mapping[str, Any]]] = {"Node": [], "ResourceSlice": [], "DeviceClass": []}
    for document in documents:
        kind = str(document.get("kind"))
        if kind not in parts:
            raise errors.InvalidValueError(f"profile: has a {kind}: expected {', '.join(parts)}")
        parts[kind].append(document)
    if len(parts["Node"]) != 1:
        raise errors.InvalidValueError(f"profile: has {len(parts['Node'])} Nodes: expected one, to make copies of")
    described = Machine(node=dict(parts["Node"][0]), slices=tuple(map(dict, parts["ResourceSlice"])))
    machines = tuple(_copy(described, f"{described.name}-{number}") for number in range(count))
    classes = tuple(map(dict, parts["DeviceClass"]))
    return Hardware(machines, classes or _classes(machines))


def pretended(name: str) -> Machine:
    """A machine of which there is only its Node, which somebody else made."""
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}
    return Machine(node=node, has_any_driver=True)


def _copy(described: Machine, name: str) -> Machine:
    before = described.name
    node = copy.deepcopy(described.node)
    node["metadata"]["name"] = name
    labels = node["metadata"].setdefault("labels", {})
    labels["kubernetes.io/hostname"] = name
    slices = []
    for document in copy.deepcopy(described.slices):
        spec = document["spec"]
        document["metadata"]["name"] = f"{name}-{document['metadata']['name']}"
        if spec.get("nodeName") == before:
            spec["nodeName"] = name
        if (spec.get("pool") or {}).get("name") == before:
            spec["pool"]["name"] = name
        slices.append(document)
    return Machine(node=node, slices=tuple(slices))


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


def _nic_server(name: str) -> Machine:
    return Machine(
        node=_node(name, cpu=64, memory="512Gi"),
        slices=(_slice(name, NIC_DRIVER, [_nic(number) for number in range(2 * _NICS)]),),
    )


def _mig_server(name: str) -> Machine:
    """GPUs that can be had in parts, which exclude each other where they lie on the same slots."""
    counters = [
        {"name": f"gpu-{number}", "counters": {"memory": {"value": "80Gi"}, **_slots(range(_SLOTS), "1")}}
        for number in range(_PARTITIONED_GPUS)
    ]
    devices = [device for number in range(_PARTITIONED_GPUS) for device in _partitions(number)]
    first, second = _slice(name, GPU_DRIVER, []), _slice(name, GPU_DRIVER, devices)
    first["metadata"]["name"] += "-counters"
    del first["spec"]["devices"]
    first["spec"]["sharedCounters"] = counters
    for each in (first, second):
        each["spec"]["pool"]["resourceSliceCount"] = 2
    return Machine(node=_node(name, cpu=96, memory="1Ti"), slices=(first, second))


def _partitions(gpu: int) -> list[dict[str, Any]]:
    return [
        {
            "name": f"gpu-{gpu}" if size == _SLOTS else f"gpu-{gpu}-{profile.replace('.', '-')}-{begin}",
            "attributes": {
                "type": {"string": "gpu" if size == _SLOTS else "mig"},
                "profile": {"string": profile},
                "index": {"int": gpu},
                **_place(gpu // _GPUS_PER_ROOT),
            },
            "capacity": {"memory": {"value": memory}},
            "consumesCounters": [
                {
                    "counterSet": f"gpu-{gpu}",
                    "counters": {"memory": {"value": memory}, **_slots(range(begin, begin + size), "1")},
                }
            ],
        }
        for profile, size, memory, begins in _PARTITIONS
        for begin in begins
    ]


def _slots(numbers: Iterable[int], value: str) -> dict[str, Any]:
    return {f"slot-{number}": {"value": value} for number in numbers}


PROFILES: Final[Mapping[str, Callable[[str], Machine]]] = {
    "cpu": _cpu_server,
    "gpu-server": _gpu_server,
    "mig": _mig_server,
    "nic": _nic_server,
}
