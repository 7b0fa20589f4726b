"""What processes use of the processor and of memory, as ``/proc`` says."""

from __future__ import annotations

import os
import pathlib
from collections.abc import Callable, Sequence
from typing import Final

from drachma.node.runtimes.protocol import Usage

_TICKS: Final = os.sysconf("SC_CLK_TCK")
_PAGE: Final = os.sysconf("SC_PAGE_SIZE")


def of_group(group: int) -> Usage:
    """All processes of a group together; nothing where none is left."""
    return _sum(lambda _, fields: int(fields[2]) == group)


def of_namespace(pid: int) -> Usage:
    """All processes of the container that a process is in; nothing where it is gone."""
    own = _namespace(str(pid))
    return _sum(lambda name, _: _namespace(name) == own) if own else Usage(0.0, 0)


def _sum(counts: Callable[[str, Sequence[str]], bool]) -> Usage:
    """All processes that count: by their number, and by what their status has after the name."""
    seconds, size = 0.0, 0
    for folder in pathlib.Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            # It has ended meanwhile.
            continue
        # State, parent, group; times of user and system, and of children that have ended; pages.
        if counts(folder.name, fields):
            seconds += sum(map(int, fields[11:15])) / _TICKS
            size += int(fields[21]) * _PAGE
    return Usage(seconds, size)


def _namespace(pid: str) -> str:
    try:
        return str(pathlib.Path(f"/proc/{pid}/ns/pid").readlink())
    except OSError:
        return ""
