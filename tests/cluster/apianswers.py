"""Random creates and updates, and answers to them in a form in which two API servers can be compared."""

import copy
import json
import random
import re
from typing import Any, NamedTuple

from tests.cluster import objects
from tests.property import mutations

Document = dict[str, Any]

_UID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_TIME = re.compile(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
_LABELS = {"matchLabels": {"app": "a"}}
_POD: Document = {
    "serviceAccountName": "default",
    "automountServiceAccountToken": False,
    "containers": [
        {
            "name": "c",
            "image": "x:1",
            "env": [{"name": "A", "value": "1"}],
            "ports": [{"containerPort": 80, "name": "http"}],
            "resources": {"requests": {"cpu": "100m", "memory": "1Gi"}, "claims": [{"name": "gpu"}]},
            "volumeMounts": [{"name": "v", "mountPath": "/v"}],
        }
    ],
    "resourceClaims": [{"name": "gpu", "resourceClaimName": "claim"}],
    "tolerations": [{"key": "a", "operator": "Exists", "effect": "NoSchedule"}],
    "volumes": [{"name": "v", "emptyDir": {}}],
}
_TEMPLATE: Document = {"metadata": {"labels": {"app": "a"}}, "spec": _POD}
_DEVICES: Document = {
    "requests": [
        {
            "name": "one",
            "exactly": {
                "deviceClassName": "gpu",
                "allocationMode": "ExactCount",
                "count": 2,
                "selectors": [{"cel": {"expression": "device.driver == 'a.com'"}}],
                "tolerations": [{"key": "a.com/x", "operator": "Exists", "effect": "NoExecute"}],
            },
        },
        {"name": "other", "firstAvailable": [{"name": "big", "deviceClassName": "gpu", "count": 1}]},
    ],
    "constraints": [{"requests": ["one"], "matchAttribute": "a.com/numa"}],
    "config": [{"requests": ["other/big"], "opaque": {"driver": "a.com", "parameters": {"kind": "A"}}}],
}


def _seed(version: str, kind: str, *, namespace: str = "default", **fields: Any) -> Document:
    metadata: Document = {"name": "seed", "labels": {"app": "a"}, "annotations": {"a.com/b": "c"}}
    if namespace:
        metadata["namespace"] = namespace
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **fields}


SEEDS: tuple[Document, ...] = (
    _seed("resource.k8s.io/v1", "ResourceClaim", spec={"devices": _DEVICES}),
    _seed("resource.k8s.io/v1", "ResourceClaimTemplate", spec={"spec": {"devices": _DEVICES}}),
    _seed(
        "resource.k8s.io/v1",
        "DeviceClass",
        namespace="",
        spec={
            "selectors": [{"cel": {"expression": "device.attributes['a.com'].model == 'x'"}}],
            "config": [{"opaque": {"driver": "a.com", "parameters": {"kind": "A"}}}],
            "extendedResourceName": "a.com/gpu",
        },
    ),
    _seed(
        "resource.k8s.io/v1",
        "ResourceSlice",
        namespace="",
        spec={
            "driver": "a.com",
            "nodeName": "n",
            "pool": {"name": "n", "generation": 1, "resourceSliceCount": 1},
            "devices": [
                {
                    "name": "gpu-0",
                    "attributes": {"model": {"string": "x"}, "numa": {"int": 0}, "v": {"version": "1.2.3"}},
                    "capacity": {"memory": {"value": "80Gi"}},
                    "taints": [
                        {"key": "a.com/x", "value": "v", "effect": "NoSchedule", "timeAdded": "2026-01-01T00:00:00Z"}
                    ],
                }
            ],
        },
    ),
    _seed("v1", "Pod", spec=_POD),
    _seed("v1", "ConfigMap", data={"a": "b"}, immutable=False),
    _seed("v1", "Namespace", namespace=""),
    _seed("v1", "ResourceQuota", spec={"hard": {"pods": "10", "requests.cpu": "4"}, "scopes": ["NotTerminating"]}),
    _seed("v1", "PodTemplate", template=_TEMPLATE),
    _seed("batch/v1", "Job", spec={"template": {"spec": {**_POD, "restartPolicy": "Never"}}, "backoffLimit": 1}),
    _seed("apps/v1", "Deployment", spec={"replicas": 1, "selector": _LABELS, "template": _TEMPLATE}),
    _seed("rbac.authorization.k8s.io/v1", "Role", rules=[{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]),
)


class Request(NamedTuple):
    """A request that changes nothing: a new object, or one that replaces the seed of its kind."""

    method: str
    path: str
    body: Document

    def __str__(self) -> str:
        return f"{self.method} {self.path}\n{json.dumps(self.body)}"


def make(rng: random.Random) -> Request:
    """Return a create or an update of a seed with changes.

    Explicit empty lists and maps are left out: docs/differences.md says where they show.
    """
    while True:
        request = _make(rng)
        if not _has_empty(request.body):
            return request


def _has_empty(value: Any) -> bool:
    if isinstance(value, dict):
        return any(each in ([], {}) or _has_empty(each) for key, each in value.items() if key != "emptyDir")
    return isinstance(value, list) and any(map(_has_empty, value))


def _make(rng: random.Random) -> Request:
    seed = rng.choice(SEEDS)
    is_update = rng.random() < 0.4
    fields = {key: value for key, value in seed.items() if key not in ("apiVersion", "kind", "metadata")}
    changed = mutations.mutate(fields, rng) if fields and rng.random() < 0.9 else copy.deepcopy(fields)
    metadata = copy.deepcopy(seed["metadata"])
    if rng.random() < 0.15:
        metadata = {**mutations.mutate(metadata, rng), "name": "seed"}
    if not is_update and metadata.get("name") == "seed":
        metadata["name"] = "other"
    body = {**changed, "apiVersion": seed["apiVersion"], "kind": seed["kind"], "metadata": metadata}
    place = objects.path(seed)
    return Request("PUT" if is_update else "POST", f"{place}/seed" if is_update else place, body)


def comparable(code: int, body: Any) -> Document:
    """Return an answer without what differs from one server to another: UIDs, times and versions."""
    return {"code": code, "body": _comparable(body)}


def _comparable(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: "<version>" if key == "resourceVersion" else _comparable(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_comparable(each) for each in value]
    if isinstance(value, str):
        return _TIME.sub("<time>", _UID.sub("<uid>", value))
    return value
