"""The text of an expression, positions in it, and the report of what is wrong with it.

Parser, checker and literal checks collect ``Issue`` values here; a caller sees them as one ``CompileError`` whose
text has upstream's frame: ``ERROR: <input>:line:column: message``, the source line, and a caret under the place.
Offsets, lines and columns count code points. An issue without a place (a limit of the whole expression) has offset
``NOWHERE`` and prints as ``<input>:-1:0``.
"""

from __future__ import annotations

import bisect
import functools
import re

import msgspec

from drachma import errors

NOWHERE = -1
MAX_ISSUES = 100
MAX_SNIPPET_BYTES = 16384

_SURROGATES = re.compile("[\ud800-\udfff]")


class Issue(msgspec.Struct, frozen=True):
    """One thing that is wrong, at a code point offset of the source."""

    offset: int
    message: str


class CompileError(errors.CelError):
    """An expression does not parse or does not type-check; the text shows every issue in its frame."""

    def __init__(self, source: Source, issues: list[Issue]) -> None:
        super().__init__(source.report(issues))
        self.issues = tuple(issues)


class Source:
    """An expression's text with its lines; half a surrogate pair reads as U+FFFD, as in upstream's decoding."""

    def __init__(self, text: str) -> None:
        self.text = text if text.isascii() else _SURROGATES.sub("�", text)

    @functools.cached_property
    def _line_starts(self) -> list[int]:
        starts = [0]
        find = self.text.find
        at = find("\n")
        while at >= 0:
            starts.append(at + 1)
            at = find("\n", at + 1)
        return starts

    def location(self, offset: int) -> tuple[int, int]:
        """Return the line (from 1) and column (from 0) of an offset; ``(-1, -1)`` for ``NOWHERE``."""
        if offset == NOWHERE:
            return -1, -1
        if not self.text:
            return 1, -1
        line = bisect.bisect_right(self._line_starts, offset)
        return line, offset - self._line_starts[line - 1]

    def snippet(self, line: int) -> str | None:
        """Return the text of a line without its line feed; None where there is no such line or the source is empty."""
        if not self.text or not 1 <= line <= len(self._line_starts):
            return None
        start = self._line_starts[line - 1]
        return self.text[start : self._line_starts[line] - 1] if line < len(self._line_starts) else self.text[start:]

    def report(self, issues: list[Issue]) -> str:
        """Return all issues by place, each in its frame. Issues beyond ``MAX_ISSUES`` are only counted."""
        first_issues = sorted(issues[:MAX_ISSUES], key=lambda issue: self.location(issue.offset))
        parts = [self._frame(issue) for issue in first_issues]
        if len(issues) > MAX_ISSUES:
            parts.append(f"{len(issues) - MAX_ISSUES} more errors were truncated")
        return "\n".join(parts)

    def _frame(self, issue: Issue) -> str:
        line, column = self.location(issue.offset)
        head = f"ERROR: <input>:{line}:{column + 1}: {issue.message}"
        snippet = self.snippet(line)
        if snippet is None or len(snippet.encode()) > MAX_SNIPPET_BYTES:
            return head
        snippet = snippet.replace("\t", " ")
        # Wide forms keep the caret under its character where the line holds characters of more than one byte.
        dots = "".join("." if character.isascii() else "．" for character in snippet[: max(column, 0)])
        under = snippet[column : column + 1] if column >= 0 else ""
        caret = "＾" if under and not under.isascii() else "^"
        return f"{head}\n | {snippet}\n | {dots}{caret}"
