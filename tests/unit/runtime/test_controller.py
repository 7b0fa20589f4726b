"""Workers: what becomes of keys whose work succeeds, fails, or wants to be done again."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

import prometheus_client
import pytest

from drachma import errors
from drachma.runtime import controller, queuemetrics, workqueue
from drachma.testing import manualclock as clocks


class Bench:
    """Workers on a queue, with outcomes written down beforehand for each key."""

    def __init__(self, clock: clocks.ManualClock) -> None:
        self.clock = clock
        self.queue: workqueue.Queue[str] = workqueue.Queue(
            "test", clock=clock, metrics=queuemetrics.Metrics(prometheus_client.CollectorRegistry())
        )
        self.outcomes: dict[str, list[controller.After | Exception | asyncio.Event]] = {}
        self.calls: list[str] = []

    async def reconcile(self, key: str) -> controller.After | None:
        self.calls.append(f"{key}@{self.clock.monotonic() - 1000:g}")
        outcomes = self.outcomes.get(key)
        if not outcomes:
            return None
        outcome = outcomes.pop(0)
        if isinstance(outcome, Exception):
            raise outcome
        if isinstance(outcome, asyncio.Event):
            await outcome.wait()
            return None
        return outcome


@contextlib.asynccontextmanager
async def working(workers: int = 1) -> AsyncIterator[Bench]:
    bench = Bench(clocks.ManualClock())
    task = asyncio.create_task(controller.work(bench.queue, bench.reconcile, workers=workers))
    yield bench
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task


async def test_what_wants_to_come_again_does() -> None:
    async with working() as bench:
        bench.outcomes["a"] = [controller.After(30)]
        bench.queue.add("a")
        await bench.clock.advance(100)
    assert bench.calls == ["a@0", "a@30"]


@pytest.mark.parametrize(
    ("error", "want_level"),
    [
        pytest.param(errors.UnreachableError("no answer"), "WARNING", id="refused"),
        pytest.param(errors.ObjectConflictError({"message": "too late"}), "", id="conflict-is-no-news"),
        pytest.param(KeyError("oops"), "ERROR", id="defect"),
    ],
)
async def test_what_fails_comes_again_later(
    error: Exception, want_level: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with working() as bench:
        bench.outcomes["a"] = [error, error]
        bench.queue.add("a")
        bench.queue.add("b")
        await bench.clock.advance(1)
    assert bench.calls == ["a@0", "b@0", "a@0.005", "a@0.015"]
    assert bench.queue.failures("a") == 0, "success ends the series"
    levels = {record.levelname for record in caplog.records if record.levelno > 10}
    assert levels == ({want_level} if want_level else set())


async def test_workers_do_not_wait_for_each_other() -> None:
    async with working(workers=2) as bench:
        gate = asyncio.Event()
        bench.outcomes["slow"] = [gate]
        for key in ("slow", "a", "b"):
            bench.queue.add(key)
        await clocks.settle()
        assert bench.calls == ["slow@0", "a@0", "b@0"]
        assert not bench.queue.is_idle
        gate.set()
        await clocks.settle()
        assert bench.queue.is_idle


async def test_acting_at_regular_times_survives_failure(caplog: pytest.LogCaptureFixture) -> None:
    clock, times = clocks.ManualClock(), list[float]()

    async def act() -> None:
        times.append(clock.monotonic() - 1000)
        if len(times) == 2:
            raise errors.UnreachableError("no answer")

    task = asyncio.create_task(controller.every(20, act, clock=clock, name="test"))
    await clock.advance(50)
    task.cancel()
    assert times == [0, 20, 40]
    assert "test: no answer" in caplog.text


async def test_side_by_side_does_everything_before_it_fails() -> None:
    done: list[int] = []

    async def act(number: int) -> None:
        if number == 3:
            raise errors.UnreachableError("three")
        done.append(number)

    with pytest.raises(errors.UnreachableError, match="three"):
        await controller.side_by_side([lambda n=n: act(n) for n in range(50)])  # type: ignore[misc]
    assert done == [n for n in range(50) if n != 3]
