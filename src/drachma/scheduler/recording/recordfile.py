"""The file of a recording, written by a thread of its own, within bounds.

Lines are encoded and written in the thread, so that recording costs the scheduler almost nothing. When the file is
full, a new beginning is due: then the file becomes ``FILE.1``, replacing an earlier one, and a new file is started. So
there are never more than two files, each with one state of the cluster and ``most_bytes`` of what followed. An existing
file is kept in the same way.

Data that was handed to the operating system survives the process, even if it is killed. That is done whenever there is
nothing left to write. A full or missing disk ends the recording, which is logged, and nothing else.
"""

from __future__ import annotations

import contextlib
import logging
import pathlib
import queue
import threading
from collections.abc import Iterable, Iterator
from typing import BinaryIO, Final, NamedTuple

from drachma import errors

_log = logging.getLogger(__name__)

DEFAULT_BYTES: Final = 64 * 2**20


class _Batch(NamedTuple):
    lines: Iterable[bytes]
    is_beginning: bool


class RecordFile:
    """File of a recording, and the file before it."""

    def __init__(self, path: pathlib.Path, *, most_bytes: int = DEFAULT_BYTES) -> None:
        """Touch no file before :meth:`open`."""
        self._path: Final = path
        self._most_bytes: Final = most_bytes
        self._batches: Final = queue.SimpleQueue[_Batch | None]()
        self._size = 0
        self._state_size = 0
        self.has_ended = False
        """True if nothing is written any more."""
        self.wants_beginning = True
        """True if the next batch should be a beginning."""

    @contextlib.contextmanager
    def open(self) -> Iterator[None]:
        """Write lines until the end of the context, which waits for all of them. Raises InvalidValueError."""
        try:
            if self._path.exists() and self._path.stat().st_size:
                self._put_aside()
            file = self._new_file()
        except OSError as error:
            raise errors.InvalidValueError(f"recording {self._path}: {error.strerror or error}") from None
        thread = threading.Thread(target=self._run, args=(file,), name=f"recording {self._path}", daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._batches.put(None)
            thread.join()

    @property
    def backlog(self) -> int:
        """Number of batches that are not written yet."""
        return self._batches.qsize()

    def write(self, lines: Iterable[bytes], *, is_beginning: bool = False) -> None:
        """Have lines encoded and written by the thread."""
        if is_beginning:
            self.wants_beginning = False
        self._batches.put(_Batch(lines, is_beginning))

    # In the thread

    def _run(self, file: BinaryIO) -> None:
        try:
            while (batch := self._batches.get()) is not None:
                if batch.is_beginning and self._is_full():
                    file.close()
                    self._put_aside()
                    file = self._new_file()
                    self._size = 0
                self._write(batch, file)
                if not self._batches.qsize():
                    file.flush()
        except OSError as error:
            _log.error("recording %s ends: %s", self._path, error.strerror or error)
        finally:
            self.has_ended = True
            with contextlib.suppress(OSError):
                file.close()

    def _write(self, batch: _Batch, file: BinaryIO) -> None:
        for line in batch.lines:
            self._size += file.write(line)
        if batch.is_beginning:
            self._state_size = self._size
        elif self._is_full():
            self.wants_beginning = True

    def _new_file(self) -> BinaryIO:
        # The state of a cluster is not for everyone to read.
        self._path.touch(mode=0o600)
        return self._path.open("wb")

    def _is_full(self) -> bool:
        return self._size - self._state_size >= self._most_bytes

    def _put_aside(self) -> None:
        self._path.replace(self._path.with_name(f"{self._path.name}.1"))
