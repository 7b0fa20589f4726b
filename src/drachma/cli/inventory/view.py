"""One table of the inventory, printed once or watched, for ``drachma get``."""

import asyncio
import datetime as dt
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final

import typer

from drachma import errors
from drachma.api import manifest, node, pod, resourceclaim, resourceslice
from drachma.cli import nearest
from drachma.cli.inventory import cluster as clusters
from drachma.cli.inventory import rows as devicerows
from drachma.cli.inventory import table as inventory
from drachma.cli.options import TableFormat
from drachma.client import Client, Selection, http, protocol, target
from drachma.client.access import Access
from drachma.runtime import clock

_FIELDS: Final[dict[target.Of[Any], str]] = {
    node.Node: "nodes",
    pod.Pod: "pods",
    resourceclaim.ResourceClaim: "claims",
    resourceslice.ResourceSlice: "slices",
}
"""Field of a Cluster that holds the objects of a kind."""

_QUEUEING: Final = "kueue.x-k8s.io"

_PAUSE_SECONDS: Final = 0.2
"""Time to gather changes before they are printed."""


def find_table(name: str) -> tuple[inventory.Table, Mapping[target.Of[Any], str]]:
    """Return a table by its name, and the fields of a Cluster for its kinds."""
    if name in devicerows.TABLES:
        return devicerows.TABLES[name], _FIELDS
    if name == "drivers":
        from drachma.cli.inventory import driverrows

        return driverrows.TABLES[name], driverrows.FIELDS
    # Queueing takes most of the time of a start, and most tables do without it.
    from drachma.cli.inventory import queuerows

    return queuerows.TABLES[name], queuerows.FIELDS


class View:
    """Table to show, the filter of its rows, and the selection of the objects that it reads."""

    def __init__(
        self,
        name: str,
        table: inventory.Table,
        filter_: inventory.Filter,
        *,
        fields: Mapping[target.Of[Any], str],
        namespace: str,
        selector: str,
        names: Collection[str] = (),
    ) -> None:
        self.name: Final = name
        self._names: Final = names
        self.table: Final = table
        self._fields: Final = fields
        self._filter: Final = filter_
        self._namespace: Final = namespace
        self._selector: Final = selector
        self._is_namespaced: Final = any(target.of(kind).namespaced for kind in table.about)

    @property
    def namespace(self) -> str:
        """Namespace of the rows; empty for all."""
        return self._namespace if self._is_namespaced else ""

    @property
    def has_namespaces(self) -> bool:
        """True if the table shows rows of several namespaces."""
        return not self.namespace

    def selection(self, kind: target.Of[Any]) -> Selection:
        """Return the selection of a kind's objects."""
        # Objects that belong to a namespaced object are in its namespace; devices may serve any namespace.
        namespace = self._namespace if self._is_namespaced and target.of(kind).namespaced else ""
        return Selection(namespace, self._selector if kind in self.table.about else "")

    def rows(self, objects: dict[target.Of[Any], Iterable[Any]]) -> list[inventory.Row]:
        """Return the rows of the table at this moment."""
        parts = {self._fields[kind]: tuple(entries) for kind, entries in objects.items()}
        now = dt.datetime.now(dt.UTC)
        return list(self.table.rows(clusters.Cluster(**parts), self._filter, now))

    def named(self, rows: Sequence[inventory.Row]) -> list[inventory.Row]:
        """Return the rows with the names that the user gave, or all."""
        return [row for row in rows if not self._names or row.cells[self.table.name_column] in self._names]

    def check_names(self, rows: Sequence[inventory.Row]) -> None:
        """Raise errors.InvalidValueError for a name that no row has."""
        present = {row.cells[self.table.name_column] for row in rows}
        for name in self._names:
            if name not in present:
                where = "" if self.has_namespaces else f" in namespace {self.namespace}"
                hint = nearest.suggest(name, present) if nearest.is_near(name, present) else ""
                raise errors.InvalidValueError(f"{self.name} {name!r}: not found{where}{hint}")


async def run(access: Access, view: View, output: TableFormat, *, is_watch: bool) -> None:
    """Print the table once, or with ``is_watch`` print new and changed rows until interrupted."""
    async with http.HttpClient(access, clock=clock.SystemClock(), manager="drachma-get") as client:
        if is_watch:
            await watch(client, view, output)
        else:
            _write(await read_rows(client, view, output), view, output)


