"""The server's end of the in-process client: :class:`drachma.client.local.Backend` on the services of an application.

Reads and watches go straight to the store. Writes are handed to the same verbs as those from the wire, with requests
that never were HTTP. There are no limits here and no authentication: whoever has the Python object may do everything.
"""

import functools
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import Final, TypeAlias

import msgspec

from drachma import errors
from drachma.api import meta
from drachma.client import local, refusal, target
from drachma.client import protocol as client
from drachma.server import status
from drachma.server.access import authentication
from drachma.server.calls import options
from drachma.server.kinds.strategy import User
from drachma.server.pipeline import deleting, podverbs, writing
from drachma.server.pipeline.handling import Handler, Services
from drachma.server.presentation import negotiation
from drachma.server.reads import listing
from drachma.server.surface import resources, routes, verbs
from drachma.server.wire import requests, responses
from drachma.store import protocol, record
from drachma.validation import fielderror
from drachma.validation.path import Path

_VERBS: Final[Mapping[str, Callable[[Handler], Awaitable[responses.Response]]]] = {
    verbs.CREATE: writing.create,
    verbs.DELETE: deleting.delete,
    verbs.DELETE_COLLECTION: deleting.delete_collection,
    verbs.PATCH: writing.patch,
    verbs.UPDATE: writing.update,
}
_SUBRESOURCES: Final[Mapping[str, Callable[[Handler], Awaitable[responses.Response]]]] = {
    "binding": podverbs.bind,
    "eviction": podverbs.evict,
}
_Query: TypeAlias = tuple[tuple[str, str], ...]
_NEEDED: Final = (verbs.DELETE, verbs.LIST, verbs.WATCH)


class InProcess:
    """What components in the server's own process talk to; ``user_agent`` names them where the server records it."""

    def __init__(self, services: Services, *, user: User = authentication.ADMIN, user_agent: str = "drachma") -> None:
        self._services: Final = services
        self._user: Final = user
        self._user_agent: Final = user_agent

    def get(self, place: local.Place) -> record.Record:
        try:
            return self._services.registry.get(_resource(place), place.namespace, name=place.name)
        except status.StatusError as error:
            raise refusal.error(error.document) from None

    async def list(
        self, place: local.Place, selection: client.Selection, *, limit: int, continue_token: str
    ) -> listing.Listed:
        try:
            wanted = _list_options(place, selection, limit=str(limit), token=continue_token)
            return await listing.read(self._services.store, _scope(place), wanted)
        except status.StatusError as error:
            raise refusal.error(error.document) from None

    async def watch(self, place: local.Place, selection: client.Selection, *, resource_version: str) -> "Feed":
        try:
            wanted = _list_options(place, selection)
            after = _revision(resource_version, _resource(place))
            feed = Feed(_subscribe(self._services.store, place, after), listing.matcher(wanted), self._services)
        except status.StatusError as error:
            raise refusal.error(error.document) from None
        return feed

    async def write(
        self, verb: str, place: local.Place, *, body: bytes, media_type: str, query: Mapping[str, str]
    ) -> local.Stored:
        try:
            handler = self._handler(verb, place, body=body, media_type=media_type, query=query)
            below = place.subresource
            act = _SUBRESOURCES[below] if below in _SUBRESOURCES else _VERBS[verb]
            answer = await act(handler)
            return answer.stored or _Answer(answer.body)
        except status.StatusError as error:
            raise refusal.error(error.document) from None
        except errors.StoreClosedError:
            raise refusal.error(status.unavailable("the server is shutting down").document) from None
        except errors.StoreError as error:
            raise refusal.error(status.unavailable(f"the store cannot be written: {error}").document) from error

    def resources(self) -> Sequence[target.Target[meta.Object]]:
        return tuple(
            target.metadata_of(
                each.group, each.versions[0], plural=each.plural, kind=each.kind, namespaced=each.namespaced
            )
            for each in resources.CATALOG.resources
            if all(each.has(verb) for verb in _NEEDED)
        )

    def _handler(
        self, verb: str, place: local.Place, *, body: bytes, media_type: str, query: Mapping[str, str]
    ) -> Handler:
        resource, subresource = _served(verb, place.group, place.version, plural=place.plural, below=place.subresource)
        if resource.namespaced and not place.namespace:
            raise status.method_not_allowed()
        headers = _headers(media_type, self._user_agent)
        request = _Request(verb, body, headers=headers, query=tuple(query.items()))
        request.user = self._user
        route = routes.Route(resource, place.version, verb, place.namespace, place.name, subresource)
        return Handler(self._services, request, route, output=negotiation.PLAIN)


class _Answer(msgspec.Struct, frozen=True, eq=False):
    """An answer that is not an object in the store."""

    data: bytes


