"""The cluster that is churned: nodes with devices of every kind, and what pods ask for."""

from typing import Any

Document = dict[str, Any]

RESOURCE = "resource.k8s.io/v1"
GPU, PART, NIC, SOCKET, FABRIC = (f"{name}.example.com" for name in ("gpu", "part", "nic", "socket", "fabric"))
CLASSES = (GPU, PART, NIC, SOCKET, FABRIC)
NODES = 5
CPU_MILLIS = 8000
PODS = 12
SLOTS = 4
BANDWIDTH = 10
SOCKET_CPUS = 6

PARTS = {"whole": 4, "half-0": 2, "half-1": 2, **{f"quarter-{index}": 1 for index in range(4)}}
"""The partitions of a device, and how many of its slots each takes."""


def node_name(number: int) -> str:
    return f"n{number}"


def node(number: int) -> Document:
    amounts = {"cpu": f"{CPU_MILLIS}m", "memory": "64Gi", "pods": str(PODS)}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": node_name(number), "labels": {"zone": "a" if number % 2 else "b"}},
        "status": {
            "capacity": amounts,
            "allocatable": amounts,
            "conditions": [{"type": "Ready", "status": "True"}],
            "declaredFeatures": ["DRANodeAllocatableResources"],
        },
    }


def device_class(name: str) -> Document:
    expression = f'device.driver == "{name}"'
    return {
        "apiVersion": RESOURCE,
        "kind": "DeviceClass",
        "metadata": {"name": name},
        "spec": {"selectors": [{"cel": {"expression": expression}}]},
    }


def priority_class() -> Document:
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": "urgent"},
        "value": 1000,
    }


def slices(generation: int, missing: frozenset[str] = frozenset()) -> dict[str, Document]:
    """All slices by name, in a generation of their pools; without the GPUs that are missing, as node/device."""
    made = [_fabric(generation)]
    for number in range(NODES):
        made += _of_node(node_name(number), generation, missing)
    return {each["metadata"]["name"]: each for each in made}


def _of_node(name: str, generation: int, missing: frozenset[str]) -> list[Document]:
    gpus = [
        {"name": f"gpu-{index}", "attributes": {"root": {"string": f"pci{index % 2}"}}}
        for index in range(4)
        if f"{name}/gpu-{index}" not in missing
    ]
    counters = [{"name": "board", "counters": {"slots": {"value": str(SLOTS)}}}]
    parts = [
        {
            "name": part,
            "attributes": {"size": {"int": slots}},
            "consumesCounters": [{"counterSet": "board", "counters": {"slots": {"value": str(slots)}}}],
        }
        for part, slots in PARTS.items()
    ]
    policy = {"default": "1G", "validRange": {"min": "1G", "step": "1G"}}
    nic = {
        "name": "nic",
        "allowMultipleAllocations": True,
        "capacity": {"bandwidth": {"value": f"{BANDWIDTH}G", "requestPolicy": policy}},
    }
    socket = {
        "name": "socket",
        "allowMultipleAllocations": True,
        "capacity": {"cpu": {"value": str(SOCKET_CPUS)}},
        "nodeAllocatableResources": {"cpu": {"mapping": {"capacityKey": "cpu", "capacityMultiplier": "1"}}},
    }
    return [
        _slice(GPU, name, generation, devices=gpus),
        _slice(PART, name, generation, part="counters", slices=2, sharedCounters=counters),
        _slice(PART, name, generation, part="devices", slices=2, devices=parts),
        _slice(NIC, name, generation, devices=[nic]),
        _slice(SOCKET, name, generation, devices=[socket]),
    ]


def _fabric(generation: int) -> Document:
    made = _slice(FABRIC, "fabric", generation, devices=[{"name": f"port-{index}"} for index in range(3)])
    del made["spec"]["nodeName"]
    expression = {"key": "zone", "operator": "In", "values": ["a"]}
    made["spec"]["nodeSelector"] = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
    return made


