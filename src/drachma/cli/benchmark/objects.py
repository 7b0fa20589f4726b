"""Objects of the workloads: upstream's parameters for its scheduling benchmarks, as documents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

Document = dict[str, Any]

DRIVER: Final = "test-driver.cdi.k8s.io"
CLASS: Final = "test-class"
TEMPLATE: Final = "test-claim-template"
INIT: Final = "init"
MEASURED: Final = "test"
PODS_PER_CLAIM: Final = 5
"""Pods that share one claim."""

_GROUP: Final = "resource.k8s.io/v1"
_ROOTS: Final = 2
_TAINT: Final = "example.com/taint"
_LISTED_DEVICES: Final = 64
_LISTED_VALUES: Final = 47


def namespace(name: str) -> Document:
    """Return a namespace."""
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def node_name(number: int) -> str:
    """Return the name of a node."""
    return f"scheduler-perf-dra-{number}"


def node(number: int, labels: Mapping[str, str], *, pods: int = 110) -> Document:
    """Return a node with 4 CPUs and 32 GiB for some pods, with these labels among others."""
    amounts = {"pods": str(pods), "cpu": "4", "memory": "32Gi"}
    name = node_name(number)
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"node-with-dra": "true", "kubernetes.io/hostname": name, **labels}},
        "status": {
            "capacity": amounts,
            "allocatable": amounts,
            "conditions": [{"type": "Ready", "status": "True"}],
            "phase": "Running",
        },
    }


def device_class(name: str = CLASS, *, expression: str = f'device.driver == "{DRIVER}"') -> Document:
    """Return the class of the devices that an expression matches, by default all of the driver."""
    selectors = [{"cel": {"expression": expression}}]
    return {"apiVersion": _GROUP, "kind": "DeviceClass", "metadata": {"name": name}, "spec": {"selectors": selectors}}


def taint_rule() -> Document:
    """Return a rule that taints all devices."""
    return {
        "apiVersion": _GROUP,
        "kind": "DeviceTaintRule",
        "metadata": {"name": "taint-all-devices"},
        "spec": {"taint": {"key": _TAINT, "value": "tainted", "effect": "NoSchedule"}},
    }


TOLERATION: Final[Document] = {"key": _TAINT, "operator": "Exists"}


# Requests of pods


def request(name: str = "req-0", **exactly: Any) -> Document:
    """Return a request for devices of the class."""
    return {"name": name, "exactly": {"deviceClassName": CLASS, **exactly}}


def claim_spec(*requests: Document, constraints: Sequence[Document] = ()) -> Document:
    """Return the spec of a claim for these requests, by default for one device of the class."""
    devices: Document = {"requests": list(requests) or [request()]}
    if constraints:
        devices["constraints"] = list(constraints)
    return {"devices": devices}


def claim(number: int, spec: Document) -> Document:
    """Return a claim that fills the cluster before the measurement."""
    metadata = {"name": f"test-claim-{number}", "namespace": INIT}
    return {"apiVersion": _GROUP, "kind": "ResourceClaim", "metadata": metadata, "spec": spec}


def claim_template(namespace: str, spec: Document) -> Document:
    """Return the template that all pods of a namespace use."""
    metadata = {"name": TEMPLATE, "namespace": namespace}
    return {"apiVersion": _GROUP, "kind": "ResourceClaimTemplate", "metadata": metadata, "spec": {"spec": spec}}


def pod(namespace: str, _number: int) -> Document:
    """Return a pod with one claim from the template."""
    container = {
        "name": "pause",
        "image": "registry.k8s.io/pause:3.10.1",
        "resources": {"claims": [{"name": "resource"}]},
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"generateName": "test-dra", "namespace": namespace},
        "spec": {
            "containers": [container],
            "resourceClaims": [{"name": "resource", "resourceClaimTemplateName": TEMPLATE}],
        },
    }


def sharing_pod(namespace: str, number: int) -> Document:
    """Return a pod that shares a claim with four others."""
    document = pod(namespace, number)
    claim_name = f"test-claim-{number // PODS_PER_CLAIM}"
    document["spec"]["resourceClaims"] = [{"name": "resource", "resourceClaimName": claim_name}]
    return document


def extended_class(number: int, resource: str) -> Document:
    """Return a class of all devices, for an extended resource if there is one."""
    document = device_class(f"{CLASS}-{number}")
    if resource:
        document["spec"]["extendedResourceName"] = resource
    return document


def extended_pod(namespace: str, number: int, *, resources: Sequence[str]) -> Document:
    """Return a pod with one device of one of the extended resources, which pods use in turn."""
    amounts = {resources[number % len(resources)]: "1"}
    container = {
        "name": "pause",
        "image": "registry.k8s.io/pause:3.10.1",
        "resources": {"requests": amounts, "limits": amounts},
    }
    metadata = {"generateName": "test-dra", "namespace": namespace}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [container]}}


# Groups of pods


def group_name(number: int) -> str:
    """Return the name of a PodGroup."""
    return f"test-dra-{number}"


def group_slice(number: int) -> Document:
    """Return the slice with the one device of a group, which all nodes can use."""
    expression = {"key": "node-with-dra", "operator": "In", "values": ["true"]}
    return {
        "apiVersion": _GROUP,
        "kind": "ResourceSlice",
        "metadata": {"name": f"resourceslice-podgroup-{number}"},
        "spec": {
            "driver": DRIVER,
            "pool": {"name": f"resourceslice-{number}", "generation": 1, "resourceSliceCount": 1},
            "nodeSelector": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]},
            "devices": [{"name": "device"}],
        },
    }


def group_claim(number: int, *, is_generated: bool) -> Document:
    """Return the entry for the claim of a group: generated from the template, or by name."""
    if is_generated:
        return {"name": "resource", "resourceClaimTemplateName": TEMPLATE}
    return {"name": "resource", "resourceClaimName": f"test-claim-{number}"}


def pod_group(number: int, *, is_generated: bool) -> Document:
    """Return a group with one claim."""
    return {
        "apiVersion": "scheduling.k8s.io/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": group_name(number), "namespace": MEASURED},
        "spec": {
            "schedulingPolicy": {"basic": {}},
            "resourceClaims": [group_claim(number, is_generated=is_generated)],
        },
    }


def group_member(number: int, *, is_generated: bool) -> Document:
    """Return a pod of a group that uses the claim of the group."""
    document = pod(MEASURED, number)
    document["spec"]["resourceClaims"] = [group_claim(number, is_generated=is_generated)]
    document["spec"]["schedulingGroup"] = {"podGroupName": group_name(number)}
    return document


# Devices of nodes


def no_slices(_number: int) -> list[Document]:
    """Return nothing: the devices of the workload are not those of a node."""
    return []


def plain_slices(number: int) -> list[Document]:
    """Return ten GPUs with many attributes, on two PCIe roots in turn."""
    return [_slice(number, devices=[_gpu(index) for index in range(10)])]


def _gpu(index: int) -> Document:
    root = index % _ROOTS
    address = f"0000:0{index}:00.0"
    texts = {
        "driver": "xe",
        "resource.k8s.io/pciRoot": f"{root}",
        "family": "Arc Pro B-Series",
        "health": "Healthy",
        "model": "B60",
        "pciAddress": address,
        "pciId": "0xe211",
        "pciRoot": f"0{root}",
        "resource.kubernetes.io/pciBusID": address,
        "resource.kubernetes.io/pciRoot": f"pci0000:0{root}",
        "type": "gpu",
    }
    return {
        "name": f"basic-device-{index}",
        "attributes": {
            "driverVersion": {"version": "1.2.3"},
            "sriov": {"bool": True},
            **{name: {"string": text} for name, text in texts.items()},
        },
        "capacity": {"memory": {"value": "24480Mi"}, "millicores": {"value": "1k"}},
    }


def shared_slices(number: int) -> list[Document]:
    """Return four devices with a shared bandwidth of 10 Gb; one of them has slightly more."""
    policy = {"default": "1M", "validRange": {"min": "1M", "step": "8"}}
    devices = [
        {
            "name": f"shareable-device-{index}",
            "allowMultipleAllocations": True,
            "attributes": {"dra.example.com/index": {"int": index}},
            "capacity": {"bandwidth": {"value": "10Gi" if index == 2 else "10G", "requestPolicy": policy}},
        }
        for index in range(4)
    ]
    return [_slice(number, devices=devices)]


def partitioned_slices(number: int) -> list[Document]:
    """Return two devices, each of which consumes two of four counters."""
    return _counted_slices(
        number,
        counters={"counter-set": {f"counter{index}": "1" for index in (1, 2, 3, 4)}},
        devices={
            "device-1": {"counter-set": {"counter1": "1", "counter2": "1"}},
            "device-2": {"counter-set": {"counter3": "1", "counter4": "1"}},
        },
    )


def compatible_slices(number: int) -> list[Document]:
    """Return two devices like those of :func:`partitioned_slices` that may be used together."""
    counters, devices = partitioned_slices(number)
    for device in devices["spec"]["devices"]:
        for consumption in device["consumesCounters"]:
            consumption["compatibilityGroups"] = ["mig"]
    return [counters, devices]


def listed_slices(number: int) -> list[Document]:
    """Return 64 devices with 47 values of an attribute, of which the last 32 devices have one more in common."""
    devices = []
    for index in range(_LISTED_DEVICES):
        values = ["shared-value"] if index >= _LISTED_DEVICES // 2 else []
        values += [f"device-{index}-value-{value}" for value in range(_LISTED_VALUES)]
        devices.append({"name": f"device-{index}", "attributes": {"dra.example.com/match": {"strings": values}}})
    return [_slice(number, devices=devices)]


def misleading_slices(number: int) -> list[Document]:
    """Return eight devices of which the first consumes so much memory that no seven fit together with it."""
    return _counted_slices(
        number,
        counters={
            "counter-set-for-cpu": {f"cpu{index}": "1" for index in range(1, 9)},
            "counter-set-for-mem": {"mem": "70Gi"},
        },
        devices={
            f"device-{index}": {
                "counter-set-for-cpu": {f"cpu{index}": "1"},
                "counter-set-for-mem": {"mem": "20Gi" if index == 1 else "10Gi"},
            }
            for index in range(1, 9)
        },
    )


def _counted_slices(
    number: int, *, counters: dict[str, dict[str, str]], devices: dict[str, dict[str, dict[str, str]]]
) -> list[Document]:
    """Return one slice with the counters, and one with the devices that consume them."""
    sets = [{"name": name, "counters": _amounts(amounts)} for name, amounts in counters.items()]
    consuming = [
        {
            "name": name,
            "consumesCounters": [
                {"counterSet": counter_set, "counters": _amounts(amounts)}
                for counter_set, amounts in consumption.items()
            ],
        }
        for name, consumption in devices.items()
    ]
    return [
        _slice(number, name="countersets", slices=2, sharedCounters=sets),
        _slice(number, name="devices", slices=2, devices=consuming),
    ]


def _amounts(amounts: dict[str, str]) -> Document:
    return {name: {"value": amount} for name, amount in amounts.items()}


def _slice(number: int, *, name: str = "", slices: int = 1, **spec: Any) -> Document:
    pool = f"resourceslice-{number}"
    return {
        "apiVersion": _GROUP,
        "kind": "ResourceSlice",
        "metadata": {"name": f"resourceslice-{name}-{number}" if name else pool},
        "spec": {
            "driver": DRIVER,
            "nodeName": node_name(number),
            "pool": {"name": pool, "generation": 1, "resourceSliceCount": slices},
            **spec,
        },
    }
