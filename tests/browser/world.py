"""The cluster that the browser looks at: teams with running and pending pods, partitions, shared devices, queues."""

from typing import Any, Final

from drachma.api import codec, pod, resourceclaim
from drachma.api import event as api_event
from drachma.client import Client, patches
from drachma.node.simulation import hardware
from drachma.queueing.component import resources as queues

HOSTILE: Final = (
    "<script>alert(1)</script>",
    "\u202eevil\u202c",
    "🔥" * 8,
    '"><img src=x onerror=alert(2)>',
    "x" * 64,
)
"""Texts that drivers may publish as attributes."""

LONG_NAME: Final = "a" * 61 + "." + "b" * 61 + "." + "c" * 61 + "." + "d" * 61 + ".eeeee"
"""A name of 253 characters."""

GPUS: Final = "gpu.simulation.drachma.dev"
SHARED: Final = "shared.example.com"
PARTITIONED: Final = "partition.example.com"

Document = dict[str, Any]


def _claim_template(namespace: str, name: str, *, count: int = 1, selector: str = "", device_class: str) -> Document:
    exactly: Document = {"deviceClassName": device_class, "count": count}
    if selector:
        exactly["selectors"] = [{"cel": {"expression": selector}}]
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"spec": {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}}},
    }


def _shared_template(namespace: str, name: str) -> Document:
    made = _claim_template(namespace, name, device_class="shared")
    exactly = made["spec"]["spec"]["devices"]["requests"][0]["exactly"]
    exactly["capacity"] = {"requests": {"memory": "24Gi"}}
    return made


def _pod(
    namespace: str, name: str, template: str = "", *, labels: dict[str, str] | None = None, **spec: Any
) -> Document:
    claims = [{"name": "gpu", "resourceClaimTemplateName": template}] if template else []
    resources = {"claims": [{"name": "gpu"}]} if template else {}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "labels": labels or {}},
        "spec": {
            "resourceClaims": claims,
            "containers": [{"name": "main", "image": "app", "resources": resources}],
            **spec,
        },
    }


def _shared_slice() -> Document:
    devices = [
        {
            "name": f"share-{number}",
            "allowMultipleAllocations": True,
            "attributes": {"productName": {"string": "Shared accelerator"}},
            "capacity": {"memory": {"value": "80Gi"}},
        }
        for number in range(4)
    ]
    return _slice("shared-pool", SHARED, devices, {"allNodes": True})


def _hostile_slice() -> Document:
    devices: list[Document] = [
        {"name": f"odd-{number}", "attributes": {"productName": {"string": text}, "note": {"string": text}}}
        for number, text in enumerate(HOSTILE)
    ]
    devices.append(
        {
            "name": "hot",
            "attributes": {"productName": {"string": "Overheating"}},
            "taints": [{"key": "example.com/overheating", "value": "yes", "effect": "NoExecute"}],
        }
    )
    return _slice("odd-pool", "odd.example.com", devices, {"nodeName": "node-1"})


def _incomplete_slice() -> Document:
    made = _slice("half-pool", "half.example.com", [{"name": "half-0"}], {"nodeName": "node-2"})
    made["spec"]["pool"]["resourceSliceCount"] = 2
    return made


def _slice(pool: str, driver: str, devices: list[Document], place: Document) -> Document:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": pool},
        "spec": {
            "driver": driver,
            "pool": {"name": pool, "generation": 1, "resourceSliceCount": 1},
            "devices": devices,
            **place,
        },
    }


def _partition_slices() -> list[Document]:
    """Return GPUs with partitions on node-5."""
    made = []
    for number, document in enumerate(hardware.build("mig", 1).machines[0].slices):
        spec = {**document["spec"], "driver": PARTITIONED, "nodeName": "node-5"}
        spec["pool"] = {**spec["pool"], "name": "partitions"}
        made.append({**document, "metadata": {"name": f"partitions-{number}"}, "spec": spec})
    return made


def _device_class(name: str, driver: str) -> Document:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": name},
        "spec": {"selectors": [{"cel": {"expression": f'device.driver == "{driver}"'}}]},
    }


def _queue(name: str, gpus: int) -> Document:
    resources = [{"name": "cpu", "nominalQuota": gpus * 2, "borrowingLimit": 2}]
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "ClusterQueue",
        "metadata": {"name": name},
        "spec": {
            "cohortName": "research",
            "namespaceSelector": {},
            "resourceGroups": [
                {"coveredResources": ["cpu"], "flavors": [{"name": "machines", "resources": resources}]}
            ],
        },
    }


