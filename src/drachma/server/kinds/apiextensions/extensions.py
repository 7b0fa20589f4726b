"""Kinds that stored definitions add to a surface.

The surface is up to date with the store when it is read, except for large definitions. It takes up to a second to make
the kind of one, so its caller does that in a thread (:meth:`Extensions.unmade`). Until then the kind stays as it was.
"""

from collections.abc import Sequence
from typing import Final

from drachma.server.kinds.apiextensions import customresource, customresourcedefinition
from drachma.server.kinds.apiextensions.definition import Definition
from drachma.server.lanes import LARGE
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

    def unmade(self) -> Sequence[record.Record]:
        """Return the large definitions whose kinds have to be made."""
        self._follower.catch_up()
        return tuple(self._index.unmade.values())

    def add(self, made: "MadeKind") -> None:
        """Add the kind of a large definition, unless the definition has changed again."""
        self._index.add(made)


class MadeKind:
    """Kind of an established definition; ``kind`` is None if no version is served."""

    def __init__(self, entry: record.Record) -> None:
        self.entry: Final = entry
        self.definition: Final = Definition(entry.value, revision=entry.revision)
        self.kind: Final = customresource.kind(self.definition) if self.definition.served else None


def _is_served(kind: Kind, base: ApiSurface) -> bool:
    return any(base.find(kind.group, version, plural=kind.plural) is not None for version in kind.versions)


class _Kinds:
    """Kinds by the names of their definitions. A kind stays the same object as long as its definition does."""

    def __init__(self) -> None:
        self.all: tuple[Kind, ...] = ()
        self.unmade: Final[dict[str, record.Record]] = {}
        """Large definitions that have changed, by name."""
        self._by_name: dict[str, tuple[Definition, Kind]] = {}
        self._earlier: dict[str, tuple[Definition, Kind]] = {}
        """Kinds before the index was cleared, for definitions that are still there."""

    def clear(self) -> None:
        self._earlier, self._by_name = {**self._earlier, **self._by_name}, {}
        self.unmade.clear()
        self._publish()

    def put(self, entry: record.Record) -> None:
        document = entry.value
        name = entry.key.name
        if not customresourcedefinition.is_established(document):
            self.drop(entry)
            return
        definition = Definition(document, revision=entry.revision)
        self.unmade.pop(name, None)
        if (earlier := self._earlier.pop(name, None)) is not None:
            self._by_name[name] = earlier
            self._publish()
        previous = self._by_name.get(name)
        if previous is not None and previous[0].is_like(definition):
            return
        if len(entry.data) < LARGE:
            self._replace(MadeKind(entry))
        else:
            self.unmade[name] = entry

    def add(self, made: MadeKind) -> None:
        name = made.entry.key.name
        if self.unmade.get(name) is made.entry:
            del self.unmade[name]
            self._replace(made)

    def _replace(self, made: MadeKind) -> None:
        name = made.entry.key.name
        if made.kind is None:
            self._by_name.pop(name, None)
        else:
            self._by_name[name] = made.definition, made.kind
        self._publish()

    def drop(self, entry: record.Record) -> None:
        self.unmade.pop(entry.key.name, None)
        self._earlier.pop(entry.key.name, None)
        if self._by_name.pop(entry.key.name, None) is not None:
            self._publish()

    def _publish(self) -> None:
        self.all = tuple([kind for _, kind in self._by_name.values()])
