"""Client for drachma's own API server without HTTP, in the same process or in another one of the same program.

It is written against :class:`Backend`. :mod:`drachma.server.inprocess` implements it in the server's process, where
reads need no copy; :mod:`drachma.client.remote` implements it on a socket. Objects are decoded once per version and
shared by all readers. Calls take the same path through the server as those over HTTP.
"""

import asyncio
import functools
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Hashable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final, Generic, Protocol, Self, TypeAlias, TypeVar, cast

import msgspec

from drachma import errors
from drachma.api import meta, pod, serviceaccount
from drachma.bounds import memory
from drachma.client import bodies, combination, patches, protocol, target, transactions, wire

ObjectT = TypeVar("ObjectT", bound=meta.Object)

_REMEMBERED: Final = 1024
"""Number of decoded objects of each kind that are kept, so that a version is decoded once for all readers and watches.
Only one version of an object is kept, and none of a deleted object.
"""

_SMALL_BYTES: Final = 4096
"""Largest size of an object that is kept by number. Larger objects are kept within the memory limit of all caches."""

_DECODED_FACTOR: Final = 8
"""Bytes of a decoded object for each byte of its JSON."""

_JSON: Final = "application/json"
_DELETED: Final = protocol.Change.DELETED.value
_CHANGES: Final = {change.value: change for change in protocol.Change}


Query: TypeAlias = Mapping[str, Sequence[str]]
"""Parameters of a call by name, each with its values."""


