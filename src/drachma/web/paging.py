"""Pages of long tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from drachma import errors
from drachma.web.query import Query

PER_PAGE: Final = 100


class Part(NamedTuple):
    """One page of a table, with links to its neighbours."""

    rows: Sequence[Any]
    total: int
    first: int
    previous: str
    next: str

    @property
    def last(self) -> int:
        """Number of the last row, counted from one."""
        return self.first + len(self.rows) - 1


def cut(rows: Sequence[Any], query: Query, path: str) -> Part:
    """Return the page of a table that the query names. Raises errors.InvalidValueError for a page behind the last."""
    number = query.number("page", default=1)
    begin = (number - 1) * PER_PAGE
    if number > 1 and begin >= len(rows):
        raise errors.InvalidValueError(f"parameter 'page': {number} is behind the last page")
    return Part(
        rows[begin : begin + PER_PAGE],
        len(rows),
        begin + 1 if rows else 0,
        query.link(path, page=number - 1 if number > 2 else "") if number > 1 else "",
        query.link(path, page=number + 1) if begin + PER_PAGE < len(rows) else "",
    )
