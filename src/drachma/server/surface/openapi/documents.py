"""OpenAPI documents, their hashes and their index."""

import hashlib
from collections.abc import Mapping
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec

from drachma.api.types import model
from drachma.server.surface import resources
from drachma.server.surface.openapi import gnostic, paths, schemas

Document: TypeAlias = dict[str, Any]

_INFO: Final = {"title": "Kubernetes", "version": "1.37"}
_CUSTOM_INFO: Final = {"title": "Kubernetes CRD Swagger", "version": "v0.1.0"}
"""What upstream says of documents that definitions of custom resources make."""
_SECURITY: Final = {
    "type": "apiKey",
    "description": "Bearer Token authentication",
    "name": "authorization",
    "in": "header",
}


class Served(NamedTuple):
    """The bytes of a document, and the hash in its address."""

    data: bytes
    hash: str


def path(group: str, version: str) -> str:
    """Return the path of the document of a group version, below ``/openapi/v3``."""
    return f"apis/{group}/{version}" if group else f"api/{version}"


def group_version(path: str) -> tuple[str, str] | None:
    """Return the group and version of a document's path; None if the path has another form."""
    match path.strip("/").split("/"):
        case ["api", version]:
            return "", version
        case ["apis", group, version] if group:
            return group, version
    return None


def index(served: Mapping[str, Served]) -> bytes:
    """Return ``/openapi/v3``: the address of each group version's document, with its hash."""
    paths = {path: {"serverRelativeURL": f"/openapi/v3/{path}?hash={served[path].hash}"} for path in sorted(served)}
    return msgspec.json.encode({"paths": paths})


def document(catalog: resources.Catalog, group: str, *, version: str) -> Served:
    """Return ``/openapi/v3/apis/{group}/{version}``."""
    definitions = schemas.Definitions(schemas.V3)
    paths: dict[str, Document] = {}
    served = list(catalog.resources_in(group, version))
    for resource in served:
        paths |= _add(resource, version, definitions)
    is_custom = all(resource.schema(version).written is not None for resource in served)
    content = {
        "openapi": "3.0.0",
        "info": _CUSTOM_INFO if is_custom else _INFO,
        "paths": dict(sorted(paths.items())),
        "components": {
            "schemas": dict(sorted(definitions.made.items())),
            "securitySchemes": {"BearerToken": _SECURITY},
        },
    }
    return _served(content)


def swagger(catalog: resources.Catalog) -> Served:
    """Return ``/openapi/v2``, the document of all group versions."""
    definitions = schemas.Definitions(schemas.V2)
    paths: dict[str, Document] = {}
    for resource in catalog.resources:
        for version in resource.versions:
            paths |= _add(resource, version, definitions)
    content = {
        "swagger": "2.0",
        "info": _INFO,
        "paths": dict(sorted(paths.items())),
        "definitions": dict(sorted(definitions.made.items())),
        "securityDefinitions": {"BearerToken": _SECURITY},
        "security": [{"BearerToken": []}],
    }
    return _served(content)


def swagger_protobuf(served: Served) -> Served:
    """Return ``/openapi/v2`` in protobuf."""
    return _hashed(gnostic.encode(msgspec.json.decode(served.data)))


def _add(resource: resources.Resource, version: str, definitions: schemas.Definitions) -> dict[str, Document]:
    """Define the types of a resource, and return its paths."""
    schema = resource.schema(version)
    definitions.add_kind(schema, group=resource.group, version=version, kind=resource.kind)
    if resource.traits.is_question:
        return paths.Paths(resource, version, definitions=definitions).question(schema)
    if resource.traits.is_measured:
        # Measured resources are described by their types alone.
        return {}
    listing = definitions.add_list(
        schema, group=resource.group, version=version, kind=resource.list_kind, plural=resource.plural
    )
    for below in resource.subresources:
        if below.schema is not None:
            _add_subresource(below, below.schema, definitions)
    return paths.Paths(resource, version, definitions=definitions).all(schema, listing)


def _add_subresource(below: resources.Subresource, schema: model.Object, definitions: schemas.Definitions) -> None:
    group, _, version = below.api_version.rpartition("/")
    definitions.add_kind(schema, group=group, version=version, kind=below.kind)


def _served(content: Document) -> Served:
    return _hashed(msgspec.json.encode(content))


def _hashed(data: bytes) -> Served:
    return Served(data, hashlib.sha512(data).hexdigest().upper())
