"""Census of clusters: counts by state, class, taint and reason, and the bound on series."""

import asyncio
import datetime as dt
import logging
import math
from typing import Any

import msgspec
import prometheus_client
import pytest

from drachma.api import codec, hooks
from drachma.exporter import Census, Exporter, Limits, Objects, fragmentation
from drachma.exporter.healthcensus import PodView
from drachma.exporter.series import Metric
from drachma.queueing.kinds import clusterqueue
from drachma.runtime import Surroundings, defects
from drachma.testing import claim, device_class, node, resource_slice
from drachma.testing import pod as a_pod
from tests import patience
from tests.scenarios import schedulers

NOW = dt.datetime(2026, 5, 1, 12, tzinfo=dt.UTC)
DRIVER = "gpu.example.com"


def _object(kind: str, name: str, **fields: Any) -> Any:
    metadata = {"name": name, "uid": f"uid-{name}", "creationTimestamp": "2026-05-01T11:00:00Z", "namespace": "default"}
    version = "v1" if kind == "Pod" else "resource.k8s.io/v1"
    return codec.decode(
        {"apiVersion": version, "kind": kind, "metadata": metadata | fields.pop("metadata", {}), **fields}
    )


def _slice(node_name: str, *devices: dict[str, Any], generation: int = 1, count: int = 1, name: str = "") -> Any:
    pool = {"name": node_name, "generation": generation, "resourceSliceCount": count}
    spec = {"driver": DRIVER, "nodeName": node_name, "pool": pool, "devices": list(devices)}
    return _object("ResourceSlice", name or f"{node_name}-{generation}", spec=spec)


def _claim(name: str, device: str = "", *, reserved: bool = False, **metadata: Any) -> Any:
    request = {"name": "r", "exactly": {"deviceClassName": "gpu"}}
    status: dict[str, Any] = {}
    if device:
        status["allocation"] = {
            "devices": {"results": [{"request": "r", "driver": DRIVER, "pool": "n1", "device": device}]}
        }
    if reserved:
        status["reservedFor"] = [{"resource": "pods", "name": "p", "uid": "u"}]
    return _object("ResourceClaim", name, metadata=metadata, spec={"devices": {"requests": [request]}}, status=status)


