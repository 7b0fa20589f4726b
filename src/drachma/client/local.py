"""The client for drachma's own API server in the same process: no sockets, no HTTP, and reads without a copy.

It is written against :class:`Backend`, which the server has in :mod:`drachma.server.inprocess`: packages import only
what stands below them, and the server stands above. Objects are decoded once per version and shared by all who read
them; calls take the same way through the server as those that come over the wire.
"""

import asyncio
import functools
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final, Generic, NamedTuple, Protocol, Self, TypeAlias, TypeVar, cast

import msgspec

from drachma import errors
from drachma.api import meta, pod, serviceaccount
from drachma.bounds import memory
from drachma.client import bodies, patches, protocol, target, transactions, wire

ObjectT = TypeVar("ObjectT", bound=meta.Object)

_REMEMBERED: Final = 1024
"""Decoded objects of each kind that are kept, so that all who watch or read a version decode it once."""

_SMALL_BYTES: Final = 4096
"""Bytes of an object that counts among those; larger ones are kept within the memory of all caches."""

_DECODED_FACTOR: Final = 8
"""Bytes of a decoded object for each byte of its JSON, which is kept with it."""

_JSON: Final = "application/json"
_CHANGES: Final = {change.value: change for change in protocol.Change}


Query: TypeAlias = Mapping[str, Sequence[str]]
"""The parameters of a call by name, each with its values."""


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """What a call is about; ``name`` is empty for collections, ``namespace`` for all namespaces or none."""

    group: str
    version: str
    plural: str
    namespace: str = ""
    name: str = ""
    subresource: str = ""


Body: TypeAlias = bytes | meta.Object | protocol.Document | transactions.ClaimState | transactions.ClaimNames
"""What a write brings along: text, or what need not be encoded to be decoded again: an object, a document that is
none, such as a binding, or a change of which only the server knows what it does to the object."""


class Write(NamedTuple):
    """A create, update, patch, delete or deletecollection; ``media_type`` is that of a text."""

    verb: str
    place: Place
    body: Body
    query: Query
    media_type: str = _JSON


class Stored(Protocol):
    """One version of an object; the same one is the same Python object."""

    @property
    def data(self) -> bytes:
        """Its JSON in the newest version of its kind."""

    def __hash__(self) -> int: ...


class Page(Protocol):
    """A list, or a part of one."""

    @property
    def records(self) -> Sequence[Stored]: ...

    @property
    def revision(self) -> int: ...

    @property
    def token(self) -> str: ...

    @property
    def remaining(self) -> int | None: ...


class Feed(Protocol):
    """The events of a watch."""

    async def batch(self) -> Sequence[tuple[str, Stored]]:
        """The next events by their type, at least one; empty at the end."""

    def close(self) -> None: ...


class Backend(Protocol):
    """What the server does in process; everything it refuses is an ``errors.RefusedError``."""

    async def get(self, place: Place) -> Stored: ...

    async def in_version(self, stored: Stored, place: Place) -> bytes:
        """The JSON of what a call about a place was answered with, in the version of the place."""

    async def list(self, place: Place, query: Query) -> Page: ...

    async def watch(self, place: Place, query: Query) -> Feed: ...

    async def write(self, wanted: Write) -> Stored:
        """What answers a write: the object, where one is left."""

    async def commit(self, several: Sequence[Write]) -> Sequence[Stored]:
        """The same for several that happen together, or are refused by an ``errors.CommitRefusedError``."""

    def resources(self) -> Sequence[target.Target[meta.Object]]: ...

    def openapi(self, group: str, version: str) -> bytes | None: ...


class LocalWatch(Generic[ObjectT]):
    """See ``protocol.Watch``."""

    def __init__(self, feed: Feed, reader: Callable[[Stored], ObjectT]) -> None:
        self._feed: Final = feed
        self._read: Final = reader

    async def batch(self) -> Sequence[protocol.Event[ObjectT]]:
        read = self._read
        return [protocol.Event(_CHANGES[change], read(stored)) for change, stored in await self._feed.batch()]


