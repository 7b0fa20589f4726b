"""The memory of an informer: typed objects by key, by namespace, and by whatever indexes its users want.

Everything runs in one event loop, so between two ``await``s a reader sees one consistent state. Objects are immutable
and shared. Lookups cost the size of their answer; a write costs the number of index values that change.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, Generic, NamedTuple, TypeAlias, TypeVar

from drachma import errors
from drachma.api import meta

ObjectT = TypeVar("ObjectT", bound=meta.Object)

IndexFunction: TypeAlias = Callable[[ObjectT], Iterable[str]]
"""The values under which an object is found in one index; it must depend on nothing but the object."""


class Key(NamedTuple):
    """The identity of an object among those of its kind; the namespace is empty for cluster scope."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


def key_of(of: meta.Object) -> Key:
    """The key of an object."""
    return Key(of.metadata.namespace, of.metadata.name)


class _Index(Generic[ObjectT]):
    def __init__(self, function: IndexFunction[ObjectT]) -> None:
        self._function: Final = function
        self._buckets: Final[dict[str, dict[Key, ObjectT]]] = {}
        self._values: Final[dict[Key, tuple[str, ...]]] = {}

    def put(self, key: Key, new: ObjectT) -> None:
        after = tuple(self._function(new))
        if key in self._values:
            if self._values[key] == after:
                # Most changes leave an object where it is.
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
        # A value may be there twice.
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
        self._indexes: Final[dict[str, _Index[ObjectT]]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._namespaces.values()))

    def __bool__(self) -> bool:
        """Whether there is any object."""
        return bool(self._namespaces)

    def __iter__(self) -> Iterator[ObjectT]:
        """All objects as they are now, in no particular order; the cache may change meanwhile."""
        return iter([each for objects in self._namespaces.values() for each in objects.values()])

    def get(self, name: str, *, namespace: str = "") -> ObjectT | None:
        """One object, or None where it is not known."""
        try:
            return self._namespaces[namespace][name]
        except KeyError:
            return None

    def in_namespace(self, namespace: str) -> tuple[ObjectT, ...]:
        """All objects of a namespace."""
        return tuple(self._namespaces.get(namespace, {}).values())

    def by(self, index: str, value: str) -> tuple[ObjectT, ...]:
        """All objects that an index has under a value."""
        return tuple(self._index(index).bucket(value).values())

    def values(self, index: str) -> tuple[str, ...]:
        """All values that an index has objects for."""
        return tuple(self._index(index).values())

    def add_index(self, name: str, function: IndexFunction[ObjectT]) -> None:
        """Keeps an index from now on, of what is there already too. A name can be taken only once."""
        if name in self._indexes:
            raise errors.InvalidValueError(f"index {name!r} exists already")
        made = _Index(function)
        for each in self:
            made.put(key_of(each), each)
        self._indexes[name] = made

    def ensure_index(self, name: str, function: IndexFunction[ObjectT]) -> None:
        """The same for an index that several users want, and whoever comes first makes."""
        if name not in self._indexes:
            self.add_index(name, function)

    def put(self, new: ObjectT) -> ObjectT | None:
        """Remembers an object; returns what was known before."""
        metadata = new.metadata
        namespace, name = metadata.namespace, metadata.name
        if namespace not in self._namespaces:
            self._namespaces[namespace] = {}
        objects = self._namespaces[namespace]
        old = objects.get(name)
        objects[name] = new
        if self._indexes:
            key = Key(namespace, name)
            for index in self._indexes.values():
                index.put(key, new)
        return old

    def drop(self, gone: ObjectT) -> ObjectT | None:
        """Forgets the object of this name; returns what was known of it."""
        metadata = gone.metadata
        objects = self._namespaces.get(metadata.namespace, {})
        old = objects.pop(metadata.name, None)
        if old is not None:
            if not objects:
                del self._namespaces[metadata.namespace]
            key = key_of(gone)
            for index in self._indexes.values():
                index.drop(key)
        return old

    def _index(self, name: str) -> _Index[ObjectT]:
        if name not in self._indexes:
            names = ", ".join(sorted(self._indexes)) or "none"
            raise errors.InvalidValueError(f"index {name!r} does not exist: there are {names}")
        return self._indexes[name]