def _pod(name: str, message: str = "", **fields: Any) -> Any:
    status: dict[str, Any] = {"phase": "Pending"}
    if message:
        status["conditions"] = [
            {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
        ]
    return _object("Pod", name, spec={"containers": [], **fields}, status=status)


def _samples(objects: Objects, name: str, limits: Limits | None = None) -> dict[tuple[str, ...], float]:
    found: list[Metric] = [each for each in Census(limits).metrics(objects, now=NOW) if each.name == name]
    return dict(found[0].samples)


def test_devices_by_state() -> None:
    taint = {"key": "broken", "effect": "NoSchedule"}
    published = _slice("n1", {"name": "a"}, {"name": "b"}, {"name": "c", "taints": [taint]})
    objects = Objects(slices=[published], claims=[_claim("c", "a", reserved=True)])
    assert _samples(objects, "drachma_devices") == {
        (DRIVER, "n1", "allocated"): 1,
        (DRIVER, "n1", "free"): 1,
        (DRIVER, "n1", "tainted"): 1,
    }
    assert _samples(objects, "drachma_tainted_devices") == {(DRIVER, "broken", "NoSchedule"): 1}


def test_taints_of_rules_count() -> None:
    rule = _object(
        "DeviceTaintRule",
        "all",
        metadata={"namespace": ""},
        spec={"deviceSelector": {"driver": DRIVER}, "taint": {"key": "down", "effect": "NoExecute"}},
    )
    objects = Objects(slices=[_slice("n1", {"name": "a"})], rules=[rule])
    assert _samples(objects, "drachma_devices") == {(DRIVER, "n1", "tainted"): 1}


def test_only_the_newest_generation_counts() -> None:
    objects = Objects(slices=[_slice("n1", {"name": "old"}), _slice("n1", {"name": "a"}, {"name": "b"}, generation=2)])
    assert _samples(objects, "drachma_devices") == {(DRIVER, "n1", "free"): 2}


def test_pools_that_are_not_complete() -> None:
    objects = Objects(slices=[_slice("n1", {"name": "a"}, count=2), _slice("n2", {"name": "a"})])
    assert _samples(objects, "drachma_incomplete_pools") == {(DRIVER,): 1}


def test_devices_by_class() -> None:
    large = {"name": "a", "attributes": {"model": {"string": "large"}}}
    selector = {"cel": {"expression": f"device.attributes['{DRIVER}'].model == 'large'"}}
    classes = [
        _object("DeviceClass", "large", metadata={"namespace": ""}, spec={"selectors": [selector]}),
        _object("DeviceClass", "any", metadata={"namespace": ""}, spec={}),
    ]
    objects = Objects(slices=[_slice("n1", large, {**large, "name": "b"}, {"name": "c"})], classes=classes)
    objects = Objects(slices=objects.slices, classes=classes, claims=[_claim("x", "a")])
    samples = _samples(objects, "drachma_device_class_devices")
    assert samples["large", "allocated"] == 1
    assert samples["large", "free"] == 1
    assert samples["any", "free"] == 2
    assert samples["any", "tainted"] == 0


def test_claims_by_state_and_age() -> None:
    claims = [
        _claim("waits"),
        _claim("waits-2", creationTimestamp="2026-05-01T11:59:00Z"),
        _claim("idle", "a"),
        _claim("used", "b", reserved=True),
        _claim("going", "c", deletionTimestamp="2026-05-01T11:59:00Z"),
    ]
    objects = Objects(claims=claims)
    assert _samples(objects, "drachma_resource_claims") == {
        ("default", "pending"): 2,
        ("default", "allocated"): 1,
        ("default", "reserved"): 1,
        ("default", "deleting"): 1,
    }
    assert _samples(objects, "drachma_oldest_pending_claim_age_seconds") == {(): 3600}


@pytest.mark.parametrize(
    ("message", "want"),
    [
        pytest.param("", ["not tried yet"], id="no-condition"),
        pytest.param(
            "0/3 nodes are available: 1 Insufficient cpu, 2 cannot allocate all claims. preemption: 0/3 nodes",
            ["Insufficient cpu", "cannot allocate all claims"],
            id="counted",
        ),
        pytest.param(
            "0/2 nodes are available: 2 node(s) had untolerated taint {node.kubernetes.io/not-ready: }.",
            ["had untolerated taint * }"],
            id="names",
        ),
        pytest.param('resourceclaim "p-gpu" not found', ["resourceclaim * not found"], id="plain"),
    ],
)
def test_pending_pods_by_reason(message: str, want: list[str]) -> None:
    objects = Objects(pods=[_pod("p", message), _pod("bound", message, nodeName="n1")])
    assert _samples(objects, "drachma_pending_pods") == {(reason,): 1 for reason in want}
    assert _samples(objects, "drachma_oldest_pending_pod_age_seconds") == {(): 3600}


def test_series_are_bounded() -> None:
    slices = [_slice(f"n{number}", {"name": "a"}) for number in range(20)]
    objects = Objects(slices=[*slices, _slice("large", {"name": "a"}, {"name": "b"})])
    samples = _samples(objects, "drachma_devices", Limits(nodes=3))
    assert len(samples) == 4
    assert samples[DRIVER, "large", "free"] == 2, "the largest keep their names"
    assert samples[DRIVER, "other", "free"] == 18
    assert sum(samples.values()) == 22


async def test_the_exporter_follows_a_cluster() -> None:
    registry = prometheus_client.CollectorRegistry()
    async with schedulers.cluster() as world:
        surroundings = Surroundings(
            world.client, shared_informers=world.world.surroundings.informers, clock=world.clock, registry=registry
        )
        exporter = Exporter(surroundings, Census(), seconds=15)
        await world.create(
            device_class("gpu", f'device.driver == "{DRIVER}"'),
            node("n0"),
            resource_slice("n0", driver=DRIVER).on_node("n0").devices("a", "b"),
            claim("c").request("gpu", device_class="gpu"),
            a_pod("p").container("c", claims=("x",)).claim("x", claim="c"),
        )
        await exporter.count()
        content = prometheus_client.generate_latest(registry).decode()
    assert f'drachma_devices{{driver="{DRIVER}",node="n0",state="allocated"}} 1.0' in content
    assert f'drachma_devices{{driver="{DRIVER}",node="n0",state="free"}} 1.0' in content
    assert 'drachma_resource_claims{namespace="default",state="reserved"} 1.0' in content


def _sized_claim(name: str, count: int, **fields: Any) -> Any:
    request = {"name": "r", "exactly": {"deviceClassName": "gpu", "count": count, **fields}}
    return _object("ResourceClaim", name, spec={"devices": {"requests": [request]}})


@pytest.mark.parametrize(
    ("claims", "want"),
    [
        pytest.param([], 0, id="nothing-is-known-without-claims"),
        pytest.param([_sized_claim("one", 1)], 0, id="single-devices"),
        pytest.param([_sized_claim("two", 2)], 1, id="a-pair-does-not-fit-on-one-node"),
        pytest.param([_sized_claim("three", 3)], 3, id="nowhere"),
        pytest.param([_sized_claim("three", 3), _sized_claim("two", 2)], 1, id="any-shape-counts"),
        pytest.param(
            [_sized_claim("odd", 1, selectors=[{"cel": {"expression": "false"}}])], 3, id="selector-matches-nothing"
        ),
        pytest.param([_sized_claim("all", 0, allocationMode="All")], 0, id="all-devices"),
    ],
)
def test_free_devices_that_no_usual_claim_could_use(claims: list[Any], want: int) -> None:
    taint = {"key": "example.com/broken", "effect": "NoSchedule"}
    slices = [
        _slice("n1", {"name": "a"}, {"name": "b", "taints": [taint]}),
        _slice("n2", {"name": "a"}, {"name": "b"}),
    ]
    selector = {"cel": {"expression": f'device.driver == "{DRIVER}"'}}
    gpus = _object("DeviceClass", "gpu", metadata={"namespace": ""}, spec={"selectors": [selector]})
    objects = Objects(slices=slices, claims=claims, classes=[gpus])
    assert _samples(objects, "drachma_unusable_free_devices") == {(DRIVER,): want}


def test_devices_of_the_network_help_every_node() -> None:
    shared = _slice("n2", {"name": "a"})
    spec = {key: value for key, value in codec.encode(shared)["spec"].items() if key != "nodeName"}
    network = _object("ResourceSlice", "network", spec={**spec, "allNodes": True})
    selector = {"cel": {"expression": f'device.driver == "{DRIVER}"'}}
    gpus = _object("DeviceClass", "gpu", metadata={"namespace": ""}, spec={"selectors": [selector]})
    slices = [_slice("n1", {"name": "a"}), network]
    for count, want in ((2, 0), (3, 2)):
        objects = Objects(slices=slices, claims=[_sized_claim("c", count)], classes=[gpus])
        assert _samples(objects, "drachma_unusable_free_devices") == {(DRIVER,): want}


def _cluster_queue(name: str, nominal: str, used: str, borrowed: str) -> clusterqueue.ClusterQueue:
    quota = {"name": "cpu", "nominalQuota": nominal}
    groups = [{"coveredResources": ["cpu"], "flavors": [{"name": flavor, "resources": [quota]} for flavor in "ab"]}]
    usage = [{"name": "a", "resources": [{"name": "cpu", "total": used, "borrowed": borrowed}]}]
    status = {"pendingWorkloads": 3, "admittedWorkloads": 2, "flavorsReservation": usage}
    document = {"metadata": {"name": name}, "spec": {"resourceGroups": groups}, "status": status}
    return msgspec.convert(document, clusterqueue.ClusterQueue, dec_hook=hooks.decode)


def test_queues() -> None:
    objects = Objects(queues=[_cluster_queue("q", "1500m", "4", "1")])
    assert _samples(objects, "drachma_cluster_queue_workloads") == {("q", "pending"): 3, ("q", "admitted"): 2}
    assert _samples(objects, "drachma_cluster_queue_quota") == {
        ("q", "cpu", "nominal"): 3.0,
        ("q", "cpu", "used"): 4.0,
        ("q", "cpu", "borrowed"): 1.0,
    }


def test_queues_beyond_the_limit_are_counted_together() -> None:
    objects = Objects(queues=[_cluster_queue(name, "1", "1", "0") for name in "abc"])
    samples = _samples(objects, "drachma_cluster_queue_workloads", Limits(names=2))
    assert samples["other", "pending"] == 3
    assert len(samples) == 6


def test_quota_beyond_floating_point_is_infinite() -> None:
    objects = Objects(queues=[_cluster_queue("q", "1e400", "4", "1")])
    assert _samples(objects, "drachma_cluster_queue_quota")["q", "cpu", "nominal"] == math.inf


def test_selectors_of_users_have_a_limited_effort(monkeypatch: pytest.MonkeyPatch) -> None:
    """Any user can create claims with selectors that are slow on every device."""
    monkeypatch.setattr(fragmentation, "_WANT_UNITS", 1000)
    numbers = f"[{', '.join(map(str, range(200)))}]"
    slow = f"!{numbers}.all(a, {numbers}.all(b, a + b >= 0))"
    selector = {"cel": {"expression": f'device.driver == "{DRIVER}"'}}
    gpus = _object("DeviceClass", "gpu", metadata={"namespace": ""}, spec={"selectors": [selector]})
    claims = [_sized_claim("slow", 1, selectors=[{"cel": {"expression": slow}}])]
    objects = Objects(slices=[_slice("n1", {"name": "a"})], claims=claims, classes=[gpus])
    assert _samples(objects, "drachma_unusable_free_devices") == {(DRIVER,): 0}


async def test_a_defect_does_not_end_the_exporter(monkeypatch: pytest.MonkeyPatch) -> None:
    # Clusters of tests fail if a component reports a defect.
    monkeypatch.setattr(defects, "_log", logging.getLogger("expected"))
    async with schedulers.cluster() as world:
        surroundings = Surroundings(
            world.client,
            shared_informers=world.world.surroundings.informers,
            clock=world.clock,
            registry=prometheus_client.CollectorRegistry(),
        )
        counted = 0

        def fail_once(_census: Census, _objects: Objects, *, now: dt.datetime) -> list[Metric]:
            nonlocal counted
            counted += 1
            if counted == 1:
                raise OverflowError(f"a defect at {now}")
            return []

        monkeypatch.setattr(Census, "metrics", fail_once)
        running = asyncio.create_task(Exporter(surroundings, Census(), seconds=15).run())
        async with asyncio.timeout(patience.SECONDS):
            while counted < 2:
                await world.clock.advance(1)
                await asyncio.sleep(0.001)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


def _pod_with_claim(name: str, claim_name: str, **health: str) -> PodView:
    """Return a pod whose claim has devices with a health each; a template made the claim if the names differ."""
    resources = [
        {"resourceID": f"vendor.example.com/gpu={device}", "health": state} for device, state in health.items()
    ]
    reports = [{"name": "claim:gpu/r", "resources": resources}, {"name": "example.com/nic", "resources": resources}]
    made = [{"name": "gpu", "resourceClaimName": claim_name}]
    document = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}"},
        "spec": {"containers": [], "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "one"}]},
        "status": {
            "resourceClaimStatuses": made,
            "containerStatuses": [{"name": "c", "allocatedResourcesStatus": reports}],
        },
    }
    return codec.view(document, PodView)


