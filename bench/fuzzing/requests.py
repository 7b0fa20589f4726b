"""Stateful random requests: names, uids and revisions of earlier answers are used again."""

from __future__ import annotations

import copy
import random
import urllib.parse
from collections import defaultdict
from collections.abc import Mapping
from typing import Any, Final

import msgspec
import yaml

from bench.fuzzing import documents, surface

NAMES: Final = ("a", "b", "c", "gpu", "n1")
_ODD_NAMES: Final = ("x" * 64, "A", "..", "%2e%2e", "a%2fb", "%C3%A4", "%00", "%ff%fe", "default", "node-0", "z" * 9000)
_NAMESPACES: Final = ("default", "default", "default", "fuzz", "kube-system", "nowhere")
_TYPES: Final = (
    "application/json", "application/yaml", "application/vnd.kubernetes.protobuf", "application/cbor", "text/plain", "",
    "application/json; charset=utf-8", "application/merge-patch+json", "application/json;stream=watch", "multipart/x",
)  # fmt: skip
_PATCH_TYPES: Final = (
    "application/json-patch+json", "application/merge-patch+json", "application/strategic-merge-patch+json",
    "application/apply-patch+yaml", "application/apply-patch+cbor",
)  # fmt: skip
_ACCEPTS: Final = (
    "application/yaml", "application/json;as=Table;v=v1;g=meta.k8s.io", "application/vnd.kubernetes.protobuf", "*/*",
    "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io", "application/cbor", "text/html", ";;;,,,q=x",
    "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io", "application/json;as=;g=;v=",
)  # fmt: skip
_QUERIES: Final[Mapping[str, tuple[str, ...]]] = {
    "allowWatchBookmarks": ("true", "false", "x"),
    "command": ("sh", "ls", ""),
    "container": ("main", "", "x" * 300),
    "continue": ("x", "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MSwic3RhcnQiOiJhIn0", ""),
    "dryRun": ("All", "Some"),
    "fieldManager": ("me", "", "\x00", "y" * 200),
    "fieldSelector": ("metadata.name=a", "spec.nodeName!=x", "x", "a=\\", "status.phase=Pending", "," * 500),
    "fieldValidation": ("Strict", "Warn", "Ignore", "Maybe"),
    "follow": ("true",),
    "force": ("true", "false"),
    "gracePeriodSeconds": ("0", "-1", "30", "x", "9" * 30),
    "labelSelector": ("a=b", "a in (b,c)", "!a", "(((", "a=b=c", "x" * 70, "a notin (" + "b," * 500 + "b)"),
    "limit": ("1", "0", "-1", "x", "9" * 20),
    "limitBytes": ("1", "-1", "x"),
    "path": ("/", "..", "\r\nX: y"),
    "pretty": ("true", "x"),
    "propagationPolicy": ("Foreground", "Orphan", "Background", "Sideways"),
    "resourceVersion": ("0", "1", "x", "-1", "9" * 25),
    "resourceVersionMatch": ("Exact", "NotOlderThan", "x"),
    "sendInitialEvents": ("true", "false"),
    "sinceTime": ("yesterday", "2026-01-01T00:00:00Z"),
    "stdin": ("true",),
    "tailLines": ("1", "-1", "x"),
    "timeoutSeconds": ("1", "x", "-1"),
    "uid": ("u",),
}
_KEPT_BY_DRY_RUN: Final = (
    "webhookconfigurations",
    "apiservices",
    "customresourcedefinitions",
    "admissionpolic",
    "flowschemas",
    "prioritylevelconfigurations",
    "clusterroles",
    "clusterrolebindings",
)
"""Kinds that would change what the run itself may do or hears: writes to them are dry runs."""

_KEEP: Final = 60


class Request(msgspec.Struct, frozen=True):
    """One request; ``target`` has its query."""

    method: str
    target: str
    headers: tuple[tuple[str, str], ...]
    body: bytes
    identity: str
    is_stream: bool = False

    def encode(self, audit_id: str, authorization: str) -> bytes:
        """Return the bytes to send."""
        head = [f"{self.method} {self.target} HTTP/1.1", "Host: fuzz", f"Audit-ID: {audit_id}"]
        if authorization:
            head.append(f"Authorization: {authorization}")
        head += [f"{name}: {value}" for name, value in self.headers]
        head.append(f"Content-Length: {len(self.body)}")
        return "\r\n".join([*head, "\r\n"]).encode("latin-1", "replace") + self.body


