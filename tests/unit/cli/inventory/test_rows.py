"""Rows of devices, pools, claims, nodes and pods: how they belong together, and filters."""

import datetime as dt
from typing import Any

import pytest

from drachma.api import codec
from drachma.cli.inventory import cluster as clusters
from drachma.cli.inventory import rows, table

NOW = dt.datetime(2026, 1, 1, 1, tzinfo=dt.UTC)
CREATED = "2026-01-01T00:00:00Z"


def read(kind: str, name: str, api_version: str = "resource.k8s.io/v1", **parts: Any) -> Any:
    metadata: dict[str, Any] = {"name": name, "creationTimestamp": CREATED}
    if kind in ("ResourceClaim", "Pod"):
        metadata["namespace"] = "default"
    return codec.decode({"apiVersion": api_version, "kind": kind, "metadata": metadata, **parts})


def a_slice(name: str, *, node: str, generation: int = 1, count: int = 1, devices: tuple[str, ...]) -> Any:
    spec = {
        "driver": "gpu.example.com",
        "nodeName": node,
        "pool": {"name": node, "generation": generation, "resourceSliceCount": count},
        "devices": [
            {"name": each, "attributes": {"model": {"string": "a"}}, "capacity": {"memory": {"value": "8Gi"}}}
            for each in devices
        ],
    }
    return read("ResourceSlice", name, spec=spec)


def a_claim(name: str, *devices: tuple[str, str], pods: tuple[str, ...] = (), device_class: str = "gpu") -> Any:
    results = [
        {"request": "r", "driver": "gpu.example.com", "pool": pool, "device": device} for pool, device in devices
    ]
    status: dict[str, Any] = {"allocation": {"devices": {"results": results}}} if results else {}
    if pods:
        status["reservedFor"] = [{"resource": "pods", "name": each, "uid": each} for each in pods]
    request = {"name": "r", "exactly": {"deviceClassName": device_class}}
    return read("ResourceClaim", name, spec={"devices": {"requests": [request]}}, status=status)


def a_pod(name: str, node: str, claim: str) -> Any:
    spec = {
        "nodeName": node,
        "containers": [{"name": "c", "image": "i"}],
        "resourceClaims": [{"name": "x", "resourceClaimName": claim}],
    }
    return read("Pod", name, "v1", spec=spec, status={"phase": "Running"})


CLUSTER = clusters.Cluster(
    nodes=(
        read(
            "Node",
            "n1",
            "v1",
            status={"conditions": [{"type": "Ready", "status": "True"}], "capacity": {"memory": "8Gi"}},
        ),
        read("Node", "n2", "v1", spec={"unschedulable": True}),
    ),
    pods=(a_pod("p", "n1", "used"),),
    claims=(a_claim("used", ("n1", "gpu-0"), pods=("p",)), a_claim("waiting", device_class="big")),
    slices=(
        a_slice("old", node="n1", devices=("gone",)),
        a_slice("s1", node="n1", generation=2, devices=("gpu-0", "gpu-1")),
        a_slice("s2", node="n2", count=2, devices=("gpu-0",)),
    ),
)


def shown(what: str, *columns: str, **wanted: str) -> list[tuple[str, ...]]:
    found = rows.TABLES[what].rows(CLUSTER, table.Filter(**wanted), NOW)
    return [tuple(row.cells[name] for name in columns) for row in found]


def test_devices() -> None:
    assert shown("devices", "DEVICE", "NODE", "CLAIM", "POD") == [
        ("gpu-0", "n1", "default/used", "p"),
        ("gpu-1", "n1", "<none>", "<none>"),
        ("gpu-0", "n2", "<none>", "<none>"),
    ]
    assert shown("devices", "CAPACITY", "ATTRIBUTES", node="n2") == [("memory=8Gi", "model=a")]


def test_devices_that_are_not_published_or_given_twice() -> None:
    cluster = clusters.Cluster(
        claims=(
            a_claim("a", ("n1", "gpu-0")),
            a_claim("b", ("n1", "gpu-0")),
            a_claim("c", ("n1", "gpu-1")),
            a_claim("d", ("n1", "gone")),
        ),
        slices=(a_slice("s1", node="n1", generation=2, devices=("gpu-0", "gpu-1", "gpu-2")),),
    )
    states = [
        (row.cells["DEVICE"], row.cells["STATE"], row.cells["CLAIM"])
        for row in rows.TABLES["devices"].rows(cluster, table.Filter(), NOW)
    ]
    assert states == [
        ("gpu-0", "overallocated", "default/a,default/b"),
        ("gpu-1", "allocated", "default/c"),
        ("gpu-2", "free", "<none>"),
        ("gone", "unpublished", "default/d"),
    ]


def test_pools_have_the_newest_generation() -> None:
    assert shown("pools", "POOL", "DEVICES", "FREE", "SLICES", "GENERATION") == [
        ("n1", "2", "1", "1/1", "2"),
        ("n2", "1", "1", "1/2", "1"),
    ]


def test_claims() -> None:
    assert shown("claims", "NAME", "STATE", "DEVICES", "NODE", "PODS", "AGE") == [
        ("used", "allocated,reserved", "gpu-0", "n1", "p", "60m"),
        ("waiting", "pending", "<none>", "<none>", "<none>", "60m"),
    ]


def test_nodes() -> None:
    assert shown("nodes", "NAME", "STATUS", "PODS", "FREE DEVICES") == [
        ("n1", "Ready", "1/?", "gpu=1/2"),
        ("n2", "Unknown,SchedulingDisabled", "0/?", "gpu=1/1"),
    ]


