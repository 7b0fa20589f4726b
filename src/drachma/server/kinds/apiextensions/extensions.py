"""Kinds that stored definitions add to a surface, always up to date with the store."""

from typing import Final

from drachma.server.kinds.apiextensions import customresource, customresourcedefinition
from drachma.server.kinds.apiextensions.definition import Definition
from drachma.server.reads import follower
from drachma.server.reads.reader import Reader
from drachma.server.surface.apisurface import ApiSurface, Kind
from drachma.store import record

KEY: Final = customresourcedefinition.KIND.key


class Extensions:
    """Extends a surface by the kinds of all established definitions."""

    def __init__(self, store: Reader) -> None:
        self._index: Final = _Kinds()
        self._follower: Final = follower.Follower(store, (KEY,), self._index)
        self._base: ApiSurface | None = None
        self._surface: ApiSurface | None = None
        self._kinds: tuple[Kind, ...] = ()

    def extend(self, base: ApiSurface) -> ApiSurface:
        """Return the surface with the defined kinds; kinds of the surface itself take precedence."""
        self._follower.catch_up()
        kinds = self._index.all
        if base is not self._base or kinds is not self._kinds or self._surface is None:
            free = [kind for kind in kinds if not _is_served(kind, base)]
            previous = self._surface if base is self._base else None
            self._surface = base.with_kinds(*free, previous=previous) if free else base
            self._base, self._kinds = base, kinds
        return self._surface


def _is_served(kind: Kind, base: ApiSurface) -> bool:
    return any(base.find(kind.group, version, plural=kind.plural) is not None for version in kind.versions)


class _Kinds:
    """Kinds by the names of their definitions. A kind stays the same object as long as its definition does."""

    def __init__(self) -> None:
        self.all: tuple[Kind, ...] = ()
        self._by_name: Final[dict[str, tuple[Definition, Kind]]] = {}

    def clear(self) -> None:
        self._by_name.clear()
        self._publish()

    def put(self, entry: record.Record) -> None:
        document = entry.value
        name = entry.key.name
        if not customresourcedefinition.is_established(document):
            self.drop(entry)
            return
        definition = Definition(document, revision=entry.revision)
        previous = self._by_name.get(name)
        if previous is not None and previous[0].is_like(definition):
            return
        if definition.served:
            self._by_name[name] = definition, customresource.kind(definition)
        else:
            self._by_name.pop(name, None)
        self._publish()

    def drop(self, entry: record.Record) -> None:
        if self._by_name.pop(entry.key.name, None) is not None:
            self._publish()

    def _publish(self) -> None:
        self.all = tuple([kind for _, kind in self._by_name.values()])
