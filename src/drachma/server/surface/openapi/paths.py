"""Paths of OpenAPI documents: the operations of a resource and their parameters.

kubectl reads them to find the kind of a resource, and whether the server supports ``dryRun`` and ``fieldValidation``.

Public: ``Paths(resource, version, *, definitions).all(schema, listing)``.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeAlias

from drachma.api import types
from drachma.api.types import model
from drachma.server import mediatypes
from drachma.server.surface import resources, verbs
from drachma.server.surface.openapi import schemas

Document: TypeAlias = dict[str, Any]

PATCH: Final = "io.k8s.apimachinery.pkg.apis.meta.v1.Patch"

_WRITE: Final = {
    "dryRun": ("string", "All: go through everything but do not write."),
    "fieldManager": ("string", "The name under which fields are owned."),
    "fieldValidation": ("string", "What to do about unknown and repeated fields: Ignore, Warn or Strict."),
}
_FORCE: Final = {"force": ("boolean", "Take fields from other managers; only for apply.")}
_DELETE: Final = {
    "dryRun": _WRITE["dryRun"],
    "gracePeriodSeconds": ("integer", "How long the object has until it goes."),
    "orphanDependents": ("boolean", "Not used any more; see propagationPolicy."),
    "propagationPolicy": ("string", "What happens to dependents: Orphan, Background or Foreground."),
}
_LIST: Final = {
    "allowWatchBookmarks": ("boolean", "Send bookmarks now and then."),
    "continue": ("string", "Where the list goes on."),
    "fieldSelector": ("string", "Only objects whose fields match."),
    "labelSelector": ("string", "Only objects whose labels match."),
    "limit": ("integer", "How many objects at most."),
    "resourceVersion": ("string", "The version to read or to begin at."),
    "resourceVersionMatch": ("string", "How resourceVersion is meant: Exact or NotOlderThan."),
    "sendInitialEvents": ("boolean", "Begin a watch with what exists."),
    "timeoutSeconds": ("integer", "How long a list or watch may take."),
    "watch": ("boolean", "Stay and report changes."),
}
_METHODS: Final = {
    verbs.DELETE: "delete",
    verbs.GET: "get",
    verbs.PATCH: "patch",
    verbs.CREATE: "post",
    verbs.UPDATE: "put",
}
_PRETTY: Final = {"pretty": ("string", "Whether to write for people.")}


class Paths:
    """Paths of one version of a resource."""

    def __init__(self, resource: resources.Resource, version: str, *, definitions: schemas.Definitions) -> None:
        self._resource = resource
        self._version = version
        self._definitions = definitions
        self._is_v3 = definitions.dialect.is_v3
        self._kind = {"group": resource.group, "version": version, "kind": resource.kind}

    def all(self, schema: model.Object, listing: str) -> dict[str, Document]:
        """Return all paths with their operations; ``listing`` is the name of the list's definition."""
        object_reference, list_reference = (
            self._definitions.reference(schema),
            self._definitions.reference_by_name(listing),
        )
        paths: dict[str, Document] = {}
        if self._resource.namespaced:
            paths[self._path()] = {"get": self._operation("list", list_reference, parameters=_LIST)}
        collection = self._path("namespaces/{namespace}") if self._resource.namespaced else self._path()
        paths[collection] = self._collection(object_reference, list_reference)
        paths[f"{collection}/{{name}}"] = self._item(object_reference)
        for below in self._resource.subresources:
            paths[f"{collection}/{{name}}/{below.name}"] = self._subresource(below, object_reference)
        return self._add_parameters(paths)

    def question(self, schema: model.Object) -> dict[str, Document]:
        """Return the path of a kind that is answered on creation and not stored."""
        object_reference = self._definitions.reference(schema)
        create = self._operation("post", object_reference, parameters=_WRITE, body=object_reference)
        path = self._path("namespaces/{namespace}" if self._resource.namespaced else "")
        return self._add_parameters({path: {"post": create}})

    def _add_parameters(self, paths: dict[str, Document]) -> dict[str, Document]:
        for path, operations in paths.items():
            operations["parameters"] = [self._path_parameter(name) for name in _names_in(path)] + self._parameters(
                _PRETTY
            )
        return paths

    def _path(self, middle: str = "") -> str:
        root = f"/apis/{self._resource.group}" if self._resource.group else "/api"
        return "/".join(part for part in (root, self._version, middle, self._resource.plural) if part)

    def _collection(self, object_reference: Document, list_reference: Document) -> Document:
        operations = {"get": self._operation("list", list_reference, parameters=_LIST)}
        operations["post"] = self._operation("post", object_reference, parameters=_WRITE, body=object_reference)
        if self._resource.has(verbs.DELETE_COLLECTION):
            parameters = {**_LIST, **_DELETE}
            operations["delete"] = self._operation("deletecollection", self._status(), parameters=parameters)
        return operations

    def _item(self, object_reference: Document) -> Document:
        return {
            "get": self._operation("get", object_reference),
            "put": self._operation("put", object_reference, parameters=_WRITE, body=object_reference),
            "delete": self._operation("delete", self._status(), parameters=_DELETE),
            "patch": self._patch(object_reference),
        }

    def _subresource(self, below: resources.Subresource, object_reference: Document) -> Document:
        kind, content = None, object_reference
        if below.connects:
            return self._connection(below)
        if below.schema is not None:
            group, _, version = below.api_version.rpartition("/")
            kind = {"group": group, "version": version, "kind": below.kind}
            content = self._definitions.reference(below.schema)
        operations: Document = {}
        if below.has(verbs.GET):
            operations["get"] = self._operation("get", content, kind=kind)
        if below.has(verbs.UPDATE):
            operations["put"] = self._operation("put", content, parameters=_WRITE, body=content, kind=kind)
        if below.has(verbs.CREATE):
            operations["post"] = self._operation("post", content, parameters=_WRITE, body=content, kind=kind)
        if below.has(verbs.PATCH):
            operations["patch"] = self._patch(content, kind=kind)
        return operations

    def _connection(self, below: resources.Subresource) -> Document:
        """Return a path that a node answers; answers are not described."""
        kind = {"group": "", "version": self._version, "kind": below.kind or self._resource.kind}
        return {
            method: self._operation("connect" if below.kind else "get", {"type": "string"}, kind=kind)
            for verb, method in _METHODS.items()
            if below.has(verb)
        }

    def _patch(self, content: Document, *, kind: Document | None = None) -> Document:
        self._definitions.add_plain(PATCH, {"description": "A patch in one of the served forms.", "type": "object"})
        body = self._definitions.reference_by_name(PATCH)
        parameters = {**_WRITE, **_FORCE}
        return self._operation(
            "patch", content, parameters=parameters, body=body, kind=kind, consumes=sorted(self._resource.patch_types)
        )

    def _status(self) -> Document:
        return self._definitions.reference(types.get("meta/v1.Status"))

    def _operation(
        self,
        action: str,
        answer: Document,
        *,
        parameters: Mapping[str, tuple[str, str]] | None = None,
        body: Document | None = None,
        kind: Document | None = None,
        consumes: Iterable[str] = (mediatypes.JSON,),
    ) -> Document:
        operation: Document = {
            "tags": [f"{self._resource.group.partition('.')[0] or 'core'}_{self._version}"],
            "parameters": self._parameters(parameters or {}),
            "responses": {"200": self._response(answer)},
            "x-kubernetes-action": action,
            "x-kubernetes-group-version-kind": kind or self._kind,
        }
        if body is None:
            return operation
        if self._is_v3:
            operation["requestBody"] = {"content": {each: {"schema": body} for each in consumes}, "required": True}
        else:
            operation["consumes"] = list(consumes)
            operation["parameters"].append({"name": "body", "in": "body", "required": True, "schema": body})
        return operation

    def _response(self, answer: Document) -> Document:
        if self._is_v3:
            return {"description": "OK", "content": {mediatypes.JSON: {"schema": answer}}}
        return {"description": "OK", "schema": answer}

    def _parameters(self, parameters: Mapping[str, tuple[str, str]]) -> list[Document]:
        return [self._parameter(name, "query", kind, text) for name, (kind, text) in sorted(parameters.items())]

    def _path_parameter(self, name: str) -> Document:
        text = f"The {name} of the object." if name == "name" else "The namespace to look in."
        return {**self._parameter(name, "path", "string", text), "required": True}

    def _parameter(self, name: str, place: str, kind: str, text: str) -> Document:
        entry: Document = {"name": name, "in": place, "description": text}
        typed = {"type": kind, "uniqueItems": True}
        return {**entry, "schema": typed} if self._is_v3 else {**entry, **typed}


def _names_in(path: str) -> list[str]:
    return [part[1:-1] for part in path.split("/") if part.startswith("{")]
