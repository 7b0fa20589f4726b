"""Which processes an agent started, on disk: so that one that begins anew ends what the one before left running."""

from __future__ import annotations

import contextlib
import os
import pathlib
import signal
from typing import Final

_STAT_AFTER_NAME: Final = 19
"""Where, after the name in its parentheses, ``/proc/PID/stat`` has the time that a process was started at."""


class Orphans:
    """A directory with one file for each process that runs."""

    def __init__(self, folder: pathlib.Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def note(self, pid: int) -> None:
        """A process was started."""
        (self._folder / str(pid)).write_text(_started(pid))

    def forget(self, pid: int) -> None:
        """It has ended."""
        (self._folder / str(pid)).unlink(missing_ok=True)

    def end(self) -> int:
        """Ends all that were noted and are still the same processes, with their groups; how many."""
        count = 0
        for file in list(self._folder.iterdir()):
            if file.name.isdigit():
                started = _started(int(file.name))
                if started and started == file.read_text():
                    with contextlib.suppress(ProcessLookupError):
                        os.killpg(int(file.name), signal.SIGKILL)
                        count += 1
            file.unlink(missing_ok=True)
        return count


def _started(pid: int) -> str:
    """When a process was started, in ticks since the machine was; empty where there is none."""
    try:
        text = pathlib.Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return ""
    return text.rpartition(")")[2].split()[_STAT_AFTER_NAME]
