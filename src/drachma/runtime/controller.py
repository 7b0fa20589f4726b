"""Controllers: workers that bring one object after another to its desired state, again and again.

A controller is a function from a key to nothing, or to the time of the next reconcile. It reconciles the current state,
not single changes. If it fails, the key comes back later, and other keys are not held up. Also here: acting at regular
times.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Hashable, Iterable, Sequence
from typing import Any, Final, NamedTuple, Protocol, TypeAlias, TypeVar

from drachma import errors
from drachma.runtime import defects, surroundings, workqueue
from drachma.runtime.clock import Clock

KeyT = TypeVar("KeyT", bound=Hashable)

_AT_ONCE: Final = 20
"""Concurrent requests of a controller that has several writes to make."""

_log = logging.getLogger(__name__)


class After(NamedTuple):
    """Reconcile again after so many seconds, though nothing has failed."""

    seconds: float


class Again(NamedTuple):
    """Reconcile again as after a failure, with growing pauses, though nothing has failed."""


AGAIN: Final = Again()

Reconcile: TypeAlias = Callable[[KeyT], Awaitable[After | Again | None]]


class Controller(Protocol):
    """One controller: built on the informers it needs, then run until cancelled once they are synced."""

    @property
    def name(self) -> str: ...

    async def run(self) -> None: ...


async def run_all(around: surroundings.Surroundings, controllers: Iterable[Controller]) -> None:
    """Run controllers concurrently, with the recorders of their events, until cancelled.

    The informers must run already. A controller that raises ends them all.
    """
    await around.informers.wait_synced()
    async with asyncio.TaskGroup() as group:
        for component, recorder in around.recorders.items():
            group.create_task(recorder.run(), name=f"events of {component}")
        for each in controllers:
            _log.debug("%s controller starts", each.name)
            group.create_task(each.run(), name=f"{each.name} controller")


async def work(queue: workqueue.Queue[KeyT], reconcile: Reconcile[KeyT], *, workers: int) -> None:
    """Work off a queue until cancelled."""
    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(workers):
                group.create_task(_worker(queue, reconcile))
    finally:
        queue.close()


async def _worker(queue: workqueue.Queue[KeyT], reconcile: Reconcile[KeyT]) -> None:
    while True:
        key = await queue.get()
        try:
            await _reconcile_one(queue, key, reconcile)
        finally:
            queue.done(key)


async def _reconcile_one(queue: workqueue.Queue[KeyT], key: KeyT, reconcile: Reconcile[KeyT]) -> None:
    try:
        again = await reconcile(key)
    except errors.ObjectConflictError as error:
        # Another writer was faster. That is normal, and the watch is about to report its write.
        _log.debug("%s: %s: %s", queue.name, key, error)
        queue.retry(key)
    except errors.DrachmaError as error:
        _log.warning("%s: %s: %s", queue.name, key, error)
        queue.retry(key)
    except Exception:
        # A defect with one object must not hold up the others.
        defects.PROCESS.report(queue.name, key)
        queue.retry(key)
    else:
        if isinstance(again, Again):
            queue.retry(key)
            return
        queue.forget(key)
        if again is not None:
            queue.add_after(key, again.seconds)


async def together(*parts: Coroutine[Any, Any, None]) -> None:
    """Run the parts of a controller concurrently until cancelled."""
    async with asyncio.TaskGroup() as group:
        for part in parts:
            group.create_task(part)


async def every(seconds: float, act: Callable[[], Awaitable[None]], *, clock: Clock, name: str) -> None:
    """Act now and after every pause, until cancelled."""
    while True:
        try:
            await act()
        except errors.DrachmaError as error:
            _log.warning("%s: %s", name, error)
        except Exception:
            defects.PROCESS.report(name, f"trying again in {seconds:g} seconds")
        await clock.sleep(seconds)


async def slow_start(acts: Sequence[Callable[[], Awaitable[None]]]) -> None:
    """Make all writes in batches that grow, so that few requests are made if all are refused.

    No batch begins after one in which a write failed; the first error of that batch is raised.
    """
    begin, size = 0, 1
    while begin < len(acts):
        await side_by_side(acts[begin : begin + size])
        begin, size = begin + size, size * 2


async def side_by_side(acts: Iterable[Callable[[], Awaitable[None]]]) -> None:
    """Make all writes, some at a time. A failure does not stop the others; the first error is raised in the end."""
    room = asyncio.Semaphore(_AT_ONCE)

    async def act_in_turn(act: Callable[[], Awaitable[None]]) -> None:
        async with room:
            await act()

    outcomes = await asyncio.gather(*map(act_in_turn, acts), return_exceptions=True)
    for outcome in outcomes:
        if isinstance(outcome, BaseException):
            raise outcome