class Place(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """Object or collection that a call is about. ``name`` is empty for collections, ``namespace`` for all namespaces or
    none.
    """

    group: str
    version: str
    plural: str
    namespace: str = ""
    name: str = ""
    subresource: str = ""


Body: TypeAlias = bytes | meta.Object | protocol.Document | transactions.StatusChange
"""What a write brings along: text, or what need not be encoded to be decoded again: an object, a document that is
none, such as a binding, or a change of which only the server knows what it does to the object."""


class Write(msgspec.Struct, frozen=True):
    """A create, update, patch, delete or deletecollection. ``media_type`` is that of a text body."""

    verb: str
    place: Place
    body: Body
    query: Query
    media_type: str = _JSON


class Stored(Protocol):
    """One version of an object. Equal versions are the same Python object."""

    @property
    def data(self) -> bytes:
        """JSON in the newest version of the kind."""

    @property
    def uid(self) -> str:
        """Identity of the object; empty for versions that no other reader gets, which are not kept in decoded form."""


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
    """Events of a watch."""

    async def batch(self) -> Sequence[tuple[str, Stored]]:
        """Return the next events with their types, at least one; empty at the end."""

    def close(self) -> None: ...


class Backend(Protocol):
    """The server in process. Every refusal is an ``errors.RefusedError``."""

    async def get(self, place: Place) -> Stored: ...

    async def get_document(self, place: Place) -> bytes:
        """Return the JSON of an object in the version of its place."""

    async def list(self, place: Place, query: Query) -> Page: ...

    async def watch(self, place: Place, query: Query) -> Feed: ...

    async def write(self, write: Write) -> Stored:
        """Make a write and return its answer: the object, if one is left."""

    async def write_document(self, write: Write) -> bytes:
        """Make a write and return the JSON of its answer in the version of its place."""

    def commit(self, several: Sequence[Write]) -> Coroutine[Any, Any, Sequence[Stored]]:
        """Make several writes together. Raises ``errors.CommitRefusedError`` and writes nothing if one is refused."""

    async def resources(self) -> Sequence[target.Target[meta.Object]]: ...

    async def openapi(self, group: str, version: str) -> bytes | None: ...


class LocalWatch(Generic[ObjectT]):
    """See ``protocol.Watch``."""

    def __init__(self, feed: Feed, decoded: "_Decoded[ObjectT]") -> None:
        self._feed: Final = feed
        self._decoded: Final = decoded

    async def batch(self) -> Sequence[protocol.Event[ObjectT]]:
        decoded, events = self._decoded, []
        for change, record in await self._feed.batch():
            events.append(protocol.Event(_CHANGES[change], decoded.read(record), record))
            if change == _DELETED:
                decoded.forget(record)
        return events


class LocalClient:
    """See ``protocol.Client``. ``manager`` owns the fields that this client writes."""

    def __init__(self, backend: Backend, *, manager: str = "drachma") -> None:
        self._backend: Final = backend
        self._combiner: Final = combination.Combiner[Write, Stored](backend.commit, key_of=_identify_object)
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
        resource = target.of(kind)
        return _reader(resource)(await self._backend.get(self._object(resource, namespace, name=name)))

    async def list(
        self,
        kind: target.Of[ObjectT],
        selection: protocol.Selection = protocol.EVERYTHING,
        *,
        limit: int = 0,
        continue_token: str = "",
    ) -> protocol.Listing[ObjectT]:
        resource = target.of(kind)
        query = bodies.list_options(resource, selection, limit=limit, continue_token=continue_token)
        page = await self._backend.list(self._collection(resource, selection.namespace), _query(query))
        # Reading from memory never waits: let other tasks run between pages.
        await asyncio.sleep(0)
        return protocol.Listing(
            items=tuple(map(_reader(resource), page.records)),
            resource_version=str(page.revision),
            continue_token=page.token,
            remaining=page.remaining,
            sources=page.records,
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
        resource = target.of(kind)
        bodies.check_watch(resource, resource_version)
        query = {**bodies.selection_options(resource, selection), "resourceVersion": resource_version}
        feed = await self._backend.watch(self._collection(resource, selection.namespace), _query(query))
        loop = asyncio.get_running_loop()
        timer = loop.call_later(timeout_seconds, feed.close) if timeout_seconds is not None else None
        try:
            yield LocalWatch(feed, _decoded(resource))
        finally:
            if timer is not None:
                timer.cancel()
            feed.close()

    async def get_document(
        self, kind: target.Of[Any], name: str, *, namespace: str = "", subresource: str = ""
    ) -> protocol.Document:
        resource = target.of(kind)
        place = self._object(resource, namespace, name=name, subresource=subresource)
        return wire.document(await self._backend.get_document(place), resource)

    async def resources(self) -> Sequence[target.Target[meta.Object]]:
        return await self._backend.resources()

    async def openapi(self, group: str, version: str) -> protocol.Document | None:
        data = await self._backend.openapi(group, version)
        return None if data is None else msgspec.json.decode(data, type=dict[str, Any])

    # Writing

    async def create(self, new: ObjectT) -> ObjectT:
        resource = target.of(type(new))
        return _reader(resource)(await self._write(self._creation(resource, new.metadata.namespace, new)))

    async def create_document(self, kind: target.Of[Any], document: Mapping[str, Any]) -> protocol.Document:
        creation = self._convert(transactions.CreateDocument(kind, document))
        return wire.document(await self._backend.write_document(creation), target.of(kind))

    async def update(self, updated: ObjectT, *, subresource: str = "") -> ObjectT:
        reader = _reader(target.of(type(updated)))
        return reader(await self._write(self._update(updated, subresource)))

    async def update_document(
        self, kind: target.Of[Any], document: Mapping[str, Any], *, subresource: str = ""
    ) -> protocol.Document:
        update = self._convert(transactions.UpdateDocument(kind, document, subresource))
        return wire.document(await self._backend.write_document(update), target.of(kind))

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

    async def patch_document(
        self,
        kind: target.Of[Any],
        name: str,
        *,
        patch: patches.Patch,
        namespace: str = "",
        subresource: str = "",
    ) -> protocol.Document:
        write = self._patch(transactions.Patch(kind, name, patch, namespace, subresource))
        return wire.document(await self._backend.write_document(write), target.of(kind))

    async def patch_stored(
        self,
        kind: target.Of[ObjectT],
        name: str,
        *,
        patch: patches.Patch,
        namespace: str = "",
        subresource: str = "",
    ) -> protocol.StoredObject[ObjectT]:
        change = transactions.PatchStored(kind, name, patch, namespace, subresource)
        return _stored_object(kind, await self._write(self._patch(change)))

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
        resource = target.of(kind)
        place = self._collection(resource, selection.namespace)
        query = _query(bodies.selection_options(resource, selection))
        await self._write(Write("deletecollection", place, options, query))

    async def bind(self, subject: pod.Pod, *, node: str) -> None:
        await self._write(self._binding(subject, node))

    async def evict(self, subject: pod.Pod, *, grace_period_seconds: int | None = None) -> None:
        body = bodies.encode(bodies.eviction(subject, grace_period_seconds))
        await self._write(Write("create", self._subresource_of(subject, "eviction"), body, self._managed))

    async def request_token(self, namespace: str, account: str, *, spec: Mapping[str, Any]) -> Mapping[str, Any]:
        place = self._object(target.of(serviceaccount.ServiceAccount), namespace, name=account, subresource="token")
        record = await self._write(Write("create", place, bodies.encode(bodies.token_request(spec)), {}))
        return bodies.token_status(record.data)

    async def commit(self, changes: Sequence[transactions.Change]) -> Sequence[Any]:
        """See ``transactions.Transactions``."""
        return _Written(changes, await self._combiner.commit([self._convert(change) for change in changes]))

    def _convert(self, change: transactions.Change) -> Write:
        match change:
            case transactions.Create(new):
                return self._creation(target.of(type(new)), new.metadata.namespace, new)
            case transactions.Update(updated, subresource):
                return self._update(updated, subresource)
            case transactions.CreateDocument(kind, document):
                return self._creation(target.of(kind), bodies.namespace_of(document), bodies.encode(document))
            case transactions.UpdateDocument(kind, document, subresource):
                name, namespace = bodies.name_of(document), bodies.namespace_of(document)
                place = self._object(target.of(kind), namespace, name=name, subresource=subresource)
                return Write("update", place, bodies.encode(document), self._managed)
            case transactions.Patch() | transactions.PatchStored():
                return self._patch(change)
            case transactions.Bind(bound, node):
                return self._binding(bound, node)
            case transactions.Finalizers(current, finalizers):
                return self._finalizers(current, finalizers)
            case transactions.Delete(current):
                return self._deletion(current)
            case transactions.StatusChange(base):
                return Write("patch", self._status_of(base), change, self._managed)

    def _creation(self, resource: target.Target[Any], namespace: str, body: Body) -> Write:
        bodies.check_create(resource, namespace)
        return Write("create", self._place(resource, namespace), body, self._managed)

    def _update(self, updated: meta.Object, subresource: str) -> Write:
        resource = target.of(type(updated))
        bodies.check_update(resource, updated)
        metadata = updated.metadata
        place = self._object(resource, metadata.namespace, name=metadata.name, subresource=subresource)
        return Write("update", place, updated, self._managed)

    def _patch(self, change: transactions.Patch | transactions.PatchStored) -> Write:
        resource, patch, query = target.of(change.kind), change.patch, self._managed
        if patch.media_type == patches.APPLY:
            patch = bodies.complete_apply(patch, resource, resource.versions[0], name=change.name)
            query = {**query, "force": ("true",)} if patch.is_forced else query
        place = self._object(resource, change.namespace, name=change.name, subresource=change.subresource)
        return Write("patch", place, patch.data, query, patch.media_type)

    def _binding(self, subject: pod.Pod, node: str) -> Write:
        return Write("create", self._subresource_of(subject, "binding"), bodies.binding(subject, node), self._managed)

    def _finalizers(self, current: meta.Object, finalizers: Sequence[str]) -> Write:
        metadata = current.metadata
        place = self._object(target.of(type(current)), metadata.namespace, name=metadata.name)
        body = {"finalizers": list(finalizers), **patches.unchanged(current).metadata}
        return Write("patch", place, body, self._managed)

    def _deletion(self, current: meta.Object) -> Write:
        metadata = current.metadata
        options = bodies.delete_options(patches.same(current), None, propagation=None)
        place = self._object(target.of(type(current)), metadata.namespace, name=metadata.name)
        return Write("delete", place, options, {})

    def _status_of(self, current: meta.Object) -> Place:
        metadata = current.metadata
        return self._object(target.of(type(current)), metadata.namespace, name=metadata.name, subresource="status")

    def _subresource_of(self, subject: pod.Pod, subresource: str) -> Place:
        metadata = subject.metadata
        return self._object(target.of(pod.Pod), metadata.namespace, name=metadata.name, subresource=subresource)

    # Not a coroutine: a commit resumes every coroutine between the caller and the store.

    def _write(self, write: Write) -> Awaitable[Stored]:
        return self._backend.write(write)

    # Both

    def _object(self, resource: target.Target[Any], namespace: str, *, name: str, subresource: str = "") -> Place:
        resource.check_place(name, namespace)
        return self._place(resource, namespace, name=name, subresource=subresource)

    def _collection(self, resource: target.Target[Any], namespace: str) -> Place:
        resource.check_scope(namespace)
        return self._place(resource, namespace)

    def _place(self, resource: target.Target[Any], namespace: str, *, name: str = "", subresource: str = "") -> Place:
        if self._is_closed:
            raise errors.UnreachableError("the client is closed")
        return Place(
            group=resource.group,
            version=resource.versions[0],
            plural=resource.plural,
            namespace=namespace,
            name=name,
            subresource=subresource,
        )


class _Written(Sequence[Any]):
    """Objects after a commit, decoded on access, because most of them are never read."""

    def __init__(self, changes: Sequence[transactions.Change], entries: Sequence[Stored]) -> None:
        self._changes: Final = changes
        self._stored: Final = entries

    def __len__(self) -> int:
        return len(self._stored)

    def __getitem__(self, position: Any) -> Any:
        if isinstance(position, slice):
            return [self[each] for each in range(*position.indices(len(self)))]
        return _read(self._changes[position], self._stored[position])

    def __iter__(self) -> Iterator[Any]:
        return map(_read, self._changes, self._stored)


def _identify_object(write: Write) -> Hashable:
    """Return the key of the object that a write changes."""
    place, body = write.place, write.body
    name = place.name
    if not name and isinstance(body, meta.Object):
        # A name that the server generates is new.
        return place.group, place.plural, place.namespace, body.metadata.name or id(body)
    return place.group, place.plural, place.namespace, name


def _query(parameters: Mapping[str, str]) -> Query:
    return {name: (text,) for name, text in parameters.items()}


def _read(change: transactions.Change, entry: Stored) -> meta.Object | protocol.StoredObject[Any] | None:
    match change:
        case (
            transactions.Create(subject)
            | transactions.Update(subject, _)
            | transactions.Finalizers(subject, _)
            | transactions.StatusChange(subject)
        ):
            return _reader(target.of(type(subject)))(entry)
        case transactions.Patch(kind):
            patched: meta.Object = _reader(target.of(kind))(entry)
            return patched
        case transactions.CreateDocument(kind) | transactions.UpdateDocument(kind) | transactions.PatchStored(kind):
            return _stored_object(kind, entry)
        case transactions.Bind() | transactions.Delete():
            return None


def _stored_object(kind: target.Of[ObjectT], entry: Stored) -> protocol.StoredObject[ObjectT]:
    return protocol.StoredObject(_reader(target.of(kind))(entry), entry)


def _reader(resource: target.Target[ObjectT]) -> Callable[[Stored], ObjectT]:
    # The type is a text, because subscripting a type costs more than the rest of the function.
    return cast("Callable[[Stored], ObjectT]", _decoded(resource).read)


@functools.lru_cache(maxsize=256)
def _decoded(resource: target.Target[Any]) -> "_Decoded[Any]":
    return _Decoded(wire.reader(resource, resource.versions[0]).object)


class _Decoded(Generic[ObjectT]):
    """Objects of one kind in decoded form, shared by the components of a process.

    Large objects are kept within the memory of all caches, small ones by number. What is deleted or replaced goes when
    the first watch receives the change, so the memory follows the objects that exist.
    """

    def __init__(self, decode: Callable[[bytes], ObjectT]) -> None:
        self._decode: Final = decode
        self._small: Final[dict[str, tuple[Stored, ObjectT]]] = {}
        self._large: Final = memory.Cache[str, tuple[Stored, ObjectT]]("decoded objects")

    def read(self, entry: Stored) -> ObjectT:
        """Return the object of a version."""
        uid = entry.uid
        kept = self._small.get(uid)
        if kept is None and len(entry.data) > _SMALL_BYTES:
            kept = self._large.get(uid)
        if kept is not None and kept[0] is entry:
            return kept[1]
        value = self._decode(entry.data)
        if uid:
            self._keep(uid, entry, value)
        return value

    def forget(self, entry: Stored) -> None:
        """Drop the object of a version and all its other versions."""
        self._small.pop(entry.uid, None)
        self._large.remove(entry.uid)

    def _keep(self, uid: str, entry: Stored, value: ObjectT) -> None:
        if len(entry.data) > _SMALL_BYTES:
            self._small.pop(uid, None)
            self._large.put(uid, (entry, value), size=_DECODED_FACTOR * len(entry.data))
            return
        small = self._small
        if uid not in small and len(small) >= _REMEMBERED:
            del small[next(iter(small))]
        small[uid] = (entry, value)
