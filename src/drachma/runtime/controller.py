"""What all controllers are: workers that bring one object after another to where it should be, again and again.

A controller is written as a function from a key to nothing, or to when it wants to see the key again. It looks at the
world as it is, not at what changed. When it fails, the key comes back later; other keys are not held up. Also here:
acting at regular times.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Hashable, Iterable, Sequence
from typing import Any, Final, NamedTuple, Protocol, TypeAlias, TypeVar

from drachma import errors
from drachma.runtime import clock, surroundings, workqueue

KeyT = TypeVar("KeyT", bound=Hashable)

_AT_ONCE: Final = 20
"""Requests that a controller has under way at once when it has a list of things to do."""

_log = logging.getLogger(__name__)


class After(NamedTuple):
    """To be looked at again after so many seconds, though nothing has failed."""

    seconds: float


class Again(NamedTuple):
    """To be looked at again as if it had failed, after pauses that grow, though nothing is wrong."""


AGAIN: Final = Again()

Reconcile: TypeAlias = Callable[[KeyT], Awaitable[After | Again | None]]


class Controller(Protocol):
    """One controller: built on the informers it needs, then run once they are synced, until cancelled."""

    @property
    def name(self) -> str: ...

    async def run(self) -> None: ...


async def run_all(around: surroundings.Surroundings, controllers: Iterable[Controller]) -> None:
    """Runs controllers side by side, with the recorders of their events, until cancelled.

    The informers run already, or nothing begins; a controller that fails for good ends them all.
    """
    await around.informers.wait_synced()
    async with asyncio.TaskGroup() as group:
        for component, recorder in around.recorders.items():
            group.create_task(recorder.run(), name=f"events of {component}")
        for each in controllers:
            _log.info("%s controller starts", each.name)
            group.create_task(each.run(), name=f"{each.name} controller")


async def work(queue: workqueue.Queue[KeyT], reconcile: Reconcile[KeyT], *, workers: int) -> None:
    """Works off a queue until cancelled."""
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
        # Somebody else was faster. That is daily business, and the news of it are under way.
        _log.debug("%s: %s: %s", queue.name, key, error)
        queue.retry(key)
    except errors.DrachmaError as error:
        _log.warning("%s: %s: %s", queue.name, key, error)
        queue.retry(key)
    except Exception:
        # A defect, but of one object: those of others must not suffer.
        _log.exception("%s: %s: failed unexpectedly", queue.name, key)
        queue.retry(key)
    else:
        if isinstance(again, Again):
            queue.retry(key)
            return
        queue.forget(key)
        if again is not None:
            queue.add_after(key, again.seconds)


async def together(*parts: Coroutine[Any, Any, None]) -> None:
    """Runs the parts of a controller side by side until cancelled."""
    async with asyncio.TaskGroup() as group:
        for part in parts:
            group.create_task(part)


async def every(seconds: float, act: Callable[[], Awaitable[None]], *, time: clock.Clock, name: str) -> None:
    """Acts now and after every pause, until cancelled."""
    while True:
        try:
            await act()
        except errors.DrachmaError as error:
            _log.warning("%s: %s", name, error)
        except Exception:
            _log.exception("%s: failed unexpectedly", name)
        await time.sleep(seconds)


async def slow_start(acts: Sequence[Callable[[], Awaitable[None]]]) -> None:
    """Does all of it in batches that grow, so that where everything is refused few requests are made.

    Nothing is begun after a batch in which something failed; the first error of that batch is raised.
    """
    begin, size = 0, 1
    while begin < len(acts):
        await side_by_side(acts[begin : begin + size])
        begin, size = begin + size, size * 2


async def side_by_side(acts: Iterable[Callable[[], Awaitable[None]]]) -> None:
    """Does all of it, some at a time; what fails holds up nothing else, and the first error is raised in the end."""
    room = asyncio.Semaphore(_AT_ONCE)

    async def act_in_turn(act: Callable[[], Awaitable[None]]) -> None:
        async with room:
            await act()

    outcomes = await asyncio.gather(*map(act_in_turn, acts), return_exceptions=True)
    for outcome in outcomes:
        if isinstance(outcome, BaseException):
            raise outcome
