"""Rows of drivers: real and simulated ones, and pods of drivers that publish nothing."""

import datetime as dt
from typing import Any

import msgspec
import pytest

from drachma.cli.inventory import cluster as clusters
from drachma.cli.inventory import driverrows, table
from tests.unit.cli.inventory.test_rows import NOW, a_claim, read

PUBLISHED = {"simulation.drachma.dev/published": "0123456789abcdef"}
REGISTRY = "/var/lib/kubelet/plugins_registry"


def a_slice(driver: str, node: str, *, annotations: dict[str, str] | None = None, devices: int = 2) -> Any:
    spec = {
        "driver": driver,
        "nodeName": node,
        "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
        "devices": [{"name": f"gpu-{number}"} for number in range(devices)],
    }
    stored = read("ResourceSlice", f"{driver}-{node}", spec=spec)
    metadata = msgspec.structs.replace(stored.metadata, annotations=annotations or {})
    return msgspec.structs.replace(stored, metadata=metadata)


def a_driver_pod(path: str, container_id: str, node: str = "n1") -> driverrows.DriverPod:
    owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "plugin", "uid": "u", "controller": True}
    document = {
        "metadata": {"name": f"plugin-{node}", "namespace": "gpu", "ownerReferences": [owner]},
        "spec": {"nodeName": node, "volumes": [{"name": "plugins", "hostPath": {"path": path}}]},
        "status": {"containerStatuses": [{"name": "c", "containerID": container_id}]},
    }
    return msgspec.json.decode(msgspec.json.encode(document), type=driverrows.DriverPod)


def shown(cluster: clusters.Cluster, now: dt.datetime = NOW, **wanted: str) -> list[tuple[str, ...]]:
    drivers = driverrows.TABLES["drivers"]
    shown_rows = drivers.rows(cluster, table.Filter(**wanted), now)
    return [tuple(row.cells[name] for name in drivers.columns) for row in shown_rows]


CLUSTER = clusters.Cluster(
    slices=(
        a_slice("gpu.example.com", "n1", annotations=PUBLISHED),
        a_slice("gpu.example.com", "n2", annotations=PUBLISHED),
        a_slice("nic.example.com", "n1", devices=1),
    ),
    claims=(a_claim("used", ("n1", "gpu-0"), pods=("p",)),),
    driver_pods=(
        a_driver_pod(REGISTRY, "simulated://x"),
        a_driver_pod(f"{REGISTRY}/", "simulated://y", "n2"),
    ),
)


def test_drivers_with_their_devices_and_drivers_that_are_only_simulated() -> None:
    assert shown(CLUSTER) == [
        ("gpu.example.com", "simulated", "2", "4", "3", "1"),
        ("nic.example.com", "driver", "1", "1", "1", "0"),
        ("gpu/daemonset/plugin", "simulated pods, no driver", "2", "0", "0", "0"),
    ]
    assert shown(CLUSTER, driver="nic.example.com") == [("nic.example.com", "driver", "1", "1", "1", "0")]


@pytest.mark.parametrize(
    "pod",
    [
        pytest.param(a_driver_pod("/var/log", "simulated://x"), id="not-a-driver"),
        pytest.param(a_driver_pod("/var/lib/kubelet/plugins_registry_of_others", "simulated://x"), id="another-folder"),
        pytest.param(a_driver_pod(REGISTRY, "podman://x"), id="a-real-container"),
    ],
)
def test_pods_that_are_no_simulated_drivers(pod: driverrows.DriverPod) -> None:
    assert not pod.is_simulated_driver
