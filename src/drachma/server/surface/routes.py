"""Routes: the collection, object or subresource that a path names.

The URL scheme is upstream's, including the old ``/watch/`` prefix. A path of an unknown group is not a route; an
unknown version or resource of a known group is answered with a Status.
"""

from typing import Final, NamedTuple

from drachma.server import status
from drachma.server.surface import resources, verbs

_NAMESPACE_SUBRESOURCES: Final = frozenset({"status", "finalize"})
_VERBS: Final = {
    "GET": verbs.GET,
    "POST": verbs.CREATE,
    "PUT": verbs.UPDATE,
    "PATCH": verbs.PATCH,
    "DELETE": verbs.DELETE,
}
_OF_COLLECTION: Final = {verbs.GET: verbs.LIST, verbs.DELETE: verbs.DELETE_COLLECTION}


class Route(NamedTuple):
    """A request for a resource. ``namespace`` is None for all namespaces and empty for objects of cluster scope."""

    resource: resources.Resource
    version: str
    verb: str
    namespace: str | None
    name: str
    subresource: resources.Subresource | None
    path: str = ""
    """Path after the name of a subresource that has one."""

    @property
    def scope(self) -> str:
        """Scope of the request, as metrics name it."""
        if self.name:
            return "resource"
        return "namespace" if self.namespace else "cluster"


class NotServedError(Exception):
    """The path is not below any served group."""


def find(catalog: resources.Catalog, method: str, path: str) -> Route | None:
    """Return the route of a path below ``/api`` or ``/apis``; None if it is too short to name a resource.

    Raises:
        NotServedError: there is no such group.
        status.StatusError: there is no such version or resource, or it does not answer this method.
    """
    parts = path.strip("/").split("/")
    if parts[0] == "api":
        group, steps = "", parts[1:]
    else:
        group, steps = parts[1] if len(parts) > 1 else "", parts[2:]
    if len(steps) < 2:
        return None
    version, *steps = steps
    api_group = catalog.group(group)
    if api_group is None:
        raise NotServedError(path)
    if version not in api_group.versions:
        raise _nothing(api_group, path)
    is_watch = steps[0] == "watch" and len(steps) > 1
    if is_watch:
        steps = steps[1:]
    try:
        return _resolve(catalog, group, version, method=method, parts=steps, is_watch=is_watch)
    except _NothingThereError:
        raise _nothing(api_group, path) from None


class _NothingThereError(Exception):
    """The path names nothing in a served group; never leaves this module."""


def _nothing(group: resources.Group, path: str) -> Exception:
    return NotServedError(path) if group.is_custom else status.no_such_path()


def _resolve(
    catalog: resources.Catalog, group: str, version: str, *, method: str, parts: list[str], is_watch: bool
) -> Route:
    namespace: str | None = None
    if parts[0] == "namespaces" and len(parts) > 2 and not (len(parts) == 3 and parts[2] in _NAMESPACE_SUBRESOURCES):
        namespace, parts = parts[1], parts[2:]
    resource = catalog.find(group, version, plural=parts[0])
    if resource is None:
        raise _NothingThereError
    parts, path = _split(resource, parts)
    if not all(parts):
        raise _NothingThereError
    name = parts[1] if len(parts) > 1 else ""
    if resource.namespaced:
        if namespace is None and name:
            raise _NothingThereError
    else:
        if namespace is not None:
            raise _NothingThereError
        namespace = ""
    subresource = resource.subresource(parts[2]) if len(parts) == 3 else None
    if len(parts) == 3 and subresource is None:
        if resource.traits.is_custom:
            raise status.not_found(resource, name)
        raise _NothingThereError
    verb = _verb(method, resource, name=name, namespace=namespace, subresource=subresource)
    if is_watch:
        if verb not in (verbs.GET, verbs.LIST):
            raise status.method_not_allowed()
        verb = verbs.WATCH
    return Route(resource, version, verb, namespace, name, subresource, path)


def _split(resource: resources.Resource, parts: list[str]) -> tuple[list[str], str]:
    """Return the path of an object or subresource, and the path that follows it."""
    if len(parts) <= 3:
        return parts, ""
    below = resource.subresource(parts[2])
    if below is None or not below.has_path:
        raise _NothingThereError
    return parts[:3], "/".join(parts[3:])


def _verb(
    method: str,
    resource: resources.Resource,
    *,
    name: str,
    namespace: str | None,
    subresource: resources.Subresource | None,
) -> str:
    verb = _VERBS.get(method)
    if verb is not None and not name:
        verb = _OF_COLLECTION.get(verb, verb if verb == verbs.CREATE else None)
    elif verb == verbs.CREATE and subresource is None:
        verb = None
    if verb is None:
        raise status.method_not_allowed()
    served = subresource.verbs if subresource is not None else resource.verbs
    # Across namespaces, objects can only be listed and watched.
    if verb not in served or (namespace is None and verb != verbs.LIST):
        raise status.method_not_allowed()
    return verb
