"""Whole OpenAPI documents, their hashes, and the index of them."""

import functools
import hashlib
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec

from drachma.server.schema import kinds, model
from drachma.server.surface import resources
from drachma.server.surface.openapi import paths, schemas

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


@functools.cache
def index(catalog: resources.Catalog) -> bytes:
    """``/openapi/v3``: where the document of each group version is, with its hash."""
    found = {}
    for group in catalog.groups:
        for version in group.versions:
            path = f"apis/{group.name}/{version}" if group.name else f"api/{version}"
            served = document(catalog, path)
            assert served is not None, "every group version has a document"
            found[path] = {"serverRelativeURL": f"/openapi/v3/{path}?hash={served.hash}"}
    return msgspec.json.encode({"paths": dict(sorted(found.items()))})


@functools.cache
def document(catalog: resources.Catalog, path: str) -> Served | None:
    """``/openapi/v3/{path}``, where path is ``api/v1`` or ``apis/group/version``; None where there is none."""
    match path.strip("/").split("/"):
        case ["api", version]:
            group = ""
        case ["apis", group, version]:
            pass
        case _:
            return None
    served = catalog.in_version(group, version)
    if not served or (path.startswith("apis") and not group):
        return None
    definitions = schemas.Definitions(schemas.V3)
    found: dict[str, Document] = {}
    for resource in served:
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


@functools.cache
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


def _add(resource: resources.Resource, version: str, definitions: schemas.Definitions) -> dict[str, Document]:
    """Define a resource's types and give its paths."""
    schema = kinds.of(resource.api_version(version), resource.kind)
    definitions.add_kind(schema, group=resource.group, version=version, kind=resource.kind)
    list_meta = kinds.TABLE.object("ListMeta")
    listing = definitions.add_list(schema, list_meta, group=resource.group, version=version)
    for below in resource.subresources:
        if below.kind:
            _add_subresource(below, kinds.of(below.api_version, below.kind), definitions)
    return paths.Paths(resource, version, definitions=definitions).all(schema, listing)


def _add_subresource(below: resources.Subresource, schema: model.Object, definitions: schemas.Definitions) -> None:
    group, _, version = below.api_version.rpartition("/")
    definitions.add_kind(schema, group=group, version=version, kind=below.kind)


def _served(whole: Document) -> Served:
    data = msgspec.json.encode(whole)
    return Served(data, hashlib.sha512(data).hexdigest().upper())
