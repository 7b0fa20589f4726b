"""Timeouts of requests, with one timer for all.

Every resource request has one. Timers of the event loop cost more than most reads, and all requests have the same
timeout, so one timer for the oldest request is enough.
"""

import asyncio
from types import TracebackType
from typing import Final, Self


class Deadline:
    """A ``with`` block whose task is cancelled when it takes too long, which becomes a TimeoutError.

    A cancellation for another reason stays a cancellation, as with ``asyncio.timeout``.
    """

    __slots__ = ("_cancellings", "_deadlines", "_is_expired", "_task", "expires")

    def __init__(self, deadlines: "Deadlines", task: asyncio.Task[object], *, expires: float) -> None:
        self.expires: Final = expires
        self._deadlines: Final = deadlines
        self._task: Final = task
        self._cancellings: Final = task.cancelling()
        self._is_expired = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        if not self._is_expired:
            self._deadlines.discard(self)
        elif self._task.uncancel() <= self._cancellings and kind is asyncio.CancelledError:
            raise TimeoutError from error

    def expire(self) -> None:
        self._is_expired = True
        self._task.cancel()


class Deadlines:
    """Open deadlines of one event loop, all with the same timeout."""

    def __init__(self, seconds: float) -> None:
        self._seconds: Final = seconds
        # A dictionary, in the order of their expiry.
        self._open: Final[dict[Deadline, None]] = {}
        self._timer: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._open)

    def start(self) -> Deadline:
        """Return a deadline for the current task that starts now."""
        loop = asyncio.get_running_loop()
        task = asyncio.current_task(loop)
        assert task is not None, "every request runs in a task"
        deadline = Deadline(self, task, expires=loop.time() + self._seconds)
        self._open[deadline] = None
        if self._timer is None:
            self._timer = loop.call_at(deadline.expires, self._look)
        return deadline

    def discard(self, finished: Deadline) -> None:
        del self._open[finished]

    def _look(self) -> None:
        loop = asyncio.get_running_loop()
        now = loop.time()
        expired = []
        self._timer = None
        for oldest in self._open:
            if oldest.expires > now:
                self._timer = loop.call_at(oldest.expires, self._look)
                break
            expired.append(oldest)
        for late in expired:
            del self._open[late]
            late.expire()
