"""The API that an application serves, as one immutable value: its kinds, and everything that follows from them.

A record for each kind (:class:`Kind`) says all that the server knows of it; paths, discovery, OpenAPI documents, types
and strategies are derived. An application holds one surface and can exchange it for another at any time: what has begun
on the old one, such as a watch, ends on it. :meth:`ApiSurface.with_kinds` and :meth:`ApiSurface.without` make such
another one, which shares with the first whatever is not concerned.
"""

from collections.abc import Callable, Iterable
from typing import Final, TypeAlias

from drachma.server.schema import model
from drachma.server.surface import openapi, resources, routes
from drachma.server.surface.strategy import Environment, Served, Strategy

_ROUTES: Final = 8192
"""Paths whose routes are kept: collections, and objects that several requests in a row are about."""

_COMMON_PATH: Final = 512
"""Characters of a path that can come again; names are shorter."""

_Place: TypeAlias = tuple[str, str]
"""A group and a version."""

_EVERYTHING: Final = ("", "")
_IN_PROTOBUF: Final = ("", "protobuf")
"""The place of the document about all groups."""


MakeStrategy: TypeAlias = Callable[[resources.Resource, Environment], Strategy]


class Kind(resources.Resource, frozen=True, kw_only=True, eq=False, dict=True):
    """Everything that the server knows of a kind: the resource, and how its objects are read, prepared and checked."""

    strategy: MakeStrategy


class ApiSurface(resources.Catalog):
    """All kinds of an application. Nobody changes it; what it remembers only saves work."""

    def __init__(
        self, kinds: Iterable[Kind], *, environment: Environment, likeness: "ApiSurface | None" = None
    ) -> None:
        """``likeness`` is a surface that has kinds in common with this one, which shares what follows from those."""
        self._kinds: Final = tuple(kinds)
        super().__init__(self._kinds)
        self._environment: Final = environment
        known = likeness._served if likeness is not None else {}
        self._served: Final[dict[resources.Resource, Served]] = {
            kind: known.get(kind) or Served(kind, kind.strategy(kind, environment), interner=environment.interner)
            for kind in self._kinds
        }
        self._bodies: Final = {
            (below.api_version, below.kind): below.schema
            for kind in self._kinds
            for below in kind.subresources
            if below.schema is not None
        }
        self._routes: Final[dict[tuple[str, str], routes.Route | None]] = {}
        self._documents: Final = self._kept_documents(likeness)

    # Changing it

    def with_kinds(self, *kinds: Kind, likeness: "ApiSurface | None" = None) -> "ApiSurface":
        """This surface and some more kinds; ValueError where something of the same name is served already.

        ``likeness`` is another one with more of them, if there is one.
        """
        return ApiSurface((*self._kinds, *kinds), environment=self._environment, likeness=likeness or self)

    def without(self, *kinds: resources.Resource) -> "ApiSurface":
        """This surface without some of its kinds."""
        rest = (kind for kind in self._kinds if kind not in kinds)
        return ApiSurface(rest, environment=self._environment, likeness=self)

    # Looking things up

    def served(self, resource: resources.Resource) -> Served:
        """A resource of this surface with its strategy; KeyError for one that it does not serve."""
        return self._served[resource]

    def strategy(self, resource: resources.Resource) -> Strategy:
        return self.served(resource).strategy

    def schema(self, api_version: str, kind: str) -> model.Object | None:
        """The type of a served kind, or of the body of a subresource; None where there is none."""
        resource = self.of_kind(api_version, kind)
        if resource is not None:
            return resource.schema(api_version.rpartition("/")[2])
        return self._bodies.get((api_version, kind))

    def route(self, method: str, path: str) -> routes.Route | None:
        """What a request for a path below ``/api`` or ``/apis`` is about; see :func:`routes.find`."""
        key = (method, path)
        if key in self._routes:
            return self._routes[key]
        route = routes.find(self, method, path)
        if len(path) <= _COMMON_PATH:
            if len(self._routes) >= _ROUTES:
                self._routes.clear()
            self._routes[key] = route
        return route

    # Documents about it

    def openapi_index(self) -> bytes:
        """``/openapi/v3``: where the document of each group version is, with its hash."""
        paths = (openapi.path(group.name, version) for group in self.groups for version in group.versions)
        served = ((path, self.openapi_document(path)) for path in paths)
        return openapi.index({path: document for path, document in served if document is not None})

    def openapi_document(self, path: str) -> openapi.Served | None:
        """``/openapi/v3/{path}``, where path is ``api/v1`` or ``apis/group/version``; None where there is none."""
        place = openapi.group_version(path)
        if place is None or not self.in_version(*place):
            return None
        return self._document(place, lambda: openapi.document(self, place[0], version=place[1]))

    def swagger(self) -> openapi.Served:
        """``/openapi/v2``: everything in one document."""
        return self._document(_EVERYTHING, lambda: openapi.swagger(self))

    def swagger_protobuf(self) -> openapi.Served:
        """The same in protobuf, for kubectl."""
        return self._document(_IN_PROTOBUF, lambda: openapi.swagger_protobuf(self.swagger()))

    def _document(self, place: _Place, make: Callable[[], openapi.Served]) -> openapi.Served:
        if place not in self._documents:
            self._documents[place] = make()
        return self._documents[place]

    def _kept_documents(self, likeness: "ApiSurface | None") -> dict[_Place, openapi.Served]:
        """The documents of another surface about group versions that are the same here."""
        if likeness is None:
            return {}
        return {
            place: document
            for place, document in likeness._documents.items()
            if place not in (_EVERYTHING, _IN_PROTOBUF) and likeness.in_version(*place) == self.in_version(*place)
        }