class Memory:
    """Names, uids, revisions and whole objects of earlier answers."""

    def __init__(self) -> None:
        self.revisions: list[str] = []
        self.uids: list[str] = []
        self.tokens: list[str] = []
        self.objects: dict[str, list[dict[str, Any]]] = defaultdict(list)

    def learn(self, body: bytes, *, rng: random.Random) -> None:
        """Take what can be used again from an answer."""
        if not body.startswith(b"{") or len(body) > 100_000:
            return
        try:
            document = msgspec.json.decode(body)
        except msgspec.DecodeError:
            return
        if not isinstance(document, dict):
            return
        metadata = document.get("metadata")
        if not isinstance(metadata, dict):
            return
        for store, key in ((self.revisions, "resourceVersion"), (self.uids, "uid"), (self.tokens, "continue")):
            if isinstance(metadata.get(key), str) and metadata[key]:
                _remember(store, metadata[key], rng=rng)
        kind = document.get("kind")
        if isinstance(kind, str) and "uid" in metadata:
            metadata.pop("managedFields", None)
            _remember(self.objects[kind], document, rng=rng)


def _remember(store: list[Any], value: Any, *, rng: random.Random) -> None:
    if len(store) < _KEEP:
        store.append(value)
    else:
        store[rng.randrange(_KEEP)] = value