def test_health_of_devices_in_use() -> None:
    pods = [
        _pod_with_claim("p", "c", a="Healthy", b="Unhealthy"),
        _pod_with_claim("q", "c", a="Healthy", b="Unhealthy"),
    ]
    pods.append(_pod_with_claim("r", "other", a="Unknown"))
    objects = Objects(claims=[_claim("c", "gpu-0", reserved=True)], pods=pods)
    assert _samples(objects, "drachma_device_health") == {
        (DRIVER, "Healthy"): 1,
        (DRIVER, "Unhealthy"): 1,
        ("several", "Unknown"): 1,
    }


def test_claims_of_pods_are_named_as_in_kube_state_metrics() -> None:
    objects = Objects(pods=[_pod_with_claim("q", "q-gpu-x"), _pod_with_claim("p", "p-gpu-x")])
    first = ("default", "p", "uid-p", "gpu", "p-gpu-x", "one")
    second = ("default", "q", "uid-q", "gpu", "q-gpu-x", "one")
    assert _samples(objects, "kube_pod_resourceclaim_info") == {first: 1, second: 1}
    assert _samples(objects, "kube_pod_resourceclaim_info", Limits(pod_claims=1)) == {first: 1}


def test_shared_counters() -> None:
    parts = [
        {"name": name, "consumesCounters": [{"counterSet": "card", "counters": {"memory": {"value": "10Gi"}}}]}
        for name in ("gpu-0", "gpu-1")
    ]
    published = _slice("n1", *parts)
    counters = [{"name": "card", "counters": {"memory": {"value": "40Gi"}}}]
    spec = {"driver": DRIVER, "nodeName": "n1", "pool": {"name": "n1", "generation": 1, "resourceSliceCount": 1}}
    totals = _object("ResourceSlice", "n1-counters", spec={**spec, "sharedCounters": counters})
    objects = Objects(slices=[published, totals], claims=[_claim("c", "gpu-0")])
    assert _samples(objects, "drachma_shared_counters") == {
        (DRIVER, "memory", "total"): 40 * 2**30,
        (DRIVER, "memory", "used"): 10 * 2**30,
    }


def test_capacity_of_shared_devices() -> None:
    shared = {"name": "gpu-0", "allowMultipleAllocations": True, "capacity": {"memory": {"value": "80Gi"}}}
    whole = {"name": "gpu-1", "capacity": {"memory": {"value": "80Gi"}}}
    claims = []
    for name, amount in (("c", "10Gi"), ("d", "20Gi")):
        result = {"request": "r", "driver": DRIVER, "pool": "n1", "device": "gpu-0", "shareID": name}
        allocation = {"devices": {"results": [{**result, "consumedCapacity": {"memory": amount}}]}}
        claims.append(_object("ResourceClaim", name, spec={"devices": {}}, status={"allocation": allocation}))
    assert _samples(Objects(slices=[_slice("n1", shared, whole)], claims=claims), "drachma_shared_device_capacity") == {
        (DRIVER, "memory", "total"): 80 * 2**30,
        (DRIVER, "memory", "used"): 30 * 2**30,
    }
