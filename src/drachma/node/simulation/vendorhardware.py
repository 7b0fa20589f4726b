"""Simulated machines of vendors: devices with the attributes, capacities and names that the real drivers publish.

The values are facts that the drivers' own documents and published slices show. Identifiers are made from the names of
the machines, so that they are the same at every start.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from drachma.node.registration.machine import Machine
from drachma.node.simulation.machinedocuments import describe_node, slice_document

NVIDIA: Final = "gpu.nvidia.com"
COMPUTE_DOMAIN: Final = "compute-domain.nvidia.com"
AMD: Final = "gpu.amd.com"
GAUDI: Final = "gaudi.intel.com"
INTEL_GPU: Final = "gpu.intel.com"
DRANET: Final = "dra.net"
CPU: Final = "dra.cpu"
TPU: Final = "tpu.google.com"

CLIQUE_LABEL: Final = "nvidia.com/gpu.clique"
"""Label of the NVLink domain of a node: the identifier of the cluster and of the clique."""

_NAMESPACE: Final = uuid.UUID("6f9a1d2e-6a55-4f3b-9a57-4b1f35f1c0de")
_DOMAIN_NODES: Final = 18
"""Nodes of an NVLink domain of GB200 NVL72: 72 GPUs, four in a node."""
_CHANNELS: Final = 4


class _Model(NamedTuple):
    """Model of an NVIDIA GPU."""

    product: str
    architecture: str
    capability: str
    memory: str
    multiprocessors: int
    copy_engines: int
    decoders: int
    jpeg_engines: int
    ofa_engines: int


_A100: Final = _Model("NVIDIA A100-SXM4-40GB", "Ampere", "8.0.0", "40960Mi", 108, 7, 5, 1, 1)
_H100: Final = _Model("NVIDIA H100 80GB HBM3", "Hopper", "9.0.0", "81559Mi", 132, 8, 7, 7, 1)
_GB200: Final = _Model("NVIDIA GB200", "Blackwell", "10.0.0", "189471Mi", 152, 8, 7, 7, 1)

_H100_PARTITIONS: Final = (
    ("1g.10gb", 19, "9856Mi", 16, 1, 1, 1, 0, 1, (0, 1, 2, 3, 4, 5, 6)),
    ("1g.20gb", 15, "20096Mi", 26, 1, 1, 1, 0, 2, (0, 2, 4, 6)),
    ("2g.20gb", 14, "20096Mi", 32, 2, 2, 2, 0, 2, (0, 2, 4)),
    ("3g.40gb", 9, "40448Mi", 60, 3, 3, 3, 0, 4, (0, 4)),
    ("4g.40gb", 5, "40448Mi", 64, 4, 4, 4, 0, 4, (0,)),
    ("7g.80gb", 0, "81152Mi", 132, 8, 7, 7, 1, 8, (0,)),
)
"""Profile, its number, memory, multiprocessors, engines (copy, decoder, JPEG, OFA), memory slices, and their starts."""

_A100_PARTITIONS: Final = (
    ("1g.5gb", 19, "4864Mi", 14, 1, 0, 0, 0, 1, (0, 1, 2, 3, 4, 5, 6)),
    ("1g.10gb", 15, "9728Mi", 14, 1, 1, 0, 0, 2, (0, 2, 4, 6)),
    ("2g.10gb", 14, "9728Mi", 28, 2, 1, 0, 0, 2, (0, 2, 4)),
    ("3g.20gb", 9, "19968Mi", 42, 3, 2, 0, 0, 4, (0, 4)),
    ("4g.20gb", 5, "19968Mi", 56, 4, 2, 0, 0, 4, (0,)),
    ("7g.40gb", 0, "40192Mi", 98, 7, 5, 1, 1, 8, (0,)),
)

_MEMORY_SLICES: Final = 8


def _identifier(*parts: object) -> str:
    return str(uuid.uuid5(_NAMESPACE, "/".join(map(str, parts))))


def _texts(**values: str) -> dict[str, Any]:
    return {name: {"string": value} for name, value in values.items()}


def _versions(**values: str) -> dict[str, Any]:
    return {name: {"version": value} for name, value in values.items()}


def _capacity(**values: object) -> dict[str, Any]:
    return {name: {"value": str(value)} for name, value in values.items()}


def _class(name: str, expression: str, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": name},
        "spec": {"selectors": [{"cel": {"expression": expression}}], **spec},
    }


def _typed_class(name: str, driver: str, kind: str) -> dict[str, Any]:
    return _class(name, f"device.driver == '{driver}' && device.attributes['{driver}'].type == '{kind}'")


def _pci(number: int) -> tuple[str, str]:
    """Return the bus address and the PCIe root of a device; two devices share a root."""
    root = 0x15 + 0x11 * (number // 2)
    return f"0000:{root + 1 + number % 2:02x}:00.0", f"pci0000:{root:02x}"


# NVIDIA


def _gpu(name: str, number: int, model: _Model) -> dict[str, Any]:
    bus, root = _pci(number)
    return {
        "name": f"gpu-{number}",
        "attributes": {
            **_texts(
                type="gpu",
                uuid=f"GPU-{_identifier(name, number)}",
                productName=model.product,
                brand="Nvidia",
                architecture=model.architecture,
                addressingMode="HMM",
            ),
            **_versions(cudaComputeCapability=model.capability, driverVersion="580.105.8", cudaDriverVersion="13.0.0"),
            "resource.kubernetes.io/pciBusID": {"string": bus},
            "resource.kubernetes.io/pcieRoot": {"string": root},
        },
        "capacity": _capacity(memory=model.memory),
    }


def _nvidia(model: _Model, *, gpus: int = 8) -> Callable[[str], Machine]:
    def machine(name: str) -> Machine:
        devices = [_gpu(name, number, model) for number in range(gpus)]
        return Machine(node=describe_node(name, cpu=192, memory="2Ti"), slices=(slice_document(name, NVIDIA, devices),))

    return machine


_Partitions = Sequence[tuple[str, int, str, int, int, int, int, int, int, tuple[int, ...]]]


def _mig(model: _Model, partitions: _Partitions) -> Callable[[str], Machine]:
    """Return machines whose GPUs may be allocated whole or in parts (KEP-4815)."""

    def machine(name: str) -> Machine:
        counters, slices = [], []
        for number in range(8):
            gpu = _gpu(name, number, model)
            full = {
                # The largest part has all memory that parts can have.
                "memory": {"value": partitions[-1][2]},
                **_capacity(
                    **{
                        "multiprocessors": model.multiprocessors,
                        "copy-engines": model.copy_engines,
                        "decoders": model.decoders,
                        "encoders": 0,
                        "jpeg-engines": model.jpeg_engines,
                        "ofa-engines": model.ofa_engines,
                    }
                ),
                **_slots(0, _MEMORY_SLICES),
            }
            counters.append({"name": f"gpu-{number}-counter-set", "counters": full})
            gpu["consumesCounters"] = [{"counterSet": f"gpu-{number}-counter-set", "counters": full}]
            devices = [gpu, *_partitions(name, number, model, partitions)]
            slices.append(slice_document(name, NVIDIA, devices, suffix=f"-gpu-{number}", count=9))
        counter_slice = slice_document(name, NVIDIA, None, suffix="-counters", count=9)
        counter_slice["spec"]["sharedCounters"] = counters
        return Machine(node=describe_node(name, cpu=192, memory="2Ti"), slices=(counter_slice, *slices))

    return machine


def _slots(start: int, size: int) -> dict[str, Any]:
    return _capacity(**{f"memory-slice-{number}": 1 for number in range(start, start + size)})


def _partitions(name: str, gpu: int, model: _Model, partitions: _Partitions) -> Iterable[dict[str, Any]]:
    parent = _gpu(name, gpu, model)["attributes"]
    for profile, number, memory, processors, copy, decoders, jpeg, ofa, size, starts in partitions:
        amounts = {"multiprocessors": processors, "copyEngines": copy, "decoders": decoders, "encoders": 0}
        amounts |= {"jpegEngines": jpeg, "ofaEngines": ofa}
        dashed = {_dashed(each): value for each, value in amounts.items()}
        for start in starts:
            yield {
                "name": f"gpu-{gpu}-mig-{profile.replace('.', '')}-{number}-{start}",
                "attributes": {
                    **_texts(type="mig", parentUUID=parent["uuid"]["string"], profile=profile),
                    **{each: parent[each] for each in ("productName", "brand", "architecture")},
                    **{each: parent[each] for each in ("cudaComputeCapability", "driverVersion", "cudaDriverVersion")},
                    "resource.kubernetes.io/pcieRoot": parent["resource.kubernetes.io/pcieRoot"],
                },
                "capacity": _capacity(memory=memory, **amounts),
                "consumesCounters": [
                    {
                        "counterSet": f"gpu-{gpu}-counter-set",
                        "counters": {"memory": {"value": memory}, **_capacity(**dashed), **_slots(start, size)},
                    }
                ],
            }


def _dashed(name: str) -> str:
    return "".join(f"-{each.lower()}" if each.isupper() else each for each in name)


def _gb200_machines(names: Sequence[str]) -> list[Machine]:
    """Return machines in NVLink domains, with the devices of the compute domain driver (IMEX channels)."""
    machines = []
    for number, name in enumerate(names):
        domain = _identifier("domain", number // _DOMAIN_NODES)
        gpus = [_gpu(name, each, _GB200) for each in range(4)]
        daemon = {"name": "daemon-0", "attributes": {**_texts(type="daemon"), "id": {"int": 0}}}
        channels = [
            {"name": f"channel-{each}", "attributes": {**_texts(type="channel"), "id": {"int": each}}}
            for each in range(_CHANNELS)
        ]
        machines.append(
            Machine(
                node=describe_node(
                    name, cpu=144, memory="1Ti", architecture="arm64", labels={CLIQUE_LABEL: f"{domain}.0"}
                ),
                slices=(
                    slice_document(name, NVIDIA, gpus),
                    slice_document(name, COMPUTE_DOMAIN, [daemon, *channels]),
                ),
            )
        )
    return machines


# Other vendors


def _amd_machine(name: str) -> Machine:
    devices = []
    for number in range(8):
        bus, root = _pci(number)
        devices.append(
            {
                "name": f"gpu-{number}-{128 + number}",
                "attributes": {
                    **_texts(
                        type="amdgpu",
                        productName="AMD_Instinct_MI300X_OAM",
                        family="AI",
                        partitionProfile="spx_nps1",
                        pciAddr=bus,
                        deviceID=str(uuid.UUID(_identifier(name, number)).int >> 65),
                    ),
                    **_versions(driverVersion="6.12.12"),
                    "cardIndex": {"int": number},
                    "renderIndex": {"int": 128 + number},
                    "resource.kubernetes.io/pcieRoot": {"string": root},
                },
                "capacity": _capacity(computeUnits=304, simdUnits=1216, memory="196592Mi"),
            }
        )
    return Machine(node=describe_node(name, cpu=192, memory="2Ti"), slices=(slice_document(name, AMD, devices),))


def _gaudi_machine(name: str) -> Machine:
    devices = []
    for number in range(8):
        bus, root = _pci(number)
        devices.append(
            {
                "name": f"{bus.replace(':', '-').replace('.', '-')}-0x1060",
                "attributes": {
                    **_texts(model="Gaudi3", serial=f"AN{number:08d}", pciRoot=root[-2:]),
                    "healthy": {"bool": True},
                    "resource.kubernetes.io/pcieRoot": {"string": root},
                },
            }
        )
    return Machine(node=describe_node(name, cpu=160, memory="1Ti"), slices=(slice_document(name, GAUDI, devices),))


def _intel_gpu_machine(name: str) -> Machine:
    """Return a machine with eight Data Center GPUs Max 1550, as Intel's GPU driver publishes them."""
    devices = []
    for number in range(8):
        bus, root = _pci(number)
        texts = _texts(
            model="Max 1550",
            family="Data Center Max",
            driver="i915",
            pciId="0x0bd5",
            pciAddress=bus,
            pciRoot=root[-2:],
            health="Healthy",
        )
        devices.append(
            {
                "name": f"{bus.replace(':', '-').replace('.', '-')}-0x0bd5",
                "attributes": {
                    **texts,
                    "sriov": {"bool": True},
                    "resource.kubernetes.io/pcieRoot": {"string": root},
                    "resource.kubernetes.io/pciBusID": {"string": bus},
                },
                "capacity": _capacity(memory="131072Mi", millicores=1000),
            }
        )
    return Machine(node=describe_node(name, cpu=208, memory="1Ti"), slices=(slice_document(name, INTEL_GPU, devices),))


