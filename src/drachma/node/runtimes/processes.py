"""Processes of this machine as ``/proc`` shows them: their usage, and those that an earlier agent left."""

from __future__ import annotations

import contextlib
import os
import pathlib
import signal
from collections.abc import Callable, Sequence
from typing import Final

from drachma.node.runtimes.protocol import Usage

_TICKS: Final = os.sysconf("SC_CLK_TCK")
_PAGE: Final = os.sysconf("SC_PAGE_SIZE")

_START_TIME: Final = 19
"""Index of the start time in ``/proc/PID/stat``, counted after the name in parentheses."""


def group_usage(group: int) -> Usage:
    """Return the usage of all processes of a group; zero if none is left."""
    return _sum(lambda _, fields: int(fields[2]) == group)


def container_usage(pid: int) -> Usage:
    """Return the usage of all processes in the PID namespace of a process; zero if it is gone."""
    own = _namespace(str(pid))
    return _sum(lambda name, _: _namespace(name) == own) if own else Usage(0.0, 0)


def _sum(counts: Callable[[str, Sequence[str]], bool]) -> Usage:
    """Return the usage of all processes that ``counts`` accepts, given their PID and the fields of ``stat``."""
    seconds, size = 0.0, 0
    for folder in pathlib.Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            # The process has ended meanwhile.
            continue
        # Fields: state, parent, group; user and system time, also of ended children; pages.
        if counts(folder.name, fields):
            seconds += sum(map(int, fields[11:15])) / _TICKS
            size += int(fields[21]) * _PAGE
    return Usage(seconds, size)


def _namespace(pid: str) -> str:
    try:
        return str(pathlib.Path(f"/proc/{pid}/ns/pid").readlink())
    except OSError:
        return ""


class Orphans:
    """Directory with a file for each process that an agent runs, so that the next agent can end those that are left."""

    def __init__(self, folder: pathlib.Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def add(self, pid: int) -> None:
        """Add a process that was started."""
        (self._folder / str(pid)).write_text(_start_time(pid))

    def remove(self, pid: int) -> None:
        """Remove a process that has ended."""
        (self._folder / str(pid)).unlink(missing_ok=True)

    def kill_all(self) -> int:
        """Kill the groups of all processes in the directory that still run. Return their number."""
        count = 0
        for file in list(self._folder.iterdir()):
            if file.name.isdigit():
                start_time = _start_time(int(file.name))
                if start_time and start_time == file.read_text():
                    with contextlib.suppress(ProcessLookupError):
                        os.killpg(int(file.name), signal.SIGKILL)
                        count += 1
            file.unlink(missing_ok=True)
        return count


def _start_time(pid: int) -> str:
    """Return the start time of a process in ticks since the boot; empty if there is none."""
    try:
        text = pathlib.Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return ""
    return text.rpartition(")")[2].split()[_START_TIME]