def _job(name: str, queue: str, *, cpu: int, count: int = 1) -> Document:
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": "batch", "labels": {"kueue.x-k8s.io/queue-name": queue}},
        "spec": {
            "suspend": True,
            "parallelism": count,
            "completions": count,
            "template": {
                "metadata": {"annotations": {"simulation.drachma.dev/run-seconds": "100000"}},
                "spec": {
                    "restartPolicy": "Never",
                    "containers": [{"name": "main", "image": "app", "resources": {"requests": {"cpu": str(cpu)}}}],
                },
            },
        },
    }


def documents() -> list[Document]:
    """Return all objects of the cluster, apart from its simulated nodes."""
    core = {"apiVersion": "v1", "kind": "Namespace"}
    kueue = {"apiVersion": "kueue.x-k8s.io/v1beta2"}
    listed: list[Document] = [
        *({**core, "metadata": {"name": name}} for name in ("vision", "speech", "batch")),
        _shared_slice(),
        _hostile_slice(),
        _incomplete_slice(),
        *_partition_slices(),
        _device_class("shared", SHARED),
        _device_class("partition", PARTITIONED),
        _claim_template(
            "batch",
            "part",
            device_class="partition",
            selector=f'device.attributes["{PARTITIONED}"].profile == "2g.20gb"',
        ),
        _shared_template("speech", "some-memory"),
        _claim_template("vision", "two-gpus", count=2, device_class=GPUS),
        _claim_template("vision", "sixteen-gpus", count=16, device_class=GPUS),
        _claim_template("speech", "one-gpu", device_class=GPUS),
        _claim_template(
            "speech",
            "huge-gpu",
            device_class=GPUS,
            selector=f'device.capacity["{GPUS}"].memory.isGreaterThan(quantity("500Gi"))',
        ),
    ]
    listed += [_pod("vision", f"train-{number}", "two-gpus") for number in range(6)]
    listed += [_pod("speech", f"serve-{number}", "one-gpu") for number in range(9)]
    listed += [_pod("batch", f"part-{number}", "part") for number in range(4)]
    listed += [_pod("speech", f"small-{number}", "some-memory") for number in range(5)]
    listed += [
        _pod("vision", "pretrain", "sixteen-gpus"),
        _pod("speech", "whisper-large", "huge-gpu"),
        _pod("batch", "gated", schedulingGates=[{"name": "example.com/approval"}]),
        _pod("batch", LONG_NAME),
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaim",
            "metadata": {"name": "spare", "namespace": "vision"},
            "spec": {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": GPUS}}]}},
        },
        {**kueue, "kind": "ResourceFlavor", "metadata": {"name": "machines"}},
        {**kueue, "kind": "Cohort", "metadata": {"name": "research"}, "spec": {"parentName": "company"}},
        _queue("training", 2),
        _queue("serving", 2),
        *(
            {
                **kueue,
                "kind": "LocalQueue",
                "metadata": {"name": name, "namespace": "batch"},
                "spec": {"clusterQueue": name},
            }
            for name in ("training", "serving")
        ),
        _job("sweep", "training", cpu=1, count=5),
        _job("evaluate", "training", cpu=3),
        _job("nightly", "training", cpu=2, count=2),
    ]
    return listed


LOCAL: Final = "local.example.com"


def divisible_devices() -> list[Document]:
    """Return two devices of node-4 that claims can share, and templates of claims for parts of their memory."""
    devices = [
        {"name": f"part-{number}", "allowMultipleAllocations": True, "capacity": {"memory": {"value": "80Gi"}}}
        for number in range(2)
    ]
    made = [_slice("local-pool", LOCAL, devices, {"nodeName": "node-4"}), _device_class("local", LOCAL)]
    for amount in (60, 30, 20):
        template = _claim_template("batch", f"local-{amount}", device_class="local")
        exactly = template["spec"]["spec"]["devices"]["requests"][0]["exactly"]
        exactly["capacity"] = {"requests": {"memory": f"{amount}Gi"}}
        made.append(template)
    return made


def replica_set(amount: int) -> Document:
    """Return a ReplicaSet with one pod that shares a device of node-4."""
    name = f"movable-{amount}"
    template = _pod("batch", name, f"local-{amount}", labels={"app": name}, terminationGracePeriodSeconds=1)
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": name, "namespace": "batch"},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}}, "spec": template["spec"]},
        },
    }


