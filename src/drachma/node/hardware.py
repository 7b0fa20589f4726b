"""Machines that are only imagined, by profile: what a node has, what the drivers on it publish, and what they share."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, TypeAlias

import msgspec

from drachma import errors

GPU_DRIVER: Final = "gpu.simulation.drachma.dev"
NIC_DRIVER: Final = "nic.simulation.drachma.dev"
CORE_DRIVER: Final = "core.simulation.drachma.dev"
FABRIC_DRIVER: Final = "fabric.simulation.drachma.dev"
RACK_LABEL: Final = "simulation.drachma.dev/rack"
"""The label of nodes in a rack: whose devices on the fabric they reach."""

_GPUS: Final = 8
_NICS: Final = 4
_GPUS_PER_ROOT: Final = 2
_PARTITIONED_GPUS: Final = 4
_NUMA_NODES: Final = 2
_CORES: Final = 16
_RACK_MACHINES: Final = 4
_RACK_GPUS: Final = 8
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
    remote_drivers: frozenset[str] = frozenset()
    """Drivers of devices that it reaches and that are not in it."""
    has_any_driver: bool = False
    """Whether any driver that is asked for is there: of a machine that somebody else described, nobody knows."""
    lease_holder: str = ""
    """Holder of the node's lease, if it is not the node itself."""

    @property
    def name(self) -> str:
        return str(self.node["metadata"]["name"])

    @property
    def drivers(self) -> frozenset[str]:
        """All drivers that run on it."""
        return _drivers(self.slices) | self.remote_drivers


class Hardware(msgspec.Struct, frozen=True):
    """Machines, the device classes that go with what they have, and slices of what belongs to none of them alone."""

    machines: tuple[Machine, ...]
    classes: tuple[dict[str, Any], ...]
    slices: tuple[dict[str, Any], ...] = ()

    @property
    def all_slices(self) -> tuple[dict[str, Any], ...]:
        """What is in machines, and what is not."""
        return (*(each for machine in self.machines for each in machine.slices), *self.slices)


Profile: TypeAlias = Callable[[Sequence[str]], Hardware]
"""Makes machines of these names; without classes, which follow from drivers."""


def build(profile: str, count: int) -> Hardware:
    """So many machines of a profile, ``node-0`` and so on.

    Raises:
        errors.InvalidValueError: there is no such profile.
    """
    if profile not in PROFILES:
        there_are = ", ".join(sorted(PROFILES))
        raise errors.InvalidValueError(f"profile {profile!r}: there are {there_are}, or the name of a file")
    return _with_classes(PROFILES[profile]([f"node-{number}" for number in range(count)]))


def copies(documents: Iterable[Mapping[str, Any]], count: int) -> Hardware:
    """So many copies of a machine that documents describe: its Node, its ResourceSlices, and DeviceClasses.

    Copies are called as the node with a number behind it; slices and pools that have the node's name get the copy's.
    Slices that are not for that node alone are there once, for all copies. Where there is no class at all, each driver
    gets one of its name.

    Raises:
        errors.InvalidValueError: there is not exactly one Node, or there is something else; or a device is for that
            node in a slice that is not.
    """
    parts: dict[str, list[Mapping[str, Any]]] = {"Node": [], "ResourceSlice": [], "DeviceClass": []}
    for document in documents:
        kind = str(document.get("kind"))
        if kind not in parts:
            raise errors.InvalidValueError(f"profile: has a {kind}: expected {', '.join(parts)}")
        parts[kind].append(document)
    if len(parts["Node"]) != 1:
        raise errors.InvalidValueError(f"profile: has {len(parts['Node'])} Nodes: expected one, to make copies of")
    node = dict(parts["Node"][0])
    name = node["metadata"]["name"]
    own = tuple(dict(each) for each in parts["ResourceSlice"] if each["spec"].get("nodeName") == name)
    shared = tuple(dict(each) for each in parts["ResourceSlice"] if each["spec"].get("nodeName") != name)
    for each in shared:
        _refuse_single(each, name)
    described = Machine(node=node, slices=own, remote_drivers=_drivers(shared))
    machines = tuple(_copy(described, f"{name}-{number}") for number in range(count))
    return _with_classes(Hardware(machines, tuple(map(dict, parts["DeviceClass"])), shared))


