"""Simulated machines by profile: their nodes, the slices of their drivers, and the devices that they share."""

from __future__ import annotations

import copy
import difflib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, TypeAlias

import msgspec

from drachma import errors
from drachma.node.registration.machine import Machine
from drachma.node.simulation import machinedocuments, vendorhardware
from drachma.node.simulation.machinedocuments import RACK_LABEL, describe_node, slice_document
from drachma.values import serialnumbers

GPU_DRIVER: Final = "gpu.simulation.drachma.dev"
NIC_DRIVER: Final = "nic.simulation.drachma.dev"
CORE_DRIVER: Final = "core.simulation.drachma.dev"
FABRIC_DRIVER: Final = "fabric.simulation.drachma.dev"
_GPUS: Final = 8
_NICS: Final = 4
_GPUS_PER_ROOT: Final = 2
_PARTITIONED_GPUS: Final = 4
_NUMA_NODES: Final = 2
_CORES: Final = 16
_NUMA_NODE: Final = "resource.kubernetes.io/numaNode"
_FIRST_NIC_SLOT: Final = 16
"""Slot of network cards in their PCIe root, after those of GPUs."""
_RACK_MACHINES: Final = 4
_RACK_GPUS: Final = 8
_SLOTS: Final = 7
_PARTITIONS: Final = (
    ("7g.80gb", 7, "80Gi", (0,)),
    ("3g.40gb", 3, "40Gi", (0, 4)),
    ("2g.20gb", 2, "20Gi", (0, 2, 4)),
    ("1g.10gb", 1, "10Gi", (0, 1, 2, 3, 4, 5, 6)),
)
"""Partitions of a GPU: profile, number of slots, memory, and possible first slots."""


class Hardware(msgspec.Struct, frozen=True):
    """Machines, device classes for their devices, and slices of devices that belong to no single machine."""

    machines: tuple[Machine, ...]
    classes: tuple[dict[str, Any], ...]
    slices: tuple[dict[str, Any], ...] = ()

    @property
    def all_slices(self) -> tuple[dict[str, Any], ...]:
        """Slices of all machines, and those of no machine."""
        return (*(each for machine in self.machines for each in machine.slices), *self.slices)


Profile: TypeAlias = Callable[[Sequence[str]], Hardware]
"""Builds machines with these names. Classes are added by driver."""


def build(profile: str, count: int) -> Hardware:
    """Return machines of a profile, named ``node-0`` and so on.

    Raises:
        errors.InvalidValueError: the profile does not exist.
    """
    names = [f"node-{number}" for number in range(count)]
    if profile in vendorhardware.PROFILES:
        vendor = vendorhardware.PROFILES[profile]
        return _complete(Hardware(tuple(vendor.machines(names)), vendor.classes), profile)
    if profile not in PROFILES:
        near = difflib.get_close_matches(profile, ALL_PROFILES, n=1)
        hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(ALL_PROFILES)}, or the name of a file"
        raise errors.InvalidValueError(f"profile {profile!r}: does not exist; {hint}")
    return _complete(_add_classes(PROFILES[profile](names)), profile)


def _complete(built: Hardware, profile: str) -> Hardware:
    """Return hardware whose nodes have versions and topology labels."""
    machines = tuple(
        msgspec.structs.replace(each, node=machinedocuments.complete_node(each.node, number, profile=profile))
        for number, each in enumerate(built.machines)
    )
    return msgspec.structs.replace(built, machines=machines)