class LocalClient:
    """See ``protocol.Client`` for what it promises. ``manager`` owns the fields that this client writes."""

    def __init__(self, backend: Backend, *, manager: str = "drachma") -> None:
        self._backend: Final = backend
        self._managed: Final = _query(bodies.write_options(manager))
        self._is_closed = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        self._is_closed = True

    # Reading

    async def get(self, kind: target.Of[ObjectT], name: str, *, namespace: str = "") -> ObjectT:
        wanted = target.of(kind)
        return _reader(wanted)(await self._backend.get(self._object(wanted, namespace, name=name)))

    async def list(
        self,
        kind: target.Of[ObjectT],
        selection: protocol.Selection = protocol.EVERYTHING,
        *,
        limit: int = 0,
        continue_token: str = "",
    ) -> protocol.Listing[ObjectT]:
        wanted = target.of(kind)
        query = bodies.list_options(wanted, selection, limit=limit, continue_token=continue_token)
        page = await self._backend.list(self._collection(wanted, selection.namespace), _query(query))
        # Reading from memory never waits, and whoever reads page after page must let others in.
        await asyncio.sleep(0)
        return protocol.Listing(
            items=tuple(map(_reader(wanted), page.records)),
            resource_version=str(page.revision),
            continue_token=page.token,
            remaining=page.remaining,
        )

    @asynccontextmanager
    async def watch(
        self,
        kind: target.Of[ObjectT],
        selection: protocol.Selection = protocol.EVERYTHING,
        *,
        resource_version: str,
        timeout_seconds: int | None = None,
    ) -> AsyncIterator[protocol.Watch[ObjectT]]:
        wanted = target.of(kind)
        bodies.check_watch(wanted, resource_version)
        query = {**bodies.selected(wanted, selection), "resourceVersion": resource_version}
        feed = await self._backend.watch(self._collection(wanted, selection.namespace), _query(query))
        loop = asyncio.get_running_loop()
        timer = loop.call_later(timeout_seconds, feed.close) if timeout_seconds is not None else None
        try:
            yield LocalWatch(feed, _reader(wanted))
        finally:
            if timer is not None:
                timer.cancel()
            feed.close()

    async def get_document(self, kind: target.Of[Any], name: str, *, namespace: str = "") -> protocol.Document:
        wanted = target.of(kind)
        place = self._object(wanted, namespace, name=name)
        return await self._document(wanted, place, await self._backend.get(place))

    async def resources(self) -> Sequence[target.Target[meta.Object]]:
        return self._backend.resources()

    async def openapi(self, group: str, version: str) -> protocol.Document | None:
        data = self._backend.openapi(group, version)
        return None if data is None else msgspec.json.decode(data, type=dict[str, Any])

    # Writing

    async def create(self, made: ObjectT) -> ObjectT:
        wanted = target.of(type(made))
        return _reader(wanted)(await self._write(self._creation(wanted, made.metadata.namespace, made)))

    async def create_document(self, kind: target.Of[Any], document: Mapping[str, Any]) -> protocol.Document:
        wanted = target.of(kind)
        namespace = bodies.namespace_of(document)
        creation = self._creation(wanted, namespace, bodies.encode(document))
        return await self._document(wanted, creation.place, await self._write(creation))

    async def update(self, changed: ObjectT, *, subresource: str = "") -> ObjectT:
        reader = _reader(target.of(type(changed)))
        return reader(await self._write(self._update(changed, subresource)))

    async def update_document(
        self, kind: target.Of[Any], document: Mapping[str, Any], *, subresource: str = ""
    ) -> protocol.Document:
        wanted = target.of(kind)
        name, namespace = bodies.name_of(document), bodies.namespace_of(document)
        place = self._object(wanted, namespace, name=name, subresource=subresource)
        stored = await self._write(Write("update", place, bodies.encode(document), self._managed))
        return await self._document(wanted, place, stored)

    async def patch(
        self,
        kind: target.Of[ObjectT],
        name: str,
        *,
        patch: patches.Patch,
        namespace: str = "",
        subresource: str = "",
    ) -> ObjectT:
        change = transactions.Patch(kind, name, patch, namespace, subresource)
        return _reader(target.of(kind))(await self._write(self._patch(change)))

    async def delete(
        self,
        kind: target.Of[Any],
        name: str,
        *,
        namespace: str = "",
        preconditions: patches.Preconditions = patches.NONE,
        grace_period_seconds: int | None = None,
        propagation: protocol.Propagation | None = None,
    ) -> None:
        options = bodies.delete_options(preconditions, grace_period_seconds, propagation=propagation)
        place = self._object(target.of(kind), namespace, name=name)
        await self._write(Write("delete", place, options, {}))

    async def delete_collection(
        self, kind: target.Of[Any], selection: protocol.Selection, *, propagation: protocol.Propagation | None = None
    ) -> None:
        options = bodies.delete_options(patches.NONE, None, propagation=propagation)
        wanted = target.of(kind)
        place = self._collection(wanted, selection.namespace)
        query = _query(bodies.selected(wanted, selection))
        await self._write(Write("deletecollection", place, options, query))

    async def bind(self, bound: pod.Pod, *, node: str) -> None:
        await self._write(self._binding(bound, node))

    async def evict(self, evicted: pod.Pod, *, grace_period_seconds: int | None = None) -> None:
        body = bodies.encode(bodies.eviction(evicted, grace_period_seconds))
        await self._write(Write("create", self._below(evicted, "eviction"), body, self._managed))

    async def request_token(self, namespace: str, account: str, *, spec: Mapping[str, Any]) -> Mapping[str, Any]:
        place = self._object(target.of(serviceaccount.ServiceAccount), namespace, name=account, subresource="token")
        stored = await self._write(Write("create", place, bodies.encode(bodies.token_request(spec)), {}))
        return bodies.token_status(stored.data)

    async def commit(self, changes: Sequence[transactions.Change]) -> Sequence[Any]:
        """See ``transactions.Transactions``."""
        return _Written(changes, await self._backend.commit([self._wanted(change) for change in changes]))

    def _wanted(self, change: transactions.Change) -> Write:
        match change:
            case transactions.Create(made):
                return self._creation(target.of(type(made)), made.metadata.namespace, made)
            case transactions.Update(changed, subresource):
                return self._update(changed, subresource)
            case transactions.Patch():
                return self._patch(change)
            case transactions.Bind(bound, node):
                return self._binding(bound, node)
            case transactions.Finalizers(known, finalizers):
                return self._finalizers(known, finalizers)
            case transactions.Delete(known):
                return self._deletion(known)
            case transactions.ClaimState(known):
                return Write("patch", self._status_of(known), change, self._managed)
            case transactions.ClaimNames(known):
                return Write("patch", self._status_of(known), change, self._managed)

    def _creation(self, wanted: target.Target[Any], namespace: str, body: Body) -> Write:
        bodies.check_create(wanted, namespace)
        return Write("create", self._place(wanted, namespace), body, self._managed)

    def _update(self, changed: meta.Object, subresource: str) -> Write:
        wanted = target.of(type(changed))
        bodies.check_update(wanted, changed)
        metadata = changed.metadata
        place = self._object(wanted, metadata.namespace, name=metadata.name, subresource=subresource)
        return Write("update", place, changed, self._managed)

    def _patch(self, change: transactions.Patch) -> Write:
        wanted, patch, query = target.of(change.kind), change.patch, self._managed
        if patch.media_type == patches.APPLY:
            patch = bodies.completed(patch, wanted, wanted.versions[0], name=change.name)
            query = {**query, "force": ("true",)} if patch.is_forced else query
        place = self._object(wanted, change.namespace, name=change.name, subresource=change.subresource)
        return Write("patch", place, patch.data, query, patch.media_type)

    def _binding(self, bound: pod.Pod, node: str) -> Write:
        return Write("create", self._below(bound, "binding"), bodies.binding(bound, node), self._managed)

    def _finalizers(self, known: meta.Object, finalizers: Sequence[str]) -> Write:
        metadata = known.metadata
        place = self._object(target.of(type(known)), metadata.namespace, name=metadata.name)
        body = {"finalizers": list(finalizers), **patches.unchanged(known).metadata}
        return Write("patch", place, body, self._managed)

    def _deletion(self, known: meta.Object) -> Write:
        metadata = known.metadata
        options = bodies.delete_options(patches.same(known), None, propagation=None)
        place = self._object(target.of(type(known)), metadata.namespace, name=metadata.name)
        return Write("delete", place, options, {})

    def _status_of(self, known: meta.Object) -> Place:
        metadata = known.metadata
        return self._object(target.of(type(known)), metadata.namespace, name=metadata.name, subresource="status")

    def _below(self, about: pod.Pod, subresource: str) -> Place:
        metadata = about.metadata
        return self._object(target.of(pod.Pod), metadata.namespace, name=metadata.name, subresource=subresource)

    # Plain: a commit resumes every coroutine between the caller and the store.

    def _write(self, wanted: Write) -> Awaitable[Stored]:
        return self._backend.write(wanted)

    # Both

    async def _document(self, wanted: target.Target[Any], place: Place, stored: Stored) -> protocol.Document:
        return wire.document(await self._backend.in_version(stored, place), wanted)

    def _object(self, wanted: target.Target[Any], namespace: str, *, name: str, subresource: str = "") -> Place:
        wanted.check_place(name, namespace)
        return self._place(wanted, namespace, name=name, subresource=subresource)

    def _collection(self, wanted: target.Target[Any], namespace: str) -> Place:
        wanted.check_scope(namespace)
        return self._place(wanted, namespace)

    def _place(self, wanted: target.Target[Any], namespace: str, *, name: str = "", subresource: str = "") -> Place:
        if self._is_closed:
            raise errors.UnreachableError("the client is closed")
        return Place(
            group=wanted.group,
            version=wanted.versions[0],
            plural=wanted.plural,
            namespace=namespace,
            name=name,
            subresource=subresource,
        )


