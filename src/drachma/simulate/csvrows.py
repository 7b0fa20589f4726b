"""Rows of CSV files, one at a time. A bad value is refused with its file, line, field and value."""

from __future__ import annotations

import csv
import math
import pathlib
from collections.abc import Iterator
from typing import Final, NoReturn

from drachma import errors

_MOST: Final = 10**12


class Row:
    """One line of a file."""

    __slots__ = ("_fields", "line", "path")

    def __init__(self, path: pathlib.Path, line: int, fields: dict[str, str]) -> None:
        self.path = path
        self.line = line
        self._fields = fields

    def text(self, field: str) -> str:
        """Return a field, empty if the file lacks it."""
        return self._fields.get(field) or ""

    def count(self, field: str, *, most: int = _MOST) -> int:
        """Return a field as a whole number that is not negative."""
        text = self.text(field)
        number = int(text) if text.isascii() and text.isdigit() and len(text) <= len(str(_MOST)) else -1
        if not 0 <= number <= most:
            self.refuse(field, f"must be a whole number from 0 to {most}")
        return number

    def amount(self, field: str) -> float:
        """Return a field as a number that is not negative."""
        try:
            number = float(self.text(field))
        except ValueError:
            number = -1.0
        if not math.isfinite(number) or not 0 <= number <= _MOST:
            self.refuse(field, f"must be a number from 0 to {_MOST}")
        return number

    def refuse(self, field: str, rule: str) -> NoReturn:
        """Raise InvalidValueError for a field that breaks a rule."""
        raise errors.InvalidValueError(f"{self.path}, line {self.line}: {field} {self.text(field)!r}: {rule}")


def read(path: pathlib.Path, required: tuple[str, ...]) -> Iterator[Row]:
    """Yield the rows of a file. Raises InvalidValueError if it cannot be read, or lacks a required column."""
    try:
        with path.open(encoding="utf-8", newline="") as file:
            reader = csv.DictReader(file)
            missing_fields = [field for field in required if field not in (reader.fieldnames or ())]
            if missing_fields:
                raise errors.InvalidValueError(f"{path}: has no column {', '.join(missing_fields)}")
            try:
                for fields in reader:
                    if None in fields:
                        width = len(reader.fieldnames or ())
                        raise errors.InvalidValueError(
                            f"{path}, line {reader.line_num}: has {width + len(fields[None])} fields: "
                            f"must have {width}, as the header"
                        )
                    yield Row(path, reader.line_num, fields)
            except csv.Error as error:
                raise errors.InvalidValueError(f"{path}, line {reader.line_num + 1}: {error}") from None
    except UnicodeDecodeError as error:
        raise errors.InvalidValueError(f"{path}, line {_broken_line(path)}: is not UTF-8: {error.reason}") from None
    except (OSError, csv.Error) as error:
        raise errors.InvalidValueError(f"{path}: {error}") from None


def _broken_line(path: pathlib.Path) -> int:
    """Return the number of the first line that is not UTF-8. Text is decoded in blocks, so a reader does not know."""
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            try:
                line.decode("utf-8")
            except UnicodeDecodeError:
                return number
    return 0


def header(path: pathlib.Path) -> frozenset[str]:
    """Return the names of the columns. Raises InvalidValueError if the file cannot be read."""
    try:
        with path.open(encoding="utf-8", newline="") as file:
            return frozenset(next(csv.reader(file), ()))
    except UnicodeDecodeError as error:
        raise errors.InvalidValueError(f"{path}, line {_broken_line(path)}: is not UTF-8: {error.reason}") from None
    except (OSError, csv.Error) as error:
        raise errors.InvalidValueError(f"{path}: {error}") from None