def test_devices_are_counted_by_driver_and_names_are_short_if_they_can_be() -> None:
    def published(driver: str) -> Any:
        spec = {
            "driver": driver,
            "nodeName": "n",
            "pool": {"name": "n", "generation": 1, "resourceSliceCount": 1},
            "devices": [{"name": "d-0"}, {"name": "d-1"}],
        }
        return read("ResourceSlice", driver, spec=spec)

    def cell(*drivers: str) -> str:
        of = clusters.Cluster(nodes=(read("Node", "n", "v1"),), slices=tuple(map(published, drivers)))
        (row,) = rows.TABLES["nodes"].rows(of, table.Filter(), NOW)
        return row.cells["FREE DEVICES"]

    assert cell("gpu.example.com", "nic.example.com") == "gpu=2/2,nic=2/2"
    assert cell("gpu.a.example.com", "gpu.b.example.com") == "gpu.a.example.com=2/2,gpu.b.example.com=2/2"


def test_names_are_sorted_as_people_count() -> None:
    of = clusters.Cluster(nodes=tuple(read("Node", f"node-{number}", "v1") for number in (10, 9, 1)))
    names = [row.cells["NAME"] for row in rows.TABLES["nodes"].rows(of, table.Filter(), NOW)]
    assert names == ["node-1", "node-9", "node-10"]


def test_pods_have_the_reason_why_they_do_not_run() -> None:
    message = "0/3 nodes are available: 3 cannot allocate all claims."
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
    waiting = read("Pod", "p", "v1", spec={"containers": []}, status={"phase": "Pending", "conditions": [condition]})
    (row,) = rows.TABLES["pods"].rows(clusters.Cluster(pods=(waiting,)), table.Filter(), NOW)
    assert (row.cells["STATUS"], row.cells["REASON"]) == ("Pending", message)
    assert row.document["reason"] == message


def test_failed_pods_have_the_exit_codes_of_their_containers() -> None:
    terminated = {"exitCode": 4, "containerID": "x://c"}
    state = {"name": "c", "state": {"terminated": terminated}}
    failed = read("Pod", "p", "v1", spec={"containers": []}, status={"phase": "Failed", "containerStatuses": [state]})
    (row,) = rows.TABLES["pods"].rows(clusters.Cluster(pods=(failed,)), table.Filter(), NOW)
    assert (row.cells["STATUS"], row.cells["REASON"]) == ("Failed", "c: exit code 4")


def test_crashing_pods_say_what_their_container_waits_for() -> None:
    message = "back-off 40s restarting failed container=c"
    state = {"name": "c", "state": {"waiting": {"reason": "CrashLoopBackOff", "message": message}}}
    crashing = read(
        "Pod", "p", "v1", spec={"containers": []}, status={"phase": "Running", "containerStatuses": [state]}
    )
    (row,) = rows.TABLES["pods"].rows(clusters.Cluster(pods=(crashing,)), table.Filter(), NOW)
    assert (row.cells["STATUS"], row.cells["REASON"]) == ("CrashLoopBackOff", message)


def test_pods_that_start_as_usual_are_pending() -> None:
    state = {"name": "c", "state": {"waiting": {"reason": "ContainerCreating"}}}
    starting = read(
        "Pod", "p", "v1", spec={"containers": []}, status={"phase": "Pending", "containerStatuses": [state]}
    )
    (row,) = rows.TABLES["pods"].rows(clusters.Cluster(pods=(starting,)), table.Filter(), NOW)
    assert row.cells["STATUS"] == "Pending"


def test_what_pods_are_to_their_nodes() -> None:
    columns = ("QOS", "CPU-SHARES", "CPU-QUOTA", "MEMORY-MAX", "OOM-SCORES", "EVICTION")
    assert shown("pods", *columns) == [("BestEffort", "2", "max", "max", "c:1000", "1")]


def test_pods() -> None:
    assert shown("pods", "NAME", "STATUS", "NODE", "DEVICES", "CLAIMS") == [("p", "Running", "n1", "gpu-0", "used")]


@pytest.mark.parametrize(
    ("what", "wanted", "want"),
    [
        pytest.param("devices", {"driver": "other"}, 0, id="devices-of-another-driver"),
        pytest.param("devices", {"pool": "n1"}, 2, id="devices-of-a-pool"),
        pytest.param("devices", {"device_class": "gpu"}, 1, id="devices-for-a-class"),
        pytest.param("claims", {"device_class": "big"}, 1, id="claims-of-a-class"),
        pytest.param("claims", {"node": "n1"}, 1, id="claims-on-a-node"),
        pytest.param("claims", {"driver": "gpu.example.com"}, 1, id="claims-with-devices-of-a-driver"),
        pytest.param("nodes", {"node": "n2"}, 1, id="one-node"),
        pytest.param("pools", {"node": "n2"}, 1, id="pools-on-a-node"),
        pytest.param("pods", {"device_class": "big"}, 0, id="pods-of-another-class"),
        pytest.param("pods", {"pool": "n1"}, 1, id="pods-with-devices-of-a-pool"),
    ],
)
def test_filters(what: str, wanted: dict[str, str], want: int) -> None:
    assert len(shown(what, **wanted)) == want


@pytest.mark.parametrize("what", rows.TABLES)
def test_every_column_is_filled(what: str) -> None:
    tried = rows.TABLES[what]
    for row in tried.rows(CLUSTER, table.Filter(), NOW):
        assert set(row.cells) == {*tried.columns, *tried.wide}
