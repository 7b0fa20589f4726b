"""Lanes: threads next to the event loop for large pieces of work.

One event loop serves all requests, so long work on it delays all of them. Python switches between threads every few
milliseconds: work in a lane takes as long as on the loop, and other requests are answered in the meantime. Each size of
work has its own lane, so small work does not wait for large work.

The store and other state of the event loop are read on the loop (:meth:`Lanes.call_on_loop`); work in a lane waits
for the result. So work in a lane shares no mutable state.
"""

import asyncio
import concurrent.futures
import threading
from collections.abc import Callable, Sequence
from typing import Final, ParamSpec, TypeVar

from drachma.api import typeinfo

LARGE: Final = 32 * 1024
"""Bytes from which on work is large: on the loop, work of this size takes up to some 50 ms."""

VERY_LARGE: Final = 256 * 1024
"""Bytes from which on work would delay merely large work for too long."""

_READING_THREADS: Final = 2

_LOOK_SECONDS: Final = 1.0
"""Interval at which a waiting thread checks whether the loop still runs."""

_P = ParamSpec("_P")
_T = TypeVar("_T")


class Lane:
    """One thread, or several; work is started in the order of arrival."""

    def __init__(self, here: threading.local, *, threads: int = 1) -> None:
        self._here: Final = here
        self._threads: Final = concurrent.futures.ThreadPoolExecutor(max_workers=threads, thread_name_prefix="lane")
        self._is_used = False

    async def run(self, work: Callable[[], _T]) -> _T:
        """Run ``work`` and return its result or raise its exception.

        It is not started if its caller is cancelled before; once started, it runs to its end.
        """
        loop = asyncio.get_running_loop()
        if not self._is_used:
            self._is_used = True
            typeinfo.build()

        def begin() -> _T:
            self._here.loop = loop
            return work()

        return await loop.run_in_executor(self._threads, begin)


class Lanes:
    """The lanes of one application: for writes, each from some size on, and for reads."""

    def __init__(self, sizes: Sequence[int] = (LARGE, VERY_LARGE)) -> None:
        """``sizes`` ascend. A lane has threads once it has work."""
        self._here: Final = threading.local()
        self.least: Final = sizes[0]
        self.all: Final = tuple(Lane(self._here) for _ in sizes)
        self.costly: Final = Lane(self._here)
        """For work that turned out to take long, whatever its size."""
        self.reading: Final = Lane(self._here, threads=_READING_THREADS)
        self._by_size: Final = tuple(zip(sizes, self.all, strict=True))[::-1]

    def of(self, size: int) -> Lane | None:
        """Return the lane for work of a size; None for work that is not large."""
        return next((lane for least, lane in self._by_size if size >= least), None)

    def call_on_loop(self, function: Callable[_P, _T], *arguments: _P.args, **options: _P.kwargs) -> _T:
        """Call a function on the event loop and return its result or raise its exception.

        The call is immediate unless the caller is in a lane.

        Raises:
            RuntimeError: the loop is closed.
        """
        loop: asyncio.AbstractEventLoop | None = getattr(self._here, "loop", None)
        if loop is None:
            return function(*arguments, **options)
        answer: concurrent.futures.Future[_T] = concurrent.futures.Future()

        def call() -> None:
            try:
                answer.set_result(function(*arguments, **options))
            except Exception as error:
                answer.set_exception(error)

        loop.call_soon_threadsafe(call)
        while True:
            try:
                return answer.result(_LOOK_SECONDS)
            except TimeoutError:
                if answer.done():
                    raise
                if loop.is_closed():
                    raise RuntimeError("the event loop was closed before it answered") from None
