"""Audit log file: one JSON document a line, appended in order, readable for its owner only.

A thread writes, because a write waits for the disk when the system has too much unwritten data. Requests await
:meth:`Log.flush` before their answer is sent, so an acknowledged request is in the file even if the process is killed.
"""

import asyncio
import collections
import json
import logging
import os
import pathlib
import sys
import threading
from collections.abc import Mapping
from typing import Any, Final, NamedTuple, Self

import msgspec

STDOUT: Final = "-"

BACKLOG_BYTES: Final = 64 * 2**20
"""Unwritten bytes beyond which a new event waits until the disk has caught up."""

_log = logging.getLogger(__name__)

_encode = msgspec.json.Encoder().encode


class _Line(NamedTuple):
    content: bytes
    event: str
    """Identity of the event, for the log of the server if the line cannot be written."""


class _Waiter(NamedTuple):
    number: int
    """Number of lines that have to be written before the waiter continues."""
    loop: asyncio.AbstractEventLoop
    done: asyncio.Future[None]


class Log:
    """Open audit log. Lines are written whole, so that several processes may share the file."""

    def __init__(self, descriptor: int, *, backlog_bytes: int = BACKLOG_BYTES) -> None:
        self._descriptor: Final = descriptor
        self._backlog_bytes: Final = backlog_bytes
        self._changed: Final = threading.Condition()
        self._lines: list[_Line] = []
        self._unwritten = 0
        self._added_count = 0
        self._written_count = 0
        self._waiters: Final[collections.deque[_Waiter]] = collections.deque()
        self._is_closed = False
        self._thread: Final = threading.Thread(target=self._write_lines, name="audit-log", daemon=True)
        self._thread.start()

    @classmethod
    def open(cls, path: str) -> Self:
        """Open the log at a path, creating it with mode 0600; ``-`` is standard output.

        Raises:
            OSError: it cannot be written.
        """
        if path == STDOUT:
            return cls(os.dup(sys.stdout.fileno()))
        return cls(os.open(pathlib.Path(path), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600))

    def write(self, event: Mapping[str, Any]) -> None:
        """Append an event. If the file cannot be written, requests go on and the server logs the lost event."""
        try:
            content = _encode(event)
        except UnicodeEncodeError:
            # A text with half a surrogate pair, which JSON can spell and UTF-8 cannot.
            content = json.dumps(event, default=_plain, separators=(",", ":")).encode()
        line = _Line(content + b"\n", f"{event.get('auditID')} ({event.get('stage')})")
        with self._changed:
            while self._unwritten > self._backlog_bytes:
                self._changed.wait()
            self._lines.append(line)
            self._unwritten += len(line.content)
            self._added_count += 1
            self._changed.notify_all()

    async def flush(self) -> None:
        """Return once all events so far are in the file, or known to be lost."""
        with self._changed:
            if self._written_count >= self._added_count:
                return
            loop = asyncio.get_running_loop()
            waiter = _Waiter(self._added_count, loop, loop.create_future())
            self._waiters.append(waiter)
        await waiter.done

    def close(self) -> None:
        """Write the events so far, and close the file."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
        self._thread.join()
        os.close(self._descriptor)

    def _write_lines(self) -> None:
        while True:
            with self._changed:
                while not self._lines and not self._is_closed:
                    self._changed.wait()
                lines, self._lines = self._lines, []
            if not lines:
                return
            self._write_batch(lines)
            with self._changed:
                self._unwritten -= sum(len(line.content) for line in lines)
                self._written_count += len(lines)
                self._changed.notify_all()
                while self._waiters and self._waiters[0].number <= self._written_count:
                    _wake(self._waiters.popleft())

    def _write_batch(self, lines: list[_Line]) -> None:
        """Write lines in one piece. A newline follows an incomplete write, so that the next line is readable."""
        content = memoryview(b"".join(line.content for line in lines))
        position = 0
        try:
            while position < len(content):
                position += os.write(self._descriptor, content[position:])
        except OSError as error:
            end = 0
            for line in lines:
                start, end = end, end + len(line.content)
                if end > position:
                    _log.error("audit event %s is lost: %s", line.event, error)
                if start < position < end:
                    self._end_line()

    def _end_line(self) -> None:
        try:
            os.write(self._descriptor, b"\n")
        except OSError as error:
            _log.error("audit log: the last line is incomplete: %s", error)


def _wake(waiter: _Waiter) -> None:
    try:
        waiter.loop.call_soon_threadsafe(_finish, waiter.done)
    except RuntimeError:
        # The loop is closed, and the request with it.
        return


def _finish(done: asyncio.Future[None]) -> None:
    if not done.done():
        done.set_result(None)


def _plain(value: Any) -> Any:
    return json.loads(bytes(value)) if isinstance(value, msgspec.Raw) else msgspec.to_builtins(value)
