"""Objects of the matrix: queues, classes and templates, and the load's own."""

from __future__ import annotations

import random
from typing import Any, Final

DRIVER: Final = "gpu.example.com"
SIMULATED: Final = "gpu.simulation.drachma.dev"
QUEUES: Final = ("team-a", "team-b")
CANARY: Final = "canary"

_KUEUE: Final = "kueue.x-k8s.io/v1beta2"
_DRA: Final = "resource.k8s.io/v1"
_RUN_SECONDS: Final = "simulation.drachma.dev/run-seconds"

CONFIGURATION: Final = {
    "apiVersion": "config.kueue.x-k8s.io/v1beta2",
    "kind": "Configuration",
    "resources": {
        "deviceClassMappings": [
            {"name": "gpus", "deviceClassNames": ["load"]},
            {"name": "canaries", "deviceClassNames": [CANARY]},
        ]
    },
}
"""Quota for devices of both classes."""

Document = dict[str, Any]


def definitions() -> list[Document]:
    """Return definitions of Kueue's kinds for an API server that does not serve them itself."""
    cluster_wide = ("ClusterQueue", "Cohort", "ResourceFlavor", "AdmissionCheck", "WorkloadPriorityClass", "Topology")
    kinds = {**dict.fromkeys(cluster_wide, "Cluster"), "LocalQueue": "Namespaced", "Workload": "Namespaced"}
    return [_definition(kind, scope) for kind, scope in kinds.items()]


def _definition(kind: str, scope: str) -> Document:
    singular = kind.lower()
    plural = {"Topology": "topologies", "WorkloadPriorityClass": "workloadpriorityclasses"}.get(kind, f"{singular}s")
    version = {
        "name": "v1beta2",
        "served": True,
        "storage": True,
        "subresources": {"status": {}},
        "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
    }
    names = {"kind": kind, "listKind": f"{kind}List", "plural": plural, "singular": singular}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"{plural}.kueue.x-k8s.io",
            "annotations": {"api-approved.kubernetes.io": "https://example.com/soak"},
        },
        "spec": {"group": "kueue.x-k8s.io", "names": names, "scope": scope, "versions": [version]},
    }


def fixtures() -> list[tuple[str, Document]]:
    """Return paths and objects that all load needs."""
    own = f'device.driver == "{DRIVER}" && device.attributes["{DRIVER}"].index'
    return [
        (
            "/apis/resource.k8s.io/v1/deviceclasses",
            _device_class("load", f'device.driver == "{SIMULATED}" || {own} < 7'),
        ),
        ("/apis/resource.k8s.io/v1/deviceclasses", _device_class(CANARY, f"{own} == 7")),
        *(_template(name) for name in ("load", CANARY)),
        (f"/apis/{_KUEUE}/resourceflavors", _object(_KUEUE, "ResourceFlavor", "default")),
        *_queue("team-a", cohort="teams", cpu=3, gpus=4),
        *_queue("team-b", cohort="teams", cpu=2, gpus=3),
        *_queue(CANARY, cpu=8, canaries=8),
    ]


def job(name: str, *, queue: str, pods: int, rng: random.Random) -> Document:
    """A job in a queue with one device and half a processor for each pod."""
    spec = _pod_spec("load", cpu="500m")
    document = _object("batch/v1", "Job", name, namespace="default")
    labels = {"soak": "load"}
    document["metadata"]["labels"] = {**labels, "kueue.x-k8s.io/queue-name": queue}
    document["spec"] = {
        "suspend": True,
        "parallelism": pods,
        "completions": pods,
        "backoffLimit": 100,
        "template": {"metadata": {"labels": labels, "annotations": _run_time(rng)}, "spec": spec},
    }
    return document


def canary(name: str, *, node: str = "") -> Document:
    """A job that needs every component once, and a device of its own class; on a node if one is named."""
    spec = _pod_spec(CANARY, cpu="10m")
    if node:
        spec["nodeSelector"] = {"kubernetes.io/hostname": node}
    document = _object("batch/v1", "Job", name, namespace="default")
    labels = {"soak": CANARY}
    document["metadata"]["labels"] = {**labels, "kueue.x-k8s.io/queue-name": CANARY}
    template = {"metadata": {"labels": labels, "annotations": {_RUN_SECONDS: "0"}}, "spec": spec}
    document["spec"] = {"suspend": True, "backoffLimit": 100, "template": template}
    return document


def pod(name: str, *, rng: random.Random, gang: str = "") -> Document:
    """A pod with a device, alone or of a gang."""
    document = _object("v1", "Pod", name, namespace="default")
    document["metadata"] |= {
        "labels": {"soak": "load", **({"gang": gang} if gang else {})},
        "annotations": _run_time(rng),
    }
    document["spec"] = _pod_spec("load", cpu="100m")
    if gang:
        document["spec"]["schedulingGroup"] = {"podGroupName": gang}
    return document


def pod_group(name: str, *, size: int) -> Document:
    """A gang of so many pods."""
    document = _object("scheduling.k8s.io/v1beta1", "PodGroup", name, namespace="default")
    document["metadata"]["labels"] = {"soak": "load", "size": str(size)}
    document["spec"] = {"schedulingPolicy": {"gang": {"minCount": size}}}
    return document


def config_map(name: str) -> Document:
    """An object that no component touches."""
    document = _object("v1", "ConfigMap", name, namespace="default")
    document["metadata"]["labels"] = {"soak": "load"}
    document["data"] = {"step": "0"}
    return document


def _object(api_version: str, kind: str, name: str, *, namespace: str = "") -> Document:
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata}


def _pod_spec(template: str, *, cpu: str) -> Document:
    resources = {"requests": {"cpu": cpu}, "claims": [{"name": "device"}]}
    return {
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 1,
        "containers": [{"name": "main", "image": "none", "resources": resources}],
        "resourceClaims": [{"name": "device", "resourceClaimTemplateName": template}],
    }


def _run_time(rng: random.Random) -> dict[str, str]:
    return {_RUN_SECONDS: str(rng.choice((0, 1, 1, 2, 3)))}


def _device_class(name: str, expression: str) -> Document:
    document = _object(_DRA, "DeviceClass", name)
    document["spec"] = {"selectors": [{"cel": {"expression": expression}}]}
    return document


def _template(name: str) -> tuple[str, Document]:
    document = _object(_DRA, "ResourceClaimTemplate", name, namespace="default")
    document["spec"] = {"spec": {"devices": {"requests": [{"name": "one", "exactly": {"deviceClassName": name}}]}}}
    return f"/apis/{_DRA}/namespaces/default/resourceclaimtemplates", document


def _queue(name: str, *, cohort: str = "", **quota: int) -> list[tuple[str, Document]]:
    amounts = [{"name": resource, "nominalQuota": str(amount)} for resource, amount in quota.items()]
    group = {"coveredResources": list(quota), "flavors": [{"name": "default", "resources": amounts}]}
    cluster_queue = _object(_KUEUE, "ClusterQueue", name)
    cluster_queue["spec"] = {
        "namespaceSelector": {},
        "resourceGroups": [group],
        "preemption": {"withinClusterQueue": "LowerPriority", "reclaimWithinCohort": "Any"},
        **({"cohortName": cohort} if cohort else {}),
    }
    local_queue = _object(_KUEUE, "LocalQueue", name, namespace="default")
    local_queue["spec"] = {"clusterQueue": name}
    return [
        (f"/apis/{_KUEUE}/clusterqueues", cluster_queue),
        (f"/apis/{_KUEUE}/namespaces/default/localqueues", local_queue),
    ]
