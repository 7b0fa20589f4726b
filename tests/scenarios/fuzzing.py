"""Random requests: mostly nearly right, sometimes nonsense. A seed gives the same ones again.

``requests(seed)`` is endless. What must hold for every answer is checked by :func:`check`: it is HTTP, no defect,
and a refusal is a Status. Used in process; ``bench.fuzzing`` sends requests over the wire.
"""

import copy
import json
import random
import string
import urllib.parse
from collections.abc import Iterator
from typing import Any, NamedTuple

import yaml

from drachma.server import mediatypes
from drachma.server.surface import resources
from tests.unit.server import client, served

NAMES = ("a", "b", "c", "gpu", "n1", "default", "x" * 64, "A", "..", "%2e", "a%2fb", "ä", "")
NAMESPACES = ("default", "kube-system", "nowhere", "")
TYPES = (*mediatypes.BODY_TYPES, *mediatypes.PATCH_TYPES, "text/plain", "", "application/json; charset=utf-8")
ACCEPTS = (
    "application/json",
    "application/yaml",
    "application/json;as=Table;v=v1;g=meta.k8s.io",
    "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
    "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
    "*/*",
    "text/html",
    "application/json;as=;g=;v=",
    ";;;,,,q=x",
)

METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "POST", "PUT", "PATCH") * 4 + ("OPTIONS",)
QUERIES: dict[str, tuple[str, ...]] = {
    "allowWatchBookmarks": ("true", "false"),
    "continue": ("x", "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MSwic3RhcnQiOiJhIn0", ""),
    "dryRun": ("All", "Some"),
    "fieldManager": ("me", "", "\x00", "y" * 200),
    "fieldSelector": ("metadata.name=a", "spec.nodeName!=x", "x", "a=\\", "status.phase=Pending"),
    "fieldValidation": ("Strict", "Warn", "Ignore", "Maybe"),
    "force": ("true", "false"),
    "gracePeriodSeconds": ("0", "-1", "30", "x"),
    "includeObject": ("Object", "None", "Bogus"),
    "labelSelector": ("a=b", "a in (b,c)", "!a", "(((", "a=b=c", "x" * 70),
    "limit": ("1", "0", "-1", "x", "99999999999999999999"),
    "orphanDependents": ("true", "false"),
    "pretty": ("true",),
    "propagationPolicy": ("Foreground", "Orphan", "Background", "Sideways"),
    "resourceVersion": ("0", "1", "5", "x", "-1"),
    "resourceVersionMatch": ("Exact", "NotOlderThan", "x"),
    "sendInitialEvents": ("true", "false"),
    "timeoutSeconds": ("1", "x"),
    "uid": ("u",),
}
SCALARS: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2**31, 2**63, 2**64, 1e308, 1.5, "", "a", "1", "1Gi", "10x", "true", "\x00",
    "\u00e4\U0001f600", "2026-01-01T00:00:00Z", "yesterday", "a/b/c", "x" * 300, [], {}, [None], {"": ""}, [[[]]],
    "device.driver == 'x'", "1 +", "\ud800",
)  # fmt: skip
OTHER_PATHS = (
    "/", "/api", "/apis", "/version", "/healthz", "/readyz/ping", "/metrics", "/openapi/v2", "/openapi/v3",
    "/openapi/v3/apis/resource.k8s.io/v1", "/openapi/v3/nope", "/apis/nope/v1/x", "/api/v1/nope", "//",
    "/api//v1///pods", "/apis/resource.k8s.io", "/apis/resource.k8s.io/v1/watch/resourceclaims/x/y/z",
    "/api/v1/namespaces/default/pods/a/log",
)  # fmt: skip


class Generated(NamedTuple):
    """One request; ``path`` has its query."""

    method: str
    path: str
    body: bytes
    content_type: str
    accept: str


def requests(seed: int) -> Iterator[Generated]:
    """Requests without end."""
    chance = random.Random(seed)
    while True:
        yield _request(chance)


def check(request: Generated, code: int, body: bytes) -> None:
    """AssertionError for an answer that no request may get."""
    shown = f"{request}: {code} {body[:500]!r}"
    assert 200 <= code < 500 or code in (503, 504) or _is_unclassified(code, body), shown
    if code >= 400 and body[:1] == b"{":
        refusal = json.loads(body)
        assert refusal["kind"] == "Status", shown
        assert refusal["code"] == code, shown
        assert refusal["message"] or code == 400, shown


def _is_unclassified(code: int, body: bytes) -> bool:
    """Whether it is one of the mistakes of clients that upstream answers with a 500 without a reason."""
    if code != 500 or not body.startswith((b"{", b"apiVersion:")):
        return False
    status = yaml.safe_load(body)
    return status["kind"] == "Status" and not status.get("reason")


