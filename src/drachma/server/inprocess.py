"""Access for components in the server's own process: :class:`drachma.client.local.Backend` on a dispatcher.

It makes calls of the in-process client's requests, and returns records of the store and their changes without a copy.
The number of calls is not limited, and there is no authentication: the caller acts as the user that the object was made
for.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

import msgspec

from drachma import errors
from drachma.api import meta
from drachma.client import local, refusal, target
from drachma.server import status
from drachma.server.access import authentication
from drachma.server.calls.call import Body, Call, Target
from drachma.server.pipeline import group
from drachma.server.pipeline.answer import Answer, Unstored, Verbatim
from drachma.server.pipeline.dispatcher import Dispatcher
from drachma.server.presentation import encoding
from drachma.server.reads import listing, watching
from drachma.server.surface import apisurface, openapi, verbs
from drachma.server.user import User
from drachma.store import record

_COLLECTION_VERBS: Final = frozenset({verbs.LIST, verbs.WATCH})
_NEEDED: Final = (verbs.DELETE, verbs.LIST, verbs.WATCH)


class InProcess:
    """Backend of components in the server's own process; the server records ``user_agent`` as their name."""

    def __init__(
        self, dispatcher: Dispatcher, *, user: User = authentication.ADMIN, user_agent: str = "drachma"
    ) -> None:
        self._dispatcher: Final = dispatcher
        self._user: Final = user
        self._user_agent: Final = user_agent

    async def get(self, place: local.Place) -> local.Stored:
        return _answer_object(await self._dispatch(verbs.GET, place, Body(), query={}))

    async def get_document(self, place: local.Place) -> bytes:
        return await self._encode_in_version(await self.get(place), place)

    async def write_document(self, request: local.Write) -> bytes:
        return await self._encode_in_version(await self.write(request), request.place)

    async def _encode_in_version(self, existing: local.Stored, place: local.Place) -> bytes:
        if not isinstance(existing, record.Record):
            return existing.data
        surface = self._dispatcher.surface
        resource = surface.find(place.group, place.version, plural=place.plural)
        assert resource is not None, "a call about the resource was answered"
        encoder = surface.served(resource).derive(encoding.Encoder)

        async def encode() -> bytes:
            return encoder.object(existing, place.version)

        try:
            return await self._dispatcher.consult_until_done(encode)
        except status.StatusError as error:
            raise refusal.error(error.document) from None

    async def write(self, request: local.Write) -> local.Stored:
        try:
            call = self._make_write_call(request, self._dispatcher.surface)
            return _answer_object(await self._dispatcher.dispatch(call))
        except status.StatusError as error:
            raise refusal.error(error.document) from None

    async def commit(self, requests: Sequence[local.Write]) -> Sequence[local.Stored]:
        calls: list[Call] = []
        try:
            surface = self._dispatcher.surface
            for request in requests:
                calls.append(self._make_write_call(request, surface))  # noqa: PERF401 - their number is the position
            answers = await self._dispatcher.dispatch_all(calls)
        except status.StatusError as error:
            position = error.position if isinstance(error, group.RefusedIntentError) else len(calls)
            raise errors.CommitRefusedError(refusal.error(error.document), position) from None
        return [_answer_object(answer) for answer in answers]

    async def list(self, place: local.Place, query: local.Query) -> local.Page:
        answer = await self._dispatch(verbs.LIST, place, Body(), query=query)
        if isinstance(answer.content, Verbatim):
            items = answer.content.document.get("items") or ()
            return _ComputedPage([_Answer(encoding.encode(each)) for each in items])
        assert isinstance(answer.content, listing.Listed), "a list call returns a list"
        return answer.content

    async def watch(self, place: local.Place, query: local.Query) -> "Feed":
        answer = await self._dispatch(verbs.WATCH, place, Body(), query=query)
        assert isinstance(answer.content, watching.Watch), "a watch call returns a watch"
        try:
            await answer.content.open()
        except status.StatusError as error:
            raise refusal.error(error.document) from None
        return Feed(answer.content)

    async def resources(self) -> Sequence[target.Target[meta.Object]]:
        return tuple(
            target.metadata_of(
                each.group,
                each.versions[0],
                plural=each.plural,
                kind=each.kind,
                namespaced=each.namespaced,
                other_versions=each.versions[1:],
            )
            for each in self._dispatcher.surface.resources
            if all(each.has(verb) for verb in _NEEDED)
        )

    async def openapi(self, group: str, version: str) -> bytes | None:
        surface = self._dispatcher.surface
        document = surface.openapi_document(openapi.path(group, version))
        return None if document is None else document.data

    async def _dispatch(self, verb: str, place: local.Place, body: Body, *, query: local.Query) -> Answer:
        try:
            surface = self._dispatcher.surface
            return await self._dispatcher.dispatch(self._make_call(verb, place, body, query=query, surface=surface))
        except status.StatusError as error:
            raise refusal.error(error.document) from None

    def _make_write_call(self, request: local.Write, surface: apisurface.ApiSurface) -> Call:
        content, media_type = request.body, request.media_type
        body = Body(content, media_type) if isinstance(content, bytes) else Body(b"", media_type, content)
        return self._make_call(request.verb, request.place, body, query=request.query, surface=surface)

    def _make_call(
        self, verb: str, place: local.Place, body: Body, *, query: local.Query, surface: apisurface.ApiSurface
    ) -> Call:
        return Call(
            user=self._user,
            verb=verb,
            surface=surface,
            target=_target(surface, verb, place),
            body=body,
            query=query,
            user_agent=self._user_agent,
        )


class _Answer(msgspec.Struct, frozen=True, eq=False):
    """Answer that is not an object in the store."""

    data: bytes
    uid: str = ""


_NOTHING: Final = _Answer(b"{}")


class _ComputedPage(NamedTuple):
    """List of a kind that is computed for each read, such as metrics; it has no revision to continue from."""

    records: Sequence[local.Stored]
    revision: int = 0
    token: str = ""
    remaining: int | None = None


def _answer_object(answer: Answer) -> local.Stored:
    """Return the object that answers a call; nothing for a list, as after the deletion of a collection."""
    match answer.content:
        case record.Record() as stored:
            return stored
        case Unstored(document) | Verbatim(document):
            return _Answer(encoding.encode(document))
    return _NOTHING


class Feed:
    """Events of one watch; see ``local.Feed``."""

    def __init__(self, watch: watching.Watch) -> None:
        self._watch: Final = watch

    async def batch(self) -> Sequence[tuple[str, record.Record]]:
        while True:
            try:
                events = await self._watch.batch()
            except status.StatusError as error:
                raise refusal.error(error.document) from None
            changes = self._watch.changes(events)
            if changes or not events:
                return changes

    def close(self) -> None:
        self._watch.close()


def _target(surface: apisurface.ApiSurface, verb: str, place: local.Place) -> Target:
    """Return the target of a call; raise a StatusError if it is not served."""
    resource = surface.find(place.group, place.version, plural=place.plural)
    subresource = resource.subresource(place.subresource) if resource is not None and place.subresource else None
    if resource is None or (place.subresource and subresource is None):
        raise status.no_such_path()
    if verb not in (subresource.verbs if subresource is not None else resource.verbs):
        raise status.method_not_allowed()
    namespace: str | None = place.namespace
    if resource.namespaced and not namespace:
        if verb not in _COLLECTION_VERBS:
            raise status.method_not_allowed()
        namespace = None
    return Target(resource, place.version, namespace, place.name, subresource)
