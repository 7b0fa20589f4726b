"""Tables: their columns and rows, and the filter of rows."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from drachma.api import meta
from drachma.claims import identity
from drachma.cli.inventory.cluster import Cluster
from drachma.client import target
from drachma.server.surface import age as ages
from drachma.values import naturalorder

NONE: Final = "<none>"


class Filter(NamedTuple):
    """Filter of rows; an empty field matches every row."""

    node: str = ""
    driver: str = ""
    pool: str = ""
    device_class: str = ""
    queue: str = ""

    def has_device(self, device: identity.DeviceID) -> bool:
        """Return True if a device is of the filter's driver and pool."""
        return self.driver in ("", device.driver) and self.pool in ("", device.pool)

    @property
    def is_about_devices(self) -> bool:
        return bool(self.driver or self.pool)


class Row(NamedTuple):
    """One row: a unique key, its cells, and its document."""

    key: str
    cells: Mapping[str, str]
    document: dict[str, Any]


class Table(NamedTuple):
    """One table: its columns, additional columns of the wide form, its kinds, and the function of its rows."""

    columns: tuple[str, ...]
    wide: tuple[str, ...]
    about: tuple[target.Of[Any], ...]
    """Kinds that the label selector and the namespace apply to."""
    needs_also: tuple[target.Of[Any], ...]
    """Other kinds that rows are made of."""
    filters: frozenset[str]
    """Fields of a filter that the table supports."""
    rows: Callable[[Cluster, Filter, dt.datetime], Iterable[Row]]
    wide_needs: tuple[target.Of[Any], ...] = ()
    """Kinds that only wide tables and documents need."""

    @property
    def name_column(self) -> str:
        """Column with the names of the rows."""
        return "NAME" if "NAME" in self.columns else self.columns[0]

    @property
    def needs(self) -> tuple[target.Of[Any], ...]:
        """Kinds that every form of the table needs."""
        return self.about + self.needs_also


def age(each: meta.Object, now: dt.datetime) -> str:
    """Return the age of an object, as kubectl writes it."""
    created = each.metadata.creation_timestamp
    return ages.UNKNOWN if created is None else ages.words((now - created).total_seconds())


def sort_key(each: meta.Object) -> tuple[str, naturalorder.Key]:
    """Return the sort key of rows: namespace and name, with numbers in names by value."""
    return each.metadata.namespace, naturalorder.key(each.metadata.name)


def align(lines: Sequence[Sequence[str]], widths: Sequence[int] = ()) -> Iterator[str]:
    """Yield lines of cells in columns of these widths, or of the widths that the cells need."""
    columns = widths or column_widths(lines)
    for line in lines:
        yield "   ".join(cell.ljust(width) for cell, width in zip(line, columns, strict=True)).rstrip()


def column_widths(lines: Iterable[Sequence[str]]) -> list[int]:
    """Return the width of the longest cell of each column."""
    return [max(map(len, column)) for column in zip(*lines, strict=True)]


def join_names(names: Iterable[str]) -> str:
    """Return several names as the text of one cell."""
    return ",".join(names) or NONE
