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
        path = self._path(work)
        folder = path.parent
        for file in folder.glob("*.log*") if folder.is_dir() else ():
            number = file.name.partition(".")[0]
            if number.isdigit() and int(number) < work.attempt - 1:
                file.unlink(missing_ok=True)
        return filelog.FileLog(path)

    def recall(self, work: Work) -> filelog.FileLog | None:
        """The log of a run that has ended; None where there is none."""
        path = self._path(work)
        if not path.exists():
            return None
        log = filelog.FileLog(path)
        log.end()
        return log

    def _path(self, work: Work) -> pathlib.Path:
        return self._folder / work.pod.metadata.uid / work.container.name / f"{work.attempt}.log"

    def forget(self, uid: str) -> None:
        """Those of a pod are not needed any more."""
        shutil.rmtree(self._folder / uid, ignore_errors=True)