def _request(chance: random.Random) -> Generated:
    method = chance.choice(METHODS)
    if chance.random() < 0.05:
        path, resource, version = chance.choice(OTHER_PATHS), None, ""
    else:
        resource = chance.choice(served.CATALOG.resources)
        version = chance.choice(resource.versions)
        path = _path(chance, resource, version, is_named=_is_named(chance, method))
    query = _query(chance)
    body, content_type = _body(chance, method, resource, version)
    if resource is not None and method in ("PUT", "PATCH") and chance.random() < 0.9:
        # The name in the body is mostly that of the path.
        name = path.split("/")[-1] if "status" not in path else path.split("/")[-2]
        body = body.replace(b'"name": "__name__"', f'"name": "{name}"'.encode())
    body = body.replace(b"__name__", chance.choice(NAMES[:5]).encode())
    if chance.random() < 0.05:
        content_type = chance.choice(TYPES)
    accept = "application/json" if chance.random() < 0.85 else chance.choice(ACCEPTS)
    return Generated(method, f"{path}?{query}" if query else path, body, content_type, accept)


def _is_named(chance: random.Random, method: str) -> bool:
    """Whether a request is for one object: mostly as the method has it, sometimes not."""
    if chance.random() < 0.05:
        return chance.random() < 0.5
    return chance.random() < {"POST": 0.1, "PUT": 1.0, "PATCH": 1.0, "DELETE": 0.9}.get(method, 0.6)


def _path(chance: random.Random, resource: resources.Resource, version: str, *, is_named: bool) -> str:
    root = f"/apis/{resource.group}/{version}" if resource.group else f"/api/{version}"
    parts = [root]
    if resource.namespaced if chance.random() < 0.97 else chance.random() < 0.5:
        namespace = "default" if chance.random() < 0.9 else chance.choice(NAMESPACES)
        if namespace:
            parts.append(f"namespaces/{namespace}")
    parts.append(resource.plural)
    if is_named:
        name = chance.choice(NAMES[:5]) if chance.random() < 0.85 else chance.choice(NAMES)
        parts.append(urllib.parse.quote(name, safe="%"))
        if chance.random() < 0.25:
            known = [each.name for each in resource.subresources] or ["status"]
            parts.append(chance.choice(known) if chance.random() < 0.95 else "nope")
    return "/".join(parts)


def _query(chance: random.Random) -> str:
    if chance.random() < 0.7:
        return ""
    chosen = chance.sample(sorted(QUERIES), chance.randint(1, 3))
    pairs = [(name, chance.choice(QUERIES[name])) for name in chosen]
    if chance.random() < 0.02:
        pairs += [("watch", "1"), ("timeoutSeconds", "1")]
    return urllib.parse.urlencode(pairs, errors="replace")


def _body(chance: random.Random, method: str, resource: resources.Resource | None, version: str) -> tuple[bytes, str]:
    if method == "GET" or resource is None:
        return b"", ""
    kind = chance.random()
    if kind < 0.03:
        return chance.randbytes(chance.randint(0, 60)), chance.choice(TYPES)
    if kind < 0.06:
        return b"k8s\x00" + chance.randbytes(chance.randint(0, 80)), mediatypes.PROTOBUF
    if kind < 0.09:
        text = _encode(_object(chance, resource, version))
        cut = chance.randint(0, len(text))
        return text[:cut], "application/json"
    if method == "PATCH":
        return _patch(chance, resource, version)
    if method == "DELETE":
        options = {"gracePeriodSeconds": 0, "preconditions": {"uid": "x"}, "propagationPolicy": "Foreground"}
        return (_encode(_mutated(chance, options)), "application/json") if chance.random() < 0.3 else (b"", "")
    document = _object(chance, resource, version)
    if chance.random() < 0.6:
        document = _mutated(chance, document)
    return _encode(document), "application/json"


def _patch(chance: random.Random, resource: resources.Resource, version: str) -> tuple[bytes, str]:
    patch_type = chance.choice(mediatypes.PATCH_TYPES)
    document = _mutated(chance, _object(chance, resource, version))
    if patch_type != mediatypes.JSON_PATCH:
        return _encode(document), patch_type
    operations = [
        {
            "op": chance.choice(("add", "remove", "replace", "test", "move", "copy", "nope")),
            "path": "/" + "/".join(_some_path(chance, document)),
            "from": "/metadata/name",
            "value": _some_value(chance),
        }
        for _ in range(chance.randint(0, 3))
    ]
    return _encode(operations if chance.random() < 0.9 else _mutated(chance, operations)), patch_type


def _object(chance: random.Random, resource: resources.Resource, version: str) -> Any:
    document = copy.deepcopy(EXAMPLES.get(resource.kind, {}))
    document["apiVersion"] = resource.api_version(version)
    document["kind"] = resource.kind
    document["metadata"] = {"name": "__name__"}
    if chance.random() < 0.3:
        document["metadata"]["finalizers"] = ["example.com/f"] if chance.random() < 0.2 else []
        document["metadata"]["labels"] = {"a": "b"}
    return document


