"""Watched tables: new and changed rows are printed as they come, for ``drachma get -w``."""

import asyncio
from typing import Final

from drachma.cli.inventory import view as views
from drachma.cli.options import TableFormat
from drachma.client import Client
from drachma.runtime import Informers, informer

_PAUSE_SECONDS: Final = 0.2
"""Time to gather changes before they are printed."""


async def watch(client: Client, view: views.View, output: TableFormat) -> None:
    """Print all rows, and then each new or changed row, until interrupted."""
    changed = asyncio.Event()
    async with Informers(client) as informers:
        by_kind = {kind: informers.of(kind, view.selection(kind)) for kind in views.needs(view, output)}
        for each in by_kind.values():
            each.add_handler(
                informer.Handler(
                    added=lambda _: changed.set(), updated=lambda *_: changed.set(), deleted=lambda _: changed.set()
                )
            )
        await informers.wait_synced()
        printed: dict[str, dict[str, str]] = {}
        columns = views.columns(view, output)
        widths: list[int] = []
        while True:
            changed.clear()
            rows = view.rows({kind: each.cache for kind, each in by_kind.items()})
            current = {row.key: {name: row.cells[name] for name in columns if name != "AGE"} for row in rows}
            new_rows = [row for row in rows if printed.get(row.key) != current[row.key]]
            widths = views.print_rows(new_rows, columns, widths=widths)
            printed = current
            await changed.wait()
            await asyncio.sleep(_PAUSE_SECONDS)