class _Request(requests.Request):
    """A request that never was HTTP: its body is there, and its query and headers are texts."""

    __slots__ = ("_body", "_given", "_texts")

    def __init__(self, verb: str, body: bytes, *, headers: Mapping[bytes, str], query: _Query) -> None:
        super().__init__({"method": verb, "path": "", "headers": ()}, _receive)
        self._body = body
        self._texts = headers
        self._given = query

    @property
    def query(self) -> options.Query:
        return _query(self._given)

    def write_options(self, kind: str, *, patch_type: str = "") -> options.WriteOptions:
        return _write_options(self._given, kind, patch_type)

    def header(self, name: bytes) -> str:
        return self._texts[name] if name in self._texts else ""  # noqa: SIM401 - called for every write, twice

    async def body(self) -> bytes:
        return self._within_limit(self._body)


async def _receive() -> requests.Message:
    raise AssertionError("nothing is received in process")


@functools.lru_cache(maxsize=256)
def _headers(media_type: str, user_agent: str) -> Mapping[bytes, str]:
    return {b"content-type": media_type, b"user-agent": user_agent}


@functools.lru_cache(maxsize=256)
def _query(given: _Query) -> options.Query:
    return {name: (text,) for name, text in given}


@functools.lru_cache(maxsize=256)
def _write_options(given: _Query, kind: str, patch_type: str) -> options.WriteOptions:
    """The options that a client gives again and again; what is refused is not remembered."""
    return options.for_write(_query(given), kind, patch_type=patch_type)


@functools.lru_cache(maxsize=1024)
def _served(
    verb: str, group: str, version: str, *, plural: str, below: str
) -> tuple[resources.Resource, resources.Subresource | None]:
    """What a write is about; what is refused is not remembered."""
    resource = resources.CATALOG.find(group, version, plural=plural)
    subresource = resource.subresource(below) if resource is not None and below else None
    if resource is None or (below and subresource is None):
        raise status.no_such_path()
    if verb not in (subresource.verbs if subresource is not None else resource.verbs):
        raise status.method_not_allowed()
    return resource, subresource


class Feed:
    """The events of one watch that selects; see ``local.Feed``."""

    def __init__(
        self, watch: protocol.Watch, matches: Callable[[record.Record], bool] | None, services: Services
    ) -> None:
        self._watch: Final = watch
        self._matches: Final = matches
        self._services: Final = services
        services.streams.add(watch)

    async def batch(self) -> Sequence[tuple[str, record.Record]]:
        while True:
            try:
                events = await self._watch.batch()
            except errors.GoneError as error:
                expired = status.expired(f"too old resource version: {error}")
                raise refusal.error(expired.document) from None
            if self._matches is None or not events:
                return [(event.change.value, event.record) for event in events]
            selected = list(_selected(events, self._matches))
            if selected:
                return selected

    def close(self) -> None:
        self._services.streams.discard(self._watch)
        self._watch.close()


def _selected(
    events: Sequence[record.Event], matches: Callable[[record.Record], bool]
) -> Iterator[tuple[str, record.Record]]:
    """What events mean to who selects: an object that begins to match is new to it, one that ends to is gone."""
    for event in events:
        before = event.previous is not None and matches(event.previous)
        after = event.change is not record.Change.DELETED and matches(event.record)
        if after:
            yield "MODIFIED" if before else "ADDED", event.record
        elif before:
            yield "DELETED", event.record if event.change is record.Change.DELETED else _last_seen(event)


def _last_seen(event: record.Event) -> record.Record:
    """The object as the watcher knows it, at the revision at which it stopped matching."""
    previous = event.previous
    assert previous is not None, "something matched before"
    body = record.stamped_deletion(previous, event.revision)
    return record.Record(previous.key, previous.uid, previous.create_revision, event.revision, body.data, body.value)


def _resource(place: local.Place) -> resources.Resource:
    found = resources.CATALOG.find(place.group, place.version, plural=place.plural)
    if found is None:
        raise status.no_such_path()
    return found


def _scope(place: local.Place) -> listing.Scope:
    return listing.Scope(_resource(place), place.namespace or None)


def _list_options(
    place: local.Place, selection: client.Selection, *, limit: str = "", token: str = ""
) -> options.ListOptions:
    query = {
        "labelSelector": selection.labels,
        "fieldSelector": selection.fields,
        "limit": limit,
        "continue": token,
    }
    given = {parameter: (text,) for parameter, text in query.items() if text}
    return options.for_list(given, _resource(place), version=place.version)


def _subscribe(store: protocol.Store, place: local.Place, after: int) -> protocol.Watch:
    try:
        return store.watch(_resource(place).key, place.namespace or None, after=after)
    except errors.GoneError:
        raise status.expired(f"too old resource version: {after} ({store.compacted})") from None
    except errors.StoreClosedError:
        raise status.unavailable("the server is shutting down") from None


def _revision(text: str, resource: resources.Resource) -> int:
    try:
        return listing.parse_revision(text)
    except errors.InvalidValueError as error:
        causes = [fielderror.invalid(Path("resourceVersion"), text, str(error))]
        raise status.invalid(resource.plural, "", group=resource.group, causes=causes) from None
