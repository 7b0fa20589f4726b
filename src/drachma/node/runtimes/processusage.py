"""What processes use of the processor and of memory, as ``/proc`` says."""

from __future__ import annotations

import os
import pathlib
from typing import Final

from drachma.node.runtimes.protocol import Usage

_TICKS: Final = os.sysconf("SC_CLK_TCK")
_PAGE: Final = os.sysconf("SC_PAGE_SIZE")


def of_group(group: int) -> Usage:
    """All processes of a group together; nothing where none is left."""
    seconds, size = 0.0, 0
    for folder in pathlib.Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            # It has ended meanwhile.
            continue
        # After the name: state, parent, group; times of user and system, and of children that have ended; pages.
        if int(fields[2]) == group:
            seconds += sum(map(int, fields[11:15])) / _TICKS
            size += int(fields[21]) * _PAGE
    return Usage(seconds, size)
