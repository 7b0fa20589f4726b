"""Table columns of custom resources, whose cells are JSONPath expressions."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

import msgspec

from drachma import errors
from drachma.server import documents
from drachma.server.kinds.apiextensions.definition import Version
from drachma.server.surface import age, layout
from drachma.values import jsonpath

_PRESENT: Final = layout.Column("Age", "date", description=layout.AGE.description)
_CREATED: Final = jsonpath.parse(".metadata.creationTimestamp")

_Cell = Callable[[Any, datetime], Any]


def of(version: Version) -> layout.Layout:
    """Return the layout of a version, with an age column if the definition has no columns."""
    columns: list[layout.Column] = [layout.NAME]
    cells: list[tuple[jsonpath.Path, _Cell]] = []
    for column in version.columns:
        try:
            path = jsonpath.parse(column["jsonPath"])
        except errors.InvalidValueError:
            # As upstream: an invalid column ends the table.
            break
        columns.append(_column(column))
        cells.append((path, _CELLS[column["type"]]))
    if not version.columns:
        columns.append(_PRESENT)
        cells.append((_CREATED, _date))
    return layout.Layout(tuple(columns), _filled(cells))


def _column(column: Mapping[str, Any]) -> layout.Column:
    path = column["jsonPath"]
    return layout.Column(
        column["name"],
        column["type"],
        column.get("format", ""),
        column.get("description") or f"Custom resource definition column (in JSONPath format): {path}",
        column.get("priority", 0),
    )


def _filled(cells: Sequence[tuple[jsonpath.Path, _Cell]]) -> Callable[[layout.Document, datetime], layout.Cells]:
    def fill(document: layout.Document, now: datetime) -> layout.Cells:
        row: layout.Cells = [document["metadata"].get("name", "")]
        for path, cell in cells:
            value = path.first(document)
            row.append(None if value is None else cell(value, now))
        return row

    return fill


def _text(value: Any, _now: datetime) -> Any:
    if isinstance(value, dict | list):
        return msgspec.json.encode(value).decode()
    return value if isinstance(value, str) else documents.printed(value)


def _integer(value: Any, _now: datetime) -> Any:
    return int(value) if _is_number(value) else None


def _number(value: Any, _now: datetime) -> Any:
    return float(value) if _is_number(value) else None


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _boolean(value: Any, _now: datetime) -> Any:
    return value if isinstance(value, bool) else None


def _date(value: Any, now: datetime) -> Any:
    if not isinstance(value, str):
        return None
    try:
        return age.since(value, now=now)
    except (ValueError, TypeError):
        return "<invalid>"


_CELLS: Final[Mapping[str, _Cell]] = {
    "string": _text,
    "integer": _integer,
    "number": _number,
    "boolean": _boolean,
    "date": _date,
}