def pretended(name: str) -> Machine:
    """A machine of which there is only its Node, which somebody else made."""
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}
    return Machine(node=node, has_any_driver=True, lease_holder=f"{name}_pretended")


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
        spec["nodeName"] = name
        if (spec.get("pool") or {}).get("name") == before:
            spec["pool"]["name"] = name
        slices.append(document)
    return Machine(node=node, slices=tuple(slices), remote_drivers=described.remote_drivers)


def _refuse_single(shared: Mapping[str, Any], node: str) -> None:
    """A device that is for the described node alone has no copies in a slice that has none."""
    for device in shared["spec"].get("devices") or ():
        if device.get("nodeName") == node:
            raise errors.InvalidValueError(
                f"profile: ResourceSlice {shared['metadata']['name']}, device {device['name']}: nodeName {node!r}: "
                "devices of the node belong into slices of the node"
            )


def _drivers(slices: Iterable[Mapping[str, Any]]) -> frozenset[str]:
    return frozenset(str(each["spec"]["driver"]) for each in slices)


def _with_classes(built: Hardware) -> Hardware:
    """The same, where it has no class at all with one for each driver."""
    if built.classes:
        return built
    classes = tuple(
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "DeviceClass",
            "metadata": {"name": driver},
            "spec": {"selectors": [{"cel": {"expression": f'device.driver == "{driver}"'}}]},
        }
        for driver in sorted(_drivers(built.all_slices))
    )
    return Hardware(built.machines, classes, built.slices)


def _alike(machine: Callable[[str], Machine]) -> Profile:
    """Machines that share nothing."""
    return lambda names: Hardware(tuple(map(machine, names)), ())


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


def _numa_server(name: str) -> Machine:
    """Cores and memory as devices that stand for the node's own (KEP-5517), one of each on every NUMA node."""
    devices = []
    for number in range(_NUMA_NODES):
        for kind, resource, value, default in (("cores", "cpu", str(_CORES), "1"), ("memory", "memory", "64Gi", "1Gi")):
            devices.append(
                {
                    "name": f"{kind}-{number}",
                    "attributes": {"type": {"string": kind}, "numaNode": {"int": number}},
                    "allowMultipleAllocations": True,
                    "capacity": {resource: {"value": value, "requestPolicy": {"default": default}}},
                    "nodeAllocatableResources": {
                        resource: {"mapping": {"capacityKey": resource, "capacityMultiplier": "1"}}
                    },
                }
            )
    return Machine(
        node=_node(name, cpu=_NUMA_NODES * _CORES, memory=f"{_NUMA_NODES * 64}Gi"),
        slices=(_slice(name, CORE_DRIVER, devices),),
    )


def _racks(names: Sequence[str]) -> Hardware:
    """Machines with network cards, four in a rack, and for each rack GPUs on a fabric that all in it reach."""
    racks = {name: f"rack-{number // _RACK_MACHINES}" for number, name in enumerate(names)}
    machines = tuple(
        Machine(
            node=_node(name, cpu=96, memory="1Ti", labels={RACK_LABEL: rack}),
            slices=(_slice(name, NIC_DRIVER, [_nic(number) for number in range(_NICS)]),),
            remote_drivers=frozenset((FABRIC_DRIVER,)),
        )
        for name, rack in racks.items()
    )
    return Hardware(machines, (), tuple(map(_fabric, dict.fromkeys(racks.values()))))


def _fabric(rack: str) -> dict[str, Any]:
    devices = [
        {
            "name": f"gpu-{number}",
            "attributes": {"type": {"string": "gpu"}, "rack": {"string": rack}, "index": {"int": number}},
            "capacity": {"memory": {"value": "80Gi"}},
        }
        for number in range(_RACK_GPUS)
    ]
    made = _slice(rack, FABRIC_DRIVER, devices)
    del made["spec"]["nodeName"]
    expression = {"key": RACK_LABEL, "operator": "In", "values": [rack]}
    made["spec"]["nodeSelector"] = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
    return made


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


PROFILES: Final[Mapping[str, Profile]] = {
    "cpu": _alike(_cpu_server),
    "gpu-server": _alike(_gpu_server),
    "mig": _alike(_mig_server),
    "nic": _alike(_nic_server),
    "numa": _alike(_numa_server),
    "rack": _racks,
}