def _mutated(chance: random.Random, document: Any) -> Any:
    """A document with a few values replaced, removed or added, anywhere."""
    for _ in range(chance.randint(1, 3)):
        place = document
        while isinstance(place, dict | list) and place and chance.random() < 0.8:
            key = chance.choice(list(place) if isinstance(place, dict) else list(range(len(place))))
            if isinstance(place[key], dict | list) and place[key] and chance.random() < 0.7:
                place = place[key]
                continue
            act = chance.random()
            if act < 0.5:
                place[key] = _some_value(chance)
            elif act < 0.7:
                del place[key]
            elif isinstance(place, dict):
                place[_some_text(chance)] = _some_value(chance)
            else:
                place.append(copy.deepcopy(place[key]))
            break
    return document


def _some_path(chance: random.Random, document: Any) -> list[str]:
    path: list[str] = []
    while isinstance(document, dict | list) and document and chance.random() < 0.8:
        key = chance.choice(list(document) if isinstance(document, dict) else list(range(len(document))))
        path.append(str(key))
        document = document[key]
    return [*path, _some_text(chance)] if chance.random() < 0.2 else path


def _some_value(chance: random.Random) -> Any:
    return copy.deepcopy(chance.choice(SCALARS))


def _some_text(chance: random.Random) -> str:
    return "".join(chance.choices(string.ascii_letters + "./-~", k=chance.randint(1, 8)))


def _encode(document: Any) -> bytes:
    return json.dumps(document, ensure_ascii=True).encode()


_TEMPLATE = {"metadata": {"labels": {"a": "b"}}, "spec": client.pod()["spec"]}
_JOB_TEMPLATE = {"spec": {**client.pod()["spec"], "restartPolicy": "Never"}}
_DEVICE = {
    "name": "gpu-0",
    "attributes": {"model": {"string": "A"}, "n": {"int": 1}},
    "capacity": {"memory": {"value": "40Gi"}},
    "taints": [{"key": "k", "effect": "NoSchedule"}],
}
EXAMPLES: dict[str, dict[str, Any]] = {
    "ResourceClaim": {
        "spec": {
            "devices": {
                "requests": [
                    {
                        "name": "gpu",
                        "exactly": {
                            "deviceClassName": "gpu.example.com",
                            "selectors": [{"cel": {"expression": "device.driver == 'gpu.example.com'"}}],
                            "tolerations": [{"operator": "Exists"}],
                        },
                    }
                ],
                "constraints": [{"matchAttribute": "example.com/root"}],
                "config": [{"opaque": {"driver": "gpu.example.com", "parameters": {"a": 1}}}],
            }
        },
        "status": {
            "allocation": {
                "devices": {
                    "results": [{"request": "gpu", "driver": "gpu.example.com", "pool": "n1", "device": "gpu-0"}]
                }
            },
            "reservedFor": [{"resource": "pods", "name": "p", "uid": "u"}],
        },
    },
    "ResourceClaimTemplate": {"spec": {"spec": client.claim()["spec"]}},
    "ResourceSlice": {
        "spec": {
            "driver": "gpu.example.com",
            "nodeName": "n1",
            "pool": {"name": "n1", "generation": 1, "resourceSliceCount": 1},
            "devices": [_DEVICE],
        }
    },
    "DeviceClass": {"spec": {"selectors": [{"cel": {"expression": "device.driver == 'x'"}}]}},
    "DeviceTaintRule": {"spec": {"deviceSelector": {"driver": "d"}, "taint": {"key": "k", "effect": "NoExecute"}}},
    "Pod": {"spec": client.pod()["spec"], "status": {"phase": "Running"}},
    "Node": {"spec": {"taints": [{"key": "a", "effect": "NoSchedule"}]}, "status": {"capacity": {"cpu": "1"}}},
    "Job": {"spec": {"template": _JOB_TEMPLATE, "parallelism": 1}},
    "Deployment": {"spec": {"selector": {"matchLabels": {"a": "b"}}, "template": _TEMPLATE}},
    "ReplicaSet": {"spec": {"selector": {"matchLabels": {"a": "b"}}, "template": _TEMPLATE}},
    "ConfigMap": {"data": {"a": "b"}, "immutable": False},
    "Secret": {"data": {"a": "Yg=="}, "stringData": {"c": "d"}},
    "Event": {"involvedObject": {"kind": "Pod", "namespace": "default"}, "reason": "R", "type": "Normal"},
    "Lease": {"spec": {"holderIdentity": "me", "renewTime": "2026-01-01T00:00:00.000000Z"}},
    "ResourceQuota": {"spec": {"hard": {"pods": "1"}}},
    "PriorityClass": {"value": 1},
}