def copies(documents: Iterable[Mapping[str, Any]], count: int) -> Hardware:
    """Return copies of a machine that documents describe: its Node, its ResourceSlices, and DeviceClasses.

    A copy is named like the node with a number appended; slices and pools with the node's name get the copy's. Slices
    that are not for that node alone exist once, for all copies. UUIDs of devices differ. There are no classes but those
    of the documents, because the chart of a driver brings its own.

    Raises:
        errors.InvalidValueError: there is not exactly one Node, or there is an object of another kind, or a device of
            that node is in a slice that is not for the node alone.
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
    fabric = tuple(dict(each) for each in parts["ResourceSlice"] if each["spec"].get("nodeName") != name)
    for each in fabric:
        _check_shared(each, name)
    described = Machine(node=node, slices=own, remote_drivers=_drivers(fabric))
    machines = tuple(_copy(described, f"{name}-{number}") for number in range(count))
    return _complete(Hardware(machines, tuple(map(dict, parts["DeviceClass"])), fabric), name)


def _copy(described: Machine, name: str) -> Machine:
    original = described.name
    node = copy.deepcopy(described.node)
    node["metadata"]["name"] = name
    labels = node["metadata"].setdefault("labels", {})
    labels["kubernetes.io/hostname"] = name
    slices = []
    for document in copy.deepcopy(described.slices):
        spec = document["spec"]
        document["metadata"]["name"] = f"{name}-{document['metadata']['name']}"
        spec["nodeName"] = name
        if (spec.get("pool") or {}).get("name") == original:
            spec["pool"]["name"] = name
        for device in spec.get("devices") or ():
            for attribute in (device.get("attributes") or {}).values():
                if "string" in attribute:
                    attribute["string"] = serialnumbers.replaced(attribute["string"], owner=name)
        slices.append(document)
    return Machine(node=node, slices=tuple(slices), remote_drivers=described.remote_drivers)


def _check_shared(slice_: Mapping[str, Any], node: str) -> None:
    """Raise InvalidValueError if a shared slice, which is not copied, has a device of the node."""
    for device in slice_["spec"].get("devices") or ():
        if device.get("nodeName") == node:
            raise errors.InvalidValueError(
                f"profile: ResourceSlice {slice_['metadata']['name']}, device {device['name']}: nodeName {node!r}: "
                "devices of the node belong into slices of the node"
            )


def _drivers(slices: Iterable[Mapping[str, Any]]) -> frozenset[str]:
    return frozenset(str(each["spec"]["driver"]) for each in slices)


def _add_classes(built: Hardware) -> Hardware:
    """Return hardware with a class for each driver."""
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


def _separate_machines(machine: Callable[[str], Machine]) -> Profile:
    """Return a profile of machines that share nothing."""
    return lambda names: Hardware(tuple(map(machine, names)), ())


def _place(root: int, slot: int) -> dict[str, Any]:
    """Return the standard attributes of the device in a slot of a PCIe root."""
    return {
        "resource.kubernetes.io/pcieRoot": {"string": f"pci0000:{root:02x}"},
        "resource.kubernetes.io/pciBusID": {"string": f"0000:{root:02x}:{slot:02x}.0"},
        _NUMA_NODE: {"int": root // 2},
    }


def _gpu(number: int) -> dict[str, Any]:
    return {
        "name": f"gpu-{number}",
        "attributes": {
            "type": {"string": "gpu"},
            "model": {"string": "simulated-80"},
            "index": {"int": number},
            **_place(number // _GPUS_PER_ROOT, number % _GPUS_PER_ROOT),
        },
        "capacity": {"memory": {"value": "80Gi"}},
    }


def _nic(number: int) -> dict[str, Any]:
    return {
        "name": f"nic-{number}",
        "attributes": {"type": {"string": "nic"}, "index": {"int": number}, **_place(number, _FIRST_NIC_SLOT)},
        "allowMultipleAllocations": True,
        "capacity": {
            "bandwidth": {
                "value": "100G",
                "requestPolicy": {"default": "1G", "validRange": {"min": "1G", "max": "100G", "step": "1G"}},
            }
        },
    }


def _cpu_server(name: str) -> Machine:
    return Machine(node=describe_node(name, cpu=32, memory="128Gi"))


def _gpu_server(name: str) -> Machine:
    return Machine(
        node=describe_node(name, cpu=96, memory="1Ti"),
        slices=(
            slice_document(name, GPU_DRIVER, [_gpu(number) for number in range(_GPUS)]),
            slice_document(name, NIC_DRIVER, [_nic(number) for number in range(_NICS)]),
        ),
    )


def _nic_server(name: str) -> Machine:
    return Machine(
        node=describe_node(name, cpu=64, memory="512Gi"),
        slices=(slice_document(name, NIC_DRIVER, [_nic(number) for number in range(2 * _NICS)]),),
    )


def _numa_server(name: str) -> Machine:
    """Return a machine with cores and memory as devices (KEP-5517), one of each for every NUMA node."""
    devices = []
    for number in range(_NUMA_NODES):
        for kind, resource, value, default in (("cores", "cpu", str(_CORES), "1"), ("memory", "memory", "64Gi", "1Gi")):
            devices.append(
                {
                    "name": f"{kind}-{number}",
                    "attributes": {"type": {"string": kind}, _NUMA_NODE: {"int": number}},
                    "allowMultipleAllocations": True,
                    "capacity": {resource: {"value": value, "requestPolicy": {"default": default}}},
                    "nodeAllocatableResources": {
                        resource: {"mapping": {"capacityKey": resource, "capacityMultiplier": "1"}}
                    },
                }
            )
    return Machine(
        node=describe_node(name, cpu=_NUMA_NODES * _CORES, memory=f"{_NUMA_NODES * 64}Gi"),
        slices=(slice_document(name, CORE_DRIVER, devices),),
    )


def _racks(names: Sequence[str]) -> Hardware:
    """Return machines with network cards, four in a rack, and the GPUs on the fabric of each rack."""
    racks = {name: f"rack-{number // _RACK_MACHINES}" for number, name in enumerate(names)}
    machines = tuple(
        Machine(
            node=describe_node(name, cpu=96, memory="1Ti", labels={RACK_LABEL: rack}),
            slices=(slice_document(name, NIC_DRIVER, [_nic(number) for number in range(_NICS)]),),
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
    slice_ = slice_document(rack, FABRIC_DRIVER, devices)
    del slice_["spec"]["nodeName"]
    expression = {"key": RACK_LABEL, "operator": "In", "values": [rack]}
    slice_["spec"]["nodeSelector"] = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
    return slice_


def _mig_server(name: str) -> Machine:
    """Return a machine with GPUs in partitions, which exclude each other if they use the same slots."""
    counters = [
        {"name": f"gpu-{number}", "counters": {"memory": {"value": "80Gi"}, **_slots(range(_SLOTS), "1")}}
        for number in range(_PARTITIONED_GPUS)
    ]
    devices = [device for number in range(_PARTITIONED_GPUS) for device in _partitions(number)]
    first, second = slice_document(name, GPU_DRIVER, []), slice_document(name, GPU_DRIVER, devices)
    first["metadata"]["name"] += "-counters"
    del first["spec"]["devices"]
    first["spec"]["sharedCounters"] = counters
    for each in (first, second):
        each["spec"]["pool"]["resourceSliceCount"] = 2
    return Machine(node=describe_node(name, cpu=96, memory="1Ti"), slices=(first, second))


def _partitions(gpu: int) -> list[dict[str, Any]]:
    return [
        {
            "name": f"gpu-{gpu}" if size == _SLOTS else f"gpu-{gpu}-{profile.replace('.', '-')}-{first}",
            "attributes": {
                "type": {"string": "gpu" if size == _SLOTS else "mig"},
                "profile": {"string": profile},
                "index": {"int": gpu},
                **_place(gpu // _GPUS_PER_ROOT, gpu % _GPUS_PER_ROOT),
            },
            "capacity": {"memory": {"value": memory}},
            "consumesCounters": [
                {
                    "counterSet": f"gpu-{gpu}",
                    "counters": {"memory": {"value": memory}, **_slots(range(first, first + size), "1")},
                }
            ],
        }
        for profile, size, memory, first_slots in _PARTITIONS
        for first in first_slots
    ]


def _slots(numbers: Iterable[int], value: str) -> dict[str, Any]:
    return {f"slot-{number}": {"value": value} for number in numbers}


PROFILES: Final[Mapping[str, Profile]] = {
    "cpu": _separate_machines(_cpu_server),
    "gpu-server": _separate_machines(_gpu_server),
    "mig": _separate_machines(_mig_server),
    "nic": _separate_machines(_nic_server),
    "numa": _separate_machines(_numa_server),
    "rack": _racks,
}

ALL_PROFILES: Final = (*sorted(PROFILES), *sorted(vendorhardware.PROFILES))
"""Names of all profiles."""