async def read_rows(client: Client, view: View, output: TableFormat) -> list[inventory.Row]:
    """Return the rows of the table in this format.

    Raises:
        errors.InvalidValueError: a name that the user gave has no row.
        errors.ObjectNotFoundError: the server does not have a kind.
    """
    kinds = needs(view, output)
    listings = await asyncio.gather(*(_list_kind(client, view, kind) for kind in kinds))
    rows = view.rows({kind: listing.items for kind, listing in zip(kinds, listings, strict=True)})
    view.check_names(rows)
    return view.named(rows)


async def _list_kind(client: Client, view: View, kind: target.Of[Any], *, limit: int = 0) -> protocol.Listing[Any]:
    try:
        return await client.list(kind, view.selection(kind), limit=limit)
    except errors.ObjectNotFoundError as error:
        resource = target.of(kind)
        hint = "; drachma up --queueing does" if resource.group == _QUEUEING else ""
        message = f"{view.name}: the server does not serve {resource.qualified}{hint}"
        raise errors.ObjectNotFoundError({**error.document, "message": message}) from None


def needs(view: View, output: TableFormat) -> tuple[target.Of[Any], ...]:
    """Return the kinds that a table in this format is made of."""
    return view.table.needs if output is TableFormat.TABLE else view.table.needs + view.table.wide_needs


def columns(view: View, output: TableFormat) -> tuple[str, ...]:
    """Return the columns of a table in this format; NAMESPACE only if rows of several namespaces are shown."""
    names = view.table.columns + (view.table.wide if output is TableFormat.WIDE else ())
    return names if view.has_namespaces else tuple(name for name in names if name != "NAMESPACE")


def _write(rows: Sequence[inventory.Row], view: View, output: TableFormat) -> None:
    if output in (TableFormat.JSON, TableFormat.YAML):
        documents = {"items": [row.document for row in rows]}
        write = manifest.write_json if output is TableFormat.JSON else manifest.write_yaml
        typer.echo(write([documents]), nl=False)
    elif rows:
        print_rows(rows, columns(view, output), widths=[])
    else:
        where = "" if view.has_namespaces else f" in namespace {view.namespace}; -A shows all namespaces"
        typer.echo(f"No {view.name} found{where}.", err=True)


def print_rows(rows: Sequence[inventory.Row], columns: Sequence[str], *, widths: list[int]) -> list[int]:
    """Print rows, with a header if there are no widths yet, and return the widths of the columns."""
    if not rows:
        return widths
    lines = [[row.cells[name] for name in columns] for row in rows]
    if not widths:
        lines.insert(0, list(columns))
        widths = inventory.column_widths(lines)
    for line in inventory.align(lines, widths):
        typer.echo(line)
    return widths


async def watch(client: Client, view: View, output: TableFormat) -> None:
    """Print all rows, and then each new or changed row, until cancelled.

    Raises:
        errors.ObjectNotFoundError: the server does not have a kind.
    """
    # Informers take a tenth of a second to import, and a table that is printed once needs none.
    from drachma.runtime import Informers, informer

    for kind in needs(view, output):
        # An informer would wait for a kind that is not served.
        await _list_kind(client, view, kind, limit=1)
    changed = asyncio.Event()
    async with Informers(client) as informers:
        by_kind = {kind: informers.of(kind, view.selection(kind)) for kind in needs(view, output)}
        for each in by_kind.values():
            each.add_handler(
                informer.Handler(
                    added=lambda _: changed.set(), updated=lambda *_: changed.set(), deleted=lambda _: changed.set()
                )
            )
        await informers.wait_synced()
        printed: dict[str, dict[str, str]] = {}
        shown_columns = columns(view, output)
        widths: list[int] = []
        while True:
            changed.clear()
            rows = view.named(view.rows({kind: each.cache for kind, each in by_kind.items()}))
            current = {row.key: {name: row.cells[name] for name in shown_columns if name != "AGE"} for row in rows}
            new_rows = [row for row in rows if printed.get(row.key) != current[row.key]]
            widths = print_rows(new_rows, shown_columns, widths=widths)
            printed = current
            await changed.wait()
            await asyncio.sleep(_PAUSE_SECONDS)