class _Written(Sequence[Any]):
    """What changes left, read when somebody looks at it: nobody looks at an event that was written along."""

    def __init__(self, changes: Sequence[transactions.Change], stored: Sequence[Stored]) -> None:
        self._changes: Final = changes
        self._stored: Final = stored

    def __len__(self) -> int:
        return len(self._stored)

    def __getitem__(self, position: Any) -> Any:
        if isinstance(position, slice):
            return [self[each] for each in range(*position.indices(len(self)))]
        return _read(self._changes[position], self._stored[position])

    def __iter__(self) -> Iterator[Any]:
        return map(_read, self._changes, self._stored)


def _query(parameters: Mapping[str, str]) -> Query:
    return {name: (text,) for name, text in parameters.items()}


def _read(change: transactions.Change, stored: Stored) -> meta.Object | None:
    match change:
        case (
            transactions.Create(written)
            | transactions.Update(written, _)
            | transactions.Finalizers(written, _)
            | transactions.ClaimState(written)
            | transactions.ClaimNames(written)
        ):
            return _reader(target.of(type(written)))(stored)
        case transactions.Patch(kind):
            patched: meta.Object = _reader(target.of(kind))(stored)
            return patched
        case transactions.Bind() | transactions.Delete():
            return None


def _reader(wanted: target.Target[ObjectT]) -> Callable[[Stored], ObjectT]:
    # As texts, because subscribing a type costs more than the rest of it.
    return cast("Callable[[Stored], ObjectT]", _remembering_reader(wanted))


@functools.lru_cache(maxsize=256)
def _remembering_reader(wanted: target.Target[Any]) -> Callable[[Stored], Any]:
    decode = wire.reader(wanted, wanted.versions[0]).object

    @functools.lru_cache(maxsize=_REMEMBERED)
    def read_small(stored: Stored) -> Any:
        return decode(stored.data)

    large = memory.Cache[Stored, Any]("decoded objects")

    def read(stored: Stored) -> Any:
        if len(stored.data) <= _SMALL_BYTES:
            return read_small(stored)
        value = large.get(stored)
        if value is None:
            value = decode(stored.data)
            large.put(stored, value, size=_DECODED_FACTOR * len(stored.data))
        return value

    return read
