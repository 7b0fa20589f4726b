"""Colour of text on terminals. Pipes and files get plain text, and so does a terminal with ``NO_COLOR`` set."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator

import typer

_REMEDY = ("  smallest change:", "  preemption ", "  one more node of group")


def has_colour() -> bool:
    """Return True if standard output is a terminal that shows colours."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def colour_explanation(lines: Iterable[str]) -> Iterator[str]:
    """Yield the lines of an explanation in colour: the subject bold, remedies green, their commands cyan."""
    is_command = False
    for number, line in enumerate(lines):
        if number == 0:
            subject, pending, message = line.partition(" is pending: ")
            yield typer.style(subject, bold=True) + typer.style(pending, fg="yellow", bold=True) + message
        elif line.startswith(_REMEDY):
            yield typer.style(line, fg="green")
        elif is_command and line.startswith("    "):
            yield typer.style(line, fg="cyan")
        elif line.startswith("  --verbose"):
            yield typer.style(line, dim=True)
        else:
            yield line
        is_command = line.startswith(_REMEDY)