class RequestGenerator:
    """Endless source of requests."""

    def __init__(
        self,
        served: surface.Surface,
        weights: Mapping[str, int],
        *,
        rng: random.Random,
        examples: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> None:
        """Examples are valid parts of objects by kind: objects by schema alone are seldom valid."""
        self.memory = Memory()
        self._operations = served.operations
        self._objects = documents.DocumentGenerator(served.schemas, rng=rng)
        self._examples = examples or {}
        self._identities = list(weights)
        self._weights = list(weights.values())
        self._rng = rng

    def next(self) -> Request:
        """Return the next request."""
        rng = self._rng
        (identity,) = rng.choices(self._identities, self._weights)
        if rng.random() < 0.03:
            method = rng.choice(("GET", "GET", "POST", "OPTIONS", "HEAD", "BREW"))
            return Request(method, rng.choice(surface.PLAIN_PATHS), self._headers("", ""), b"", identity)
        operation = rng.choice(self._operations)
        path = self._path(operation)
        query = self._query(operation)
        if operation.method != "GET" and any(word in path for word in _KEPT_BY_DRY_RUN):
            query = [pair for pair in query if pair[0] != "dryRun"] + [("dryRun", "All")]
        is_stream = operation.is_stream
        if operation.method == "GET" and "{name}" not in operation.path and rng.random() < 0.08:
            query = [pair for pair in query if pair[0] not in ("watch", "timeoutSeconds")]
            query += [("watch", "1"), ("timeoutSeconds", "1")]
            is_stream = True
        body, content_type = self._body(operation, path)
        accept = "application/json" if rng.random() < 0.85 else rng.choice(_ACCEPTS)
        method = operation.method if rng.random() < 0.98 else rng.choice(("PUT", "POST", "DELETE", "PATCH", "HEAD"))
        target = path + ("?" + urllib.parse.urlencode(query, errors="replace") if query else "")
        headers = self._headers(content_type, accept)
        if operation.is_stream and rng.random() < 0.5:
            headers += (
                ("Connection", "Upgrade"),
                ("Upgrade", rng.choice(("websocket", "SPDY/3.1", "h2c", ""))),
                ("Sec-WebSocket-Key", rng.choice(("dGhlIHNhbXBsZSBub25jZQ==", "x"))),
                ("Sec-WebSocket-Version", rng.choice(("13", "8", "x"))),
                ("Sec-WebSocket-Protocol", rng.choice(("v5.channel.k8s.io", "v4.channel.k8s.io", "nope"))),
            )
        return Request(method, target, headers, body, identity, is_stream)

    def _path(self, operation: surface.Operation) -> str:
        rng = self._rng
        name = rng.choice(NAMES) if rng.random() < 0.85 else rng.choice(_ODD_NAMES)
        known = self.memory.objects.get(operation.kind)
        namespace = rng.choice(_NAMESPACES)
        if known and rng.random() < 0.4:
            metadata = rng.choice(known)["metadata"]
            name, namespace = str(metadata.get("name", name)), str(metadata.get("namespace", namespace))
            name, namespace = urllib.parse.quote(name), urllib.parse.quote(namespace)
        path = operation.path.replace("{namespace}", namespace).replace("{name}", name)
        if path.endswith("/proxy") and rng.random() < 0.5:
            path += rng.choice(("/", "/healthz", "/pods", "/..%2f..", "/%0d%0aX:y", "/stats/summary", "//x"))
        return path.replace("{path}", "x").replace("{logpath}", "x")

    def _query(self, operation: surface.Operation) -> list[tuple[str, str]]:
        rng = self._rng
        if rng.random() < 0.65:
            return []
        names = [name for name in operation.parameters if name in _QUERIES]
        if not names or rng.random() < 0.2:
            names = list(_QUERIES)
        pairs = []
        for name in rng.sample(names, min(len(names), rng.randint(1, 3))):
            value = rng.choice(_QUERIES[name])
            if name == "resourceVersion" and rng.random() < 0.6:
                value = documents.choose(self.memory.revisions, rng=rng, default=value)
            if name == "continue" and rng.random() < 0.6:
                value = documents.choose(self.memory.tokens, rng=rng, default=value)
            pairs.append((name, value))
        return pairs

    def _headers(self, content_type: str, accept: str) -> tuple[tuple[str, str], ...]:
        rng = self._rng
        headers = [("Content-Type", content_type)] if content_type else []
        headers += [("Accept", accept)] if accept else []
        if rng.random() < 0.02:
            user = rng.choice(("ann", "system:admin", "", "\xff", "system:serviceaccount:default:default"))
            headers += [("Impersonate-User", user), ("Impersonate-Group", rng.choice(("dev", "system:masters", "")))]
        if rng.random() < 0.01:
            headers.append(("Accept-Encoding", rng.choice(("gzip", "br", "x" * 100))))
        return tuple(headers)

    def _body(self, operation: surface.Operation, path: str) -> tuple[bytes, str]:
        rng = self._rng
        if operation.method == "GET":
            return b"", ""
        if operation.method == "DELETE":
            if rng.random() < 0.7:
                return b"", ""
            uid = documents.choose(self.memory.uids, rng=rng, default="u")
            options = {"gracePeriodSeconds": 0, "preconditions": {"uid": uid}, "propagationPolicy": "Foreground"}
            return documents.encode_json(self._objects.mutate(options)), "application/json"
        document = self._document(operation, path)
        if operation.method == "PATCH":
            return self._patch(operation, document)
        kind = rng.random()
        if kind < 0.82:
            return documents.encode_json(document), "application/json"
        if kind < 0.9:
            return documents.damage(documents.encode_json(document), rng=rng), rng.choice(_TYPES[:4])
        if kind < 0.94:
            return rng.choice((b"k8s\x00", b"\xd9\xd9\xf7", b"")) + rng.randbytes(rng.randint(0, 80)), rng.choice(
                _TYPES
            )
        if kind < 0.97:
            return _encode_yaml(document), "application/yaml"
        return documents.encode_json(document), rng.choice(_TYPES)

    def _document(self, operation: surface.Operation, path: str) -> dict[str, Any]:
        rng = self._rng
        known = self.memory.objects.get(operation.kind)
        if known and rng.random() < 0.4:
            document = dict(rng.choice(known))
        else:
            example = self._examples.get(operation.kind)
            if example is not None and rng.random() < 0.6:
                document = copy.deepcopy(dict(example))
            else:
                document = self._objects.generate(operation.schema)
            document |= {"apiVersion": operation.api_version, "kind": operation.kind}
            document["metadata"] = {"name": rng.choice(NAMES), "labels": {"a": "b"}}
        parts = path.split("/")
        if operation.method in ("PUT", "PATCH") and "{name}" in operation.path and rng.random() < 0.9:
            at = operation.path.split("/").index("{name}")
            metadata = {**document.get("metadata", {}), "name": urllib.parse.unquote(parts[at])}
            if rng.random() < 0.5:
                metadata.pop("resourceVersion", None)
            document["metadata"] = metadata
        if rng.random() < 0.1 and self.memory.uids:
            owner = {"apiVersion": "v1", "kind": "Pod", "name": rng.choice(NAMES), "uid": rng.choice(self.memory.uids)}
            document["metadata"] = {**document.get("metadata", {}), "ownerReferences": [owner]}
        return self._objects.mutate(document) if rng.random() < 0.55 else document

    def _patch(self, operation: surface.Operation, document: dict[str, Any]) -> tuple[bytes, str]:
        rng = self._rng
        content_type = rng.choice(_PATCH_TYPES)
        content: Any = document
        if content_type.startswith("application/json-patch"):
            content = [
                {
                    "op": rng.choice(("add", "remove", "replace", "test", "move", "copy", "nope")),
                    "path": "/" + "/".join(self._pointer(document)),
                    "from": rng.choice(("/metadata/name", "", "/spec", "/x/-")),
                    "value": rng.choice(documents.SCALARS),
                }
                for _ in range(rng.randint(0, 3))
            ]
        elif rng.random() < 0.3:
            content = {**document, "$patch": rng.choice(("replace", "delete", "merge", "x", 1))}
        elif rng.random() < 0.2:
            content = {key: value for key, value in document.items() if key in ("metadata", "spec", "status")}
        data = documents.encode_json(content)
        if rng.random() < 0.06:
            data = documents.damage(data, rng=rng)
        return data, content_type

    def _pointer(self, document: Any) -> list[str]:
        rng = self._rng
        path: list[str] = []
        while isinstance(document, dict | list) and document and rng.random() < 0.8:
            key: Any = rng.choice(list(document)) if isinstance(document, dict) else rng.randrange(len(document))
            path.append(str(key))
            document = document[key]
        return [*path, rng.choice(("-", "0", "99999999999", "a~1b", "~2"))] if rng.random() < 0.3 else path


def _encode_yaml(document: Any) -> bytes:
    try:
        return yaml.safe_dump(document).encode("utf-8", "surrogatepass")
    except yaml.YAMLError:
        return b"a: &a [*a]"
