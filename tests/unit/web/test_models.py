"""The model: states of devices, changes of objects, and what the map is told."""

import datetime as dt
import json
from typing import Any

import pytest

from drachma.api import codec, meta
from drachma.claims.identity import DeviceID, PoolID
from drachma.runtime.cache import Key
from drachma.web.devicemap import DeviceMap
from drachma.web.models import CLAIMS, DEVICES, NODES, PODS, Model
from drachma.web.rows import ClaimState, DeviceState, PodStatus

NOW = dt.datetime(2026, 11, 18, 12, tzinfo=dt.UTC)
DRIVER = "gpu.example.com"
V1 = "resource.k8s.io/v1"


def decode(
    kind: str, name: str, *, api_version: str = "resource.k8s.io/v1", namespace: str = "", **content: Any
) -> Any:
    metadata: dict[str, Any] = {"name": name, "uid": name, "creationTimestamp": "2026-11-18T11:00:00Z"}
    if namespace:
        metadata["namespace"] = namespace
    return codec.decode({"apiVersion": api_version, "kind": kind, "metadata": metadata, **content})


def slice_of(*devices: dict[str, Any], node: str = "node-a", generation: int = 1, count: int = 1, **more: Any) -> Any:
    pool = {"name": node, "generation": generation, "resourceSliceCount": count}
    spec = {"driver": DRIVER, "nodeName": node, "pool": pool, "devices": list(devices), **more}
    return decode("ResourceSlice", f"{node}-{generation}", spec=spec)


def claim_of(*devices: str, name: str = "claim", pod: str = "worker", node: str = "node-a", **result: Any) -> Any:
    results = [{"request": "r", "driver": DRIVER, "pool": node, "device": each, **result} for each in devices]
    users = [{"resource": "pods", "name": pod, "uid": pod}] if pod else []
    exactly = {"deviceClassName": "gpu"}
    return decode(
        "ResourceClaim",
        name,
        namespace="team",
        spec={"devices": {"requests": [{"name": "r", "exactly": exactly}]}},
        status={"allocation": {"devices": {"results": results}}, "reservedFor": users},
    )


def node_of(name: str, *, ready: str = "True") -> Any:
    status = {"conditions": [{"type": "Ready", "status": ready}]}
    return decode("Node", name, api_version="v1", status=status)


def states(*objects: meta.Object) -> dict[str, DeviceState]:
    model = Model()
    for each in objects:
        model.put(each)
    return {cell.id.device: cell.state for cell in model.cells}


def taint(effect: str) -> dict[str, str]:
    return {"key": "example.com/broken", "effect": effect}


COUNTERS = [{"name": "gpu-0", "counters": {"memory": {"value": "80Gi"}}}]


def part(name: str, memory: str) -> dict[str, Any]:
    return {"name": name, "consumesCounters": [{"counterSet": "gpu-0", "counters": {"memory": {"value": memory}}}]}


@pytest.mark.parametrize(
    ("objects", "want"),
    [
        pytest.param([slice_of({"name": "a"})], {"a": DeviceState.FREE}, id="free"),
        pytest.param([slice_of({"name": "a"}), claim_of("a")], {"a": DeviceState.USED}, id="used"),
        pytest.param([slice_of({"name": "a"}), claim_of("a", pod="")], {"a": DeviceState.RESERVED}, id="reserved"),
        pytest.param(
            [slice_of({"name": "a", "allowMultipleAllocations": True}), claim_of("a")],
            {"a": DeviceState.SHARED},
            id="shared",
        ),
        pytest.param([slice_of({"name": "a"}), claim_of("a", adminAccess=True)], {"a": DeviceState.FREE}, id="admin"),
        pytest.param(
            [slice_of({"name": "a", "taints": [taint("NoSchedule")]})], {"a": DeviceState.TAINTED}, id="tainted"
        ),
        pytest.param(
            [slice_of({"name": "a", "taints": [taint("NoExecute")]}), claim_of("a")],
            {"a": DeviceState.UNHEALTHY},
            id="unhealthy",
        ),
        pytest.param(
            [slice_of(part("whole", "80Gi"), part("half", "40Gi"), part("rest", "40Gi"), sharedCounters=COUNTERS)],
            {"whole": DeviceState.FREE, "half": DeviceState.FREE, "rest": DeviceState.FREE},
            id="partitions-free",
        ),
        pytest.param(
            [
                slice_of(part("whole", "80Gi"), part("half", "40Gi"), part("rest", "40Gi"), sharedCounters=COUNTERS),
                claim_of("half"),
            ],
            {"whole": DeviceState.BLOCKED, "half": DeviceState.USED, "rest": DeviceState.FREE},
            id="partition-blocks-the-whole",
        ),
        pytest.param(
            [slice_of({"name": "old"}), slice_of({"name": "new"}, generation=2)],
            {"new": DeviceState.FREE},
            id="newest-generation-only",
        ),
    ],
)
def test_states_of_devices(objects: list[meta.Object], want: dict[str, DeviceState]) -> None:
    assert states(*objects) == want


