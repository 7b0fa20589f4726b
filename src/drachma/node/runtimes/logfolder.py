"""Where the logs of containers are: ``UID/CONTAINER/ATTEMPT.log`` below a folder, of each the last two runs."""

from __future__ import annotations

import pathlib
import shutil

from drachma.node.logs import filelog
from drachma.node.runtimes.protocol import Work


class LogFolder:
    """The logs of a runtime."""

    def __init__(self, folder: pathlib.Path) -> None:
        self._folder = folder

    def open(self, work: Work) -> filelog.FileLog:
        """The log of a run that begins; of earlier runs only the last one's is kept.

        Raises:
            OSError: it cannot be written.
        """
        return filelog.FileLog(self.place(work))

    def place(self, work: Work) -> pathlib.Path:
        """Where whoever runs the container is to write that log.

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
        """The log of a run that has ended; None where there is none."""
        path = self.path(work)
        if not path.exists():
            return None
        log = filelog.FileLog(path)
        log.end()
        return log

    def path(self, work: Work) -> pathlib.Path:
        """Where the log of a run is, if there is one."""
        return self._folder / work.pod.metadata.uid / work.container.name / f"{work.attempt}.log"

    def forget(self, uid: str) -> None:
        """Those of a pod are not needed any more."""
        shutil.rmtree(self._folder / uid, ignore_errors=True)
