"""Folder of container logs: ``UID/CONTAINER/ATTEMPT.log``, for the last two runs of each container."""

from __future__ import annotations

import pathlib
import shutil

from drachma.node.logs import filelog
from drachma.node.runtimes.protocol import Work


class LogFolder:
    """Logs of the containers of a runtime."""

    def __init__(self, folder: pathlib.Path) -> None:
        self._folder = folder

    def open(self, work: Work) -> filelog.FileLog:
        """Open the log of a new run. Of the earlier logs only the last one stays.

        Raises:
            OSError: the log cannot be written.
        """
        return filelog.FileLog(self.prepare(work))

    def prepare(self, work: Work) -> pathlib.Path:
        """Make the folder for the log of a new run, and return the path of the log.

        Raises:
            OSError: the folder cannot be made.
        """
        path = self.path(work)
        path.parent.mkdir(parents=True, exist_ok=True)
        for file in path.parent.glob("*.log*"):
            number = file.name.partition(".")[0]
            if number.isdigit() and int(number) < work.attempt - 1:
                file.unlink(missing_ok=True)
        return path

    def recall(self, work: Work) -> filelog.FileLog | None:
        """Return the log of a run that has ended, or None if there is none."""
        path = self.path(work)
        if not path.exists():
            return None
        log = filelog.FileLog(path)
        log.end()
        return log

    def path(self, work: Work) -> pathlib.Path:
        """Return the path of the log of a run."""
        return self._folder / work.pod.metadata.uid / work.container.name / f"{work.attempt}.log"

    def forget(self, uid: str) -> None:
        """Remove the logs of a pod."""
        shutil.rmtree(self._folder / uid, ignore_errors=True)
