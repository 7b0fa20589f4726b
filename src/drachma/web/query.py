"""Query strings: parameters of pages, checked. A parameter that breaks a rule is refused with a clear page."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final
from urllib import parse

from starlette.requests import Request

from drachma import errors

MOST_TEXT: Final = 1000
MOST_PAGE: Final = 100_000


class Query:
    """Parameters of one request. Every method raises errors.InvalidValueError for a value that breaks the rule."""

    def __init__(self, request: Request, allowed: Iterable[str]) -> None:
        self._values: Final[dict[str, str]] = {}
        names = frozenset(allowed)
        for name, value in request.query_params.multi_items():
            if name not in names:
                listing = ", ".join(sorted(names)) or "none"
                raise errors.InvalidValueError(f"parameter {name[:100]!r}: this page has no such parameter ({listing})")
            if name in self._values:
                raise errors.InvalidValueError(f"parameter {name!r}: is given twice")
            self._values[name] = value

    def text(self, name: str, *, most: int = MOST_TEXT) -> str:
        """Return a text without control characters; empty if absent."""
        value = self._values.get(name, "")
        if len(value) > most:
            raise errors.InvalidValueError(f"parameter {name!r}: has {len(value)} characters, and {most} are allowed")
        if any(ord(char) < 32 and char not in "\n\t" for char in value):
            raise errors.InvalidValueError(f"parameter {name!r}: has control characters")
        return value

    def choice(self, name: str, choices: Iterable[str], default: str = "") -> str:
        """Return one of some values, or the default if absent or empty."""
        value = self._values.get(name, "")
        values = list(choices)
        if not value:
            return default
        if value not in values:
            raise errors.InvalidValueError(f"parameter {name!r}: {value[:100]!r} is not one of {', '.join(values)}")
        return value

    def number(self, name: str, *, default: int, least: int = 1, most: int = MOST_PAGE) -> int:
        """Return a number within limits."""
        value = self._values.get(name, "")
        if not value:
            return default
        if not (value.isascii() and value.isdigit()) or len(value) > 12 or not least <= int(value) <= most:
            raise errors.InvalidValueError(
                f"parameter {name!r}: {value[:100]!r} is not a number from {least} to {most}"
            )
        return int(value)

    def link(self, path: str, **changes: str | int) -> str:
        """Return a link to a page with these parameters and some changed; empty values are left out."""
        values: dict[str, str] = {**self._values, **{name: str(value) for name, value in changes.items()}}
        values = {name: value for name, value in values.items() if value}
        return f"{path}?{parse.urlencode(values)}" if values else path