def test_a_rule_taints_devices_until_it_is_deleted() -> None:
    model = Model()
    model.put(slice_of({"name": "a"}))
    spec = {"deviceSelector": {"driver": DRIVER}, "taint": {"key": "example.com/x", "effect": "NoSchedule"}}
    rule = decode("DeviceTaintRule", "rule", api_version="resource.k8s.io/v1beta2", spec=spec)
    assert model.put(rule) == (DEVICES,)
    assert [cell.state for cell in model.cells] == [DeviceState.TAINTED]
    model.drop(rule)
    assert [cell.state for cell in model.cells] == [DeviceState.FREE]


def test_changes_name_their_topics_and_deletions_free_devices() -> None:
    model = Model()
    assert model.put(node_of("node-a")) == (NODES, DEVICES)
    assert model.put(node_of("node-a")) == (), "a heartbeat changes nothing that pages show"
    assert model.put(node_of("node-a", ready="Unknown")) == (NODES, DEVICES)
    assert model.put(slice_of({"name": "a"})) == (DEVICES,)
    claim = claim_of("a")
    assert model.put(claim) == (CLAIMS, DEVICES)
    assert model.claims[Key("team", "claim")].state is ClaimState.RESERVED
    assert [use.claim for use in model.uses(DeviceID(DRIVER, "node-a", "a"))] == [claim]
    model.drop(claim)
    assert [cell.state for cell in model.cells] == [DeviceState.FREE]
    model.drop(slice_of({"name": "a"}))
    assert list(model.cells) == []
    assert PoolID(DRIVER, "node-a") not in model.pools


def test_an_incomplete_pool_is_known() -> None:
    model = Model()
    model.put(slice_of({"name": "a"}, count=2))
    assert not model.pools[PoolID(DRIVER, "node-a")].is_complete


def pod_of(name: str = "worker", *, phase: str = "", node: str = "", deleted: bool = False, **spec: Any) -> Any:
    document: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "team", "uid": name, "creationTimestamp": "2026-11-18T11:00:00Z"},
        "spec": {**({"nodeName": node} if node else {}), **spec},
        "status": {"phase": phase} if phase else {},
    }
    if deleted:
        document["metadata"]["deletionTimestamp"] = "2026-11-18T11:30:00Z"
    return codec.decode(document)


@pytest.mark.parametrize(
    ("pod", "want"),
    [
        pytest.param(pod_of(), PodStatus.PENDING, id="pending"),
        pytest.param(pod_of(schedulingGates=[{"name": "g"}]), PodStatus.GATED, id="gated"),
        pytest.param(pod_of(node="n", phase="Pending"), PodStatus.STARTING, id="starting"),
        pytest.param(pod_of(node="n", phase="Running"), PodStatus.RUNNING, id="running"),
        pytest.param(pod_of(node="n", phase="Running", deleted=True), PodStatus.TERMINATING, id="terminating"),
        pytest.param(pod_of(node="n", phase="Failed"), PodStatus.FAILED, id="failed"),
    ],
)
def test_status_of_a_pod(pod: Any, want: PodStatus) -> None:
    model = Model()
    assert model.put(pod) == (PODS,)
    assert model.pods[Key("team", "worker")].status is want


def test_the_map_has_each_tile_once_and_forgets_deleted_nodes() -> None:
    model = Model()
    device_map = DeviceMap(model)
    model.put(node_of("node-a"))
    model.put(slice_of({"name": "a"}))
    model.put(slice_of({"name": "b"}, node="node-b"))
    first = json.loads(device_map.encode(generation=1, since=-1))
    assert [(tile["n"], tile["k"], len(tile["d"])) for tile in first["tiles"]] == [("node-a", 1, 1), ("node-b", 0, 1)]
    assert json.loads(device_map.encode(generation=1, since=first["version"]))["tiles"] == []
    model.put(claim_of("a"))
    changed = json.loads(device_map.encode(generation=1, since=first["version"]))
    assert [tile["n"] for tile in changed["tiles"]] == ["node-a"]
    model.drop(slice_of({"name": "b"}, node="node-b"))
    gone = json.loads(device_map.encode(generation=1, since=changed["version"]))
    assert [(tile["n"], tile["d"]) for tile in gone["tiles"]] == [("node-b", [])]


def test_many_deleted_nodes_are_forgotten_and_old_browsers_get_everything() -> None:
    model = Model()
    device_map = DeviceMap(model)
    model.put(node_of("stays"))
    old = json.loads(device_map.encode(generation=1, since=-1))["version"]
    for number in range(1100):
        model.put(node_of(f"node-{number}"))
        model.drop(node_of(f"node-{number}"))
    model.put(slice_of({"name": "a"}, node="stays"))
    answer = json.loads(device_map.encode(generation=1, since=old))
    assert answer["full"]
    assert [tile["n"] for tile in answer["tiles"]] == ["stays"]
    assert len(model.node_versions) == 1


def test_the_history_begins_with_the_past_of_objects() -> None:
    model = Model()
    model.put(pod_of())
    model.put(slice_of({"name": "a"}))
    model.put(claim_of("a"))
    model.reconstruct(NOW)
    model.sample(NOW)
    assert (model.history[-1].used, model.history[-1].devices, model.history[-1].pending) == (1, 1, 1)
    assert model.history[0].time == NOW - dt.timedelta(hours=1)
    assert model.history[-2].pending == 1
