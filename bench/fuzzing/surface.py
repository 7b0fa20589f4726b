"""Operations that a server offers, from its OpenAPI documents."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

METHODS: Final = ("get", "post", "put", "patch", "delete")

PLAIN_PATHS: Final = (
    "/", "/api", "/apis", "/version", "/healthz", "/livez", "/readyz", "/readyz/ping", "/metrics", "/openapi/v2",
    "/openapi/v3", "/openapi/v3/apis/resource.k8s.io/v1", "/openapi/v3/nope", "/apis/nope/v1/x", "/api/v1/nope", "//",
    "/api//v1///pods", "/apis/resource.k8s.io", "/.well-known/openid-configuration", "/openid/v1/jwks", "/debug/pprof",
    "/apis/resource.k8s.io/v1/watch/resourceclaims/x/y/z", "/api/v1/watch/pods",
    "/api/v1/namespaces/default/pods/a/log",
)  # fmt: skip
"""Paths that no document has; some exist."""


class Operation(msgspec.Struct, frozen=True):
    """One method of one path; ``schema`` names the schema of its object, empty where it has none."""

    method: str
    path: str
    api_version: str
    kind: str
    schema: str
    parameters: tuple[str, ...]

    @property
    def is_stream(self) -> bool:
        """Whether the path may answer with a stream or an upgrade."""
        return self.path.rpartition("/")[2] in ("exec", "attach", "portforward", "log", "proxy")


class Surface(msgspec.Struct, frozen=True):
    """All operations and schemas of a server."""

    operations: tuple[Operation, ...]
    schemas: Mapping[str, Mapping[str, Any]]


def read_surface(documents: Iterable[Mapping[str, Any]]) -> Surface:
    """Collect operations and schemas from the OpenAPI documents of all group versions."""
    schemas: dict[str, Mapping[str, Any]] = {}
    operations = []
    for document in documents:
        own = document.get("components", {}).get("schemas", {})
        schemas |= own
        by_kind = {
            (kind["group"], kind["version"], kind["kind"]): name
            for name, schema in own.items()
            for kind in schema.get("x-kubernetes-group-version-kind", ())
        }
        for path, item in document.get("paths", {}).items():
            methods = [method for method in METHODS if method in item]
            operations += [_operation(method, path, item, by_kind=by_kind) for method in methods]
    return Surface(tuple(operations), schemas)


def _operation(
    method: str, path: str, item: Mapping[str, Any], *, by_kind: Mapping[tuple[str, str, str], str]
) -> Operation:
    entry = item[method]
    kind = entry.get("x-kubernetes-group-version-kind", {"group": "", "version": "v1", "kind": ""})
    key = (kind["group"], kind["version"], kind["kind"])
    parameters = [*item.get("parameters", ()), *entry.get("parameters", ())]
    return Operation(
        method.upper(),
        path,
        f"{kind['group']}/{kind['version']}".removeprefix("/"),
        kind["kind"],
        by_kind.get(key, ""),
        tuple(each["name"] for each in parameters if each.get("in") == "query"),
    )