SIMULATION: Final[Document] = {
    "title": "pack <script>alert(1)</script>",
    "seed": 3,
    "simulatedSeconds": 7200.0,
    "isComplete": True,
    "arrived": 3,
    "started": 2,
    "completed": 1,
    "waiting": 1,
    "neverStarted": 1,
    "utilisation": {"cpu": 0.5},
    "waits": [
        {"queue": "q", "priority": 0, "jobs": 2, "p50": 1.0, "p95": 2.0, "p99": 2.0, "most": 3600.0, "mean": 1.0}
    ],
    "evictions": 6,
    "lostPodHours": 1.5,
    "evictionPairs": [{"preemptor": "default/a", "victim": "default/b", "count": 3}],
    "loops": [
        {
            "jobs": ["default/a", "default/b"],
            "evictions": 6,
            "settings": ["ClusterQueue a: spec.preemption.reclaimWithinCohort"],
        }
    ],
    "waitingJobs": [
        {"job": "default/c", "queue": "q", "waitedSeconds": 60.0, "evictions": 0, "hasStarted": False, "reason": "full"}
    ],
    "series": [
        {"time": 0.0, "used": {"cpu": 0.25}, "running": 1, "waiting": 0},
        {"time": 7200.0, "used": {"cpu": 0.75}, "running": 2, "waiting": 1},
    ],
}
"""Result of a simulation, in the form of ``drachma simulate run -o json``."""

REPLAY: Final[Document] = {
    "decisions": 7,
    "difference": {
        "decision": 7,
        "time": "2026-11-18T00:00:00Z",
        "pod": "default/train-0",
        "recorded": {"node": "node-1"},
        "replayed": {"reasons": "0/1 nodes are available: 1 Insufficient cpu."},
        "explanation": {"pod": "default/train-0"},
    },
}
"""Result of a replay, in the form of ``drachma replay -o json``."""


def hostile_objects() -> list[Document]:
    """Return objects of all kinds with names of 253 characters and hostile texts, apart from their statuses.

    :func:`write_hostile_statuses` writes these, and :func:`delete_all` removes the objects again.
    """
    event = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "hostile", "namespace": "batch"},
        "involvedObject": {"kind": "Pod", "name": "hostile", "namespace": "batch"},
        "reason": HOSTILE[0],
        "message": "\n".join(HOSTILE),
        "type": "Warning",
    }
    request = {
        "name": "gpu",
        "exactly": {
            "deviceClassName": GPUS,
            "selectors": [{"cel": {"expression": f'device.driver == "{HOSTILE[0]}"'}}],
        },
    }
    claim = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": "hostile", "namespace": "batch"},
        "spec": {"devices": {"requests": [request]}},
    }
    waiting = _pod("batch", "hostile", schedulerName="nobody")
    waiting["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimName": "hostile"}]
    return [claim, waiting, event, *_long_devices(), *_long_queues()]


def _long_devices() -> list[Document]:
    """Return a node, a class, a pool with a tainted device, and a claim for it."""
    device = {
        "name": "d" * 63,
        "attributes": {"a" * 32: {"string": HOSTILE[1]}, "productName": {"string": HOSTILE[0]}},
        "capacity": {"c" * 32: {"value": "1"}},
        "taints": [{"key": "example.com/" + "k" * 63, "value": "v" * 63, "effect": "NoSchedule"}],
    }
    parameters = {"driver": "odd.example.com", "parameters": {"note": list(HOSTILE)}}
    request = {"name": "r" * 63, "exactly": {"deviceClassName": LONG_NAME}}
    ready = {"type": "Ready", "status": "False", "reason": "Odd", "message": " ".join(HOSTILE)}
    device_class = _device_class(LONG_NAME, "odd.example.com")
    device_class["spec"]["config"] = [{"opaque": parameters}]
    return [
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": LONG_NAME},
            "status": {"conditions": [ready], "allocatable": {"cpu": "1", "memory": "1Gi", "pods": "1"}},
        },
        device_class,
        {**_slice(LONG_NAME, "odd.example.com", [device], {"nodeName": LONG_NAME}), "metadata": {"name": "long"}},
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaim",
            "metadata": {"name": LONG_NAME, "namespace": "batch"},
            "spec": {"devices": {"requests": [request]}},
        },
    ]