def _nic_machine(name: str) -> Machine:
    """Return a machine with eight RDMA network cards, as DraNet publishes them."""
    devices = []
    for number in range(8):
        bus, root = _pci(number)
        devices.append(
            {
                "name": f"gpu{number}rdma0",
                "attributes": {
                    **{
                        f"{DRANET}/{each}": {"string": value}
                        for each, value in (
                            ("ifName", f"gpu{number}rdma0"),
                            ("rdmaDevice", f"mlx5_{number}"),
                            ("mac", f"02:00:00:00:00:{number:02x}"),
                            ("ipv4", f"192.0.2.{number + 1}"),
                            ("encapsulation", "ether"),
                            ("state", "up"),
                            ("type", "device"),
                            ("pciAddress", bus),
                            ("pciVendor", "Mellanox Technologies"),
                            ("pciDevice", "MT2910 Family [ConnectX-7]"),
                        )
                    },
                    f"{DRANET}/rdma": {"bool": True},
                    f"{DRANET}/virtual": {"bool": False},
                    f"{DRANET}/mtu": {"int": 8896},
                    f"{DRANET}/numaNode": {"int": number // 4},
                    "resource.kubernetes.io/pcieRoot": {"string": root},
                },
            }
        )
    return Machine(node=describe_node(name, cpu=192, memory="2Ti"), slices=(slice_document(name, DRANET, devices),))


def _cpu_machine(name: str) -> Machine:
    """Return a machine with one device for each NUMA node, as dra-driver-cpu publishes them in its grouped mode."""
    devices = [
        {
            "name": f"cpudevnuma{number:03d}",
            "attributes": {
                f"{CPU}/numaNodeID": {"int": number},
                f"{CPU}/socketID": {"int": number},
                f"{CPU}/numCPUs": {"int": 64},
                f"{CPU}/smtEnabled": {"bool": True},
                f"{DRANET}/numaNode": {"int": number},
            },
            "allowMultipleAllocations": True,
            "capacity": {f"{CPU}/cpu": {"value": "64"}},
        }
        for number in range(2)
    ]
    return Machine(node=describe_node(name, cpu=128, memory="512Gi"), slices=(slice_document(name, CPU, devices),))


def _tpu_machine(name: str) -> Machine:
    devices = [
        {
            "name": f"accel{number}",
            "attributes": {
                **_texts(tpuGen="v4", uuid=f"tpu-{_identifier(name, number)}"),
                "index": {"int": number},
            },
        }
        for number in range(4)
    ]
    return Machine(node=describe_node(name, cpu=240, memory="400Gi"), slices=(slice_document(name, TPU, devices),))


def _separate(machine: Callable[[str], Machine]) -> Callable[[Sequence[str]], list[Machine]]:
    return lambda names: list(map(machine, names))


class VendorProfile(NamedTuple):
    """Machines of a vendor, and the device classes that the driver's chart installs."""

    machines: Callable[[Sequence[str]], list[Machine]]
    classes: tuple[dict[str, Any], ...]


_NVIDIA_CLASSES: Final = (_typed_class(NVIDIA, NVIDIA, "gpu"), _typed_class("mig.nvidia.com", NVIDIA, "mig"))
_COMPUTE_DOMAIN_CLASSES: Final = (
    _typed_class("compute-domain-daemon.nvidia.com", COMPUTE_DOMAIN, "daemon"),
    _class(
        "compute-domain-default-channel.nvidia.com",
        f"device.driver == '{COMPUTE_DOMAIN}' && device.attributes['{COMPUTE_DOMAIN}'].type == 'channel'"
        f" && device.attributes['{COMPUTE_DOMAIN}'].id == 0",
    ),
)

PROFILES: Final[Mapping[str, VendorProfile]] = {
    "amd-mi300x": VendorProfile(_separate(_amd_machine), (_class(AMD, f"device.driver == '{AMD}'"),)),
    "dra-cpu": VendorProfile(_separate(_cpu_machine), (_class(CPU, f"device.driver == '{CPU}'"),)),
    "dranet": VendorProfile(_separate(_nic_machine), (_class(DRANET, f"device.driver == '{DRANET}'"),)),
    "google-tpu": VendorProfile(_separate(_tpu_machine), (_class(TPU, f"device.driver == '{TPU}'"),)),
    "intel-gaudi": VendorProfile(_separate(_gaudi_machine), (_class(GAUDI, f"device.driver == '{GAUDI}'"),)),
    "intel-gpu": VendorProfile(
        _separate(_intel_gpu_machine),
        tuple(_class(each, f"device.driver == '{INTEL_GPU}'") for each in (INTEL_GPU, "gpu-vfio.intel.com")),
    ),
    "nvidia-a100": VendorProfile(_separate(_nvidia(_A100)), _NVIDIA_CLASSES),
    "nvidia-a100-mig": VendorProfile(_separate(_mig(_A100, _A100_PARTITIONS)), _NVIDIA_CLASSES),
    "nvidia-gb200": VendorProfile(_gb200_machines, (*_NVIDIA_CLASSES, *_COMPUTE_DOMAIN_CLASSES)),
    "nvidia-h100": VendorProfile(_separate(_nvidia(_H100)), _NVIDIA_CLASSES),
    "nvidia-h100-mig": VendorProfile(_separate(_mig(_H100, _H100_PARTITIONS)), _NVIDIA_CLASSES),
}
"""Profiles by name."""
