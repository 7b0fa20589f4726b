"""All that can be shown, by name."""

from collections.abc import Mapping
from typing import Final

from drachma.cli.inventory import queuerows, rows, table

TABLES: Final[Mapping[str, table.Table]] = {**rows.TABLES, **queuerows.TABLES}