def _long_queues() -> list[Document]:
    """Return queues in a cohort, and a workload that waits because the flavor is absent."""
    kueue = {"apiVersion": "kueue.x-k8s.io/v1beta2"}
    queue = _queue(LONG_NAME, 2)
    queue["spec"]["cohortName"] = LONG_NAME
    (group,) = queue["spec"]["resourceGroups"]
    group["flavors"][0]["name"] = LONG_NAME
    own = {"name": LONG_NAME, "namespace": "batch"}
    container = {"name": "main", "image": "app", "resources": {"requests": {"cpu": "1"}}}
    pods = {"name": "p" * 63, "count": 1, "template": {"spec": {"restartPolicy": "Never", "containers": [container]}}}
    return [
        {**kueue, "kind": "Cohort", "metadata": {"name": LONG_NAME}, "spec": {}},
        queue,
        {**kueue, "kind": "LocalQueue", "metadata": own, "spec": {"clusterQueue": LONG_NAME}},
        {**kueue, "kind": "Workload", "metadata": own, "spec": {"queueName": LONG_NAME, "podSets": [pods]}},
    ]


async def write_hostile_statuses(client: Client) -> None:
    """Write conditions with hostile messages."""
    message = " ".join((*HOSTILE, "x" * 253))
    unscheduled = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
    event = {"involvedObject": {"uid": (await client.get(pod.Pod, "hostile", namespace="batch")).metadata.uid}}
    await client.patch(
        pod.Pod,
        "hostile",
        patch=patches.merge({"status": {"conditions": [unscheduled]}}),
        namespace="batch",
        subresource="status",
    )
    await client.patch(api_event.Event, "hostile", patch=patches.merge(event), namespace="batch")
    result = {"request": "r" * 63, "driver": "odd.example.com", "pool": LONG_NAME, "device": "d" * 63}
    device = {name: result[name] for name in ("driver", "pool", "device")}
    moment = "2026-01-01T00:00:00Z"
    ready = {"type": "Ready", "status": "False", "reason": "Odd", "message": message, "lastTransitionTime": moment}
    status = {
        "allocation": {"devices": {"results": [result]}},
        "devices": [{**device, "conditions": [ready], "data": {"note": message}}],
    }
    await client.patch(
        resourceclaim.ResourceClaim,
        LONG_NAME,
        patch=patches.merge({"status": status}),
        namespace="batch",
        subresource="status",
    )
    condition = {"type": "Odd", "status": "True", "reason": "Odd", "message": message, "lastTransitionTime": moment}
    await client.patch(
        queues.WORKLOADS,
        LONG_NAME,
        patch=patches.merge({"status": {"conditions": [condition]}}),
        namespace="batch",
        subresource="status",
    )


async def create_all(client: Client, listed: list[Document]) -> None:
    """Create objects of any kinds."""
    kinds = {
        (each.api_version(version), each.kind): each for each in await client.resources() for version in each.versions
    }
    for document in listed:
        await client.create_document(kinds[codec.type_meta(document)], document)


async def delete_all(client: Client, listed: list[Document]) -> None:
    """Delete objects of any kinds, the last ones first."""
    kinds = {
        (each.api_version(version), each.kind): each for each in await client.resources() for version in each.versions
    }
    for document in reversed(listed):
        metadata = document["metadata"]
        kind = kinds[codec.type_meta(document)]
        await client.delete(kind, metadata["name"], namespace=metadata.get("namespace", ""))


def limited_user() -> list[Document]:
    """Return a service account that may read pods and claims of one namespace only."""
    rbac = "rbac.authorization.k8s.io/v1"
    return [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "viewer", "namespace": "speech"}},
        {
            "apiVersion": rbac,
            "kind": "Role",
            "metadata": {"name": "viewer", "namespace": "speech"},
            "rules": [
                {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch"]},
                {"apiGroups": ["resource.k8s.io"], "resources": ["resourceclaims"], "verbs": ["get", "list", "watch"]},
            ],
        },
        {
            "apiVersion": rbac,
            "kind": "RoleBinding",
            "metadata": {"name": "viewer", "namespace": "speech"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "viewer"},
            "subjects": [
                {"kind": "ServiceAccount", "name": "viewer", "namespace": "speech"},
                {"kind": "User", "name": "guest"},
            ],
        },
    ]
