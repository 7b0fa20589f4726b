"""The memory of an informer: typed objects by key, by namespace, and by the indexes that its users add.

The cache of an informer that keeps documents also has the JSON of each object, from which :class:`Entry` gives the
fields that the typed view does not have. In process these are the bytes of the store itself. Over HTTP they cost about
as much memory as the typed objects, so an informer keeps them only if one of its users asks for it.

Everything runs in one event loop, so between two ``await``s a reader sees one consistent state. Objects are immutable
and shared. Lookups cost the size of their answer; a write costs the number of index values that change.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, Generic, NamedTuple, TypeAlias, TypeVar

import msgspec

from drachma import errors
from drachma.api import meta
from drachma.client import target, wire
from drachma.runtime import defects

ObjectT = TypeVar("ObjectT", bound=meta.Object)
ViewT = TypeVar("ViewT", bound=meta.Object)

IndexFunction: TypeAlias = Callable[[ObjectT], Iterable[str]]
"""Function from an object to its values in an index. It must depend on the object only."""


class Key(msgspec.Struct, frozen=True, order=True, gc=False):
    """Identity of an object among those of its kind; the namespace is empty for cluster scope."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


def key_of(subject: meta.Object) -> Key:
    """Return the key of an object."""
    return Key(subject.metadata.namespace, subject.metadata.name)


class Entry(NamedTuple, Generic[ObjectT]):
    """One version of an object: its typed view and the JSON that the view was decoded from."""

    object: ObjectT
    data: bytes

    def document(self) -> dict[str, Any]:
        """Decode the whole object. Every call returns a dictionary of its own, which the caller may change."""
        document: dict[str, Any] = msgspec.json.decode(self.data)
        return document

    def view(self, kind: target.Target[ViewT]) -> ViewT:
        """Decode another typed view, made by ``target.view_of``, of a kind that has one shape in all versions."""
        return wire.reader(kind, kind.versions[0]).object(self.data)


class _Index(Generic[ObjectT]):
    def __init__(self, function: IndexFunction[ObjectT]) -> None:
        self._function: Final = function
        self._buckets: Final[dict[str, dict[Key, ObjectT]]] = {}
        self._values: Final[dict[Key, tuple[str, ...]]] = {}

    def put(self, key: Key, new: ObjectT) -> None:
        try:
            values = self._function(new)
        except Exception:
            # The object stays without values in this index until it changes; others are found as before.
            defects.PROCESS.report("index", f"{type(new).__name__} {key}")
            values = ()
        after = values if values.__class__ is tuple else tuple(values)
        before = self._values.get(key, ())
        if before == after:
            # Most changes leave the index values as they are.
            for value in after:
                self._buckets[value][key] = new
            return
        self.drop(key)
        if after:
            self._values[key] = after
            for value in after:
                self._buckets.setdefault(value, {})[key] = new

    def drop(self, key: Key) -> None:
        if key not in self._values:
            return
        # A function may return a value twice.
        for value in set(self._values.pop(key)):
            bucket = self._buckets[value]
            del bucket[key]
            if not bucket:
                del self._buckets[value]

    def bucket(self, value: str) -> Mapping[Key, ObjectT]:
        return self._buckets.get(value, {})

    def values(self) -> Iterable[str]:
        return self._buckets.keys()


class Cache(Generic[ObjectT]):
    """The newest known state of a selection of one kind. Only its informer writes to it."""

    def __init__(self) -> None:
        self._namespaces: Final[dict[str, dict[str, ObjectT]]] = {}
        self._data: Final[dict[Key, bytes]] = {}
        self._indexes: Final[dict[str, _Index[ObjectT]]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._namespaces.values()))

    def __bool__(self) -> bool:
        """Return True if there is any object."""
        return bool(self._namespaces)

    def __iter__(self) -> Iterator[ObjectT]:
        """Iterate over a copy of all objects, in no particular order."""
        return iter([each for objects in self._namespaces.values() for each in objects.values()])

    def get(self, name: str, *, namespace: str = "") -> ObjectT | None:
        """Return an object, or None if it is not known."""
        try:
            return self._namespaces[namespace][name]
        except KeyError:
            return None

    def entry(self, name: str, *, namespace: str = "") -> Entry[ObjectT] | None:
        """Return an object with its document, or None if it is not known.

        Raises:
            errors.InvalidValueError: the informer does not keep documents.
        """
        cached = self.get(name, namespace=namespace)
        if cached is None:
            return None
        data = self._data.get(Key(namespace, name))
        if data is None:
            raise errors.InvalidValueError(f"{Key(namespace, name)}: the informer does not keep documents")
        return Entry(cached, data)

    def list_namespace(self, namespace: str) -> tuple[ObjectT, ...]:
        """Return all objects of a namespace."""
        return tuple(self._namespaces[namespace].values()) if namespace in self._namespaces else ()

    def by(self, index: str, value: str) -> tuple[ObjectT, ...]:
        """Return all objects that an index has under a value."""
        return tuple(self._index(index).bucket(value).values())

    def values(self, index: str) -> tuple[str, ...]:
        """Return all values that an index has objects for."""
        return tuple(self._index(index).values())

    def add_index(self, name: str, function: IndexFunction[ObjectT]) -> None:
        """Add an index, also of the objects that are there. Each name can be used once."""
        if name in self._indexes:
            raise errors.InvalidValueError(f"index {name!r} exists already")
        index = _Index(function)
        for each in self:
            index.put(key_of(each), each)
        self._indexes[name] = index

    def ensure_index(self, name: str, function: IndexFunction[ObjectT]) -> None:
        """Add an index unless there is one of this name. Several users can share it."""
        if name not in self._indexes:
            self.add_index(name, function)

    def put(self, new: ObjectT, data: bytes | None = None) -> ObjectT | None:
        """Remember an object, with its JSON if the informer keeps documents. Return the object known before."""
        metadata = new.metadata
        namespace, name = metadata.namespace, metadata.name
        if namespace not in self._namespaces:
            self._namespaces[namespace] = {}
        objects = self._namespaces[namespace]
        old = objects.get(name)
        objects[name] = new
        if data is not None:
            self._data[Key(namespace, name)] = data
        if self._indexes:
            key = Key(namespace, name)
            for index in self._indexes.values():
                index.put(key, new)
        return old

    def drop(self, deleted: ObjectT) -> ObjectT | None:
        """Remove the object of this name. Return the object known before."""
        metadata = deleted.metadata
        objects = self._namespaces.get(metadata.namespace, {})
        old = objects.pop(metadata.name, None)
        if old is not None:
            if not objects:
                del self._namespaces[metadata.namespace]
            key = key_of(deleted)
            self._data.pop(key, None)
            for index in self._indexes.values():
                index.drop(key)
        return old

    def _index(self, name: str) -> _Index[ObjectT]:
        if name not in self._indexes:
            names = ", ".join(sorted(self._indexes)) or "none"
            raise errors.InvalidValueError(f"index {name!r} does not exist: there are {names}")
        return self._indexes[name]