def slice_name(driver: str, pool: str, part: str = "") -> str:
    """The name of the slice of a pool, or of one part of it."""
    return f"{pool}-{driver.partition('.')[0]}" + (f"-{part}" if part else "")


def _slice(driver: str, on: str, generation: int, *, part: str = "", slices: int = 1, **content: Any) -> Document:
    pool = {"name": on, "generation": generation, "resourceSliceCount": slices}
    spec = {"driver": driver, "nodeName": on, "pool": pool, **content}
    return {
        "apiVersion": RESOURCE,
        "kind": "ResourceSlice",
        "metadata": {"name": slice_name(driver, on, part)},
        "spec": spec,
    }


# What pods ask for


def _exactly(driver: str, name: str = "r", **fields: Any) -> Document:
    return {"name": name, "exactly": {"deviceClassName": driver, **fields}}


def _sized(slots: int) -> list[Document]:
    return [{"cel": {"expression": f'device.attributes["{PART}"].size == {slots}'}}]


WISHES: dict[str, Document] = {
    "gpu": {"requests": [_exactly(GPU)]},
    "gpu-pair": {
        "requests": [_exactly(GPU, count=2)],
        "constraints": [{"requests": ["r"], "matchAttribute": f"{GPU}/root"}],
    },
    "gpu-all": {"requests": [_exactly(GPU, allocationMode="All")]},
    "quarter": {"requests": [_exactly(PART, selectors=_sized(1))]},
    "half": {"requests": [_exactly(PART, selectors=_sized(2))]},
    "whole": {"requests": [_exactly(PART, selectors=_sized(4))]},
    "nic": {"requests": [_exactly(NIC, capacity={"requests": {"bandwidth": "4G"}})]},
    "cpus": {"requests": [_exactly(SOCKET, capacity={"requests": {"cpu": "2"}})]},
    "port": {"requests": [_exactly(FABRIC)]},
    "either": {
        "requests": [
            {
                "name": "r",
                "firstAvailable": [
                    {"name": "gpus", "deviceClassName": GPU, "count": 3},
                    {"name": "half", "deviceClassName": PART, "selectors": _sized(2)},
                    {"name": "nic", "deviceClassName": NIC, "capacity": {"requests": {"bandwidth": "2G"}}},
                ],
            }
        ]
    },
    "mixed": {"requests": [_exactly(GPU, "g"), _exactly(NIC, "n", capacity={"requests": {"bandwidth": "3G"}})]},
}


def template(name: str) -> Document:
    return {
        "apiVersion": RESOURCE,
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"spec": {"devices": WISHES[name]}},
    }


def claim(name: str, wish: str) -> Document:
    return {
        "apiVersion": RESOURCE,
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"devices": WISHES[wish]},
    }


def pod(name: str, *, cpu: int, templates: list[str], claims: list[str], is_urgent: bool) -> Document:
    """A pod that needs so many millicores, claims from templates, and claims by name."""
    entries = [{"name": f"t{i}", "resourceClaimTemplateName": each} for i, each in enumerate(templates)]
    entries += [{"name": f"c{i}", "resourceClaimName": each} for i, each in enumerate(claims)]
    resources: Document = {"claims": [{"name": each["name"]} for each in entries]}
    if cpu:
        resources["requests"] = {"cpu": f"{cpu}m"}
    spec: Document = {
        "containers": [{"name": "main", "image": "registry.example/app:1", "resources": resources}],
        "resourceClaims": entries,
    }
    if is_urgent:
        spec["priorityClassName"] = "urgent"
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"}, "spec": spec}


def taint_rule(name: str, *, pool: str, device: str, effect: str) -> Document:
    return {
        "apiVersion": RESOURCE,
        "kind": "DeviceTaintRule",
        "metadata": {"name": name},
        "spec": {
            "deviceSelector": {"driver": GPU, "pool": pool, "device": device},
            "taint": {"key": "example.com/broken", "effect": effect},
        },
    }
