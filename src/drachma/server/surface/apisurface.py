"""The API that an application serves, as an immutable value: its kinds and everything derived from them.

Each kind has a record (:class:`Kind`). Routes, discovery, OpenAPI documents, types and strategies are derived from the
records. An application can replace its surface at any time; requests that began on the old surface, such as watches,
end on it. :meth:`ApiSurface.with_kinds` and :meth:`ApiSurface.without` return new surfaces that share all other parts.
"""

from collections.abc import Callable, Iterable
from typing import Any, Final, TypeAlias

from drachma.api.types import model
from drachma.server.surface import openapi, resources, routes
from drachma.server.surface.strategy import Environment, FastPath, Served, Strategy

_ROUTES: Final = 8192
"""Size of the cache of routes."""

_COMMON_PATH: Final = 512
"""Maximum length of a path whose route is cached."""

_Place: TypeAlias = tuple[str, str]
"""A group and a version."""

_EVERYTHING: Final = ("", "")
_IN_PROTOBUF: Final = ("", "protobuf")
"""Place of the document of all groups in protobuf."""


MakeStrategy: TypeAlias = Callable[[resources.Resource, Environment], Strategy]

MakeFastPath: TypeAlias = Callable[[Any], FastPath]
"""Makes the fast path of a kind from its strategy."""


class Kind(resources.Resource, frozen=True, kw_only=True, eq=False, dict=True):
    """Record of a kind: the resource, its strategy and its fast path."""

    strategy: MakeStrategy
    fast_path: MakeFastPath = FastPath

    def serve(self, environment: Environment) -> Served:
        """Return the kind with its strategy in an application."""
        strategy = self.strategy(self, environment)
        return Served(self, strategy, self.fast_path(strategy), interner=environment.interner)


class ApiSurface(resources.Catalog):
    """All kinds of an application. Immutable but for caches."""

    def __init__(
        self, kinds: Iterable[Kind], *, environment: Environment, previous: "ApiSurface | None" = None
    ) -> None:
        """Share what is derived from kinds that ``previous`` has too."""
        self._kinds: Final = tuple(kinds)
        super().__init__(self._kinds)
        self._environment: Final = environment
        served = previous._served if previous is not None else {}
        self._served: Final[dict[resources.Resource, Served]] = {
            kind: served.get(kind) or kind.serve(environment) for kind in self._kinds
        }
        self._bodies: Final = {
            (below.api_version, below.kind): below.schema
            for kind in self._kinds
            for below in kind.subresources
            if below.schema is not None
        }
        self._routes: Final[dict[tuple[str, str], routes.Route | None]] = {}
        self._documents: Final = self._shared_documents(previous)

    # Derived surfaces

    def with_kinds(self, *kinds: Kind, previous: "ApiSurface | None" = None) -> "ApiSurface":
        """Return this surface with additional kinds; ValueError if a name is served already.

        ``previous`` is a surface that has more of these kinds.
        """
        return ApiSurface((*self._kinds, *kinds), environment=self._environment, previous=previous or self)

    def without(self, *kinds: resources.Resource) -> "ApiSurface":
        """Return this surface without some of its kinds."""
        remaining_kinds = (kind for kind in self._kinds if kind not in kinds)
        return ApiSurface(remaining_kinds, environment=self._environment, previous=self)

    # Lookup

    def served(self, resource: resources.Resource) -> Served:
        """Return a resource with its strategy; KeyError if this surface does not serve it."""
        return self._served[resource]

    def strategy(self, resource: resources.Resource) -> Strategy:
        return self.served(resource).strategy

    def schema(self, api_version: str, kind: str) -> model.Object | None:
        """Return the type of a served kind or of a subresource's body; None if there is none."""
        resource = self.find_kind(api_version, kind)
        if resource is not None:
            return resource.schema(api_version.rpartition("/")[2])
        return self._bodies.get((api_version, kind))

    def route(self, method: str, path: str) -> routes.Route | None:
        """Return the route of a path below ``/api`` or ``/apis``; see :func:`routes.find`."""
        key = (method, path)
        if key in self._routes:
            return self._routes[key]
        route = routes.find(self, method, path)
        if len(path) <= _COMMON_PATH:
            if len(self._routes) >= _ROUTES:
                self._routes.clear()
            self._routes[key] = route
        return route

    # OpenAPI documents

    def openapi_index(self) -> bytes:
        """Return ``/openapi/v3``: the address of each group version's document, with its hash."""
        paths = (openapi.path(group.name, version) for group in self.groups for version in group.versions)
        served = ((path, self.openapi_document(path)) for path in paths)
        return openapi.index({path: document for path, document in served if document is not None})

    def openapi_document(self, path: str) -> openapi.Served | None:
        """Return ``/openapi/v3/{path}``, where path is ``api/v1`` or ``apis/group/version``; None if there is none."""
        place = openapi.group_version(path)
        if place is None or not self.resources_in(*place):
            return None
        return self._document(place, lambda: openapi.document(self, place[0], version=place[1]))

    def swagger(self) -> openapi.Served:
        """Return ``/openapi/v2``, the document of all group versions."""
        return self._document(_EVERYTHING, lambda: openapi.swagger(self))

    def swagger_protobuf(self) -> openapi.Served:
        """Return ``/openapi/v2`` in protobuf, for kubectl."""
        return self._document(_IN_PROTOBUF, lambda: openapi.swagger_protobuf(self.swagger()))

    def _document(self, place: _Place, make: Callable[[], openapi.Served]) -> openapi.Served:
        if place not in self._documents:
            self._documents[place] = make()
        return self._documents[place]

    def _shared_documents(self, previous: "ApiSurface | None") -> dict[_Place, openapi.Served]:
        """Return the documents of another surface whose group versions are the same here."""
        if previous is None:
            return {}
        return {
            place: document
            for place, document in previous._documents.items()
            if place not in (_EVERYTHING, _IN_PROTOBUF) and previous.resources_in(*place) == self.resources_in(*place)
        }
