"""Documents of simulated machines: Nodes with versions and topology, and ResourceSlices."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from drachma.api import kubernetesversion

RACK_LABEL: Final = "simulation.drachma.dev/rack"
"""Label of the rack of a node. Nodes reach the fabric devices of their rack."""

_RACK_MACHINES: Final = 4
_ZONE_MACHINES: Final = 64


def describe_node(
    name: str, *, cpu: int, memory: str, labels: Mapping[str, str] | None = None, architecture: str = "amd64"
) -> dict[str, Any]:
    """Return the Node of a machine."""
    resources = {"cpu": str(cpu), "memory": memory, "ephemeral-storage": "100Gi", "pods": "110"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {
                "kubernetes.io/hostname": name,
                "kubernetes.io/os": "linux",
                "kubernetes.io/arch": architecture,
                **(labels or {}),
            },
        },
        "status": {"capacity": resources, "allocatable": resources},
    }


def slice_document(
    name: str, driver: str, devices: list[dict[str, Any]] | None, *, suffix: str = "", count: int = 1
) -> dict[str, Any]:
    """Return a slice of a driver on a node; ``count`` is the number of slices of its pool."""
    spec: dict[str, Any] = {
        "driver": driver,
        "nodeName": name,
        "pool": {"name": name, "generation": 1, "resourceSliceCount": count},
    }
    if devices is not None:
        spec["devices"] = devices
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": f"{name}-{driver}{suffix}"},
        "spec": spec,
    }


def complete_node(document: Mapping[str, Any], number: int, *, profile: str) -> dict[str, Any]:
    """Return a Node with versions, zone, rack and instance type, as far as it does not have its own."""
    metadata, status = document["metadata"], document.get("status") or {}
    labels = metadata.get("labels") or {}
    architecture = labels.get("kubernetes.io/arch", "amd64")
    info = {
        "architecture": architecture,
        "operatingSystem": "linux",
        "kernelVersion": "6.12.0-simulated",
        "osImage": "drachma simulation",
        "kubeletVersion": kubernetesversion.TEXT,
        "kubeProxyVersion": "",
        "bootID": "",
        "machineID": metadata["name"],
        "systemUUID": "",
    }
    topology = {
        "node.kubernetes.io/instance-type": profile,
        "topology.kubernetes.io/region": "simulated",
        "topology.kubernetes.io/zone": f"zone-{number // _ZONE_MACHINES}",
        RACK_LABEL: f"rack-{number // _RACK_MACHINES}",
    }
    return {
        **document,
        "metadata": {**metadata, "labels": {**topology, **labels}},
        "status": {**status, "nodeInfo": {**info, **(status.get("nodeInfo") or {})}},
    }
