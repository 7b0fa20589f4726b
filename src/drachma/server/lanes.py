"""Lanes: threads beside the event loop, in which large pieces of work are done.

Everybody is served by one event loop, so what takes long there makes everybody wait. Python runs one thread at a time,
but changes between them every few milliseconds: work in a lane takes as long as it would take anyway, and others are
answered meanwhile. Small work does not get behind large: there is a lane for each size.

What the loop owns, such as the store and what follows it, is asked for on the loop (:meth:`Lanes.on_loop`), by work in
a lane, too, which waits for the answer. So what is done in a lane has nothing that changes in common with anybody.
"""

import asyncio
import concurrent.futures
import threading
from collections.abc import Callable, Sequence
from typing import Final, ParamSpec, TypeVar

LARGE: Final = 32 * 1024
"""Bytes from which on a piece of work is large: on the loop, those of this size take up to some 50 ms."""

VERY_LARGE: Final = 256 * 1024
"""Bytes from which on it would make the merely large ones wait for too long."""

_READING_THREADS: Final = 2

_LOOK_SECONDS: Final = 1.0
"""How often whoever waits for the loop looks whether there still is one."""

_P = ParamSpec("_P")
_T = TypeVar("_T")


class Lane:
    """One thread, unless there are more of them; work is begun in the order that it comes in."""

    def __init__(self, here: threading.local, *, threads: int = 1) -> None:
        self._here: Final = here
        self._threads: Final = concurrent.futures.ThreadPoolExecutor(max_workers=threads, thread_name_prefix="lane")

    async def run(self, work: Callable[[], _T]) -> _T:
        """What ``work`` returns or raises.

        It is not begun if its caller is cancelled before; once begun, it is ended.
        """
        loop = asyncio.get_running_loop()

        def begin() -> _T:
            self._here.loop = loop
            return work()

        return await loop.run_in_executor(self._threads, begin)


class Lanes:
    """The lanes of one application: for what is written, each from some size on, and for what is read."""

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
        """The lane for work of a size; None for work that is not large."""
        return next((lane for least, lane in self._by_size if size >= least), None)

    def on_loop(self, function: Callable[_P, _T], *arguments: _P.args, **options: _P.kwargs) -> _T:
        """What a function returns or raises, called on the event loop: at once, unless the caller is in a lane.

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
