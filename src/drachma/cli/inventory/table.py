"""What a table is made of: rows, their cells, and which of them are to be seen."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple

from drachma.api import meta
from drachma.claims import identity
from drachma.cli.inventory.cluster import Cluster
from drachma.client import target
from drachma.server.surface import age as ages

NONE: Final = "<none>"


class Filter(NamedTuple):
    """What rows are wanted; what is empty does not matter."""

    node: str = ""
    driver: str = ""
    pool: str = ""
    device_class: str = ""
    queue: str = ""

    def has_device(self, of: identity.DeviceID) -> bool:
        """Whether a device is of the wanted driver and pool."""
        return self.driver in ("", of.driver) and self.pool in ("", of.pool)

    @property
    def is_about_devices(self) -> bool:
        return bool(self.driver or self.pool)


class Row(NamedTuple):
    """One thing: what it is called among others, its cells, and the same as a document."""

    key: str
    cells: Mapping[str, str]
    document: dict[str, Any]


class Table(NamedTuple):
    """One table: its columns, those that only a wide one has, what it needs, and how rows are made."""

    columns: tuple[str, ...]
    wide: tuple[str, ...]
    about: tuple[target.Of[Any], ...]
    """The kinds whose labels and namespace somebody may choose by."""
    beside: tuple[target.Of[Any], ...]
    """Other kinds that rows are made of."""
    filters: frozenset[str]
    """The fields of a filter that mean something here."""
    rows: Callable[[Cluster, Filter, dt.datetime], Iterable[Row]]
    beside_wide: tuple[target.Of[Any], ...] = ()
    """Kinds that only wide tables and documents are made of."""

    @property
    def needs(self) -> tuple[target.Of[Any], ...]:
        """The kinds that all rows are made of."""
        return self.about + self.beside


def age(of: meta.Object, now: dt.datetime) -> str:
    """How old an object is, in a word."""
    created = of.metadata.creation_timestamp
    return ages.UNKNOWN if created is None else ages.words((now - created).total_seconds())


def place(of: meta.Object) -> tuple[str, str]:
    """What rows are in the order of."""
    return of.metadata.namespace, of.metadata.name


def listed(names: Iterable[str]) -> str:
    """Several things in one cell."""
    return ",".join(names) or NONE
