"""Whole OpenAPI documents, their hashes, and the index of them."""

import hashlib
from collections.abc import Mapping
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec

from drachma.server.schema import model
from drachma.server.surface import resources
from drachma.server.surface.openapi import gnostic, paths, schemas

Document: TypeAlias = dict[str, Any]

_INFO: Final = {"title": "Kubernetes", "version": "1.37"}
_SECURITY: Final = {
    "type": "apiKey",
    "description": "Bearer Token authentication",
    "name": "authorization",
    "in": "header",
}


class Served(NamedTuple):
    """The bytes of a document and the hash that clients ask for it with."""

    data: bytes
    hash: str


def path(group: str, version: str) -> str:
    """Where the document of a group version is, below ``/openapi/v3``."""
    return f"apis/{group}/{version}" if group else f"api/{version}"


def group_version(path: str) -> tuple[str, str] | None:
    """The group and version whose document is under a path; None for a path that is of no such form."""
    match path.strip("/").split("/"):
        case ["api", version]:
            return "", version
        case ["apis", group, version] if group:
            return group, version
    return None


def index(served: Mapping[str, Served]) -> bytes:
    """``/openapi/v3``: where the document of each group version is, with its hash."""
    paths = {path: {"serverRelativeURL": f"/openapi/v3/{path}?hash={served[path].hash}"} for path in sorted(served)}
    return msgspec.json.encode({"paths": paths})


def document(catalog: resources.Catalog, group: str, *, version: str) -> Served:
    """``/openapi/v3/apis/{group}/{version}``: everything about a group version."""
    definitions = schemas.Definitions(schemas.V3)
    found: dict[str, Document] = {}
    for resource in catalog.in_version(group, version):
        found |= _add(resource, version, definitions)
    whole = {
        "openapi": "3.0.0",
        "info": _INFO,
        "paths": dict(sorted(found.items())),
        "components": {
            "schemas": dict(sorted(definitions.made.items())),
            "securitySchemes": {"BearerToken": _SECURITY},
        },
    }
    return _served(whole)


def swagger(catalog: resources.Catalog) -> Served:
    """``/openapi/v2``: everything in one document."""
    definitions = schemas.Definitions(schemas.V2)
    found: dict[str, Document] = {}
    for resource in catalog.resources:
        for version in resource.versions:
            found |= _add(resource, version, definitions)
    whole = {
        "swagger": "2.0",
        "info": _INFO,
        "paths": dict(sorted(found.items())),
        "definitions": dict(sorted(definitions.made.items())),
        "securityDefinitions": {"BearerToken": _SECURITY},
        "security": [{"BearerToken": []}],
    }
    return _served(whole)


def swagger_protobuf(served: Served) -> Served:
    """The same in protobuf."""
    return _hashed(gnostic.encode(msgspec.json.decode(served.data)))


def _add(resource: resources.Resource, version: str, definitions: schemas.Definitions) -> dict[str, Document]:
    """Define a resource's types and give its paths."""
    schema = resource.schema(version)
    definitions.add_kind(schema, group=resource.group, version=version, kind=resource.kind)
    if resource.traits.is_question:
        return paths.Paths(resource, version, definitions=definitions).question(schema)
    if resource.traits.is_measured:
        # What is read here is described with its types alone.
        return {}
    listing = definitions.add_list(schema, group=resource.group, version=version, kind=resource.list_kind)
    for below in resource.subresources:
        if below.schema is not None:
            _add_subresource(below, below.schema, definitions)
    return paths.Paths(resource, version, definitions=definitions).all(schema, listing)


def _add_subresource(below: resources.Subresource, schema: model.Object, definitions: schemas.Definitions) -> None:
    group, _, version = below.api_version.rpartition("/")
    definitions.add_kind(schema, group=group, version=version, kind=below.kind)


def _served(whole: Document) -> Served:
    return _hashed(msgspec.json.encode(whole))


def _hashed(data: bytes) -> Served:
    return Served(data, hashlib.sha512(data).hexdigest().upper())
